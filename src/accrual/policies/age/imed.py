"""AgeIMED: IMED on age-wise estimates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from accrual.core.jit import njit
from accrual.policies.age.learning import SCORE, AgePolicy, Params, Stats, learning
from accrual.policies.age.learning import survey as take_stock
from accrual.policies.base import Functions, Moment
from accrual.policies.scalars import bernoulli_count, in_turn, kl

_LOG2 = math.log(2.0)


@njit
def survey(params: Params, stats: Stats, moment: Moment) -> None:
    take_stock(params, stats, moment)
    leader = stats.leader[0]
    stats.shared[SCORE] = math.inf
    if stats.weight[leader] > 0.0:
        n = bernoulli_count(stats.pulls[leader], stats.mean[leader], stats.variance[leader])
        stats.shared[SCORE] = math.log(n)


@njit
def index(params: Params, stats: Stats, arm: int, moment: Moment) -> float:
    """-(nB kl(m, m*) + ln nB), nB from *all* decisions: what is in flight need not be tried again"""
    if stats.weight[arm] <= 0.0:
        return in_turn(stats.pulls[arm])
    m = stats.mean[arm]
    n = bernoulli_count(stats.pulls[arm], m, stats.variance[arm])
    leader = stats.leader[0]
    target = stats.mean[leader] * params.cap[leader] * params.inverse_cap[arm]
    if target <= m:
        return -math.log(n)
    # Pinsker's bound on kl and n's binary exponent put most arms out of the leader's reach
    # without a logarithm of their own; for those, the bound itself says so.
    least = 2.0 * n * (target - m) ** 2 + _LOG2 * ((np.float64(n).view(np.int64) >> 52) - 1023)
    if least > stats.shared[SCORE]:
        return -least
    return -(n * kl(m, target) + math.log(n))


@dataclass(frozen=True)
class AgeIMED(AgePolicy):
    """IMED that learns from every piece and needs no spread.

    A heuristic: in simulation its regret is mostly near that of a learner that sees every total at
    once, but no bound is proved. The default is AgePrior. AgeIMED has less regret where caps are far above
    any total, and a little less where the window is longer than the horizon and pay comes late
    (docs/age_prior.md).

    Examples
    --------
    >>> AgeIMED().label
    'AgeIMED'
    """

    functions: ClassVar[Functions] = learning(index, survey)
