"""What choosing by context is worth: intervals from decisions with known propensities, or why there are none.

A linear model (`accrual.core.reward_model`) makes two choices for decisions that it was not fitted to. One is
the best arm for each decision's context; the other is the one arm that is best on average. Both choices are
scored with the propensities, and the difference of the scores is what contexts are worth.
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
_ASTRAY = 6.0  # standard errors by which weights may miss their expected sum


@dataclass(frozen=True)
class Winner:
    """A part of the decisions for which another arm pays more than the arm that is best for all."""

    part: str
    """The part, by a feature, such as ``"country=us"``."""
    decisions: int
    arm: str
    """The arm that pays more there."""
    than: str
    """The arm that pays best for all."""
    more: Interval
    """How much more it pays per decision. All such intervals hold together with 95 %."""


@dataclass(frozen=True)
class ContextValue:
    """What choosing by context is worth."""

    more: Interval | None = None
    """How much more a decision pays if a linear model chooses its arm by context than if every decision gets
    the arm that pays best on average. None if that cannot be told (`reason` says why)."""
    chosen: Interval | None = None
    pays: Interval | None = None
    """What a decision pays if the model chooses its arm (`chosen`), and one of the best arm (`pays`)."""
    single: str = ""
    """The best arm; several arms if folds of the decisions disagree on it."""
    effective: float = 0.0
    """How many decisions of equal weight the interval rests on."""
    reason: str = ""
    """Why nothing can be told; empty if something can."""
    winners: tuple[Winner, ...] = ()
    """The parts for which another arm pays more."""


def context_value(
    observed: Observed,
    arms: tuple[str, ...],
    features: Features,
    learning: bool = False,
    choosable: Bools | None = None,
) -> ContextValue:
    """Judge what choosing by context is worth.

    Parameters
    ----------
    arms : tuple of str
        The names of the arms.
    features : Features
        The features of the contexts.
    learning : bool
        Whether the decisions were made by a bandit that learned from the earlier ones. The decisions must
        then be in the order in which they were made.
    choosable : ndarray of bool, optional
        Which arms may be chosen; all unless given.
    """
    if np.count_nonzero(np.bincount(observed.arm, minlength=1) >= 2 * LEAST) < 2:
        return ContextValue(reason=f"fewer than two arms have {2 * LEAST} decisions")
    found = cross_fit(observed, "in time" if learning else "forward", choosable)
    if not np.isfinite(found.expected[found.judged].max(axis=1)).all():
        return ContextValue(reason=f"the first fifth of the decisions has fewer than {LEAST} of every arm")
    best = " or ".join(arms[arm] for arm in sorted(set(found.single[found.judged].tolist())))
    effective = effective_decisions(observed, found, found.choice)
    reason = _cannot(observed, found, found.choice, effective) or _cannot(
        observed, found, found.single, effective
    )
    if reason:
        return ContextValue(single=best, effective=effective, reason=reason)
    chosen, alone = scores(observed, found, found.choice), scores(observed, found, found.single)
    winners = _winners(
        observed, found if learning else cross_fit(observed, choosable=choosable), arms, features
    )
    return ContextValue(
        more=mean_interval(chosen - alone),
        chosen=mean_interval(chosen),
        pays=mean_interval(alone),
        single=best,
        effective=effective,
        winners=winners,
    )


def _weights(observed: Observed, found: CrossFit, choice: Ints) -> Floats:
    return np.where(observed.arm == choice, 1.0 / observed.propensity, 0.0)[found.judged]


def effective_decisions(observed: Observed, found: CrossFit, choice: Ints) -> float:
    """Return how many decisions of equal weight a choice is judged by."""
    weight = _weights(observed, found, choice)
    return float(weight.sum()) ** 2 / max(float((weight**2).sum()), 1e-300)


def _cannot(observed: Observed, found: CrossFit, choice: Ints, effective: float) -> str:
    """Return why the decisions cannot judge a choice; empty if they can."""
    if effective < EFFECTIVE_LEAST:
        return (
            f"{len(choice):,} decisions count as {effective:.0f} of the model's own choices, where "
            f"{EFFECTIVE_LEAST:.0f} are needed"
        )
    weight = _weights(observed, found, choice)
    error = max(float(weight.std()), 1e-12) / math.sqrt(len(weight))
    if abs(float(weight.mean()) - 1.0) > _ASTRAY * error:
        return (
            f"the propensities do not fit the log: weighted by them, the log made {weight.sum():,.0f} of the "
            f"model's choices, and it should have made {len(weight):,}; this happens if an arm is never "
            "shown to some users"
        )
    return ""


def parts(observed: Observed, features: Features) -> list[tuple[str, Bools]]:
    """Cut decisions by each feature: its levels, yes, or above the median."""
    found = []
    for j, column in enumerate(features.columns[1:], start=1):
        number = isinstance(features.kinds.get(column), tuple)
        middle = float(np.median(observed.x[:, j])) if number else 0.5
        name = f"{column} above {_value(features, column, middle):.4g}" if number else column
        found.append((name, observed.x[:, j] > middle))
    return found


def _value(features: Features, column: str, share: float) -> float:
    low, high = features.kinds[column]
    return float(low + share * (high - low))


def _winners(
    observed: Observed, found: CrossFit, arms: tuple[str, ...], features: Features
) -> tuple[Winner, ...]:
    """Find the parts of the decisions for which another arm pays more than the arm that is best for all.

    The intervals hold together with 95 % (Bonferroni's correction over all parts and pairs of arms).
    """
    expected = found.expected[found.judged]
    best = int(np.bincount(found.single[found.judged], minlength=len(arms)).argmax())
    usable = [a for a in range(len(arms)) if a != best and np.isfinite(expected[:, a]).all()]
    if not usable or not np.isfinite(expected[:, best]).all():
        return ()
    cut = [(name, mine[found.judged]) for name, mine in parts(observed, features)]
    cut += [(name.replace(" above ", " up to "), ~mine) for name, mine in cut if " above " in name]
    cut += [(f"not {name}", ~mine) for name, mine in cut if features.kinds.get(name) is bool]
    level = 1.0 - 0.025 / (len(cut) * len(usable) * (len(usable) + 1))
    base = scores(observed, found, np.full(len(observed.arm), best))
    winners: dict[str, Winner] = {}
    for a in usable:
        more = scores(observed, found, np.full(len(observed.arm), a)) - base
        for name, mine in cut:
            if mine.sum() >= EFFECTIVE_LEAST:
                one = Winner(name, int(mine.sum()), arms[a], arms[best], mean_interval(more[mine], level))
                if one.more.low > 0.0 and (name not in winners or one.more.value > winners[name].more.value):
                    winners[name] = one
    return tuple(winners.values())
