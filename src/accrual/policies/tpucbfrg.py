"""TP-UCB-FR-G, the paper's policy, and TP-UCB-FR (Romano et al., 2022), which is its case of an even spread.

Pieces that have not arrived count as 0, and the bonus makes up for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from accrual.core.arrays import Floats, Ints
from accrual.core.errors import divides, whole
from accrual.core.jit import njit
from accrual.policies.base import Feedback, Functions, Moment, Policy
from accrual.problems.spreads import Spread, SpreadLike, Uniform, as_spread


@dataclass(frozen=True)
class AssumedSpreadPolicy(Policy):
    """A policy with a given number of groups and a given spread of the cap over them.

    Parameters
    ----------
    alpha : int
        The number of groups; must divide the window.
    spread : str, Spread or sequence of float
        How the cap divides over them.
    """

    alpha: int
    spread: SpreadLike

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", whole("alpha", self.alpha, 1))
        object.__setattr__(self, "spread", as_spread(self.spread))
        self.law.pmf(self.alpha)

    @property
    def law(self) -> Spread:
        """The spread over the groups, as given."""
        return as_spread(self.spread)


class Params(NamedTuple):
    cap: Floats
    owed: Floats  # phi * cap * E[Y]: the most that pending decisions may still hold back
    coincidence: Floats  # arms: the sum of the squared shares of the arm's spread


class Stats(NamedTuple):
    pulls: Ints
    observed: Floats
    inverse: Floats  # 1 / pulls
    width: Floats  # cap * sqrt(coincidence / pulls)


def no_stats(arms: int) -> Stats:
    """Return the statistics before the first decision."""
    return Stats(
        pulls=np.zeros(arms, np.int64), observed=np.zeros(arms), inverse=np.zeros(arms), width=np.zeros(arms)
    )


@njit
def decided(params: Params, stats: Stats, arm: int) -> None:
    inverse = 1.0 / stats.pulls[arm]
    stats.inverse[arm] = inverse
    stats.width[arm] = params.cap[arm] * math.sqrt(params.coincidence[arm] * inverse)


@njit
def index(params: Params, stats: Stats, arm: int, moment: Moment) -> float:
    """mean over all decisions + phi cap E[Y] / n + cap * sqrt(2 ln(t - 1) IC / n)"""
    mean: float = (stats.observed[arm] + params.owed[arm]) * stats.inverse[arm]
    return mean + math.sqrt(2.0 * moment.log) * stats.width[arm]


@dataclass(frozen=True)
class TPUCBFRG(AssumedSpreadPolicy):
    """TP-UCB-FR-G: optimism shaped by an assumed spread.

    Its guarantee (the paper's Theorem 2) needs the groups' caps to be ``spread(k) * cap`` in
    truth. With another spread, such as ``"begin"`` on rewards that arrive evenly, it is a
    heuristic, if a good one.

    Parameters
    ----------
    alpha : int
        The learner's number of groups; must divide the window.
    spread : str, Spread or sequence of float
        The assumed spread.

    Examples
    --------
    >>> TPUCBFRG(alpha=50, spread="begin").label
    'TPUCBFRG(50, begin)'
    """

    feedback: ClassVar[Feedback] = "pieces"
    functions: ClassVar[Functions] = Functions(index=index, decided=decided)

    @classmethod
    def example(cls, groups: int = 4) -> TPUCBFRG:
        return cls(alpha=groups, spread="begin")

    @property
    def label(self) -> str:
        return f"{type(self).__name__}({self.alpha}, {self.law.label})"

    def terms(self, params: Params, stats: Stats, arm: int, moment: Moment) -> dict[str, float]:
        return {
            "observed per decision": float(stats.observed[arm] * stats.inverse[arm]),
            "may still come": float(params.owed[arm] * stats.inverse[arm]),
            "bonus": math.sqrt(2.0 * moment.log) * float(stats.width[arm]),
        }

    def params(self, caps: Floats, window: int) -> Params:
        phi = divides("alpha", self.alpha, window)
        owed = phi * caps * self.law.mean(self.alpha)
        return Params(caps, owed, np.full(len(caps), self.law.coincidence(self.alpha)))

    def stats(self, params: Params) -> Stats:
        return no_stats(len(params.cap))


@dataclass(frozen=True)
class TPUCBFR(TPUCBFRG):
    """TP-UCB-FR: optimism for rewards that arrive evenly over the groups.

    With the even spread E[Y] is (alpha + 1) / 2 and the coincidence 1 / alpha, and the bonus of
    TP-UCB-FR-G is TP-UCB-FR's own.

    Parameters
    ----------
    alpha : int
        The learner's number of groups; must divide the window.

    Examples
    --------
    >>> TPUCBFR(alpha=50).label
    'TPUCBFR(50)'
    """

    spread: SpreadLike = field(default_factory=Uniform, init=False, repr=False)

    @classmethod
    def example(cls, groups: int = 4) -> TPUCBFR:
        return cls(alpha=groups)

    @property
    def label(self) -> str:
        return f"TPUCBFR({self.alpha})"
