"""What people do today with rewards that arrive in pieces: habits, as policies to compare with.

A library that knows one reward per decision can count every piece as a reward of its own, or take the pay of
the first part of the window for the whole reward. Both habits are here for two learners: Thompson sampling
with a Beta law, and `LinTS` on problems with contexts. They are for comparison, not for use, and so they are
not in the catalog.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from accrual.core.errors import InputError, whole
from accrual.core.jit import njit
from accrual.core.random import beta
from accrual.policies.base import Feedback, Floats, Functions, Ints, Moment, Policy
from accrual.policies.lin import LinearPolicy, learn, survey, thompson_index
from accrual.policies.lin import Params as LinParams
from accrual.policies.lin import Stats as LinStats
from accrual.policies.scalars import in_turn


class Params(NamedTuple):
    cap: Floats


class Stats(NamedTuple):
    pulls: Ints
    counted: Floats  # arms: what was counted as pulls
    total: Floats  # arms: the rewards of these pulls, in caps
    informed: Floats  # arms: groups that decisions have finished; with none, nothing is known


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


@njit
def part_learned(
    params: LinParams, stats: LinStats, arm: int, group: int, before: float, after: float, x: Floats
) -> None:
    learn(params, stats, arm, after - before, x)


@njit
def piece_learned(
    params: LinParams, stats: LinStats, arm: int, group: int, before: float, after: float, x: Floats
) -> None:
    if after > before:
        learn(params, stats, arm, after - before, x)


@dataclass(frozen=True)
class _FirstPart(Policy):
    """The habit of taking the pay of the window's first part for the whole reward.

    Parameters
    ----------
    share : float
        How much of the window is waited for.
    """

    share: float = 0.1
    feedback: ClassVar[Feedback] = "groups"

    def __post_init__(self) -> None:
        if not 0.0 < self.share <= 1.0:
            raise InputError(f"share must be above 0 and at most 1, not {self.share!r}")

    @property
    def label(self) -> str:
        return f"{type(self).__name__}({self.share:g})"

    def edges(self, window: int) -> Ints:
        return np.array([max(1, math.ceil(window * self.share))], np.int64)


@dataclass(frozen=True)
class _EachPart(Policy):
    """The habit of counting every part of the window that pays as a reward of its own.

    Parameters
    ----------
    parts : int
        How many equal parts the window is cut into (fewer if it is short).
    """

    parts: int = 50
    feedback: ClassVar[Feedback] = "groups"

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", whole("parts", self.parts, 1))

    @property
    def label(self) -> str:
        return f"{type(self).__name__}({self.parts})"

    def edges(self, window: int) -> Ints:
        return np.unique(np.ceil(window * np.arange(1, self.parts + 1) / self.parts).astype(np.int64))


class _BetaLearner(Policy):
    """Thompson sampling with a Beta law of each arm."""

    def params(self, caps: Floats, window: int) -> Params:
        return Params(caps)

    def stats(self, params: Any) -> Stats:
        arms = len(params.cap)
        return Stats(np.zeros(arms, np.int64), np.zeros(arms), np.zeros(arms), np.zeros(arms))


@dataclass(frozen=True)
class PiecesAsPulls(_EachPart, _BetaLearner):
    """Thompson sampling that counts every piece as one more pull.

    A decision is a pull with a reward of 0, and each of its parts that pays is another, so a reward of 1
    in ten pieces is learned as eleven pulls with a mean of 1/11.

    Parameters
    ----------
    parts : int
        How many equal parts the window is cut into, and so how many pieces there are.

    Examples
    --------
    >>> PiecesAsPulls(20).label
    'PiecesAsPulls(20)'
    """

    functions: ClassVar[Functions] = Functions(
        index=index, decided=decided, finished=piece_counted, amended=amended
    )


@dataclass(frozen=True)
class EarlyReward(_FirstPart, _BetaLearner):
    """Thompson sampling that takes the pay of the window's first part for the whole reward.

    Examples
    --------
    >>> EarlyReward().edges(100)
    array([10])
    """

    functions: ClassVar[Functions] = Functions(index=index, finished=part_counted, amended=amended)


@dataclass(frozen=True)
class EarlyLinTS(_FirstPart, LinearPolicy):
    """LinTS that takes the pay of the window's first part (an attribution window) for the whole reward.

    Examples
    --------
    >>> EarlyLinTS().label
    'EarlyLinTS(0.1)'
    """

    functions: ClassVar[Functions] = Functions(index=thompson_index, survey=survey, finished=part_learned)

    def __post_init__(self) -> None:
        LinearPolicy.__post_init__(self)
        _FirstPart.__post_init__(self)


@dataclass(frozen=True)
class PiecesLinTS(_EachPart, LinearPolicy):
    """LinTS that counts every part of the window that pays as a reward of its own.

    Examples
    --------
    >>> PiecesLinTS().label
    'PiecesLinTS(50)'
    """

    functions: ClassVar[Functions] = Functions(index=thompson_index, survey=survey, finished=piece_learned)

    def __post_init__(self) -> None:
        LinearPolicy.__post_init__(self)
        _EachPart.__post_init__(self)
