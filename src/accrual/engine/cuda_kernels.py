"""The CUDA engine's kernels: one thread plays one policy in one run, another kernel draws the feed.

They call the functions that the CPU engine calls, in the same order, so that in numba's simulator
they give the same numbers to the bit. What differs is where things lie: a chain's neighbours in
memory are the same thing of the next chain or run, so that threads side by side read side by side.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from accrual.core.errors import need
from accrual.core.jit import njit
from accrual.core.random import REWARDS, uniforms
from accrual.environment.laws import draw_pay
from accrual.policy.base import Feedback, Function, Functions, Moment, no_refresh

need("numba_cuda", "cuda")  # numba has a cuda of its own, older and without upkeep
if not hasattr(np, "row_stack"):  # numba-cuda up to 0.30 reads a name that numpy 2.5 has dropped
    np.row_stack = np.vstack
cuda: Any = need("numba.cuda", "cuda")

F = TypeVar("F", bound=Callable[..., Any])

_FLOAT = np.dtype(np.float64)
_ARM = np.dtype(np.uint16)


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
    """`environment.feed.Feed` for all runs, as rings of `rows` rounds.

    ``changes[t % rows, law, j, run]`` is the change of payment due in round t from the decision
    made j groups earlier; ``paid[s % rows, law, j, run]`` is what the decision of round s has paid
    when j of its groups are over.
    """

    changes: Any
    paid: Any
    log: Any  # of the span's rounds alone


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


def _kernel(function: F) -> F:
    return cuda.jit(function)  # type: ignore[no-any-return]


# A device function may return a tuple of arrays but no array, and a tuple can only be taken apart
# at places known when compiling. So tuples are put together one field at a time, by closures.


def _pick(count: int) -> Function:
    """``pick(arrays, policy)``: the row of `policy` of each of `count` arrays."""
    last = count - 1

    @njit
    def pick(arrays: Any, policy: int) -> Any:
        return (arrays[last][policy],)

    if count == 1:
        return pick
    before = _pick(last)

    @njit
    def picks(arrays: Any, policy: int) -> Any:
        return before(arrays, policy) + pick(arrays, policy)

    return picks


def _enter(fields: tuple[Any, ...]) -> Function:
    """``enter(arrays, starts, block, lane)``: a chain's own statistics, those kept near brought there."""
    last = len(fields) - 1
    dtype = fields[last]

    if dtype is None:

        @njit
        def enter(arrays: Any, starts: Any, block: int, lane: int) -> Any:
            return (arrays[last][block, ..., lane],)
    else:

        @njit
        def enter(arrays: Any, starts: Any, block: int, lane: int) -> Any:
            size = arrays[last].shape[1]
            first = starts.stats[last] + lane * starts.stride[last]
            near = cuda.shared.array(0, dtype)[first : first + size]
            for i in range(size):
                near[i] = arrays[last][block, i, lane]
            return (near,)

    if last == 0:
        return enter
    before = _enter(fields[:last])

    @njit
    def enters(arrays: Any, starts: Any, block: int, lane: int) -> Any:
        return before(arrays, starts, block, lane) + enter(arrays, starts, block, lane)

    return enters


def _leave(fields: tuple[Any, ...]) -> Function:
    """``leave(arrays, stats, block, lane)``: put back what `_enter` brought near."""
    last = len(fields) - 1
    moved = fields[last] is not None

    @njit
    def leave(arrays: Any, stats: Any, block: int, lane: int) -> None:
        if moved:
            for i in range(arrays[last].shape[1]):
                arrays[last][block, i, lane] = stats[last][i]

    if last == 0:
        return leave
    before = _leave(fields[:last])

    @njit
    def leaves(arrays: Any, stats: Any, block: int, lane: int) -> None:
        before(arrays, stats, block, lane)
        leave(arrays, stats, block, lane)

    return leaves


@functools.cache
def chain_kernel(kind: Kind) -> Any:
    """The kernel that plays a span of rounds, for policies of one kind."""
    index, survey, decided, closed, finished, _, refresh = kind.functions
    totals = kind.feedback == "totals"
    pieces = kind.feedback == "pieces"
    grouped = kind.feedback == "groups"
    refreshed = refresh is not no_refresh
    one_law, near, ring_near = kind.one_law, kind.near, kind.ring_near
    make_params, make_stats = kind.params, kind.stats
    pick, enter, leave = _pick(kind.param_count), _enter(kind.fields), _leave(kind.fields)

    @_kernel
    def advance(
        all_params: Any, all_stats: Any, game: Game, reader: Reader, work: Work, feed: Feed,
        span: Span, marks: Marks,
    ) -> None:  # fmt: skip
        starts = work.starts
        lanes = np.int64(cuda.blockDim.x)
        lane, block = np.int64(cuda.threadIdx.x), np.int64(cuda.blockIdx.x)
        chain = block * lanes + lane
        if chain >= span.chains:
            return
        policy = chain // span.runs
        run = chain - policy * span.runs
        number: Any = span.run + run
        params = make_params(*pick(all_params, policy))
        stats = make_stats(*enter(all_stats, starts, block, lane))
        count = len(game.caps)
        window, phi, even = game.window, game.phi, game.even
        slots = window + 1
        rows = feed.paid.shape[0]
        columns = feed.changes.shape[2]
        last = feed.paid.shape[2] - 1
        if ring_near:
            arms = cuda.shared.array(0, _ARM)
            at = starts.arms + lane
            for s in range(slots):
                arms[at + s * lanes] = work.arms[(block * slots + s) * lanes + lane]
        else:
            arms = work.arms
            at = block * slots * lanes + lane
        if near and pieces:
            rate = cuda.shared.array(0, _FLOAT)
            at0 = starts.rate + lane
            for k in range(4 * count):
                rate[at0 + k * lanes] = work.rate[(block * 4 * count + k) * lanes + lane]
        else:
            rate = work.rate
            at0 = block * 4 * count * lanes + lane
        at1 = at0 + count * lanes
        at2 = at1 + count * lanes
        at3 = at2 + count * lanes

        lag = reader.lag[policy]
        slot = span.start % slots
        row = span.start % rows
        mark = marks.next
        due_mark = marks.rounds[mark] if mark < len(marks.rounds) else 0
        stop = 0
        while stop < span.length:
            first, stop = stop, span.length
            if refreshed:
                if stats.due[0] <= 0:
                    refresh(params, stats)
                stop = min(span.length, first + stats.due[0])
                stats.due[0] -= stop - first
            for i in range(first, stop):
                t = span.start + i
                # Decide, knowing what arrived up to the round before. First each arm once, in order.
                choice = t - 1
                if choice >= count:
                    choice = 0
                    best = -np.inf
                    moment = Moment(t, feed.log[i], span.seed, number)
                    survey(params, stats, moment)
                    for k in range(count):
                        value = index(params, stats, k, moment)
                        if value > best:
                            best = value
                            choice = k
                arm = np.int64(np.uint16(choice))
                stats.pulls[arm] += 1
                arms[at + slot * lanes] = arm
                decided(params, stats, arm)

                # Then this round's pieces arrive.
                if pieces:
                    # Four at a time, one for each part of the rates, so that none waits for another.
                    s0, j = slot, 0
                    while j + 4 <= columns:
                        s1 = s0 - phi
                        s1 += slots if s1 < 0 else 0
                        s2 = s1 - phi
                        s2 += slots if s2 < 0 else 0
                        s3 = s2 - phi
                        s3 += slots if s3 < 0 else 0
                        a0, a1 = np.int64(arms[at + s0 * lanes]), np.int64(arms[at + s1 * lanes])
                        a2, a3 = np.int64(arms[at + s2 * lanes]), np.int64(arms[at + s3 * lanes])
                        if one_law:
                            d0, d1 = feed.changes[row, 0, j, run], feed.changes[row, 0, j + 1, run]
                            d2, d3 = feed.changes[row, 0, j + 2, run], feed.changes[row, 0, j + 3, run]
                        else:
                            d0 = feed.changes[row, game.law[a0], j, run]
                            d1 = feed.changes[row, game.law[a1], j + 1, run]
                            d2 = feed.changes[row, game.law[a2], j + 2, run]
                            d3 = feed.changes[row, game.law[a3], j + 3, run]
                        a0, a1, a2, a3 = (
                            at0 + a0 * lanes,
                            at1 + a1 * lanes,
                            at2 + a2 * lanes,
                            at3 + a3 * lanes,
                        )
                        d0, d1, d2, d3 = rate[a0] + d0, rate[a1] + d1, rate[a2] + d2, rate[a3] + d3
                        rate[a0] = d0
                        rate[a1] = d1
                        rate[a2] = d2
                        rate[a3] = d3
                        s0 = s3 - phi
                        s0 += slots if s0 < 0 else 0
                        j += 4
                    part = at0
                    while j < columns:
                        a0 = np.int64(arms[at + s0 * lanes])
                        law = 0 if one_law else game.law[a0]
                        rate[part + a0 * lanes] += feed.changes[row, law, j, run]
                        part += count * lanes
                        s0 -= phi
                        s0 += slots if s0 < 0 else 0
                        j += 1
                    for k in range(count):
                        k0 = k * lanes
                        paid = (rate[at0 + k0] + rate[at1 + k0]) + (rate[at2 + k0] + rate[at3 + k0])
                        stats.observed[k] += game.caps[k] * paid
                        if not even:
                            rate[at0 + k0] = 0.0
                            rate[at1 + k0] = 0.0
                            rate[at2 + k0] = 0.0
                            rate[at3 + k0] = 0.0
                if totals and t > lag:
                    s = slot - lag
                    s += slots if s < 0 else 0
                    made = row - lag
                    made += rows if made < 0 else 0
                    a = np.int64(arms[at + s * lanes])
                    law = 0 if one_law else game.law[a]
                    closed(params, stats, a, game.caps[a] * feed.paid[made, law, last, run])
                if grouped:
                    for g in range(reader.ages.shape[1]):
                        age = reader.ages[policy, g]
                        if t < age:  # they rise
                            break
                        s = slot + 1 - age
                        s += slots if s < 0 else 0
                        made = row + 1 - age
                        made += rows if made < 0 else 0
                        a = np.int64(arms[at + s * lanes])
                        law = 0 if one_law else game.law[a]
                        c, d = reader.cell[policy, g], reader.cell[policy, g + 1]
                        low, high = feed.paid[made, law, c, run], feed.paid[made, law, d, run]
                        before = low + reader.part[policy, g] * (feed.paid[made, law, c + 1, run] - low)
                        after = high + reader.part[policy, g + 1] * (feed.paid[made, law, d + 1, run] - high)
                        finished(params, stats, a, g, game.caps[a] * before, game.caps[a] * after)

                if t == due_mark:
                    regret = 0.0
                    for k in range(count):
                        regret += game.gaps[k] * stats.pulls[k]
                    marks.regret[mark, chain] = regret
                    mark += 1
                    due_mark = marks.rounds[mark] if mark < len(marks.rounds) else 0
                slot += 1
                if slot == slots:
                    slot = 0
                row += 1
                if row == rows:
                    row = 0

        leave(all_stats, stats, block, lane)
        if ring_near:
            for s in range(slots):
                work.arms[(block * slots + s) * lanes + lane] = arms[at + s * lanes]
        if near and pieces:
            for k in range(4 * count):
                work.rate[(block * 4 * count + k) * lanes + lane] = rate[at0 + k * lanes]

    return advance


class Sizes(NamedTuple):
    """How a span is drawn."""

    groups: int
    phi: int
    even: bool
    wants_changes: bool


@functools.cache
def draw_kernel() -> Any:
    """The kernel that draws the feed of a span: a thread takes one decision of one run after another."""

    @_kernel
    def draw(laws: Any, u: Any, pay: Any, feed: Feed, span: Span, sizes: Sizes) -> None:
        thread = cuda.grid(1)
        mine_u, mine_pay = u[:, :, thread], pay[:, :, thread]
        groups, phi, even, wants_changes = sizes
        rows = feed.paid.shape[0]
        last = feed.paid.shape[2] - 1
        for item in range(thread, span.length * span.runs, cuda.gridsize(1)):
            i = item // span.runs
            run = item - i * span.runs
            row = (span.start + i) % rows
            uniforms(span.seed, span.run + run, span.start + i, REWARDS, mine_u[0])
            for law in range(feed.paid.shape[1]):
                draw_pay(laws, law, mine_u, mine_pay)
                total = 0.0
                for g in range(groups):
                    total += mine_pay[0, g]
                    if last == groups:
                        feed.paid[row, law, g + 1, run] = total
                feed.paid[row, law, last, run] = total
                if wants_changes:
                    before = 0.0
                    due = row
                    for g in range(groups):
                        share = mine_pay[0, g] / phi if even else mine_pay[0, g]
                        feed.changes[due, law, g, run] = share - before
                        if even:
                            before = share
                        due += phi
                        due -= rows if due >= rows else 0
                    feed.changes[due, law, groups, run] = -before

    return draw


@functools.cache
def fill_kernel() -> Any:
    """The kernel that gives every chain its policy's first statistics."""

    @_kernel
    def fill(first: Any, out: Any, runs: int, chains: int) -> None:
        # `first` is policies x things, `out` blocks x things x lanes.
        _, things, lanes = out.shape
        for item in range(cuda.grid(1), out.size, cuda.gridsize(1)):
            block = item // (things * lanes)
            chain = block * lanes + item % lanes
            if chain < chains:
                thing = (item // lanes) % things
                out[block, thing, item % lanes] = first[chain // runs, thing]

    return fill


@functools.cache
def clear_kernel() -> Any:
    """The kernel that sets an array, made flat, to 0."""

    @_kernel
    def clear(out: Any) -> None:
        for item in range(cuda.grid(1), out.size, cuda.gridsize(1)):
            out[item] = 0

    return clear
