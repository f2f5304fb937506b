"""What the CUDA engine's kernels are given, and the functions that several of them call."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from accrual.core.jit import njit
from accrual.policy.base import Feedback, Function, Functions


class Game(NamedTuple):
    """What a chain needs to know of a problem."""

    caps: Any
    gaps: Any
    law: Any  # of each arm
    window: int
    phi: int  # rounds per group
    even: bool


class Reader(NamedTuple):
    """`engine.cpu.Reader`, for every policy."""

    lag: Any  # policies
    ages: Any  # policies x groups
    cell: Any  # policies x groups + 1
    part: Any  # the same


class Starts(NamedTuple):
    """Where things begin in shared memory, each counted in things of its own size."""

    rate: int
    arms: int
    stats: tuple[int, ...]
    stride: tuple[int, ...]  # from one lane's to the next one's


class Work(NamedTuple):
    """What chains remember of their pending decisions, blocks x things x lanes, flat."""

    arms: Any  # the arm of each decision of the window, and of the one before; a ring
    rate: Any  # 4 x arms: what each arm's pending decisions pay per round, in four parts
    starts: Starts


class Feed(NamedTuple):
    """`environment.feed.Feed` for all runs, as rings of `rows` rounds; the arrays are flat.

    ``changes`` is rows x laws x `columns` x runs: what changes in round t (row t % rows) from the
    decision made j groups earlier. The columns are four by four, the last ones empty, and four
    more follow the last row, so that reading ahead is safe. ``paid`` is rows x laws x
    `paid_columns` x runs: what the decision of round s has paid when j of its groups are over.
    """

    changes: Any
    paid: Any
    log: Any  # of the span's rounds alone
    rows: int
    laws: int
    columns: int
    paid_columns: int


class Span(NamedTuple):
    """Which rounds of which chains."""

    start: int
    length: int
    seed: int
    run: int  # the first run's number
    runs: int
    chains: int  # policies x runs, the run counting faster


class Marks(NamedTuple):
    """Where to note the regret."""

    rounds: Any
    regret: Any  # marks x chains
    next: int  # the first mark that is not yet past


class Kind(NamedTuple):
    """What a chain kernel is compiled for."""

    functions: Functions
    feedback: Feedback
    params: type
    param_count: int
    stats: type
    fields: tuple[Any, ...]  # of each statistic kept near: its dtype; of any other: None
    one_law: bool
    near: bool  # the rates in shared memory
    ring_near: bool  # the arms too


# A device function may return a tuple of arrays but no array, and a tuple can only be taken apart
# at places known when compiling. So tuples are put together one field at a time, by closures.


def pick_from(count: int) -> Function:
    """``pick(arrays, policy)``: the row of `policy` of each of `count` arrays."""
    last = count - 1

    @njit
    def pick(arrays: Any, policy: int) -> Any:
        return (arrays[last][policy],)

    if count == 1:
        return pick
    before = pick_from(last)

    @njit
    def picks(arrays: Any, policy: int) -> Any:
        return before(arrays, policy) + pick(arrays, policy)

    return picks


@njit
def back(place: Any, by: Any, size: Any) -> Any:
    """The place so far back in a ring."""
    return place - by if place >= by else place + size - by


@functools.cache
def group_reader(one_law: bool) -> Function:
    """``group(...)``: who has finished a group in this round, and what they had paid at its edges.

    The arm is -1 where no such decision was made. Reading it needs nothing that `finished` writes,
    so the next group's numbers are on their way while one is learned from.
    """

    @njit
    def group(game: Game, reader: Reader, feed: Feed, arms: Any, which: Any, ring: Any, place: Any) -> Any:
        policy, g, t = which
        at, slot, step, size = ring
        row, own, runs = place
        if g >= reader.ages.shape[1]:
            return -1, 0.0, 0.0
        u = np.uint64(g)
        p = np.uint64(policy)
        age = reader.ages[p, u]
        if t < age:  # they rise
            return -1, 0.0, 0.0
        made = np.uint64(age - 1)
        s = back(slot, made * step, size)
        made = back(row, made, np.uint64(feed.rows))
        a = np.uint64(arms[at + s])
        law = np.uint64(0) if one_law else np.uint64(game.law[a])
        first = (made * np.uint64(feed.laws) + law) * np.uint64(feed.paid_columns)
        c = (first + np.uint64(reader.cell[p, u])) * runs + own
        d = (first + np.uint64(reader.cell[p, u + np.uint64(1)])) * runs + own
        low, high = feed.paid[c], feed.paid[d]
        before = low + reader.part[p, u] * (feed.paid[c + runs] - low)
        after = high + reader.part[p, u + np.uint64(1)] * (feed.paid[d + runs] - high)
        return np.int64(a), game.caps[a] * before, game.caps[a] * after

    return group
