"""UCB1 (Auer et al., 2002) on totals that are known at once: an idealised learner, no delay."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from accrual.core.jit import njit
from accrual.policy.base import Feedback, Floats, Functions, Ints, Moment, Policy


class Params(NamedTuple):
    cap: Floats


class Stats(NamedTuple):
    pulls: Ints
    closed: Ints  # decisions whose total is known
    total: Floats  # the sum of those totals
    inverse: Floats  # 1 / closed
    width: Floats  # cap * sqrt(1 / closed); infinite until one is known


@njit
def closed(params: Params, stats: Stats, arm: int, total: float) -> None:
    stats.closed[arm] += 1
    stats.total[arm] += total
    stats.inverse[arm] = 1.0 / stats.closed[arm]
    stats.width[arm] = params.cap[arm] * math.sqrt(stats.inverse[arm])


@njit
def index(params: Params, stats: Stats, arm: int, moment: Moment) -> float:
    """mean + cap * sqrt(2 ln(t - 1) / n)"""
    value: float = stats.total[arm] * stats.inverse[arm] + math.sqrt(2.0 * moment.log) * stats.width[arm]
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
    functions: ClassVar[Functions] = Functions(index=index, closed=closed)

    @property
    def immediate(self) -> bool:
        return True

    @property
    def label(self) -> str:
        return type(self).__name__

    def terms(self, params: Params, stats: Stats, arm: int, moment: Moment) -> dict[str, float]:
        return {
            "mean of closed decisions": float(stats.total[arm] * stats.inverse[arm]),
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
            inverse=np.zeros(arms),
            width=np.full(arms, np.inf),
        )
