"""Contexts and pay of a `ContextualProblem`, drawn from (seed, run, round) alone.

Of each round a first block of uniforms is the context's, the next two are for how much a decision pays, and
the rest for when: so all policies of a comparison meet the same visitors and the same luck.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from accrual.core.dense import dot
from accrual.core.jit import kernel, njit
from accrual.core.random import REWARDS, uniforms
from accrual.problems.contexts import PIECE, PIECES_MOST, ContextualProblem

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_WIDE = math.sqrt(12.0)  # so that a uniform has variance 1


class ContextualWorld(NamedTuple):
    """A problem with contexts, packed for kernels."""

    effects: Floats
    speeds: Floats
    numbers: int
    flags: Floats
    level_ends: Floats  # levels of all features, one after another: the u below which it is this level
    level_counts: Ints  # features with levels: how many
    logistic: bool
    once: bool
    window: int


class Visits(NamedTuple):
    """A span's rounds: row `window` + i is the span's round i, the rows before are those before it."""

    x: Floats  # rounds x width
    means: Floats  # rounds of the span x arms
    best: Floats  # rounds of the span
    luck: Floats  # rounds of the span x (2 + pieces): uniforms


def pack(problem: ContextualProblem) -> ContextualWorld:
    """Pack a problem for kernels."""
    levels = [np.cumsum(chances) for chances in problem.contexts.levels]
    return ContextualWorld(
        np.array(problem.effects),
        np.array(problem.speeds),
        problem.contexts.numbers,
        np.array(problem.contexts.flags, np.float64),
        np.concatenate(levels) if levels else np.zeros(0),
        np.array([len(ends) for ends in levels], np.int64),
        problem.link == "logistic",
        problem.pay == "once",
        problem.window,
    )


def uniforms_of_a_round(world: ContextualWorld) -> tuple[int, int]:
    """Return how many uniforms a round has for its context, and how many for its pay; they come in pairs."""
    features = world.numbers + len(world.flags) + len(world.level_counts)
    return features + features % 2, 2 + (2 if world.once else PIECES_MOST)


@njit
def draw_context(world: ContextualWorld, u: Floats, x: Floats) -> None:
    """Make a context of uniforms, one for each feature."""
    x[0] = 1.0
    for j in range(world.numbers):
        x[1 + j] = _WIDE * (u[j] - 0.5)
    place, used = 1 + world.numbers, world.numbers
    for j in range(len(world.flags)):
        x[place + j] = 1.0 if u[used + j] < world.flags[j] else 0.0
    place += len(world.flags)
    used += len(world.flags)
    first = 0
    for f in range(len(world.level_counts)):
        count = world.level_counts[f]
        level = 0
        while level < count - 1 and u[used + f] >= world.level_ends[first + level]:
            level += 1
        for j in range(count):
            x[place + j] = 1.0 if j == level else 0.0
        first += count
        place += count


@njit
def mean_of(world: ContextualWorld, arm: int, x: Floats) -> float:
    """Return the true mean total of an arm."""
    value = dot(world.effects[arm], x)
    if world.logistic:
        return 1.0 / (1.0 + math.exp(-value))
    value = max(value, 0.0)
    return min(value, 1.0) if world.once else value


@njit
def count_pieces(world: ContextualWorld, mean: float, luck: Floats) -> int:
    """Return how many pieces a decision pays."""
    if world.once:
        return 1 if luck[0] < mean else 0
    rate = mean / PIECE * 2.0 * luck[1]
    chance = math.exp(-rate)
    below = chance
    count = 0
    while luck[0] > below and count < PIECES_MOST:
        count += 1
        chance *= rate / count
        below += chance
    return count


@njit
def power_of(world: ContextualWorld, arm: int, x: Floats) -> float:
    """Return the exponent that makes an age of a uniform."""
    return math.exp(-dot(world.speeds[arm], x))


@njit
def age_of(window: int, power: float, u: float) -> int:
    """Return the age of a piece."""
    if u <= 0.0:
        return 0
    return min(int(window * math.exp(power * math.log(u))), window - 1)


class ContextualSource:
    """Draws the visits of one run, span after span."""

    def __init__(self, world: ContextualWorld, key: tuple[int, int], span: int) -> None:
        arms, width = world.effects.shape
        _, luck = uniforms_of_a_round(world)
        self.span = span
        self._world, self._key = world, key
        self._visits = Visits(
            np.zeros((world.window + span, width)),
            np.zeros((span, arms)),
            np.zeros(span),
            np.zeros((span, luck)),
        )
        self._next, self._last = 1, 0

    def read(self, length: int) -> Visits:
        """Return the next `length` rounds (at most `span`), until the next call."""
        x, window = self._visits.x, self._world.window
        x[:window] = x[self._last : self._last + window].copy()
        _fill(self._world, self._key, self._next, length, self._visits)
        self._next += length
        self._last = length
        return self._visits


@kernel
def _fill(world: ContextualWorld, key: tuple[int, int], start: int, length: int, visits: Visits) -> None:
    features = world.numbers + len(world.flags) + len(world.level_counts)
    features += features % 2
    u = np.empty(features + visits.luck.shape[1])
    for i in range(length):
        uniforms(key[0], key[1], start + i, REWARDS, u)
        x = visits.x[world.window + i]
        draw_context(world, u, x)
        visits.luck[i] = u[features:]
        best = -np.inf
        for a in range(len(world.effects)):
            mean = mean_of(world, a, x)
            visits.means[i, a] = mean
            best = max(best, mean)
        visits.best[i] = best
