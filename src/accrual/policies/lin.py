"""LinTS and LinUCB: for each arm a ridge regression of totals on contexts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from accrual.core.arrays import Floats, Ints
from accrual.core.dense import dot, times
from accrual.core.errors import flag, not_negative, positive, whole
from accrual.core.jit import njit
from accrual.policies.base import Feedback, Functions, Moment
from accrual.policies.contexts import WIDTH_MOST, ContextualPolicy, normal_draw
from accrual.policies.scalars import in_turn


class Params(NamedTuple):
    cap: Floats
    inverse_cap: Floats
    alpha: float
    ridge: float
    width: int


class Stats(NamedTuple):
    pulls: Ints
    learned: Floats  # arms: rewards that it has learned from
    inverse: Floats  # arms x width x width: of ridge I + sum of x x' over those
    response: Floats  # arms x width: sum of x times the reward, in caps
    estimate: Floats  # arms x width: the coefficients
    guess: Floats  # arms: the mean in the context of the last survey, and ...
    deviation: Floats  # ... its square root of x' inverse x
    scratch: Floats  # width


def nothing_learned(params: Any) -> dict[str, Any]:
    """Return the statistics of linear models, one for each arm, before the first decision."""
    arms, width = len(params.cap), params.width
    return {
        "pulls": np.zeros(arms, np.int64),
        "learned": np.zeros(arms),
        "inverse": np.tile(np.eye(width) / params.ridge, (arms, 1, 1)),
        "response": np.zeros((arms, width)),
        "estimate": np.zeros((arms, width)),
        "guess": np.zeros(arms),
        "deviation": np.zeros(arms),
        "scratch": np.zeros(width),
    }


@njit
def learn(params: Params, stats: Stats, arm: int, reward: float, x: Floats) -> None:
    """Learn from one more reward of an arm (Sherman and Morrison's formula)."""
    inverse, change = stats.inverse[arm], stats.scratch
    times(inverse, x, change)
    scale = 1.0 / (1.0 + dot(x, change))
    for i in range(params.width):
        factor = scale * change[i]
        for j in range(params.width):
            inverse[i, j] -= factor * change[j]
    share = reward * params.inverse_cap[arm]
    for j in range(params.width):
        stats.response[arm, j] += share * x[j]
    times(inverse, stats.response[arm], stats.estimate[arm])
    stats.learned[arm] += 1.0


@njit
def closed(params: Params, stats: Stats, arm: int, total: float, x: Floats) -> None:
    learn(params, stats, arm, total, x)


@njit
def survey(params: Params, stats: Stats, moment: Moment, x: Floats) -> None:
    for arm in range(len(params.cap)):
        times(stats.inverse[arm], x, stats.scratch)
        stats.guess[arm] = dot(stats.estimate[arm], x)
        stats.deviation[arm] = math.sqrt(max(dot(x, stats.scratch), 0.0))


@dataclass(frozen=True)
class LinearPolicy(ContextualPolicy):
    """A policy that learns from totals, by a linear model of each arm.

    Parameters
    ----------
    alpha : float
        How much the index makes of the uncertainty of the estimate, in caps.
    ridge : float
        Weight of the prior, in decisions.
    immediate : bool
        Whether a total is known in the round of its decision. True makes the policy a yardstick
        that no delayed learner can have; False makes it wait until the window has closed.
    """

    alpha: float = 0.1
    ridge: float = 1.0
    immediate: bool = False

    feedback: ClassVar[Feedback] = "totals"

    def __post_init__(self) -> None:
        not_negative("alpha", self.alpha)
        positive("ridge", self.ridge)
        flag("immediate", self.immediate)

    @property
    def label(self) -> str:
        return f"{type(self).__name__}({'immediate' if self.immediate else 'waiting'})"

    def params(self, caps: Floats, window: int, width: int = 1) -> Params:
        width = whole("the numbers of a context", width, 1, WIDTH_MOST)
        return Params(caps, 1.0 / caps, float(self.alpha), float(self.ridge), width)

    def stats(self, params: Params) -> Stats:
        return Stats(**nothing_learned(params))

    def terms(self, params: Params, stats: Stats, arm: int, moment: Moment) -> dict[str, float]:
        cap = float(params.cap[arm])
        return {
            "expected total in this context": cap * float(stats.guess[arm]),
            "its uncertainty": cap * params.alpha * float(stats.deviation[arm]),
            "closed decisions": float(stats.learned[arm]),
        }


@njit
def thompson_index(params: Params, stats: Stats, arm: int, moment: Moment, x: Floats) -> float:
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

    functions: ClassVar[Functions] = Functions(index=thompson_index, survey=survey, closed=closed)


@njit
def upper_index(params: Params, stats: Stats, arm: int, moment: Moment, x: Floats) -> float:
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

    functions: ClassVar[Functions] = Functions(index=upper_index, survey=survey, closed=closed)
