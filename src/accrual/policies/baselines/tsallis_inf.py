"""DelayedTsallisINF: good for random and for hostile rewards, under delay, by one method.

Follow the regularised leader with the hybrid regulariser of Zimmert and Seldin (AISTATS 2020, 1910.06054) in
the tuning of Masoudian, Zimmert and Seldin (NeurIPS 2022, 2206.14906). The loss of a decision is 1 - its
total in units of the largest cap, divided by the probability with which its arm was chosen. With L the sums
of these losses, the probabilities x of round t minimise

    L . x - 2 sqrt(t + eta0) sum sqrt(x) + sqrt((D + gamma0) / ln K) sum x (ln x - 1)

where D adds up, over the rounds so far, the decisions that were pending. With d the window, the tuning has
eta0 = 10 d + d^2 / (K^(1/3) ln K)^2 and gamma0 = 24^2 d^2 K^(2/3) ln K. `shift` multiplies both; with 0
there is none, as in the method of 2020.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from accrual.core.arrays import Floats, Ints
from accrual.core.errors import not_negative
from accrual.core.jit import njit
from accrual.core.random import pair
from accrual.policies.base import Functions, Moment
from accrual.policies.baselines.simulated import SimulatedPolicy

_STEPS = 100  # the most of Newton's, each of which comes closer from one side
_CLOSE = 1e-12


class Params(NamedTuple):
    cap: Floats
    most: float  # the largest cap
    eta0: float
    gamma0: float
    log: float  # ln K
    window: int


class Stats(NamedTuple):
    pulls: Ints
    loss: Floats  # arms: L
    chance: Floats  # arms: x
    pick: Ints  # one number: the arm that was drawn
    counts: Floats  # decisions made; those whose total is known; D
    chances: Floats  # for the last decisions, by number: the probability of its arm
    finishing: Ints  # one number: that of the decision whose total comes


MADE, KNOWN, PENDING = range(3)


@njit
def decided(params: Params, stats: Stats, arm: int) -> None:
    made = stats.counts[MADE]
    stats.counts[PENDING] += made - stats.counts[KNOWN]
    # The engine gives every arm its first decision itself.
    stats.chances[int(made) % len(stats.chances)] = stats.chance[arm] if stats.pulls[arm] > 1 else 1.0
    stats.counts[MADE] += 1.0


@njit
def finished(params: Params, stats: Stats, arm: int, group: int, before: float, after: float) -> None:
    number = stats.finishing[0]
    chance = stats.chances[number % len(stats.chances)]
    if stats.counts[MADE] - number > len(stats.chances):
        chance = math.nan  # overwritten: the engine then says that an index is not a number
    stats.loss[arm] += (1.0 - after / params.most) / chance
    stats.counts[KNOWN] += 1.0


@njit
def _log_chance(level: float, a: float, b: float) -> float:
    """Return u with b u - a exp(-u / 2) = level, for a level of at most -a.

    The left side is concave in u, so Newton's steps come from below. The start is the root for b = 0.
    """
    u = -2.0 * math.log(-level / a)
    for _ in range(_STEPS):
        pull = a * math.exp(-0.5 * u)
        step = (level - b * u + pull) / (b + 0.5 * pull)
        u += step
        if abs(step) <= _CLOSE:
            break
    return u


@njit
def survey(params: Params, stats: Stats, moment: Moment) -> None:
    """Compute the probabilities, and draw an arm."""
    arms = len(params.cap)
    made, known, pending = stats.counts[MADE], stats.counts[KNOWN], stats.counts[PENDING]
    a = math.sqrt(made + 1.0 + params.eta0)
    b = math.sqrt((pending + made - known + params.gamma0) / params.log)
    least = math.inf
    for arm in range(arms):
        if params.cap[arm] > 0.0:
            least = min(least, stats.loss[arm])
    # The multiplier for which the probabilities add up to 1. Their sum is convex in it, and at least 1 here.
    level = -a
    for _ in range(_STEPS):
        total, slope = -1.0, 0.0
        for arm in range(arms):
            stats.chance[arm] = 0.0
            if params.cap[arm] > 0.0:
                u = _log_chance(level - (stats.loss[arm] - least), a, b)
                stats.chance[arm] = math.exp(u)
                total += stats.chance[arm]
                slope += stats.chance[arm] / (b + 0.5 * a * math.exp(-0.5 * u))
        level -= total / slope
        if total <= _CLOSE:
            break
    drawn, _ = pair((moment.seed, moment.run), moment.round, arms, 0)
    for arm in range(arms):
        if params.cap[arm] > 0.0:
            stats.pick[0] = arm
            drawn -= stats.chance[arm]
            if drawn < 0.0:
                break


@njit
def index(params: Params, stats: Stats, arm: int, moment: Moment) -> float:
    """1 for the arm that was drawn, 0 for the others"""
    if math.isnan(stats.chance[arm]):
        return math.nan
    return 1.0 if stats.pick[0] == arm else 0.0


@dataclass(frozen=True)
class DelayedTsallisINF(SimulatedPolicy):
    """The hybrid of Tsallis and Shannon entropy for delayed totals, in simulations of one decision a round.

    Parameters
    ----------
    shift : float
        How much of the shift of the learning rates of 2022 is used: 1 for all of it, as its bound for random
        rewards needs; 0 for none, as in the method of 2020.

    Examples
    --------
    >>> DelayedTsallisINF(shift=0).label
    'DelayedTsallisINF(0)'
    """

    shift: float = 1.0

    functions: ClassVar[Functions] = Functions(index=index, survey=survey, decided=decided, finished=finished)

    def __post_init__(self) -> None:
        not_negative("shift", self.shift)

    @property
    def label(self) -> str:
        return f"{type(self).__name__}({self.shift:g})"

    def params(self, caps: Floats, window: int) -> Params:
        arms = max(len(caps), 2)
        log, third = math.log(arms), arms ** (1.0 / 3.0)
        eta0 = self.shift * (10.0 * window + (window / (third * log)) ** 2)
        gamma0 = self.shift * (24.0 * window * third) ** 2 * log
        return Params(caps, float(caps.max()), eta0, gamma0, log, window)

    def stats(self, params: Params) -> Stats:
        arms = len(params.cap)
        return Stats(
            pulls=np.zeros(arms, np.int64),
            loss=np.zeros(arms),
            chance=np.zeros(arms),
            pick=np.zeros(1, np.int64),
            counts=np.zeros(3),
            chances=np.zeros(params.window + 1),
            finishing=np.zeros(1, np.int64),
        )
