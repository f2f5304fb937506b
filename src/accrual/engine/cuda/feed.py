"""The CUDA kernels that draw the feed and fill memory."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from accrual.core.random import REWARDS, uniforms
from accrual.engine.cuda.compiler import cuda, device_kernel
from accrual.engine.cuda.parts import GpuFeed, Span

_FLOAT = np.dtype(np.float64)
_REGISTERS = 64


class Sizes(NamedTuple):
    """How a span is drawn."""

    groups: int
    phi: int
    even: bool
    wants_changes: bool


@functools.cache
def draw_kernel(draw_law: Any, near: bool) -> Any:
    """Make the kernel that draws the feed of a span. A thread draws one decision after another.

    The uniforms and the pay lie in shared memory if `near`, otherwise in `scratch`. With one law, the pay
    overwrites the uniforms.
    """

    @functools.partial(device_kernel, registers=_REGISTERS)
    def draw(laws: Any, scratch: Any, feed: GpuFeed, span: Span, sizes: Sizes) -> None:
        thread = cuda.grid(1)
        groups, phi, even, wants_changes = sizes
        width = groups + groups % 2
        if near:
            drawn = cuda.shared.array(0, _FLOAT)
            at, step = cuda.threadIdx.x, cuda.blockDim.x
        else:
            drawn = scratch
            at, step = thread, cuda.gridsize(1)
        end = at + width * step
        mine_u = drawn[at:end:step]
        other = 0 if feed.laws == 1 else width * step
        mine_pay = drawn[at + other : end + other : step]
        # Places are unsigned and added up, as in the other kernels.
        runs = np.uint64(span.runs)
        detail = feed.paid_columns == groups + 1
        row_step = np.uint64(feed.laws * feed.columns) * runs
        ring = np.uint64(feed.rows) * row_step
        hop = np.uint64(phi) * row_step + runs  # from a group to the next, a column on and so many rows
        for item in range(thread, span.length * span.runs, cuda.gridsize(1)):
            i = item // span.runs
            run = item - i * span.runs
            row = (span.start + i) % feed.rows
            uniforms(span.seed, span.run + run, span.start + i, REWARDS, mine_u)
            for law in range(feed.laws):
                draw_law(laws, law, mine_u[np.newaxis, :], mine_pay[np.newaxis, :groups])
                place = np.uint64(row * feed.laws + law)
                p = place * np.uint64(feed.paid_columns) * runs + np.uint64(run)
                c = place * np.uint64(feed.columns) * runs + np.uint64(run)
                total = before = 0.0
                g = np.uint64(0)
                while g < np.uint64(groups):
                    pay = mine_pay[g]
                    g += np.uint64(1)
                    total += pay
                    if detail:
                        p += runs
                        feed.paid[p] = total
                    if wants_changes:
                        share = pay / phi if even else pay
                        feed.changes[c] = share - before
                        before = share if even else 0.0
                        c += hop
                        c -= ring if c >= ring else np.uint64(0)
                if not detail:
                    feed.paid[p + runs] = total
                if wants_changes:
                    feed.changes[c] = -before

    return draw


@functools.cache
def fill_kernel() -> Any:
    """Make the kernel that copies its policy's first statistics to every chain."""

    @device_kernel
    def fill(first: Any, out: Any, runs: int, chains: int) -> None:
        # `first` is policies x things, `out` blocks x things x lanes.
        _, things, lanes = out.shape
        for item in range(cuda.grid(1), out.size, cuda.gridsize(1)):
            block = item // (things * lanes)
            chain = min(block * lanes + item % lanes, chains - 1)  # a place that has none gets the last one
            thing = (item // lanes) % things
            out[block, thing, item % lanes] = first[chain // runs, thing]

    return fill


@functools.cache
def clear_kernel() -> Any:
    """Make the kernel that sets an array, made flat, to 0."""

    @device_kernel
    def clear(out: Any) -> None:
        for item in range(cuda.grid(1), out.size, cuda.gridsize(1)):
            out[item] = 0

    return clear
