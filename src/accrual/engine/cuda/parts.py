"""The tuples that the CUDA engine passes to its kernels, and functions that several kernels call."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from accrual.core.jit import njit
from accrual.policies.base import Feedback, Function, Functions

AHEAD = 8  # columns of the feed that are read at a time


class GpuProblem(NamedTuple):
    """A problem, packed for kernels."""

    caps: Any
    gaps: Any
    law: Any  # of each arm
    window: int
    phi: int  # rounds per group
    even: bool


class GpuLearningTimes(NamedTuple):
    """`accrual.engine.fast_loop.LearningTimes`, for every policy."""

    lag: Any  # policies
    ages: Any  # policies x groups
    cell: Any  # policies x groups + 1
    part: Any  # the same


class Starts(NamedTuple):
    """Where each array begins in shared memory, counted in its own items."""

    table: int  # how many numbers each chain's table has; the tables come first
    rate: int
    arms: int
    stats: tuple[int, ...]
    stride: tuple[int, ...]  # from one lane's to the next one's


class Work(NamedTuple):
    """The pending decisions of all chains: flat arrays, blocks x items x lanes."""

    arms: Any  # the arm of each decision of the window, and of the one before; a ring
    rate: Any  # 4 x arms: what each arm's pending decisions pay per round, in four parts
    starts: Starts


class GpuFeed(NamedTuple):
    """`accrual.engine.feed.Feed` for all runs, as rings of `rows` rounds; the arrays are flat.

    ``changes`` is rows x laws x `columns` x runs: what changes in round t (row t % rows) from the
    decision made j groups earlier. The columns are `AHEAD` by `AHEAD`, the last ones empty, and twice
    as many follow the last row, so that reading ahead is safe. ``paid`` is rows x laws x
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


class GpuCheckpoints(NamedTuple):
    """Where to note the regret."""

    rounds: Any
    regret: Any  # marks x chains
    next: int  # the first mark that is not yet past


class KernelSpec(NamedTuple):
    """What a chain kernel is compiled for."""

    functions: Functions
    feedback: Feedback
    params: type
    param_count: int
    stats: type
    fields: tuple[Any, ...]  # for each statistic its dtype if it is in shared memory, otherwise None
    one_law: bool
    near: bool  # the rates in shared memory
    ring_near: bool  # the arms too
    arm: Any  # the dtype of an arm's number in the ring
    sums: tuple[int, ...]  # which statistics they are, if a round's groups are learned from side by side


# A device function may return a tuple of arrays but no array, and compiled code can index a tuple only with
# constants. So closures build tuples one field at a time.


def pick_from(count: int) -> Function:
    """Make ``pick(arrays, policy)``, which returns the row of `policy` of each of `count` arrays."""
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


def put_into(count: int) -> Function:
    """Make ``put(table, at, step, values)``, which writes `count` values to a table, `step` apart."""
    last = count - 1

    @njit
    def put(table: Any, at: Any, step: Any, values: Any) -> None:
        table[at + np.uint64(last) * step] = values[last]

    if count == 1:
        return put
    before = put_into(last)

    @njit
    def puts(table: Any, at: Any, step: Any, values: Any) -> None:
        before(table, at, step, values)
        put(table, at, step, values)

    return puts


def adder_of(places: tuple[int, ...]) -> tuple[Function, Function, Function]:
    """Make three functions on an arm's sums, which are these places of the statistics.

    ``get(stats, arm)`` reads them, ``set(stats, arm, values)`` writes them, and ``add(values, table, at,
    step)`` adds to each what the table has for it, `step` apart.
    """
    last = len(places) - 1
    place = places[last]

    @njit
    def get(stats: Any, arm: int) -> Any:
        return (stats[place][arm],)

    @njit
    def put(stats: Any, arm: int, values: Any) -> None:
        stats[place][arm] = values[last]

    @njit
    def add(values: Any, table: Any, at: Any, step: Any) -> Any:
        return (values[last] + table[at + np.uint64(last) * step],)

    if last == 0:
        return get, put, add
    get_before, put_before, add_before = adder_of(places[:last])

    @njit
    def gets(stats: Any, arm: int) -> Any:
        return get_before(stats, arm) + get(stats, arm)

    @njit
    def puts(stats: Any, arm: int, values: Any) -> None:
        put_before(stats, arm, values)
        put(stats, arm, values)

    @njit
    def adds(values: Any, table: Any, at: Any, step: Any) -> Any:
        return add_before(values, table, at, step) + add(values, table, at, step)

    return gets, puts, adds


@njit
def back(place: Any, by: Any, size: Any) -> Any:
    """Return the place `by` before `place` in a ring."""
    return place - by if place >= by else place + size - by


@njit
def ask(changes: Any, c: Any, runs: Any) -> Any:
    """Read the next `AHEAD` changes."""
    c2 = c + runs + runs
    c4 = c2 + runs + runs
    c6 = c4 + runs + runs
    return (
        changes[c], changes[c + runs], changes[c2], changes[c2 + runs],
        changes[c4], changes[c4 + runs], changes[c6], changes[c6 + runs],
    )  # fmt: skip


@njit
def add_four(rate: Any, at: Any, arms: Any, ring: Any, slot: Any, due: Any) -> Any:
    """Add four changes to the rates of the arms of `slot`, and of one, two and three groups earlier.

    One for each part of the rates, so that none waits for another. Returns the slot four groups earlier.
    """
    at0, at1, at2, at3 = at
    first, phi, size, step = ring
    s1 = back(slot, phi, size)
    s2 = back(s1, phi, size)
    s3 = back(s2, phi, size)
    a0 = at0 + np.uint64(arms[first + slot]) * step
    a1 = at1 + np.uint64(arms[first + s1]) * step
    a2 = at2 + np.uint64(arms[first + s2]) * step
    a3 = at3 + np.uint64(arms[first + s3]) * step
    r0, r1, r2, r3 = rate[a0] + due[0], rate[a1] + due[1], rate[a2] + due[2], rate[a3] + due[3]
    rate[a0] = r0
    rate[a1] = r1
    rate[a2] = r2
    rate[a3] = r3
    return back(s3, phi, size)


@functools.cache
def group_reader(one_law: bool) -> Function:
    """Make ``group(...)``, which finds the decision that finishes a group now: its arm, and pay at the edges.

    The arm is -1 where no such decision was made. Reading it needs nothing that `finished` writes,
    so the next group's numbers are on their way while one is learned from.
    """

    @njit
    def group(
        problem: GpuProblem,
        times: GpuLearningTimes,
        feed: GpuFeed,
        arms: Any,
        which: Any,
        ring: Any,
        place: Any,
    ) -> Any:
        policy, g, t = which
        at, slot, step, size = ring
        row, own, runs = place
        if g >= times.ages.shape[1]:
            return -1, 0.0, 0.0
        u = np.uint64(g)
        p = np.uint64(policy)
        age = times.ages[p, u]
        if t < age:  # they rise
            return -1, 0.0, 0.0
        made = np.uint64(age - 1)
        s = back(slot, made * step, size)
        made = back(row, made, np.uint64(feed.rows))
        a = np.uint64(arms[at + s])
        law = np.uint64(0) if one_law else np.uint64(problem.law[a])
        first = (made * np.uint64(feed.laws) + law) * np.uint64(feed.paid_columns)
        c = (first + np.uint64(times.cell[p, u])) * runs + own
        d = (first + np.uint64(times.cell[p, u + np.uint64(1)])) * runs + own
        low, high = feed.paid[c], feed.paid[d]
        before = low + times.part[p, u] * (feed.paid[c + runs] - low)
        after = high + times.part[p, u + np.uint64(1)] * (feed.paid[d + runs] - high)
        return np.int64(a), problem.caps[a] * before, problem.caps[a] * after

    return group
