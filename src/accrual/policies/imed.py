"""IMED (Honda and Takemura, 2015) on totals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from accrual.core.jit import njit
from accrual.policies.base import Functions, Moment
from accrual.policies.scalars import bernoulli_count, in_turn, kl
from accrual.policies.totals import Params, Stats, TotalsPolicy, closed, survey


@njit
def index(params: Params, stats: Stats, arm: int, moment: Moment) -> float:
    """-(nB kl(m, m*) + ln nB), m* the leader's mean in this arm's caps"""
    if stats.closed[arm] == 0:
        return in_turn(stats.pulls[arm])
    m = stats.mean[arm]
    n = bernoulli_count(stats.closed[arm], m, stats.variance[arm])
    target = stats.leader[0] / params.cap[arm]
    return -(n * kl(m, target) + math.log(n)) if target > m else -math.log(n)


@dataclass(frozen=True)
class IMED(TotalsPolicy):
    """IMED on totals, with counts in the scale of the totals' own variance.

    For totals that are 0 or the cap this is IMED itself; otherwise the count is a heuristic (see
    `accrual.policies.scalars`).

    Examples
    --------
    >>> IMED().label
    'IMED(waiting)'
    """

    functions: ClassVar[Functions] = Functions(index=index, survey=survey, closed=closed)
