"""AgeKL: KL-UCB on age-wise estimates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from accrual.core.jit import njit
from accrual.policies.age import AgePolicy, Params, Stats, learning
from accrual.policies.base import Functions, Moment
from accrual.policies.scalars import bernoulli_count, in_turn, kl_upper


@njit
def index(params: Params, stats: Stats, arm: int, moment: Moment) -> float:
    """cap * sup{q : nB kl(m, q) <= ln t}, nB from all decisions"""
    if stats.weight[arm] <= 0.0:
        return in_turn(stats.pulls[arm])
    m = stats.mean[arm]
    n = bernoulli_count(stats.pulls[arm], m, stats.variance[arm])
    return params.cap[arm] * kl_upper(m, moment.log / n)


@dataclass(frozen=True)
class AgeKL(AgePolicy):
    """KL-UCB that learns from every piece and needs no spread. A heuristic.

    Examples
    --------
    >>> AgeKL().label
    'AgeKL'
    """

    functions: ClassVar[Functions] = learning(index)
