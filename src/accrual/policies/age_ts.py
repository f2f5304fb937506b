"""AgeTS: Thompson sampling on age-wise estimates."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from accrual.core.jit import njit
from accrual.core.random import (
    SMALLEST,
    accepted,
    beta_from,
    first_shape,
    first_try,
    pair,
    quickly_accepted,
    share_of,
)
from accrual.policies.age import AgePolicy, Params, learning, surveying, top_of
from accrual.policies.age import Stats as AgeStats
from accrual.policies.base import Functions, Moment
from accrual.policies.scalars import in_turn, regularised

# Fields beyond those of the Age policies, for each arm: the law to draw from, and `first_shape` of it; the
# decisions for which these were computed, or -1; the intermediate values of a draw; and the draw, negative
# where the first attempt was not accepted. `open` lists the arms whose first attempt needs the full test.
_OWN = ("a", "b", "slope", "gamma", "shaped", "ratio", "z", "tilt", "odds", "draw", "open")
_make: Any = namedtuple  # the type checker takes no fields that are not written out
Stats = _make("Stats", AgeStats._fields + _OWN, module=__name__)


@njit
def forget_shape(stats: Any, arm: int) -> None:
    stats.shaped[arm] = -1.0


estimate_arms = surveying(forget_shape)


@njit
def survey(params: Params, stats: Any, moment: Moment) -> None:
    """Estimate the arms that have news, and draw for every arm.

    Each step of `beta` is taken for all arms before the next. A draw by itself has many branches that a
    processor guesses wrong; in loops without them the arms' draws overlap.
    """
    estimate_arms(params, stats, moment)
    arms = len(params.cap)
    for arm in range(arms):
        k = np.uint64(arm)
        if stats.shaped[k] != stats.pulls[k] and stats.weight[k] > 0.0:
            m, _ = regularised(stats.weight[k], stats.mean[k], 0.0, params.k0, top_of(stats, arm))
            n = (stats.pulls[k] + params.k0) * m * (1.0 - m) / stats.variance[k]
            stats.a[k], stats.b[k] = m * n, (1.0 - m) * n
            stats.slope[k], stats.gamma[k] = first_shape(m * n, (1.0 - m) * n)
            stats.shaped[k] = stats.pulls[k]
    for arm in range(arms):
        k = np.uint64(arm)
        u, v = pair((moment.seed, moment.run), moment.round, arm, 0)
        stats.ratio[k], stats.z[k] = max(u, SMALLEST) / (1.0 - u), u * u * v
    for arm in range(arms):
        k = np.uint64(arm)
        stats.tilt[k], stats.odds[k] = first_try(stats.a[k], stats.b[k], stats.slope[k], stats.ratio[k])
    for arm in range(arms):
        k = np.uint64(arm)
        stats.draw[k] = share_of(stats.a[k], stats.b[k], stats.odds[k])
    last = 0
    for arm in range(arms):
        k = np.uint64(arm)
        stats.open[np.uint64(last)] = arm
        last += not quickly_accepted(
            stats.a[k], stats.b[k], stats.gamma[k], stats.tilt[k], stats.odds[k], stats.z[k]
        )
    for i in range(last):
        k = np.uint64(stats.open[np.uint64(i)])
        taken = accepted(stats.a[k], stats.b[k], stats.gamma[k], stats.tilt[k], stats.odds[k], stats.z[k])
        stats.draw[k] = stats.draw[k] if taken else -1.0


@njit
def index(params: Params, stats: Any, arm: int, moment: Moment) -> float:
    """cap * a draw from Beta(m nB, (1 - m) nB), nB from all decisions"""
    k = np.uint64(arm)
    if stats.weight[k] <= 0.0:
        return in_turn(stats.pulls[k])
    draw = stats.draw[k]
    if draw < 0.0:
        tried = 1 if stats.slope[k] > 0.0 else 0
        draw = beta_from(stats.a[k], stats.b[k], (moment.seed, moment.run), moment.round, arm, tried)
    return params.cap[k] * draw


@dataclass(frozen=True)
class AgeTS(AgePolicy):
    """Thompson sampling that learns from every piece and needs no spread.

    With rewards of 0 or the cap and no delay this is Thompson sampling under a uniform prior. In
    general it is a heuristic.

    Examples
    --------
    >>> AgeTS().k0
    2.0
    """

    k0: float = 2.0

    functions: ClassVar[Functions] = learning(index, survey)

    def stats(self, params: Params) -> Any:
        arms = len(params.cap)
        own = (*np.ones((4, arms)), np.full(arms, -1.0), *np.zeros((5, arms)), np.zeros(arms, np.int64))
        return Stats(*super().stats(params), *own)
