"""LinTS: Thompson sampling on a linear model of totals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from accrual.core.jit import njit
from accrual.core.random import normal
from accrual.policy.base import Floats, Functions, Moment
from accrual.policy.estimate import in_turn
from accrual.policy.lin import LinearPolicy, Params, Stats, closed, survey


@njit
def index(params: Params, stats: Stats, arm: int, moment: Moment, x: Floats) -> float:
    """cap * a draw from N(guess, (alpha deviation)^2)"""
    if stats.learned[arm] == 0.0:
        return in_turn(stats.pulls[arm])
    draw = normal((moment.seed, moment.run), moment.round, arm)
    return params.cap[arm] * (stats.guess[arm] + params.alpha * stats.deviation[arm] * draw)


@dataclass(frozen=True)
class LinTS(LinearPolicy):
    """Linear Thompson sampling (Agrawal and Goyal, 2013), each arm with a model of its own.

    Examples
    --------
    >>> LinTS(alpha=0.3).label
    'LinTS(waiting)'
    """

    functions: ClassVar[Functions] = Functions(index=index, survey=survey, closed=closed)
