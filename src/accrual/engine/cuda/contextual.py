"""The CUDA engine for problems with contexts: all policies and runs at once, on one NVIDIA GPU.

As in `accrual.engine.cuda.engine`, whose passes and spans it shares: how the work is shared out changes no result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from accrual.core.errors import InputError
from accrual.core.progress import Progress
from accrual.engine.context_draws import ContextualWorld, uniforms_of_a_round
from accrual.engine.context_loop import ContextualPlan, ContextualTask
from accrual.engine.cuda import contextual_kernels as kernels
from accrual.engine.cuda.compiler import cuda
from accrual.engine.cuda.engine import (
    Chains,
    Floats,
    Ints,
    alike,
    free_memory,
    in_passes,
    to_gpu,
    zeros_on_gpu,
)
from accrual.engine.cuda.parts import Span

_LANES = 32  # chains in a block
_GRID, _BLOCK = 1056, 128  # blocks, and threads in a block, that draw
_SPAN_LEAST, _SPAN_MOST = 32, 512
_VISITS = 2e9  # bytes of a span's visits at which longer spans stop paying


class _Sizes(NamedTuple):
    """What fits the GPU."""

    span: int  # rounds of a launch at most
    runs: int  # at a time, at most


def play(task: ContextualTask, progress: Progress) -> tuple[Floats, Ints]:
    """Play on the GPU; what is returned is described in `accrual.engine.fast_loop.play`."""
    plans, rounds = task.plans, task.rounds
    kinds = alike(plans, lambda plan: (len(plan.reader.edges), plan.policy.contextual))

    def prepare(runs: range) -> tuple[GpuVisitSource, list[ContextualTeam]]:
        sizes = _sizes(plans, rounds, len(runs))
        source = GpuVisitSource(plans[0].world, sizes, (task.seed, runs[: sizes.runs]))
        return source, [ContextualTeam([plans[p] for p in kind], rounds, source) for kind in kinds]

    return in_passes(task, kinds, prepare, progress)


def _sizes(plans: Sequence[ContextualPlan], rounds: Ints, runs: int) -> _Sizes:
    world = plans[0].world
    arms, width = world.effects.shape
    drawn = sum(uniforms_of_a_round(world))
    a_round = 8 * (width + arms + 1 + drawn)
    span = int(np.clip(_VISITS / (a_round * runs), _SPAN_LEAST, _SPAN_MOST))
    chains = sum(
        sum(field.nbytes for field in plan.policy.stats(plan.params))
        + world.window * (10 + 8 * len(plan.reader.edges)) + 8 * (len(rounds) + 1)
        for plan in plans
    )  # fmt: skip
    a_run = a_round * span + 8 * width * world.window + chains
    free = free_memory() - 8.0 * drawn * _GRID * _BLOCK
    if free < a_run:
        raise InputError("one run does not fit half of the GPU's free memory; use device 'cpu'")
    return _Sizes(span, runs if free >= runs * a_run else int(free // a_run))


class GpuVisitSource:
    """Draws the visits of all runs, span after span."""

    def __init__(self, world: ContextualWorld, sizes: _Sizes, key: tuple[int, range]) -> None:
        self.sizes = sizes
        self.seed, self.runs = key
        self.stream = stream = cuda.stream()
        arms, width = world.effects.shape
        features, luck = uniforms_of_a_round(world)
        span, runs = sizes.span, len(self.runs)
        self._counts = (len(world.flags), len(world.level_counts))
        self.world = world._replace(**{
            name: to_gpu(field, stream) for name, field in world._asdict().items() if np.ndim(field)
        })  # fmt: skip
        self._scratch = cuda.device_array((features + luck, _GRID * _BLOCK), stream=stream)
        self._visits = kernels.GpuVisits(
            cuda.device_array((world.window + span, width, runs), stream=stream),
            cuda.device_array((span, arms, runs), stream=stream),
            cuda.device_array((span, runs), stream=stream),
            cuda.device_array((span, luck, runs), stream=stream),
            cuda.device_array(span, stream=stream),
        )
        # Only from pinned memory does a copy not wait for the work before it; two, for two spans.
        self._pinned = [cuda.pinned_array(span) for _ in range(2)]
        self._next = 1

    def read(self, length: int) -> tuple[kernels.GpuVisits, Span]:
        """Draw the next `length` rounds (at most `sizes.span`)."""
        span = Span(self._next, length, self.seed, self.runs[0], len(self.runs), 0)
        self._pinned.reverse()
        # Of single numbers: for many at a time numpy's logarithms differ from these in the last digit.
        self._pinned[0][:length] = [math.log(max(span.start + i - 1.0, 1.0)) for i in range(length)]
        self._visits.log.copy_to_device(self._pinned[0], self.stream)
        kernels.visits_kernel()[_GRID, _BLOCK, self.stream](
            self.world, self._counts, self._scratch, self._visits, span
        )
        self._next += length
        return self._visits, span


class ContextualTeam(Chains):
    """Chains that one kernel plays."""

    def __init__(self, plans: Sequence[ContextualPlan], rounds: Ints, source: GpuVisitSource) -> None:
        super().__init__(plans, rounds, source)
        policy, params = plans[0].policy, plans[0].params
        first = [plan.policy.stats(plan.params) for plan in plans]
        blocks, lanes, window = -(-self.chains // _LANES), min(self.chains, _LANES), source.world.window
        groups = len(plans[0].reader.edges)
        self.stats = self._started(first, (blocks, lanes))
        self._world = source.world
        self._reader = kernels.GpuReader(*self._stacked([plan.reader for plan in plans]))
        cells = blocks * window * lanes
        self._memory = kernels.GpuMemory(
            zeros_on_gpu(cells, np.uint16, self.stream).reshape(blocks, window, lanes),
            zeros_on_gpu(cells * groups, np.float64, self.stream).reshape(blocks, window, groups, lanes),
            zeros_on_gpu(cells, np.float64, self.stream).reshape(blocks, window, lanes),
            zeros_on_gpu(blocks * lanes, np.float64, self.stream).reshape(blocks, lanes),
        )
        self._kernel = kernels.contextual_kernel(
            kernels.ContextualSpec(
                policy.functions, policy.feedback, policy.contextual, type(params), len(params),
                type(first[0]), len(first[0]),
            )
        )  # fmt: skip
        self._grid = (blocks, lanes, self.stream)

    def advance(self, visits: kernels.GpuVisits, span: Span) -> None:
        """Play a span."""
        self._kernel[self._grid](
            self._params, tuple(self.stats), self._world, self._reader, self._memory, visits,
            span._replace(chains=self.chains), self._checkpoints(span),
        )  # fmt: skip
