"""A policy of your own: MOSS (Audibert and Bubeck, 2009) on pieces, as fast as the library's.

python examples/own_policy.py
"""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

import accrual as ac
from accrual.core.arrays import Floats, Ints
from accrual.core.jit import njit
from accrual.policies.base import Feedback, Functions, Moment, Policy


class Params(NamedTuple):
    cap: Floats
    owed: Floats  # the most that pending decisions may hold back: half a window's worth of caps


class Stats(NamedTuple):
    pulls: Ints  # the engine counts decisions here ...
    observed: Floats  # ... and adds up the pieces here


@njit
def index(params: Params, stats: Stats, arm: int, moment: Moment) -> float:
    n = stats.pulls[arm]
    spare = max(math.log(moment.round / (len(params.cap) * n)), 0.0)
    mean: float = (stats.observed[arm] + params.owed[arm]) / n
    bonus: float = params.cap[arm] * math.sqrt(spare / n)
    return mean + bonus


@dataclass(frozen=True)
class PieceMOSS(Policy):
    """MOSS whose mean counts unseen pieces as nothing and adds half a window's worth of caps."""

    feedback: ClassVar[Feedback] = "pieces"
    functions: ClassVar[Functions] = Functions(index=index)

    @property
    def label(self) -> str:
        return "PieceMOSS"

    def params(self, caps: Floats, window: int) -> Params:
        return Params(caps, caps * (window + 1) / 2)

    def stats(self, params: Params) -> Stats:
        arms = len(params.cap)
        return Stats(np.zeros(arms, np.int64), np.zeros(arms))


if __name__ == "__main__":
    policies = [PieceMOSS(), ac.TPUCBFR(alpha=50), ac.AgeIMED()]
    result = ac.simulate(ac.paper.setting1(), policies, horizon=20_000, runs=10)
    print(result.table()[["mean", "se"]].round(0))
