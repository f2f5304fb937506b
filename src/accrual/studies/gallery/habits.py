"""What people do today with rewards that arrive in pieces: two habits, as policies to compare with.

Both are Thompson sampling with a Beta law, fed as a library is that knows a reward of one number for a
decision. They are for comparison, not for use, and so not in the catalog.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from accrual.core.errors import InputError, whole
from accrual.core.jit import njit
from accrual.core.random import beta
from accrual.policies.base import Feedback, Floats, Functions, Ints, Moment, Policy, equal_edges
from accrual.policies.scalars import in_turn


class Params(NamedTuple):
    cap: Floats


class Stats(NamedTuple):
    pulls: Ints
    counted: Floats  # arms: what was counted as a pull
    total: Floats  # arms: the rewards of those, in caps
    informed: Floats  # arms: groups that a decision has finished; until then nothing is known


@njit
def index(params: Params, stats: Stats, arm: int, moment: Moment) -> float:
    """cap * a draw from Beta(1 + rewards, 1 + pulls - rewards)"""
    if stats.informed[arm] == 0.0:
        return in_turn(stats.pulls[arm])
    good = min(max(stats.total[arm], 0.0), stats.counted[arm])
    bad = stats.counted[arm] - good
    draw = beta(1.0 + good, 1.0 + bad, (moment.seed, moment.run), moment.round, arm)
    return float(params.cap[arm] * draw)


@njit
def decided(params: Params, stats: Stats, arm: int) -> None:
    stats.counted[arm] += 1.0


@njit
def piece_counted(params: Params, stats: Stats, arm: int, group: int, before: float, after: float) -> None:
    stats.informed[arm] += 1.0
    if after > before:
        stats.counted[arm] += 1.0
        stats.total[arm] += (after - before) / params.cap[arm]


@njit
def part_counted(params: Params, stats: Stats, arm: int, group: int, before: float, after: float) -> None:
    stats.informed[arm] += 1.0
    stats.counted[arm] += 1.0
    stats.total[arm] += (after - before) / params.cap[arm]


@njit
def amended(
    params: Params, stats: Stats, arm: int, group: int,
    before: float, after: float, more_before: float, more_after: float,
) -> None:  # fmt: skip
    stats.total[arm] += (more_after - more_before) / params.cap[arm]


def check_share(share: float) -> None:
    """Refuse a share of the window that is none."""
    if not 0.0 < share <= 1.0:
        raise InputError(f"share must be above 0 and at most 1, not {share!r}")


def first_part(window: int, share: float) -> Ints:
    """Return the edges of one group, the first `share` of the window."""
    return np.array([max(1, math.ceil(window * share))], np.int64)


@dataclass(frozen=True)
class _Habit(Policy):
    feedback: ClassVar[Feedback] = "groups"

    def params(self, caps: Floats, window: int) -> Params:
        return Params(caps)

    def stats(self, params: Any) -> Stats:
        arms = len(params.cap)
        return Stats(np.zeros(arms, np.int64), np.zeros(arms), np.zeros(arms), np.zeros(arms))


@dataclass(frozen=True)
class PiecesAsPulls(_Habit):
    """Thompson sampling that counts every piece as one more pull.

    A decision is a pull with a reward of 0, and each of its groups that pays is another, so a reward of 1
    in ten pieces is learned as eleven pulls with a mean of 1/11.

    Parameters
    ----------
    alpha : int
        The number of groups, and so of pieces; must divide the window.

    Examples
    --------
    >>> PiecesAsPulls(20).label
    'PiecesAsPulls(20)'
    """

    alpha: int

    functions: ClassVar[Functions] = Functions(
        index=index, decided=decided, finished=piece_counted, amended=amended
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", whole("alpha", self.alpha, 1))

    @property
    def label(self) -> str:
        return f"PiecesAsPulls({self.alpha})"

    def edges(self, window: int) -> Ints:
        return equal_edges(self.alpha, window)


@dataclass(frozen=True)
class EarlyReward(_Habit):
    """Thompson sampling that takes the pay of the window's first part for the whole reward.

    Parameters
    ----------
    share : float
        How much of the window is waited for.

    Examples
    --------
    >>> EarlyReward().edges(100)
    array([10])
    """

    share: float = 0.1

    functions: ClassVar[Functions] = Functions(index=index, finished=part_counted, amended=amended)

    def __post_init__(self) -> None:
        check_share(self.share)

    @property
    def label(self) -> str:
        return f"EarlyReward({self.share:g})"

    def edges(self, window: int) -> Ints:
        return first_part(window, self.share)
