"""Explain why a decision got its arm."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from accrual.core.errors import InputError
from accrual.core.features import FeatureValue
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


@dataclass(frozen=True)
class Reason:
    """What the policy knew of an arm in play when it made a decision."""

    arm: str
    index: float | None
    """The policy chooses the arm with the largest index. None if nothing was known about the arm."""
    terms: dict[str, float]
    """What the index is made of, as the policy names it."""
    estimate: float | None
    """As in the state, at that moment; None while nothing was known, and unless the policy's name begins with
    Age."""


@dataclass(frozen=True)
class Explanation:
    """Why a decision chose its arm."""

    id: int
    arm: str
    at: float
    """The round, or the time in seconds since 1970."""
    propensity: float | None
    """The probability with which the arm was chosen; None without a floor."""
    first: bool
    """Whether the arm was chosen because nothing was known about it yet."""
    drawn: bool
    """Whether the arm was drawn at random, because of the floor, in place of the policy's own choice."""
    reasons: list[Reason]
    exact: bool
    """Whether the state, computed again from the log, gives the same choice."""
    context: dict[str, FeatureValue] = field(default_factory=dict)
    """The decision's context; empty for a bandit without features."""


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
    values, playing = ledger.statistics.values, ledger.arms.in_play
    others = not known[playing].all() or values[row.arm] < values[playing].max()
    context = {} if features is None or contexts is None else features.read_back(contexts[-1].tolist())
    return Explanation(
        id=row.id,
        arm=name(row.arm),
        at=row.at,
        propensity=row.propensity,
        first=turn,
        drawn=bool(exact and ledger.limits.any and not turn and others),
        reasons=reasons,
        exact=exact,
        context=context,
    )
