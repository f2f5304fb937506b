"""The contexts of a span of rounds and what decisions would pay in them: drawn once, read by every policy.

The draws depend on (seed, run, round) alone, so all policies of a comparison see the same contexts and the
same noise. Of a round's uniforms, the first are for the context, the next two for how much a decision pays,
and the rest for the ages of its pieces.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from accrual.core.arrays import Floats, Ints
from accrual.core.dense import dot
from accrual.core.jit import kernel, njit
from accrual.core.random import REWARDS, uniforms
from accrual.problems.contexts import PIECE, PIECES_MOST, ContextualProblem

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


class ContextualFeed(NamedTuple):
    """One span's draws, for kernels."""

    x: Floats  # rounds x width: contexts, first those of the window before the span, then the span's
    means: Floats  # rounds of the span x arms: the true mean total of each arm
    best: Floats  # rounds of the span: the largest of these means
    pay_draws: Floats  # rounds of the span x (2 + pieces): uniforms, for how much is paid and when


def pack(problem: ContextualProblem) -> ContextualWorld:
    """Pack a problem for kernels."""
    levels = [np.cumsum(chances) for chances in problem.contexts.levels]
    return ContextualWorld(
        effects=np.array(problem.effects),
        speeds=np.array(problem.speeds),
        numbers=problem.contexts.numbers,
        flags=np.array(problem.contexts.flags, np.float64),
        level_ends=np.concatenate(levels) if levels else np.zeros(0),
        level_counts=np.array([len(ends) for ends in levels], np.int64),
        logistic=problem.link == "logistic",
        once=problem.pay == "once",
        window=problem.window,
    )


def uniforms_of_a_round(world: ContextualWorld) -> tuple[int, int]:
    """Return how many uniforms a round needs for its context and for its pay; both numbers are even."""
    features = world.numbers + len(world.flags) + len(world.level_counts)
    return features + features % 2, 2 + (2 if world.once else PIECES_MOST)


@njit
def draw_context(world: ContextualWorld, u: Floats, x: Floats) -> None:
    """Write a context into `x`, made from one uniform for each feature."""
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
    """Return the true mean total of an arm in context `x`."""
    value = dot(world.effects[arm], x)
    if world.logistic:
        return 1.0 / (1.0 + math.exp(-value))
    value = max(value, 0.0)
    return min(value, 1.0) if world.once else value


@njit
def count_pieces(world: ContextualWorld, mean: float, pay_draws: Floats) -> int:
    """Return how many pieces a decision pays."""
    if world.once:
        return 1 if pay_draws[0] < mean else 0
    rate = mean / PIECE * 2.0 * pay_draws[1]
    chance = math.exp(-rate)
    below = chance
    count = 0
    while pay_draws[0] > below and count < PIECES_MOST:
        count += 1
        chance *= rate / count
        below += chance
    return count


@njit
def power_of(world: ContextualWorld, arm: int, x: Floats) -> float:
    """Return the exponent with which `age_of` turns a uniform into an age."""
    return math.exp(-dot(world.speeds[arm], x))


@njit
def age_of(window: int, power: float, u: float) -> int:
    """Return the age of a piece, made from a uniform."""
    if u <= 0.0:
        return 0
    return min(int(window * math.exp(power * math.log(u))), window - 1)


class ContextualRunFeed:
    """The draws of one run, span after span."""

    def __init__(self, world: ContextualWorld, key: tuple[int, int], span: int) -> None:
        arms, width = world.effects.shape
        _, pay_draws = uniforms_of_a_round(world)
        self.span = span
        self._world, self._key = world, key
        self._feed = ContextualFeed(
            np.zeros((world.window + span, width)),
            np.zeros((span, arms)),
            np.zeros(span),
            np.zeros((span, pay_draws)),
        )
        self._next, self._last = 1, 0

    def read(self, length: int) -> ContextualFeed:
        """Draw the next `length` rounds (at most `span`); the next call overwrites them."""
        x, window = self._feed.x, self._world.window
        x[:window] = x[self._last : self._last + window].copy()
        _fill(self._world, self._key, self._next, length, self._feed)
        self._next += length
        self._last = length
        return self._feed


@kernel
def _fill(
    world: ContextualWorld, key: tuple[int, int], start: int, length: int, feed: ContextualFeed
) -> None:
    features = world.numbers + len(world.flags) + len(world.level_counts)
    features += features % 2
    u = np.empty(features + feed.pay_draws.shape[1])
    for i in range(length):
        uniforms(key[0], key[1], start + i, REWARDS, u)
        x = feed.x[world.window + i]
        draw_context(world, u, x)
        feed.pay_draws[i] = u[features:]
        best = -np.inf
        for a in range(len(world.effects)):
            mean = mean_of(world, a, x)
            feed.means[i, a] = mean
            best = max(best, mean)
        feed.best[i] = best
