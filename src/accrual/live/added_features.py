"""Features that are added to a bandit that has decided already."""

from __future__ import annotations

from typing import Any

from accrual.core.errors import InputError
from accrual.core.features import Features, feature_bytes
from accrual.live.commit import Commits
from accrual.live.log_follower import LogFollower
from accrual.live.widening import widened
from accrual.store.base import AddFeature, Status


def add_feature(commits: Commits, follower: LogFollower, name: str, kind: Any) -> bool:
    """Add a feature to a bandit; return False if it has the same one already.

    What the ledger has of the log decides whether there may be such a feature. If another worker adds one at
    this moment the store refuses this one, whose number is then taken, and the question is asked anew.
    """
    while True:
        with commits.turn:
            commits.catch_up()
            ledger = follower.ledger
            there = {} if ledger.visitors.features is None else ledger.visitors.features.kinds
            if name in there:
                if Features({name: kind}).kinds[name] == there[name]:
                    return False
                declared = "bool" if there[name] is bool else there[name]
                raise InputError(
                    f"there is a feature {name!r} already, declared as {declared}, which cannot be changed; "
                    "give the new one another name"
                )
            features = ledger.visitors.with_feature(name, kind)
            widened(ledger.policy, ledger.arms.caps, ledger.window, ledger.stats, features)  # it may refuse
            number = ledger.visitors.added
        (answer,) = commits.submit((AddFeature(number, feature_bytes(name, kind)),))
        if answer.status is Status.STORED:
            return True
