"""What choosing by context is worth, judged by decisions whose propensities are known: intervals, or why not.

A linear model (`accrual.core.reward_model`) chooses for decisions that it was fitted without: once for each
by its context, and once the one arm for all of which it expects most on average. Both choices are scored with
the propensities. The difference is what contexts are worth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from accrual.core.arrays import Floats, Ints
from accrual.core.features import Features
from accrual.core.interval import Interval, mean_interval
from accrual.core.reward_model import LEAST, CrossFit, Observed, cross_fit, scores

Bools = npt.NDArray[np.bool_]

EFFECTIVE_LEAST = 100.0  # decisions of equal weight below which a figure would only mislead
_ASTRAY = 6.0  # standard errors by which propensities may miss


@dataclass(frozen=True)
class Winner:
    """Decisions for which another arm pays more than the best one for all.

    Attributes
    ----------
    part : str
        Whom the decisions were for, such as ``"country=us"``.
    decisions : int
    arm, than : str
        The arm that pays more there, and the one that pays best for all.
    more : Interval
        How much more it pays a decision; all such intervals hold together with 95 %.
    """

    part: str
    decisions: int
    arm: str
    than: str
    more: Interval


@dataclass(frozen=True)
class ContextValue:
    """What choosing by context is worth.

    Attributes
    ----------
    more : Interval or None
        By how much a decision pays more if its arm is chosen by a linear model of the contexts than if all
        get the arm that pays best on average; None where that cannot be told (`reason`).
    chosen, pays : Interval or None
        What a decision pays whose arm the model chooses; what one of that best arm pays.
    single : str
        That arm; several where folds of the decisions disagree on it.
    effective : float
        How many decisions of equal weight the figure rests on.
    reason : str
        Why nothing can be told; empty where something can.
    winners : tuple of Winner
        For whom another arm pays more.
    """

    more: Interval | None = None
    chosen: Interval | None = None
    pays: Interval | None = None
    single: str = ""
    effective: float = 0.0
    reason: str = ""
    winners: tuple[Winner, ...] = ()


def context_value(
    seen: Observed,
    arms: tuple[str, ...],
    features: Features,
    learning: bool = False,
    choosable: Bools | None = None,
) -> ContextValue:
    """Judge what choosing by context is worth.

    Parameters
    ----------
    seen : Observed
    arms : tuple of str
        Their names.
    features : Features
        Of the contexts.
    learning : bool
        Whether the decisions were made by a bandit that learned from the earlier ones; they are then in the
        order in which they were made.
    choosable : ndarray of bool, optional
        Which arms may be chosen; all, unless given.
    """
    if np.count_nonzero(np.bincount(seen.arm, minlength=1) >= 2 * LEAST) < 2:
        return ContextValue(reason=f"fewer than two arms have {2 * LEAST} decisions")
    found = cross_fit(seen, "in time" if learning else "forward", choosable)
    if not np.isfinite(found.expected[found.judged].max(axis=1)).all():
        return ContextValue(reason=f"the first fifth of the decisions has fewer than {LEAST} of every arm")
    best = " or ".join(arms[arm] for arm in sorted(set(found.single[found.judged].tolist())))
    effective = effective_decisions(seen, found, found.choice)
    reason = _cannot(seen, found, found.choice, effective) or _cannot(seen, found, found.single, effective)
    if reason:
        return ContextValue(single=best, effective=effective, reason=reason)
    chosen, alone = scores(seen, found, found.choice), scores(seen, found, found.single)
    winners = _winners(seen, found if learning else cross_fit(seen, choosable=choosable), arms, features)
    return ContextValue(
        mean_interval(chosen - alone),
        mean_interval(chosen),
        mean_interval(alone),
        best,
        effective,
        "",
        winners,
    )


def _weights(seen: Observed, found: CrossFit, choice: Ints) -> Floats:
    return np.where(seen.arm == choice, 1.0 / seen.propensity, 0.0)[found.judged]


def effective_decisions(seen: Observed, found: CrossFit, choice: Ints) -> float:
    """Return how many decisions of equal weight tell what a choice pays."""
    weight = _weights(seen, found, choice)
    return float(weight.sum()) ** 2 / max(float((weight**2).sum()), 1e-300)


def _cannot(seen: Observed, found: CrossFit, choice: Ints, effective: float) -> str:
    """Say why a choice cannot be judged by the decisions; nothing where it can."""
    if effective < EFFECTIVE_LEAST:
        return (
            f"{len(choice):,} decisions count as {effective:.0f} of the model's own choices, where "
            f"{EFFECTIVE_LEAST:.0f} are needed"
        )
    weight = _weights(seen, found, choice)
    error = max(float(weight.std()), 1e-12) / math.sqrt(len(weight))
    if abs(float(weight.mean()) - 1.0) > _ASTRAY * error:
        return (
            f"the propensities do not fit the log: of what a model would choose it should have chosen "
            f"{len(weight):,}, by weight, and it chose {weight.sum():,.0f}; arms that are never shown to "
            "some visitors look like this"
        )
    return ""


def parts(seen: Observed, features: Features) -> list[tuple[str, Bools]]:
    """Cut decisions by each feature: its levels, yes, or above the median."""
    found = []
    for j, column in enumerate(features.columns[1:], start=1):
        number = isinstance(features.kinds.get(column), tuple)
        middle = float(np.median(seen.x[:, j])) if number else 0.5
        name = f"{column} above {_value(features, column, middle):.4g}" if number else column
        found.append((name, seen.x[:, j] > middle))
    return found


def _value(features: Features, column: str, share: float) -> float:
    low, high = features.kinds[column]
    return float(low + share * (high - low))


def _winners(
    seen: Observed, found: CrossFit, arms: tuple[str, ...], features: Features
) -> tuple[Winner, ...]:
    """Find parts of the decisions where another arm pays more than the best one for all.

    The intervals hold together with 95 % (Bonferroni's correction over all parts and pairs of arms).
    """
    expected = found.expected[found.judged]
    best = int(np.bincount(found.single[found.judged], minlength=len(arms)).argmax())
    usable = [a for a in range(len(arms)) if a != best and np.isfinite(expected[:, a]).all()]
    if not usable or not np.isfinite(expected[:, best]).all():
        return ()
    cut = [(name, mine[found.judged]) for name, mine in parts(seen, features)]
    cut += [(name.replace(" above ", " up to "), ~mine) for name, mine in cut if " above " in name]
    cut += [(f"not {name}", ~mine) for name, mine in cut if features.kinds.get(name) is bool]
    level = 1.0 - 0.025 / (len(cut) * len(usable) * (len(usable) + 1))
    base = scores(seen, found, np.full(len(seen.arm), best))
    winners: dict[str, Winner] = {}
    for a in usable:
        more = scores(seen, found, np.full(len(seen.arm), a)) - base
        for name, mine in cut:
            if mine.sum() >= EFFECTIVE_LEAST:
                one = Winner(name, int(mine.sum()), arms[a], arms[best], mean_interval(more[mine], level))
                if one.more.low > 0.0 and (name not in winners or one.more.value > winners[name].more.value):
                    winners[name] = one
    return tuple(winners.values())
