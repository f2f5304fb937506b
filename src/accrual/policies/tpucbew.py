"""TP-UCB-EW (Romano et al., 2022, in our reading): one estimate for each group, added up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from accrual.core.arrays import Floats, Ints
from accrual.core.errors import divides, whole
from accrual.core.jit import njit
from accrual.policies.base import Feedback, Functions, Moment, Policy, equal_edges
from accrual.policies.engine_hooks import EngineHooks
from accrual.policies.scalars import in_turn


class Params(NamedTuple):
    group_cap: Floats  # cap / alpha


class Stats(NamedTuple):
    pulls: Ints
    seen: Ints  # arms x groups: decisions that have finished the group
    paid: Floats  # arms x groups: what they paid in it
    part: Floats  # arms x groups: paid / seen, stored because dividing again takes longer
    root: Floats  # arms x groups: 1 / sqrt(seen), stored for the same reason
    mean: Floats  # arms: the sum of `part`
    width: Floats  # arms: the sum of `root`
    unseen: Floats  # arms: groups that no decision has finished


@njit
def cell_update(
    params: Params, stats: Stats, arm: int, group: int, before: float, after: float
) -> tuple[float, float, float]:
    n = stats.seen[arm, group] + 1
    paid = stats.paid[arm, group] + (after - before)
    part = paid / n
    root = 1.0 / math.sqrt(n)
    more = part - stats.part[arm, group]
    wider = root - stats.root[arm, group]
    stats.seen[arm, group] = n
    stats.paid[arm, group] = paid
    stats.part[arm, group] = part
    stats.root[arm, group] = root
    return more, wider, -1.0 if n == 1 else 0.0


@njit
def finished(params: Params, stats: Stats, arm: int, group: int, before: float, after: float) -> None:
    mean, width, unseen = cell_update(params, stats, arm, group, before, after)
    stats.mean[arm] += mean
    stats.width[arm] += width
    stats.unseen[arm] += unseen


@njit
def amended(
    params: Params, stats: Stats, arm: int, group: int,
    before: float, after: float, more_before: float, more_after: float,
) -> None:  # fmt: skip
    more = more_after - more_before
    stats.paid[arm, group] += more
    stats.part[arm, group] = stats.paid[arm, group] / stats.seen[arm, group]
    stats.mean[arm] += more / stats.seen[arm, group]


@njit
def index(params: Params, stats: Stats, arm: int, moment: Moment) -> float:
    """sum of group means + (cap / alpha) * sum of sqrt(2 ln(t - 1) / n); unseen groups at cap"""
    if stats.width[arm] == 0.0:  # no group has been seen
        return in_turn(stats.pulls[arm])
    bonus: float = stats.unseen[arm] + math.sqrt(2.0 * moment.log) * stats.width[arm]
    return float(stats.mean[arm] + params.group_cap[arm] * bonus)


@dataclass(frozen=True)
class TPUCBEW(Policy):
    """TP-UCB-EW: each group's mean from the decisions that have finished it.

    The paper names this learner and reports how it behaves but prints no formula; this is our
    reading of it.

    Parameters
    ----------
    alpha : int
        The learner's number of groups; must divide the window.

    Examples
    --------
    >>> TPUCBEW(alpha=20).label
    'TPUCBEW(20)'
    """

    alpha: int

    feedback: ClassVar[Feedback] = "groups"
    functions: ClassVar[Functions] = Functions(
        index=index,
        finished=finished,
        amended=amended,
        hooks=EngineHooks(cell_update=cell_update, summed_fields=("mean", "width", "unseen")),
    )

    @classmethod
    def example(cls, groups: int = 4) -> TPUCBEW:
        return cls(alpha=groups)

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", whole("alpha", self.alpha, 1))

    @property
    def label(self) -> str:
        return f"TPUCBEW({self.alpha})"

    def terms(self, params: Params, stats: Stats, arm: int, moment: Moment) -> dict[str, float]:
        cap = float(params.group_cap[arm])
        return {
            "mean of finished groups": float(stats.mean[arm]),
            "groups not seen, at their cap": cap * float(stats.unseen[arm]),
            "bonus": cap * math.sqrt(2.0 * moment.log) * float(stats.width[arm]),
        }

    def params(self, caps: Floats, window: int) -> Params:
        divides("alpha", self.alpha, window)
        return Params(caps / self.alpha)

    def stats(self, params: Params) -> Stats:
        arms = len(params.group_cap)
        return Stats(
            pulls=np.zeros(arms, np.int64),
            seen=np.zeros((arms, self.alpha), np.int64),
            paid=np.zeros((arms, self.alpha)),
            part=np.zeros((arms, self.alpha)),
            root=np.zeros((arms, self.alpha)),
            mean=np.zeros(arms),
            width=np.zeros(arms),
            unseen=np.full(arms, float(self.alpha)),
        )

    def edges(self, window: int) -> Ints:
        return equal_edges(self.alpha, window)
