"""Statistics of totals, for the policies that learn from nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from accrual.core.arrays import Floats, Ints
from accrual.core.errors import flag, positive
from accrual.core.jit import njit, python_function
from accrual.policies.base import Feedback, Moment, Policy
from accrual.policies.scalars import bernoulli_count, regularised


class Params(NamedTuple):
    cap: Floats
    k0: float


class Stats(NamedTuple):
    pulls: Ints
    closed: Ints  # decisions whose total is known
    total: Floats  # sum of those totals, in caps
    square: Floats  # sum of their squares
    mean: Floats  # in caps
    variance: Floats  # regularised
    leader: Floats  # one number: the largest mean, in rewards


@njit
def closed(params: Params, stats: Stats, arm: int, total: float) -> None:
    x = total / params.cap[arm]
    n = stats.closed[arm] + 1
    stats.closed[arm] = n
    stats.total[arm] += x
    stats.square[arm] += x * x
    mean = stats.total[arm] / n
    stats.mean[arm] = mean
    _, stats.variance[arm] = regularised(n, mean, stats.square[arm] / n, params.k0, 1.0)


@njit
def survey(params: Params, stats: Stats, moment: Moment) -> None:
    best = 0.0
    for arm in range(len(params.cap)):
        best = max(best, stats.mean[arm] * params.cap[arm])
    stats.leader[0] = best


@dataclass(frozen=True)
class TotalsPolicy(Policy):
    """A policy that learns from the totals of decisions.

    Parameters
    ----------
    immediate : bool
        Whether a total is known in the round of its decision. True makes the policy a yardstick
        that no delayed learner can have; False makes it wait until the window has closed.
    k0 : float
        Weight of the prior, in decisions.
    """

    immediate: bool = False
    k0: float = 1.0

    feedback: ClassVar[Feedback] = "totals"

    def __post_init__(self) -> None:
        positive("k0", self.k0)
        flag("immediate", self.immediate)

    @property
    def label(self) -> str:
        return f"{type(self).__name__}({'immediate' if self.immediate else 'waiting'})"

    def terms(self, params: Params, stats: Stats, arm: int, moment: Moment) -> dict[str, float]:
        if not stats.closed[arm]:
            return {"closed decisions": 0.0}
        mean, variance = float(stats.mean[arm]), float(stats.variance[arm])
        cap, n = float(params.cap[arm]), float(stats.closed[arm])
        return {
            "mean of closed decisions": cap * mean,
            "best mean": float((stats.mean * params.cap).max()),
            "closed decisions": n,
            "decisions that pay 0 or the cap and tell as much": python_function(bernoulli_count)(
                n, mean, variance
            ),
        }

    def params(self, caps: Floats, window: int) -> Params:
        return Params(caps, float(self.k0))

    def stats(self, params: Params) -> Stats:
        arms = len(params.cap)
        return Stats(
            pulls=np.zeros(arms, np.int64),
            closed=np.zeros(arms, np.int64),
            total=np.zeros(arms),
            square=np.zeros(arms),
            mean=np.zeros(arms),
            variance=np.zeros(arms),
            leader=np.zeros(1),
        )
