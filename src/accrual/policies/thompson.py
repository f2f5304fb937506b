"""Thompson sampling on totals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from accrual.core.jit import njit
from accrual.core.random import beta
from accrual.policies.base import Functions, Moment
from accrual.policies.scalars import in_turn, regularised
from accrual.policies.totals import Params, Stats, TotalsPolicy, closed


@njit
def index(params: Params, stats: Stats, arm: int, moment: Moment) -> float:
    """cap * a draw from Beta(m nB, (1 - m) nB)"""
    n = stats.closed[arm]
    if n == 0:
        return in_turn(stats.pulls[arm])
    m, _ = regularised(n, stats.mean[arm], 0.0, params.k0, 1.0)
    if m >= 1.0 or stats.variance[arm] <= 0.0:
        # Totals above the cap: there is no Beta of this mean. Rounding may have left no variance either.
        return float(params.cap[arm] * m)
    count = (n + params.k0) * m * (1.0 - m) / stats.variance[arm]
    draw = beta(m * count, (1.0 - m) * count, (moment.seed, moment.run), moment.round, arm)
    return float(params.cap[arm] * draw)


@dataclass(frozen=True)
class ThompsonSampling(TotalsPolicy):
    """Thompson sampling on totals, with a Beta of the totals' own variance.

    For totals that are 0 or the cap, and ``k0=2``, the draw is from the posterior under a
    uniform prior; otherwise it is a heuristic (see `accrual.policies.scalars`).

    Examples
    --------
    >>> ThompsonSampling(immediate=True).k0
    2.0
    """

    k0: float = 2.0

    functions: ClassVar[Functions] = Functions(index=index, closed=closed)
