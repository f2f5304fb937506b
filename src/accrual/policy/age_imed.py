"""AgeIMED: IMED on age-wise estimates. The library's default policy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from accrual.core.jit import njit
from accrual.policy.age import LEADER, AgePolicy, Params, Stats, decided, finished, survey
from accrual.policy.base import Functions, Moment
from accrual.policy.estimate import bernoulli_count, kl
from accrual.policy.totals import UNKNOWN


@njit
def index(params: Params, stats: Stats, arm: int, moment: Moment) -> float:
    """-(nB kl(m, m*) + ln nB), nB from *all* decisions: what is in flight need not be tried again"""
    if stats.weight[arm] <= 0.0:
        return UNKNOWN - stats.pulls[arm]
    m = stats.mean[arm]
    n = bernoulli_count(stats.pulls[arm], m, stats.variance[arm])
    target = stats.shared[LEADER] / params.cap[arm]
    return -(n * kl(m, target) + math.log(n)) if target > m else -math.log(n)


@dataclass(frozen=True)
class AgeIMED(AgePolicy):
    """IMED that learns from every piece and needs no spread.

    A heuristic: in simulation its regret is near that of a learner that sees every total at
    once, but no bound is proved.

    Examples
    --------
    >>> AgeIMED().label
    'AgeIMED'
    """

    functions: ClassVar[Functions] = Functions(index=index, survey=survey, decided=decided, finished=finished)
