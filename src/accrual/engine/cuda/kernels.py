"""The CUDA kernels that play: one thread, or a team of threads, plays one policy in one run.

They call the functions that the CPU engine calls, in the same order, so in numba's simulator they give the
same numbers to the bit. Only the layout of memory differs: an item's neighbour in memory is the same item of
the next chain or run, so that neighbouring threads read neighbouring memory.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from accrual.core.jit import njit
from accrual.engine.cuda.compiler import cuda, device_kernel
from accrual.engine.cuda.parts import (
    AHEAD,
    GpuCheckpoints,
    GpuFeed,
    GpuLearningTimes,
    GpuProblem,
    KernelSpec,
    Span,
    Work,
    add_four,
    adder_of,
    ask,
    back,
    group_reader,
    pick_from,
    put_into,
)
from accrual.policies.base import Function, Moment, is_numbered, mark_lost, no_decided, no_refresh, no_survey
from accrual.policies.engine_hooks import no_refresh_stage

_FLOAT = np.dtype(np.float64)
# With fewer registers for each thread, more threads run at a time.
_TEAM_REGISTERS, _CHAIN_REGISTERS = 104, None


def enter_into(fields: tuple[Any, ...]) -> Function:
    """Make ``enter(arrays, starts, block, lane)``, which returns a chain's statistics.

    It copies those of `fields` that have a dtype to shared memory. Closures build the tuple one field at a
    time, because compiled code can index a tuple only with constants.
    """
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
    before = enter_into(fields[:last])

    @njit
    def enters(arrays: Any, starts: Any, block: int, lane: int) -> Any:
        return before(arrays, starts, block, lane) + enter(arrays, starts, block, lane)

    return enters


def leave_from(fields: tuple[Any, ...]) -> Function:
    """Make ``leave(arrays, stats, block, lane)``, which copies back what ``enter`` put into shared memory."""
    last = len(fields) - 1
    moved = fields[last] is not None

    @njit
    def leave(arrays: Any, stats: Any, block: int, lane: int) -> None:
        if moved:
            for i in range(arrays[last].shape[1]):
                arrays[last][block, i, lane] = stats[last][i]

    if last == 0:
        return leave
    before = leave_from(fields[:last])

    @njit
    def leaves(arrays: Any, stats: Any, block: int, lane: int) -> None:
        before(arrays, stats, block, lane)
        leave(arrays, stats, block, lane)

    return leaves


@functools.cache
def chain_kernel(spec: KernelSpec) -> Any:
    """Make the kernel that plays a span of rounds, for policies of one kind."""
    functions = spec.functions
    index, survey, decided = functions.index, functions.survey, functions.decided
    closed, finished, refresh = functions.closed, functions.finished, functions.refresh
    totals = spec.feedback == "totals"
    pieces = spec.feedback == "pieces"
    grouped = spec.feedback == "groups"
    refreshed, numbered = refresh is not no_refresh, is_numbered(spec.stats)
    one_law, near, ring_near, arm_type = spec.one_law, spec.near, spec.ring_near, spec.arm
    make_params, make_stats = spec.params, spec.stats
    group = group_reader(one_law)
    pick, enter, leave = pick_from(spec.param_count), enter_into(spec.fields), leave_from(spec.fields)

    @functools.partial(device_kernel, registers=_CHAIN_REGISTERS)
    def advance(
        all_params: Any, all_stats: Any, problem: GpuProblem, times: GpuLearningTimes, work: Work,
        feed: GpuFeed, span: Span, marks: GpuCheckpoints,
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
        count = len(problem.caps)
        even = problem.even
        # Places are unsigned, so that numba need not ask whether they count from the end, and steps
        # between them are known in advance, so that none is multiplied out in the loops below; the inner
        # ones are of `while`, for which the compiler makes shorter code than for a `range`.
        many = np.uint64(count)
        step = np.uint64(lanes)
        ring = np.uint64(problem.window + 1) * step
        phi = np.uint64(problem.phi) * step
        runs = np.uint64(span.runs)
        rows, one, four = np.uint64(feed.rows), np.uint64(1), np.uint64(4)
        law_step = np.uint64(feed.columns) * runs
        row_step = np.uint64(feed.laws) * law_step
        paid_law_step = np.uint64(feed.paid_columns) * runs
        paid_row_step = np.uint64(feed.laws) * paid_law_step
        own = np.uint64(run)
        if ring_near:
            arms = cuda.shared.array(0, arm_type)
            at = np.uint64(starts.arms + lane)
            for s in range(problem.window + 1):
                arms[at + np.uint64(s) * step] = work.arms[(block * (problem.window + 1) + s) * lanes + lane]
        else:
            arms = work.arms
            at = np.uint64(block) * ring + np.uint64(lane)
        part = np.uint64(count) * step
        if near and pieces:
            rate = cuda.shared.array(0, _FLOAT)
            at0 = np.uint64(starts.rate + lane)
            for k in range(4 * count):
                rate[at0 + np.uint64(k) * step] = work.rate[(block * 4 * count + k) * lanes + lane]
        else:
            rate = work.rate
            at0 = np.uint64(block) * four * part + np.uint64(lane)
        at1 = at0 + part
        at2 = at1 + part
        at3 = at2 + part

        places, past = (at0, at1, at2, at3), (at, phi, ring, step)

        lag = np.uint64(times.lag[policy])
        slot = np.uint64(span.start % (problem.window + 1)) * step
        row = np.uint64(span.start % feed.rows)
        far = np.uint64(AHEAD) * runs
        c = row * row_step + own
        if pieces and one_law:  # always asked for long before they are needed
            due, soon = ask(feed.changes, c, runs), ask(feed.changes, c + far, runs)
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
                choice: Any = t - 1
                if choice >= count:
                    choice = 0
                    best, lost = -np.inf, np.int64(-1)
                    moment = Moment(t, feed.log[i], span.seed, number)
                    survey(params, stats, moment)
                    u = np.uint64(0)
                    while u < many:
                        arm = np.int64(np.uint16(u))
                        value = index(params, stats, arm, moment)
                        if value > best:
                            best = value
                            choice = arm
                        # The first that is not a number; a store here would make the loop read all anew.
                        lost = arm if lost < 0 and value != value else lost  # noqa: PLR0124
                        u += one
                    if lost >= 0:
                        mark_lost(stats, lost, t)
                arm = np.int64(np.uint16(choice))
                stats.pulls[arm] += 1
                arms[at + slot] = arm
                decided(params, stats, arm)

                # Then this round's pieces arrive.
                if pieces:
                    s0 = slot
                    if one_law:
                        end = c + law_step
                        while c < end:
                            c += far
                            later = ask(feed.changes, c + far, runs)
                            s0 = add_four(rate, places, arms, past, s0, due[:4])
                            s0 = add_four(rate, places, arms, past, s0, due[4:])
                            due, soon = soon, later
                    else:
                        c = row * row_step + own
                        for j in range(feed.columns):
                            a = np.uint64(arms[at + s0])
                            law = np.uint64(problem.law[a])
                            rate[at0 + np.uint64(j & 3) * part + a * step] += feed.changes[c + law * law_step]
                            c += runs
                            s0 = back(s0, phi, ring)
                    u = k0 = np.uint64(0)
                    while u < many:
                        paid = (rate[at0 + k0] + rate[at1 + k0]) + (rate[at2 + k0] + rate[at3 + k0])
                        stats.observed[u] += problem.caps[u] * paid
                        if not even:
                            rate[at0 + k0] = 0.0
                            rate[at1 + k0] = 0.0
                            rate[at2 + k0] = 0.0
                            rate[at3 + k0] = 0.0
                        u += one
                        k0 += step
                if totals and t > lag:
                    s = back(slot, lag * step, ring)
                    made = back(row, lag, rows)
                    a = np.uint64(arms[at + s])
                    c = made * paid_row_step + paid_law_step - runs + own
                    if not one_law:
                        c += np.uint64(problem.law[a]) * paid_law_step
                    closed(params, stats, np.int64(a), problem.caps[a] * feed.paid[c])
                if grouped:
                    ahead = group(
                        problem, times, feed, arms, (policy, 0, t), (at, slot, step, ring), (row, own, runs)
                    )
                    for g in range(times.ages.shape[1]):
                        a, before, after = ahead
                        if a < 0:
                            break
                        if numbered:
                            stats.finishing[g] = t - times.ages[policy, g]
                        ahead = group(
                            problem,
                            times,
                            feed,
                            arms,
                            (policy, g + 1, t),
                            (at, slot, step, ring),
                            (row, own, runs),
                        )
                        finished(params, stats, np.int64(np.uint16(a)), g, before, after)

                if t == due_mark:
                    regret = 0.0
                    for k in range(count):
                        regret += problem.gaps[k] * stats.pulls[k]
                    marks.regret[mark, chain] = regret
                    mark += 1
                    due_mark = marks.rounds[mark] if mark < len(marks.rounds) else 0
                slot = slot + step if slot + step < ring else np.uint64(0)
                row += one
                if row == rows:
                    row = np.uint64(0)
                    if pieces and one_law:
                        c = own
                        due, soon = ask(feed.changes, c, runs), ask(feed.changes, c + far, runs)

        leave(all_stats, stats, block, lane)
        if ring_near:
            for s in range(problem.window + 1):
                work.arms[(block * (problem.window + 1) + s) * lanes + lane] = arms[at + np.uint64(s) * step]
        if near and pieces:
            for k in range(4 * count):
                work.rate[(block * 4 * count + k) * lanes + lane] = rate[at0 + np.uint64(k) * step]

    return advance


def _in_steps(steps: tuple[tuple[bool, Function], ...]) -> Function:
    """Make ``survey(params, stats, thread, threads)``: all steps, those for each arm done side by side."""
    if not steps:

        @njit
        def nothing(params: Any, stats: Any, thread: int, threads: int) -> None:
            pass

        return nothing
    (each, step), rest = steps[0], _in_steps(steps[1:])
    if each:

        @njit
        def take(params: Any, stats: Any, thread: int, threads: int) -> None:
            for k in range(thread, len(params.cap), threads):
                step(params, stats, np.int64(np.uint16(k)))
            cuda.syncthreads()
            rest(params, stats, thread, threads)
    else:

        @njit
        def take(params: Any, stats: Any, thread: int, threads: int) -> None:
            if thread == 0:
                step(params, stats)
            cuda.syncthreads()
            rest(params, stats, thread, threads)

    return take


@functools.cache
def team_kernel(spec: KernelSpec) -> Any:
    """Make the kernel in which a team of threads plays a chain; a block has one such team, or several.

    A team's threads work side by side on the arms' indices, on the steps of a survey, and on the groups that
    finish in a round. Steps that must be in order are done by the team's first thread.
    """
    functions = spec.functions
    index, survey, decided = functions.index, functions.survey, functions.decided
    finished, refresh, hooks = functions.finished, functions.refresh, functions.hooks
    cell_update, refresh_stage = hooks.cell_update, hooks.refresh_stage
    side_by_side, note = bool(spec.sums), put_into(max(len(spec.sums), 1))
    get, put, add = adder_of(spec.sums or (0,))
    staged, stepped = refresh_stage is not no_refresh_stage, bool(hooks.survey_steps)
    first_step: Any = hooks.survey_steps[0][1] if staged else no_decided
    take_steps = _in_steps(hooks.survey_steps[1 if staged else 0 :])
    surveyed = survey is not no_survey and not stepped
    refreshed = refresh is not no_refresh and not staged
    numbered = is_numbered(spec.stats)
    ring_near, arm_type, make_params, make_stats = spec.ring_near, spec.arm, spec.params, spec.stats
    group = group_reader(spec.one_law)
    pick, enter, leave = pick_from(spec.param_count), enter_into(spec.fields), leave_from(spec.fields)

    @functools.partial(device_kernel, registers=_TEAM_REGISTERS)
    def advance(
        all_params: Any, all_stats: Any, problem: GpuProblem, times: GpuLearningTimes, work: Work,
        feed: GpuFeed, span: Span, marks: GpuCheckpoints,
    ) -> None:  # fmt: skip
        threads, thread = np.int64(cuda.blockDim.x), np.int64(cuda.threadIdx.x)
        lanes, lane = np.int64(cuda.blockDim.y), np.int64(cuda.threadIdx.y)
        block = np.int64(cuda.blockIdx.x)
        # In the last block some teams may have no chain of their own. They play the last chain once more, in
        # memory of their own, because all threads of a block must meet at every barrier.
        alive = block * lanes + lane < span.chains
        chain = min(block * lanes + lane, np.int64(span.chains) - 1)
        policy = chain // span.runs
        run = chain - policy * span.runs
        number: Any = span.run + run
        params = make_params(*pick(all_params, policy))
        stats = make_stats(*enter(all_stats, work.starts, block, lane))
        count = len(problem.caps)
        many, one, step = np.uint64(count), np.uint64(1), np.uint64(lanes)
        ring = np.uint64(problem.window + 1) * step
        runs, rows, own = np.uint64(span.runs), np.uint64(feed.rows), np.uint64(run)
        table = cuda.shared.array(0, _FLOAT)
        here = np.uint64(lane * work.starts.table)  # the tables come first
        if ring_near:
            arms = cuda.shared.array(0, arm_type)
            at = np.uint64(work.starts.arms + lane)
            for s in range(thread, problem.window + 1, threads):
                arms[at + np.uint64(s) * step] = work.arms[(block * (problem.window + 1) + s) * lanes + lane]
        else:
            arms = work.arms
            at = np.uint64(block) * ring + np.uint64(lane)

        slot = np.uint64(span.start % (problem.window + 1)) * step
        row = np.uint64(span.start % feed.rows)
        mark = marks.next
        due_mark = marks.rounds[mark] if mark < len(marks.rounds) else 0
        cuda.syncthreads()
        for i in range(span.length):
            t = span.start + i
            if refreshed:
                if thread == 0:
                    if stats.due[0] <= 0:
                        refresh(params, stats)
                    stats.due[0] -= 1
                cuda.syncthreads()
            if staged:
                # Other chains of the block may need more parts: all wait for them at the same barriers.
                under_way = thread == 0 and stats.due[0] <= 0
                again = 1
                while again:
                    if thread == 0:
                        if under_way:
                            under_way = refresh_stage(params, stats)
                        table[here] = 1.0 if under_way else 0.0
                    again = cuda.syncthreads_or(1 if under_way else 0)
                    if t > count or table[here] > 0.0:
                        for k in range(thread, count, threads):
                            first_step(params, stats, np.int64(np.uint16(k)))
                    cuda.syncthreads()
                if thread == 0:
                    stats.due[0] -= 1
            moment = Moment(t, feed.log[i], span.seed, number)
            if t > count:
                if stepped:
                    take_steps(params, stats, thread, threads)
                if surveyed:
                    if thread == 0:
                        survey(params, stats, moment)
                    cuda.syncthreads()
                for k in range(thread, count, threads):
                    table[here + np.uint64(k)] = index(params, stats, np.int64(np.uint16(k)), moment)
                cuda.syncthreads()
            if thread == 0:
                choice: Any = t - 1
                if choice >= count:
                    choice = 0
                    best, lost = -np.inf, np.int64(-1)
                    u = np.uint64(0)
                    while u < many:
                        value = table[here + u]
                        if value > best:
                            best = value
                            choice = np.int64(np.uint16(u))
                        lost = np.int64(np.uint16(u)) if lost < 0 and value != value else lost  # noqa: PLR0124
                        u += one
                    if lost >= 0:
                        mark_lost(stats, lost, t)
                arm = np.int64(np.uint16(choice))
                stats.pulls[arm] += 1
                arms[at + slot] = arm
                decided(params, stats, arm)
            cuda.syncthreads()

            for start in range(0, times.ages.shape[1], threads):
                a, before, after = group(
                    problem, times, feed, arms, (policy, start + thread, t), (at, slot, step, ring),
                    (row, own, runs),
                )  # fmt: skip
                u = here + np.uint64(thread)
                next_ = np.uint64(threads)
                table[u] = a
                u += next_
                if numbered and a >= 0:
                    stats.finishing[start + thread] = t - times.ages[policy, start + thread]
                if side_by_side:
                    if a >= 0:
                        arm = np.int64(np.uint16(a))
                        more = cell_update(params, stats, arm, start + thread, before, after)
                        note(table, u, next_, more)
                    cuda.syncthreads()
                    # Each arm's sums are one thread's, which adds up group after group as the CPU does.
                    found = here + np.uint64(min(threads, times.ages.shape[1] - start))
                    u = here
                    if thread < count <= threads:
                        totals = get(stats, thread)
                        while u < found:
                            more = add(totals, table, u + next_, next_)
                            totals = more if table[u] == thread else totals
                            u += one
                        put(stats, thread, totals)
                    elif count > threads:
                        while u < found:
                            arm = np.int64(table[u])
                            if arm >= 0 and arm & (threads - 1) == thread:
                                put(stats, arm, add(get(stats, arm), table, u + next_, next_))
                            u += one
                else:
                    table[u], table[u + next_] = before, after
                    cuda.syncthreads()
                    if thread == 0:
                        for g in range(threads):
                            u = here + np.uint64(g)
                            a = np.int64(table[u])
                            if a < 0:
                                break
                            u += next_
                            finished(
                                params, stats, np.int64(np.uint16(a)), start + g, table[u], table[u + next_]
                            )  # fmt: skip
                cuda.syncthreads()

            if t == due_mark:
                if thread == 0 and alive:
                    regret = 0.0
                    for k in range(count):
                        regret += problem.gaps[k] * stats.pulls[k]
                    marks.regret[mark, chain] = regret
                mark += 1
                due_mark = marks.rounds[mark] if mark < len(marks.rounds) else 0
            slot = slot + step if slot + step < ring else np.uint64(0)
            row = row + one if row + one < rows else np.uint64(0)

        cuda.syncthreads()
        if thread == 0:
            leave(all_stats, stats, block, lane)
        if ring_near:
            for s in range(thread, problem.window + 1, threads):
                work.arms[(block * (problem.window + 1) + s) * lanes + lane] = arms[at + np.uint64(s) * step]

    return advance
