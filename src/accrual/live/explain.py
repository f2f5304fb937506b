"""Explain why a decision got its arm."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from accrual.core.errors import InputError
from accrual.live.contexts import numbers_of
from accrual.live.estimate import estimate, shared_spread
from accrual.live.log_follower import LogFollower
from accrual.live.request_checks import decision_number
from accrual.policies.age_cells import CellPolicy
from accrual.policies.base import Moment
from accrual.policies.contexts import ContextualPolicy
from accrual.policies.scalars import TURN
from accrual.store.base import Store
from accrual.store.events import DecisionRow


class Reason(NamedTuple):
    """An arm's index when the decision was made."""

    arm: str
    value: float | None  # its index: the largest is chosen; None if nothing was known about the arm
    terms: dict[str, float]  # the terms of the index, as the policy names them
    estimate: float | None  # as in `ArmState`; None while nothing is known, and for policies without ages


class Explanation(NamedTuple):
    """A decision, and the index of every arm in play when it was made."""

    id: int
    arm: str
    at: float
    propensity: float | None  # the probability with which its arm was chosen; None without a floor
    first: bool  # whether it was this arm's turn, because nothing was known about it
    reasons: list[Reason]
    exact: bool  # whether a fold of the log up to there gives the same choice
    context: dict[str, Any] = {}  # noqa: RUF012  (empty for a bandit without features)


def decision_to_explain(store: Store, bandit: int, id: int, imported: int) -> DecisionRow:
    """Return a decision; raise an error if there is none, or if it is one of the first, `imported` ones."""
    number = decision_number(id)
    row = store.decision(bandit, number) if 0 <= number < 2**63 else None
    if row is None:
        raise InputError(f"no decision has the id {id!r}")
    if number < imported:
        raise InputError(f"decision {id} was imported from an old log: this bandit did not choose its arm")
    return row


def explain(
    store: Store,
    bandit: int,
    row: DecisionRow,
    follower: LogFollower,
    step: float,
    name: Callable[[int], str],
) -> Explanation:
    """Explain a decision from the log, up to the position that its worker had read.

    Earlier decisions of the same batch share that position; their arms are chosen again first.
    """
    ledger = follower.at(row.seen)
    first = row.id
    while first > ledger.decisions:
        earlier = store.decision(bandit, first - 1)
        if earlier is None or (earlier.seen, earlier.salt) != (row.seen, row.salt):
            break
        first -= 1
    made = row.id - first
    features = ledger.features
    contexts = None
    if features is not None:
        contexts = numbers_of(store.contexts(bandit, first, made + 1), len(features))
    chosen = ledger.choose(max(row.at - step * made, ledger.now), made + 1, step, row.salt, contexts)[-1]
    number = ledger.decisions + made + 1
    moment = Moment(number, math.log(max(number - 1, 1)), ledger.seed, row.salt)
    cells = ledger.statistics.trial_stats
    shared = shared_spread(cells, ledger.edges) if isinstance(ledger.policy, CellPolicy) else None
    known = ledger.statistics.values < TURN  # NaN if the policy computed no index
    reasons = []
    for arm in ledger.arms.in_play:
        terms = (
            ledger.policy.terms(ledger.params, ledger.statistics.trial_stats, arm, moment)
            if known[arm]
            else {}
        )
        if known[arm] and features is not None and isinstance(ledger.policy, ContextualPolicy):
            assert contexts is not None
            x = features.seen(contexts[-1])
            adds = ledger.policy.explain_context(
                ledger.params, ledger.statistics.trial_stats, arm, x, features.columns
            )
            terms |= {f"{column} adds": value for column, value in adds.items()}
        found = None if shared is None else estimate(cells, shared, arm)
        reasons.append(
            Reason(
                name(arm),
                float(ledger.statistics.values[arm]) if known[arm] else None,
                terms,
                None if found is None else float(ledger.arms.caps[arm]) * found.mean,
            )
        )
    turn, exact = not known[row.arm], chosen == row.arm
    context = {} if features is None or contexts is None else features.read_back(contexts[-1].tolist())
    return Explanation(
        id=row.id,
        arm=name(row.arm),
        at=row.at,
        propensity=row.propensity,
        first=turn,
        reasons=reasons,
        exact=exact,
        context=context,
    )
