"""AgeTS: Thompson sampling on age-wise estimates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from accrual.core.beta import beta
from accrual.core.jit import njit
from accrual.policy.age import AgePolicy, Params, Stats, learning, top_of
from accrual.policy.base import Functions, Moment
from accrual.policy.estimate import in_turn, regularised


@njit
def index(params: Params, stats: Stats, arm: int, moment: Moment) -> float:
    """cap * a draw from Beta(m nB, (1 - m) nB), nB from all decisions"""
    if stats.weight[arm] <= 0.0:
        return in_turn(stats.pulls[arm])
    m, _ = regularised(stats.weight[arm], stats.mean[arm], 0.0, params.k0, top_of(stats, arm))
    n = (stats.pulls[arm] + params.k0) * m * (1.0 - m) / stats.variance[arm]
    draw = beta(m * n, (1.0 - m) * n, (moment.seed, moment.run), moment.round, arm)
    return params.cap[arm] * draw


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

    functions: ClassVar[Functions] = learning(index)
