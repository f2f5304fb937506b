"""UCB1 (Auer et al., 2002) on totals without delay, and DelayedUCB1 on totals of closed decisions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from accrual.core.arrays import Floats, Ints
from accrual.core.jit import njit, python_function
from accrual.policies.base import Feedback, Functions, Moment, Policy
from accrual.policies.scalars import in_turn


class Params(NamedTuple):
    cap: Floats


class Stats(NamedTuple):
    pulls: Ints
    closed: Ints  # decisions whose total is known
    total: Floats  # the sum of those totals
    mean: Floats  # total / closed; the arm's turn until one is known
    width: Floats  # cap * sqrt(1 / closed); 0 until one is known


@njit
def decided(params: Params, stats: Stats, arm: int) -> None:
    if stats.closed[arm] == 0:  # here and not in `index`, which is called for every arm in every round
        stats.mean[arm] = in_turn(stats.pulls[arm])


@njit
def closed(params: Params, stats: Stats, arm: int, total: float) -> None:
    stats.closed[arm] += 1
    stats.total[arm] += total
    inverse = 1.0 / stats.closed[arm]
    stats.mean[arm] = stats.total[arm] * inverse
    stats.width[arm] = params.cap[arm] * math.sqrt(inverse)


@njit
def index(params: Params, stats: Stats, arm: int, moment: Moment) -> float:
    """mean + cap * sqrt(2 ln(t - 1) / n)"""
    value: float = stats.mean[arm] + math.sqrt(2.0 * moment.log) * stats.width[arm]
    return value


@dataclass(frozen=True)
class UCB1(Policy):
    """UCB1 that sees the whole reward of a decision at once.

    No learner can have this when rewards take time; it is a yardstick.

    Examples
    --------
    >>> UCB1().label
    'UCB1'
    """

    feedback: ClassVar[Feedback] = "totals"
    functions: ClassVar[Functions] = Functions(index=index, decided=decided, closed=closed)

    @property
    def immediate(self) -> bool:
        return True

    @property
    def label(self) -> str:
        return type(self).__name__

    def terms(self, params: Params, stats: Stats, arm: int, moment: Moment) -> dict[str, float]:
        if not stats.closed[arm]:
            return {"closed decisions": 0.0}
        return {
            "mean of closed decisions": float(stats.mean[arm]),
            "bonus": math.sqrt(2.0 * moment.log) * float(stats.width[arm]),
        }

    def params(self, caps: Floats, window: int) -> Params:
        return Params(caps)

    def stats(self, params: Params) -> Stats:
        arms = len(params.cap)
        return Stats(
            pulls=np.zeros(arms, np.int64),
            closed=np.zeros(arms, np.int64),
            total=np.zeros(arms),
            mean=np.full(arms, python_function(in_turn)(0)),
            width=np.zeros(arms),
        )


@dataclass(frozen=True)
class DelayedUCB1(UCB1):
    """UCB1 that waits for the whole reward (Joulani et al., 2013) and ignores pieces until then.

    Arms without a closed decision come first, the one with the fewest decisions before the others.

    Examples
    --------
    >>> DelayedUCB1().immediate
    False
    """

    @property
    def immediate(self) -> bool:
        return False
