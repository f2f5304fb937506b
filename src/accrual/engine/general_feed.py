"""What the general loop plays on: contexts, and what a decision pays.

A `World` is a problem for the general loop: with contexts, or without and then with contexts of width 0. Its
draws depend on (seed, run, number of the decision) alone, so all policies of a comparison see the same
contexts and the same noise. Of a decision's uniforms, the first are for its context and the rest for its pay.
With contexts, the first two of the rest say how much it pays, and the others give the ages of its pieces.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from accrual.core.arrays import Floats, Ints
from accrual.core.basis import Layout
from accrual.core.dense import dot
from accrual.core.jit import kernel, njit
from accrual.core.random import REWARDS, uniforms
from accrual.engine.law_kernels import LawArrays
from accrual.engine.law_kernels import pack as pack_laws
from accrual.policies.base import Function
from accrual.problems.contexts import PIECES_MOST
from accrual.problems.problem import Problem

_WIDE = math.sqrt(12.0)  # so that a uniform has variance 1


class World(NamedTuple):
    """A problem for the general loop.

    ``pay(arrays, caps, arm, x, u, times, earned, scratch)`` writes into ``earned[g + 1]`` what a decision in
    context `x` has paid in all when the learner's group g ends; `u` are its uniforms, as a row of a table.
    """

    caps: Floats
    window: int
    batch: int  # decisions in a round: all use what was known before the round
    uniforms: int  # that the pay of a decision needs
    scratch: int  # numbers that `pay` may write
    pay: Function
    arrays: Any  # what `pay` reads
    layout: Layout | None  # of contexts; None without

    @property
    def width(self) -> int:
        """How many numbers a context has."""
        return 0 if self.layout is None else self.layout.width


class LearnerGroups(NamedTuple):
    """When a policy learns from a decision."""

    ends: Ints  # the ages at which its groups end
    at_once: bool  # whether the total is known in the round of the decision


class ContextArrays(NamedTuple):
    """A problem with contexts, packed for kernels."""

    effects: Floats
    speeds: Floats
    logistic: Ints  # arms: 1 or 0, and ...
    once: Ints  # ... whether a decision pays one piece
    window: int
    numbers: int
    flags: Floats
    level_ends: Floats  # levels of all features, one after another: the u below which it is this level
    level_counts: Ints  # features with levels: how many


class DrawnArrays(NamedTuple):
    """The laws of a problem without contexts."""

    laws: LawArrays
    law: Ints  # arms: the number of its law


class GeneralFeed(NamedTuple):
    """One span's draws, for kernels."""

    x: Floats  # decisions x width: contexts, first those of the window before the span, then the span's
    u: Floats  # decisions of the span x uniforms: for what each pays


def world_of(problem: Problem, batch: int = 1) -> World:
    """Pack a problem; without contexts, each of its groups is a round."""
    caps = np.array(problem.caps)
    if problem.contexts is None:
        laws, groups = pack_laws(problem), problem.groups
        arrays = DrawnArrays(laws.arrays, laws.of_arm)
        return World(caps, groups, batch, groups + groups % 2, groups, pay_by_laws(laws.draw), arrays, None)
    own = problem.context_laws
    pieces = PIECES_MOST if any(law.pay == "pieces" for law in own) else 2
    levels = [np.cumsum(chances) for chances in problem.contexts.levels]
    packed = ContextArrays(
        effects=np.array([law.effects for law in own]),
        speeds=np.array([law.speeds for law in own]),
        logistic=np.array([law.logistic for law in own], np.int64),
        once=np.array([law.pay == "once" for law in own], np.int64),
        window=problem.window,
        numbers=problem.contexts.numbers,
        flags=np.array(problem.contexts.flags, np.float64),
        level_ends=np.concatenate(levels) if levels else np.zeros(0),
        level_counts=np.array([len(ends) for ends in levels], np.int64),
    )
    layout = problem.contexts.layout
    return World(caps, problem.window, batch, 2 + pieces, 1, pay_by_context, packed, layout)


@njit
def draw_context(arrays: ContextArrays, u: Floats, x: Floats) -> None:
    """Write a context into `x`, made from one uniform for each feature."""
    x[0] = 1.0
    for j in range(arrays.numbers):
        x[1 + j] = _WIDE * (u[j] - 0.5)
    place, used = 1 + arrays.numbers, arrays.numbers
    for j in range(len(arrays.flags)):
        x[place + j] = 1.0 if u[used + j] < arrays.flags[j] else 0.0
    place += len(arrays.flags)
    used += len(arrays.flags)
    first = 0
    for f in range(len(arrays.level_counts)):
        count = arrays.level_counts[f]
        level = 0
        while level < count - 1 and u[used + f] >= arrays.level_ends[first + level]:
            level += 1
        for j in range(count):
            x[place + j] = 1.0 if j == level else 0.0
        first += count
        place += count


@njit
def mean_of(arrays: ContextArrays, caps: Floats, arm: int, x: Floats) -> float:
    """Return the true mean total of an arm in context `x`."""
    value = dot(arrays.effects[arm], x)
    if arrays.logistic[arm]:
        return 1.0 / (1.0 + math.exp(-value))
    value = max(value, 0.0)
    return min(value, float(caps[arm])) if arrays.once[arm] else value


@njit
def piece_of(arrays: ContextArrays, caps: Floats, arm: int) -> float:
    """Return the size of a piece."""
    return float(caps[arm] if arrays.once[arm] else caps[arm] / PIECES_MOST)


@njit
def count_pieces(arrays: ContextArrays, caps: Floats, arm: int, mean: float, u: Floats) -> int:
    """Return how many pieces a decision pays, whose mean total this is."""
    mean /= piece_of(arrays, caps, arm)
    if arrays.once[arm]:
        return 1 if u[0] < mean else 0
    rate = mean * 2.0 * u[1]
    chance = math.exp(-rate)
    below = chance
    count = 0
    while u[0] > below and count < PIECES_MOST:
        count += 1
        chance *= rate / count
        below += chance
    return count


@njit
def power_of(arrays: ContextArrays, arm: int, x: Floats) -> float:
    """Return the exponent with which `age_of` turns a uniform into an age."""
    return math.exp(-dot(arrays.speeds[arm], x))


@njit
def age_of(window: int, power: float, u: float) -> int:
    """Return the age of a piece, made from a uniform."""
    if u <= 0.0:
        return 0
    return min(int(window * math.exp(power * math.log(u))), window - 1)


@njit
def pay_by_context(
    arrays: ContextArrays, caps: Floats, arm: int, x: Floats, u: Floats,
    times: LearnerGroups, earned: Floats, scratch: Floats,
) -> None:  # fmt: skip
    """Pay as the arm's law says in context `x` (see `World`)."""
    ends, groups, draws = times.ends, len(times.ends), u[0]
    earned[:] = 0.0
    pieces = count_pieces(arrays, caps, arm, mean_of(arrays, caps, arm, x), draws)
    size = piece_of(arrays, caps, arm)
    power = power_of(arrays, arm, x)
    for j in range(pieces):
        age = 0 if times.at_once else age_of(arrays.window, power, draws[2 + j])
        g = 0
        while ends[g] <= age and g < groups - 1:
            g += 1
        if age < ends[g]:
            earned[g + 1] += size
    for g in range(groups):
        earned[g + 1] = earned[g] + earned[g + 1]


@functools.cache
def pay_by_laws(draw: Any) -> Function:
    """Make the `pay` of a `World` from a problem's `PackedLaws.draw`."""

    @njit
    def pay(
        arrays: DrawnArrays, caps: Floats, arm: int, x: Floats, u: Floats,
        times: LearnerGroups, earned: Floats, scratch: Floats,
    ) -> None:  # fmt: skip
        draw(arrays.laws, arrays.law[arm], u, scratch)
        earned[0] = 0.0
        total, g = 0.0, 0
        for age in range(1, scratch.shape[1] + 1):
            total += scratch[0, age - 1]
            if g < len(times.ends) and times.ends[g] == age:
                earned[g + 1] = caps[arm] * total
                g += 1
        if times.at_once:
            earned[1] = caps[arm] * total

    return pay


class GeneralRunFeed:
    """The draws of one run, span after span; a span is at most `span` rounds."""

    def __init__(self, world: World, key: tuple[int, int], span: int) -> None:
        self.span = span
        self._world, self._key = world, key
        past, now = world.window * world.batch, span * world.batch
        self._feed = GeneralFeed(np.zeros((past + now, world.width)), np.zeros((now, world.uniforms)))
        self.means = np.zeros((now if world.width else 0, len(world.caps)))  # decisions of the span x arms
        self._made, self._last = 0, 0

    def read(self, length: int) -> GeneralFeed:
        """Draw the next `length` rounds (at most `span`); the next call overwrites them."""
        world, x, count = self._world, self._feed.x, length * self._world.batch
        past = len(x) - len(self._feed.u)
        if world.width:
            x[:past] = x[self._last : self._last + past].copy()
            _fill_contexts(
                world.arrays, world.caps, self._key, self._made, count, past, self._feed, self.means
            )
        else:
            _fill_uniforms(self._key, self._made, self._feed.u[:count])
        self._made += count
        self._last = count
        return self._feed


@kernel
def _fill_uniforms(key: tuple[int, int], made: int, u: Floats) -> None:
    for i in range(len(u)):
        uniforms(key[0], key[1], made + 1 + i, REWARDS, u[i])


@kernel
def _fill_contexts(
    arrays: ContextArrays, caps: Floats, key: tuple[int, int], made: int, count: int, past: int,
    feed: GeneralFeed, means: Floats,
) -> None:  # fmt: skip
    features = arrays.numbers + len(arrays.flags) + len(arrays.level_counts)
    features += features % 2
    u = np.empty(features + feed.u.shape[1])
    for i in range(count):
        uniforms(key[0], key[1], made + 1 + i, REWARDS, u)
        x = feed.x[past + i]
        draw_context(arrays, u, x)
        feed.u[i] = u[features:]
        for a in range(len(caps)):
            means[i, a] = mean_of(arrays, caps, a, x)
