"""LinTS: Thompson sampling on a linear model of totals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from accrual.core.jit import njit
from accrual.policy.base import Floats, Functions, Moment
from accrual.policy.contextual import normal_draw
from accrual.policy.estimate import in_turn
from accrual.policy.lin import LinearPolicy, Params, Stats, closed, survey


@njit
def index(params: Params, stats: Stats, arm: int, moment: Moment, x: Floats) -> float:
    """cap * a draw from N(guess, (alpha deviation)^2)"""
    if stats.learned[arm] == 0.0:
        return in_turn(stats.pulls[arm])
    return normal_draw(params, stats, arm, moment)


@dataclass(frozen=True)
class LinTS(LinearPolicy):
    """Linear Thompson sampling (Agrawal and Goyal, 2013), each arm with a model of its own.

    Examples
    --------
    >>> LinTS(alpha=0.3).label
    'LinTS(waiting)'
    """

    functions: ClassVar[Functions] = Functions(index=index, survey=survey, closed=closed)
