"""AgeTS: Thompson sampling on age-wise estimates."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from accrual.core.jit import njit
from accrual.core.random import accepted, beta_from, pair, proposal, proposed
from accrual.policies.age.learning import AgePolicy, Params, learning, surveying
from accrual.policies.age.learning import Stats as AgeStats
from accrual.policies.base import Functions, Moment
from accrual.policies.scalars import in_turn

# Fields beyond those of the Age policies: the law to draw from and its `proposal`, intermediate values of a
# draw, and the draw, negative where it was not accepted. They are for two attempts of each arm: 2 k and
# 2 k + 1 are those of arm k. The last ones belong to no arm: they fill up a vector register.
_OWN = ("a", "b", "slope", "gamma", "u", "z", "tilt", "odds", "draw")
_REGISTER = 8  # numbers in the largest vector register
_make: Any = namedtuple  # the type checker takes no fields that are not written out
Stats = _make("Stats", AgeStats._fields + _OWN, module=__name__)


@njit
def find_law(params: Params, stats: Any, arm: int, m: float) -> None:
    """Find the law to draw from, of mean `m`, after the arm's estimate or its decisions have changed."""
    k = np.uint64(arm)
    n = (stats.pulls[k] + params.k0) * m * (1.0 - m) / stats.variance[k]
    a, b = m * n, (1.0 - m) * n
    slope, gamma = proposal(a, b)
    for attempt in range(2):
        i = np.uint64(2 * arm + attempt)
        stats.a[i], stats.b[i], stats.slope[i], stats.gamma[i] = a, b, slope, gamma


estimate_arms = surveying(find_law)


@njit
def decided(params: Params, stats: Any, arm: int) -> None:
    """Let the next survey find the arm's law again, which depends on its decisions."""
    stats.stale[arm] = True


@njit
def survey(params: Params, stats: Any, moment: Moment) -> None:
    """Estimate the arms that have news, and draw for every arm.

    Each step of `beta` is taken for all arms before the next, in loops that a compiler can vectorise. At
    least 11 of 100 attempts are not accepted. A second attempt for every arm takes less time than a branch to
    those that need it, which a processor often guesses wrong.
    """
    estimate_arms(params, stats, moment)
    count = len(stats.draw)
    for i in range(count):
        k = np.uint64(i)
        u, v = pair((moment.seed, moment.run), moment.round, i >> 1, i & 1)
        stats.u[k], stats.z[k] = u, u * u * v
    for i in range(count):
        k = np.uint64(i)
        stats.tilt[k], stats.odds[k] = proposed(stats.a[k], stats.b[k], stats.slope[k], stats.u[k])
    for i in range(count):
        k = np.uint64(i)
        stats.draw[k] = accepted(
            stats.a[k], stats.b[k], stats.gamma[k], stats.tilt[k], stats.odds[k], stats.z[k]
        )


@njit
def index(params: Params, stats: Any, arm: int, moment: Moment) -> float:
    """cap * a draw from Beta(m nB, (1 - m) nB), nB from all decisions"""
    k, i = np.uint64(arm), np.uint64(2 * arm)
    if stats.weight[k] <= 0.0:
        return in_turn(stats.pulls[k])
    first, second = stats.draw[i], stats.draw[i + np.uint64(1)]
    draw = first if first >= 0.0 else second
    if draw < 0.0:
        draw = beta_from(stats.a[i], stats.b[i], (moment.seed, moment.run), moment.round, arm, 2)
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

    functions: ClassVar[Functions] = learning(index, survey)._replace(decided=decided)

    def stats(self, params: Params) -> Any:
        attempts = -(-2 * len(params.cap) // _REGISTER) * _REGISTER
        return Stats(*super().stats(params), *np.ones((len(_OWN), attempts)))
