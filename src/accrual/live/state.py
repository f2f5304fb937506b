"""What is known of every arm, whatever the policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from accrual.live.config import Config
from accrual.live.estimate import estimate
from accrual.live.follow import Follower
from accrual.policy.age import AgePolicy
from accrual.policy.age_imed import AgeIMED
from accrual.store.base import Store


class ArmState(NamedTuple):
    """An arm, by what has arrived.

    The estimate is of what one decision pays on average by the age `reached`, the greatest that one
    has reached: of its total, once a window has closed. It is the sum over ages of what the decisions
    that have reached each age paid there, on average; where all have closed, the plain mean of their
    totals. The interval aims at 95 % and is a heuristic: it covers less while many windows are open, and
    it is for one look at one arm, not for stopping a test (see docs/live.md).
    """

    name: str
    cap: float
    retired: bool
    decisions: int
    pending: int
    observed: float  # all that arrived in time
    estimate: float | None  # None while nothing is known
    interval: tuple[float, float] | None
    reached: float
    share: float  # of the last 1,000 decisions
    spread: list[float]  # how its pay divides over the ages between `State.ages`


class State(NamedTuple):
    """A bandit, as of one position of its log."""

    name: str
    position: int
    at: float  # the time of the last event
    decisions: int
    pending: int
    late: int  # pieces that came too late
    ages: list[float]  # where the parts of `ArmState.spread` end
    arms: list[ArmState]


class Observer:
    """Sees to it that there are estimates: the policy's own, if it is an Age policy, or its own.

    Parameters
    ----------
    store : Store
    bandit : int
        Its number in the store.
    config : Config
    follower : Follower
        The bandit's.
    """

    def __init__(self, store: Store, bandit: int, config: Config, follower: Follower) -> None:
        self._store = store
        self._bandit = bandit
        self._config = config
        self._follower = follower
        self._own = follower if isinstance(config.policy, AgePolicy) else None

    def state(self, name: str, name_of: Callable[[int], str]) -> State:
        """The state now. For other policies than Age ones, this first reads what is new in the log."""
        own = self._watching()
        ledger, watched = self._follower.ledger, own.ledger
        pending = ledger.pending_by_arm
        recent = np.bincount(ledger.recent, minlength=len(pending)) / max(len(ledger.recent), 1)
        playing = set(ledger.arms)
        arms = []
        for arm in range(len(pending)):
            cap = float(ledger.caps[arm])
            found = estimate(watched.params, watched.stats, arm)
            mean = interval = None
            reached = 0.0
            if found is not None:
                low, high = (-np.inf, np.inf) if self._config.allow_negative else (0.0, cap)
                mean = cap * found.mean
                interval = (max(cap * found.interval[0], low), min(cap * found.interval[1], high))
                reached = float(watched.edges[found.reached - 1])
            arms.append(
                ArmState(
                    name_of(arm),
                    cap,
                    arm not in playing,
                    int(ledger.stats.pulls[arm]),
                    int(pending[arm]),
                    float(ledger.sums[arm]),
                    mean,
                    interval,
                    reached,
                    float(recent[arm]),
                    [] if found is None else found.spread.tolist(),
                )
            )
        return State(
            name,
            self._follower.position,
            ledger.now if ledger.decisions else 0.0,
            ledger.decisions,
            ledger.pending,
            ledger.late,
            watched.edges.tolist(),
            arms,
        )

    def _watching(self) -> Follower:
        if self._own is None:
            config = self._config
            self._own = Follower(
                self._store, self._bandit, lambda: config.ledger(AgeIMED()), 1.0 if config.rounds else 0.0
            )
        if self._own is not self._follower:
            self._own.catch_up()
        return self._own

    def keep(self) -> None:
        """Save a snapshot, if this has a ledger of its own."""
        if self._own is not None and self._own is not self._follower:
            self._own.keep(now=True)
