"""The CUDA engine's smaller kernels: they draw the feed, and fill memory."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from accrual.core.random import REWARDS, uniforms
from accrual.engine.cuda_kernels import cuda, device_kernel
from accrual.engine.cuda_parts import Feed, Span
from accrual.environment.laws import draw_pay


class Sizes(NamedTuple):
    """How a span is drawn."""

    groups: int
    phi: int
    even: bool
    wants_changes: bool


@functools.cache
def draw_kernel() -> Any:
    """The kernel that draws the feed of a span: a thread takes one decision of one run after another."""

    @device_kernel
    def draw(laws: Any, u: Any, pay: Any, feed: Feed, span: Span, sizes: Sizes) -> None:
        thread = cuda.grid(1)
        mine_u, mine_pay = u[:, :, thread], pay[:, :, thread]
        groups, phi, even, wants_changes = sizes
        last = feed.paid_columns - 1
        for item in range(thread, span.length * span.runs, cuda.gridsize(1)):
            i = item // span.runs
            run = item - i * span.runs
            row = (span.start + i) % feed.rows
            uniforms(span.seed, span.run + run, span.start + i, REWARDS, mine_u[0])
            for law in range(feed.laws):
                draw_pay(laws, law, mine_u, mine_pay)
                total = 0.0
                at = (row * feed.laws + law) * feed.paid_columns * span.runs + run
                for g in range(groups):
                    total += mine_pay[0, g]
                    if last == groups:
                        feed.paid[at + (g + 1) * span.runs] = total
                feed.paid[at + last * span.runs] = total
                if wants_changes:
                    before = 0.0
                    due = row
                    for g in range(groups):
                        share = mine_pay[0, g] / phi if even else mine_pay[0, g]
                        feed.changes[((due * feed.laws + law) * feed.columns + g) * span.runs + run] = (
                            share - before
                        )
                        if even:
                            before = share
                        due += phi
                        due -= feed.rows if due >= feed.rows else 0
                    feed.changes[
                        ((due * feed.laws + law) * feed.columns + groups) * span.runs + run
                    ] = -before

    return draw


@functools.cache
def fill_kernel() -> Any:
    """The kernel that gives every chain its policy's first statistics."""

    @device_kernel
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

    @device_kernel
    def clear(out: Any) -> None:
        for item in range(cuda.grid(1), out.size, cuda.gridsize(1)):
            out[item] = 0

    return clear
