"""AgeUCB: the Age policy with a guarantee, where the groups' caps are known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from accrual.core.arrays import Floats, Ints
from accrual.core.errors import divides, flag
from accrual.core.jit import njit
from accrual.policies.base import Feedback, Functions, Moment, equal_edges
from accrual.policies.scalars import in_turn
from accrual.policies.tpucbfrg import AssumedSpreadPolicy
from accrual.problems.spreads import SpreadLike


class Params(NamedTuple):
    cap: Floats
    share: Floats  # groups: B(g)
    coincidence: float
    proved: bool


class Stats(NamedTuple):
    pulls: Ints
    paid: Floats  # what finished groups have paid
    passed: Floats  # the sum of the shares B(g) of finished groups: full decisions' worth
    done: Floats  # decisions with every group finished
    total: Floats  # the sum of their totals


@njit
def finished(params: Params, stats: Stats, arm: int, group: int, before: float, after: float) -> None:
    stats.paid[arm] += after - before
    stats.passed[arm] += params.share[group]
    if group == len(params.share) - 1:
        stats.done[arm] += 1.0
        stats.total[arm] += after


@njit
def amended(
    params: Params, stats: Stats, arm: int, group: int,
    before: float, after: float, more_before: float, more_after: float,
) -> None:  # fmt: skip
    stats.paid[arm] += more_after - more_before
    if group == len(params.share) - 1:
        stats.total[arm] += more_after


@njit
def index(params: Params, stats: Stats, arm: int, moment: Moment) -> float:
    """Return the least of three upper bounds on the mean.

    The cap; the mean over all decisions with every unfinished group at its cap; the mean over
    finished decisions. The last two with Hoeffding's bonus for groups of caps B(g) cap.
    """
    if stats.pulls[arm] == 0:
        return in_turn(0)
    cap = params.cap[arm]
    log = math.log(moment.round)
    level = 3.0 * log if params.proved else math.log(1.0 + moment.round * log * log)
    bonus = cap * math.sqrt(0.5 * params.coincidence * level)
    n = float(stats.pulls[arm])
    value = (stats.paid[arm] + cap * (n - stats.passed[arm])) / n + bonus / math.sqrt(n)
    if stats.done[arm] > 0.0:
        value = min(value, stats.total[arm] / stats.done[arm] + bonus / math.sqrt(stats.done[arm]))
    # Arms whose bound is the cap would tie, and the first of them would take every decision. A little
    # more for the one with fewer decisions is an upper bound still.
    return min(value, cap * (1.0 + 1e-3 / (1.0 + n)))


@dataclass(frozen=True)
class AgeUCB(AssumedSpreadPolicy):
    """An upper confidence bound from finished groups, with the unfinished at their caps.

    Proved, with ``proved=True``, where group g of an arm never pays more than ``spread(g)`` of
    the cap and the groups of a decision are independent: in round t the index is below the arm's
    mean with probability at most 2 / t**2 (Hoeffding's inequality and a union over one
    count for each of the two bounds). ``proved=False`` uses the smaller level ln(1 + t ln(t)**2),
    which does better and is not covered. Where groups depend on each other, say
    ``independent=False``: also where decisions are closed early or have windows of their own.

    Parameters
    ----------
    alpha : int
        The number of groups; must divide the window.
    spread : str, Spread or sequence of float
        The groups' caps, as shares of the cap. They must be true.
    proved : bool
        Whether to keep to the level that is proved.
    independent : bool
        Whether the groups of a decision are independent.

    Examples
    --------
    >>> AgeUCB(alpha=20).label
    'AgeUCB(20, uniform)'
    """

    spread: SpreadLike = "uniform"
    proved: bool = True
    independent: bool = True

    feedback: ClassVar[Feedback] = "groups"
    functions: ClassVar[Functions] = Functions(index=index, finished=finished, amended=amended)

    def __post_init__(self) -> None:
        super().__post_init__()
        flag("proved", self.proved)
        flag("independent", self.independent)

    @classmethod
    def example(cls, groups: int = 4) -> AgeUCB:
        return cls(alpha=groups)

    @property
    def label(self) -> str:
        notes = ("" if self.proved else ", practical") + ("" if self.independent else ", dependent")
        return f"AgeUCB({self.alpha}, {self.law.label}{notes})"

    def terms(self, params: Params, stats: Stats, arm: int, moment: Moment) -> dict[str, float]:
        log = math.log(moment.round)
        level = 3.0 * log if params.proved else math.log(1.0 + moment.round * log * log)
        cap, n, done = float(params.cap[arm]), float(stats.pulls[arm]), float(stats.done[arm])
        bonus = cap * math.sqrt(0.5 * params.coincidence * level)
        return {
            "cap": cap,
            "mean with open groups at their caps": float(stats.paid[arm] + cap * (n - stats.passed[arm])) / n,
            "its bonus": bonus / math.sqrt(n),
            "mean of finished decisions": float(stats.total[arm]) / done if done else math.nan,
            "bonus of that": bonus / math.sqrt(done) if done else math.nan,
        }

    def params(self, caps: Floats, window: int) -> Params:
        divides("alpha", self.alpha, window)
        coincidence = self.law.coincidence(self.alpha) if self.independent else 1.0
        return Params(caps, self.law.pmf(self.alpha), coincidence, bool(self.proved))

    def stats(self, params: Params) -> Stats:
        arms = len(params.cap)
        return Stats(
            pulls=np.zeros(arms, np.int64),
            paid=np.zeros(arms),
            passed=np.zeros(arms),
            done=np.zeros(arms),
            total=np.zeros(arms),
        )

    def edges(self, window: int) -> Ints:
        return equal_edges(self.alpha, window)
