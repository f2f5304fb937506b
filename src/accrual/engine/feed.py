"""What the decisions of a span of rounds would pay: drawn once, read by every policy.

A decision's rate of payment changes only where a group begins or ends, so a round needs only the
changes due in it: one each from the decisions made 0, phi, 2 phi, ... rounds ago. `changes` holds
them in the order in which a round reads them.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from accrual.core.arrays import Floats, Ints
from accrual.core.jit import kernel
from accrual.core.random import REWARDS, uniforms
from accrual.engine.law_kernels import LawArrays, PackedLaws
from accrual.problems.problem import Problem

_BYTES = 1 << 20  # the size of `changes` in a span, so that it stays in the processor's cache
_SPAN_LEAST, _SPAN_MOST = 256, 4096
_BLOCK = 64  # rounds drawn together: a call per round would cost more than the draws


class Feed(NamedTuple):
    """One span's draws, for kernels. Shares are of the arm's cap.

    ``changes[i, law, j]`` is the change of payment due in the span's round i from the decision
    made j groups earlier. ``paid[window + i, law, j]`` is what a decision of the span's round i
    has paid when j of its groups are over; the rows before hold the decisions of the window
    before the span. Without detail there are just two columns, nothing and the total.
    """

    changes: Floats
    paid: Floats
    log: Floats  # ln(t - 1) of each round, 0 for the first


class RunFeed:
    """The feed of one run, span after span.

    Parameters
    ----------
    laws : PackedLaws
        The problem's laws (`accrual.engine.law_kernels.pack`).
    seed, run : int
        Which draws; the same pair always gives the same feed.
    detail : bool
        Whether `Feed.paid` has every group.
    """

    def __init__(self, problem: Problem, laws: PackedLaws, seed: int, run: int, detail: bool = True) -> None:
        self._arrays, self._fill = laws.arrays, fill_kernel(laws.draw)
        self._key = (seed, run)
        self._window, self._groups = problem.window, problem.groups
        self._even = problem.division == "even"
        width = laws.count * (problem.groups + 1)
        # `read` moves one window of earlier draws, so a span is longer than the window.
        self.span = max(int(np.clip(_BYTES // (8 * width), _SPAN_LEAST, _SPAN_MOST)), problem.window + 1)
        columns = problem.groups + 1 if detail else 2
        self._changes = np.zeros((self.span + problem.window + 1, laws.count, problem.groups + 1))
        self._paid = np.zeros((self.span + problem.window, laws.count, columns))
        self._next = 1
        self._length = 0

    def change(self, arrays: LawArrays) -> None:
        """Draw from other laws from now on, of the same number; decisions made before keep their pay."""
        self._arrays = arrays

    def read(self, length: int) -> Feed:
        """Draw the feed of the next `length` rounds (at most `span`)."""
        # What earlier decisions still owe moves to the front; the rest is written afresh.
        done, window = self._length, self._window
        self._changes[: window + 1] = self._changes[done : done + window + 1]
        self._paid[:window] = self._paid[done : done + window]
        rounds = np.arange(self._next, self._next + length)
        self._fill(
            self._arrays, self._key, rounds, self._even, window // self._groups,
            self._changes, self._paid[window:],
        )  # fmt: skip
        self._next += length
        self._length = length
        return Feed(self._changes, self._paid, np.log(np.maximum(rounds - 1.0, 1.0)))


@functools.cache
def fill_kernel(draw: Any) -> Any:
    """Make the kernel that draws a span with a problem's `PackedLaws.draw`."""

    @kernel
    def fill(
        laws: LawArrays,
        key: tuple[int, int],
        rounds: Ints,
        even: bool,
        phi: int,
        changes: Floats,
        paid: Floats,
    ) -> None:
        groups = changes.shape[2] - 1
        last = paid.shape[2] - 1
        u = np.empty((_BLOCK, groups + groups % 2))
        pay = np.empty((_BLOCK, groups))
        for first in range(0, len(rounds), _BLOCK):
            count = min(_BLOCK, len(rounds) - first)
            for i in range(count):
                uniforms(key[0], key[1], rounds[first + i], REWARDS, u[i])
            for law in range(changes.shape[1]):
                draw(laws, law, u[:count], pay[:count])
                for i in range(count):
                    total = 0.0
                    for g in range(groups):
                        total += pay[i, g]
                        if last == groups:
                            paid[first + i, law, g + 1] = total
                    paid[first + i, law, last] = total
                if even:
                    for i in range(count):
                        for g in range(groups):
                            pay[i, g] /= phi
                for i in range(count):
                    before = 0.0
                    for g in range(groups):
                        changes[first + i + g * phi, law, g] = pay[i, g] - before
                        if even:
                            before = pay[i, g]
                    changes[first + i + groups * phi, law, groups] = -before

    return fill
