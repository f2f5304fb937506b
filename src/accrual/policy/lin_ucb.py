"""LinUCB: an upper confidence bound on a linear model of totals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from accrual.core.jit import njit
from accrual.policy.base import Floats, Functions, Moment
from accrual.policy.estimate import in_turn
from accrual.policy.lin import LinearPolicy, Params, Stats, closed, survey


@njit
def index(params: Params, stats: Stats, arm: int, moment: Moment, x: Floats) -> float:
    """cap * (guess + alpha deviation)"""
    if stats.learned[arm] == 0.0:
        return in_turn(stats.pulls[arm])
    return params.cap[arm] * (stats.guess[arm] + params.alpha * stats.deviation[arm])


@dataclass(frozen=True)
class LinUCB(LinearPolicy):
    """LinUCB (Li et al., 2010), each arm with a model of its own.

    Examples
    --------
    >>> LinUCB(immediate=True).label
    'LinUCB(immediate)'
    """

    functions: ClassVar[Functions] = Functions(index=index, survey=survey, closed=closed)
