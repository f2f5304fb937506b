"""KL-UCB (Garivier and Cappé, 2011) on totals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from accrual.core.jit import njit
from accrual.policies.base import Functions, Moment
from accrual.policies.scalars import bernoulli_count, in_turn, kl_upper
from accrual.policies.totals import Params, Stats, TotalsPolicy, closed


@njit
def index(params: Params, stats: Stats, arm: int, moment: Moment) -> float:
    """cap * sup{q : nB kl(m, q) <= ln t}"""
    if stats.closed[arm] == 0:
        return in_turn(stats.pulls[arm])
    m = stats.mean[arm]
    n = bernoulli_count(stats.closed[arm], m, stats.variance[arm])
    return float(params.cap[arm] * kl_upper(m, moment.log / n))


@dataclass(frozen=True)
class KLUCB(TotalsPolicy):
    """KL-UCB on totals, with counts in the scale of the totals' own variance.

    For totals that are 0 or the cap this is KL-UCB itself, which attains the Lai-Robbins
    constant; otherwise the count is a heuristic (see `accrual.policies.scalars`).

    Examples
    --------
    >>> KLUCB(immediate=True).label
    'KLUCB(immediate)'
    """

    functions: ClassVar[Functions] = Functions(index=index, closed=closed)
