"""The CUDA kernels for problems with contexts: one draws the visits, another plays policies on them.

They call the functions that `accrual.engine.context_loop` calls, in the same order. Here too a chain's
neighbours in memory are the same thing of the next chain or run.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from accrual.core.random import REWARDS, uniforms
from accrual.engine.context_draws import (
    ContextualWorld,
    age_of,
    count_pieces,
    draw_context,
    mean_of,
    power_of,
)
from accrual.engine.cuda.compiler import cuda, device_kernel
from accrual.engine.cuda.kernels import enter_into
from accrual.engine.cuda.parts import GpuCheckpoints, Span, pick_from
from accrual.policies.base import Feedback, Functions, Moment, no_refresh
from accrual.policies.contexts import with_contexts


class GpuVisits(NamedTuple):
    """`environment.contextual.Visits` for all runs; row t % rows of `x` is round t's."""

    x: Any  # rows x width x runs
    means: Any  # rounds of the span x arms x runs
    best: Any  # rounds of the span x runs
    luck: Any  # rounds of the span x uniforms x runs
    log: Any  # of the rounds of the span


class GpuReader(NamedTuple):
    """`engine.contextual.LearningTimes`, for every policy."""

    edges: Any  # policies x groups
    at_once: Any  # policies


class GpuMemory(NamedTuple):
    """`engine.contextual.ChainMemory` for all chains, as rings of a window: blocks x things x lanes."""

    arms: Any  # blocks x window x lanes
    paid: Any  # blocks x window x groups x lanes
    done: Any  # blocks x window x lanes
    regret: Any  # blocks x lanes


class ContextualSpec(NamedTuple):
    """What a kernel is compiled for."""

    functions: Functions
    feedback: Feedback
    contextual: bool
    params: type
    param_count: int
    stats: type
    stat_count: int


@functools.cache
def visits_kernel() -> Any:
    """Make the kernel that draws a span's visits: a thread takes one round of a run after another."""

    @device_kernel
    def draw(
        given: ContextualWorld, counts: tuple[int, int], scratch: Any, visits: GpuVisits, span: Span
    ) -> None:
        # A GPU takes no empty arrays, so that they come with one number too many.
        flags, level_counts = given.flags[: counts[0]], given.level_counts[: counts[1]]
        world = ContextualWorld(
            given.effects, given.speeds, given.numbers, flags, given.level_ends, level_counts, given.logistic,
            given.once, given.window,
        )  # fmt: skip
        features = world.numbers + len(flags) + len(level_counts)
        features += features % 2
        thread = cuda.grid(1)
        u = scratch[:, thread]
        for item in range(thread, span.length * span.runs, cuda.gridsize(1)):
            i = item // span.runs
            run = item - i * span.runs
            uniforms(span.seed, span.run + run, span.start + i, REWARDS, u)
            x = visits.x[(span.start + i) % visits.x.shape[0], :, run]
            draw_context(world, u, x)
            for j in range(visits.luck.shape[1]):
                visits.luck[i, j, run] = u[features + j]
            best = -np.inf
            for a in range(len(world.effects)):
                mean = mean_of(world, a, x)
                visits.means[i, a, run] = mean
                best = max(best, mean)
            visits.best[i, run] = best

    return draw


@functools.cache
def contextual_kernel(spec: ContextualSpec) -> Any:
    """Make the kernel that plays a span of rounds, for policies of one kind: a thread for each chain."""
    refresh = spec.functions.refresh
    refreshed = refresh is not no_refresh
    grouped = spec.feedback == "groups"
    taking = with_contexts(spec.functions, spec.contextual)
    index, survey, decided = taking.index, taking.survey, taking.decided
    closed, finished = taking.closed, taking.finished
    make_params, make_stats = spec.params, spec.stats
    pick, enter = pick_from(spec.param_count), enter_into((None,) * spec.stat_count)

    @device_kernel
    def advance(
        all_params: Any, all_stats: Any, world: ContextualWorld, reader: GpuReader, memory: GpuMemory,
        visits: GpuVisits, span: Span, marks: GpuCheckpoints,
    ) -> None:  # fmt: skip
        lane, block = np.int64(cuda.threadIdx.x), np.int64(cuda.blockIdx.x)
        chain = block * np.int64(cuda.blockDim.x) + lane
        if chain >= span.chains:
            return
        policy = chain // span.runs
        run = chain - policy * span.runs
        number: Any = span.run + run
        params = make_params(*pick(all_params, policy))
        stats = make_stats(*enter(all_stats, 0, block, lane))
        count = len(params.cap)
        window = world.window
        edges, at_once = reader.edges[policy], reader.at_once[policy]
        groups = len(edges)
        size = 1.0 if world.once else 0.1
        regret = memory.regret[block, lane]
        mark = marks.next
        for i in range(span.length):
            t = span.start + i
            slot = t % window
            x = visits.x[t % visits.x.shape[0], :, run]
            if refreshed:
                if stats.due[0] <= 0:
                    refresh(params, stats)
                stats.due[0] -= 1
            # Decide, knowing what arrived up to the round before. First each arm once, in order.
            choice: Any = t - 1
            if choice >= count:
                moment = Moment(t, visits.log[i], span.seed, number)
                survey(params, stats, moment, x)
                choice = 0
                best = -np.inf
                for k in range(count):
                    value = index(params, stats, k, moment, x)
                    if value > best:
                        best = value
                        choice = k
            stats.pulls[choice] += 1
            memory.arms[block, slot, lane] = choice
            mean = visits.means[i, choice, run]
            regret += visits.best[i, run] - mean
            decided(params, stats, choice, x)
            # What this decision will pay, group by group.
            paid = memory.paid[block, slot, :, lane]
            for g in range(groups):
                paid[g] = 0.0
            memory.done[block, slot, lane] = 0.0
            luck = visits.luck[i, :, run]
            pieces = count_pieces(world, mean, luck)
            power = power_of(world, choice, x)
            for j in range(pieces):
                age = 0 if at_once else age_of(window, power, luck[2 + j])
                g = 0
                while edges[g] <= age and g < groups - 1:
                    g += 1
                if age < edges[g]:
                    paid[g] += size
            # Then groups of earlier decisions finish.
            for g in range(groups):
                if t < edges[g]:
                    break
                made = t + 1 - edges[g]
                slot = made % window
                arm = np.int64(memory.arms[block, slot, lane])
                before = memory.done[block, slot, lane]
                after = before + memory.paid[block, slot, g, lane]
                then = visits.x[made % visits.x.shape[0], :, run]
                if grouped:
                    finished(params, stats, arm, g, before, after, then)
                else:
                    closed(params, stats, arm, after, then)
                memory.done[block, slot, lane] = after
            if mark < len(marks.rounds) and t == marks.rounds[mark]:
                marks.regret[mark, chain] = regret
                mark += 1
        memory.regret[block, lane] = regret

    return advance
