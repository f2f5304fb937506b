"""Phased successive elimination under delay (Lancewicki, Segal, Koren and Mansour, ICML 2021, 2106.02436).

In phase l every arm that is still in play is chosen in turn until 16 ln(T) 4^l of its totals are known. An
arm that has so many waits for the others. At the end of a phase every arm leaves whose upper bound is below
another's lower bound, mean +- cap sqrt(2 ln(T) / n).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from accrual.core.arrays import Floats, Ints
from accrual.core.errors import whole
from accrual.core.jit import njit
from accrual.policies.base import Functions, Moment
from accrual.policies.baselines.simulated import SimulatedPolicy
from accrual.policies.scalars import in_turn


class Params(NamedTuple):
    cap: Floats
    log: float  # ln(T)


class Stats(NamedTuple):
    pulls: Ints
    closed: Floats  # arms: totals that are known
    total: Floats  # arms: their sum
    out: Floats  # arms: 1 for one that has left
    phase: Floats  # one number


@njit
def finished(params: Params, stats: Stats, arm: int, group: int, before: float, after: float) -> None:
    stats.closed[arm] += 1.0
    stats.total[arm] += after


@njit
def _needed(params: Params, stats: Stats) -> float:
    """Return how many totals of an arm must be known before the phase ends."""
    return 16.0 * params.log * 4.0 ** stats.phase[0]


@njit
def _bound(params: Params, stats: Stats, arm: int, sign: float) -> float:
    """Return an arm's upper (`sign` 1) or lower (-1) bound."""
    n = max(stats.closed[arm], 1.0)
    return stats.total[arm] / n + sign * params.cap[arm] * math.sqrt(2.0 * params.log / n)


@njit
def survey(params: Params, stats: Stats, moment: Moment) -> None:
    """End the phase if every arm in play has enough totals."""
    needed, lower = _needed(params, stats), -math.inf
    for arm in range(len(params.cap)):
        if stats.out[arm] == 0.0 and params.cap[arm] > 0.0:
            if stats.closed[arm] < needed:
                return
            lower = max(lower, _bound(params, stats, arm, -1.0))
    for arm in range(len(params.cap)):
        if _bound(params, stats, arm, 1.0) < lower:
            stats.out[arm] = 1.0
    stats.phase[0] += 1.0


@njit
def index(params: Params, stats: Stats, arm: int, moment: Moment) -> float:
    """The arm's turn in the phase; 0 where it waits for others, below 0 where it has left"""
    if stats.out[arm] != 0.0:
        return -1.0
    return in_turn(stats.pulls[arm]) if stats.closed[arm] < _needed(params, stats) else 0.0


@dataclass(frozen=True)
class PhasedElimination(SimulatedPolicy):
    """Phased successive elimination on totals of decisions whose window is over.

    Parameters
    ----------
    horizon : int
        How many decisions will be made in all.

    Examples
    --------
    >>> PhasedElimination(horizon=100_000).label
    'PhasedElimination'
    """

    horizon: int

    functions: ClassVar[Functions] = Functions(index=index, survey=survey, finished=finished)

    def __post_init__(self) -> None:
        object.__setattr__(self, "horizon", whole("horizon", self.horizon, 2))

    @property
    def label(self) -> str:
        return type(self).__name__

    def params(self, caps: Floats, window: int) -> Params:
        return Params(caps, math.log(self.horizon))

    def stats(self, params: Params) -> Stats:
        arms = len(params.cap)
        return Stats(np.zeros(arms, np.int64), np.zeros(arms), np.zeros(arms), np.zeros(arms), np.ones(1))
