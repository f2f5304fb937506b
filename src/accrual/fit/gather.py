"""The passes over a log that a fit makes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from accrual.fit.intervals import Sums
from accrual.fit.tables import Log
from accrual.fit.walk import Grid, paid_in, walk

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

BINS_MOST = 4096
_KEEP_MOST = 2_000_000
_SPARE = 20  # totals kept for each decision of a sample, at least


@dataclass(frozen=True)
class Curve:
    """How reward comes in, arms together: fine, without intervals.

    `edges` are the ages at which even bins end, `means` what a decision pays in them on average.
    """

    edges: Floats
    means: Floats


def curve(log: Log, watched: float) -> Curve:
    """The mean cumulative function of all decisions, in steps of the log's own or in many even ones."""
    steps = watched / log.resolution if log.resolution > 0.0 else np.inf
    bins = round(steps) if steps <= BINS_MOST else BINS_MOST
    grid = Grid(watched, bins)
    finished, paid = np.zeros(bins + 1), np.zeros(bins)
    for block in walk(log):
        done = grid.place(block.followed)
        finished += np.bincount(done, minlength=bins + 1)
        for decision, age, value in block.pieces:
            at = grid.place(age)
            # A bin that the log's end cut off is left out; so is what came after the own window.
            fine = at < done[decision]
            np.add.at(paid, at[fine], value[fine])
    seen = np.cumsum(finished[::-1])[::-1][1:]
    return Curve(grid.edges, paid / np.maximum(seen, 1.0))


@dataclass
class Gathered:
    """Everything the last pass finds.

    Attributes
    ----------
    sums : Sums
        By arm, over the groups of the window.
    course : Sums
        Of all arms, over the bins of the course of arrival.
    largest : ndarray
        The largest total of a decision of each arm, closed or not.
    late : int
    closed : Totals
    """

    sums: Sums
    course: Sums
    largest: Floats
    late: int
    closed: Totals


class Totals:
    """Totals of closed decisions, by arm: all of them, or as many as are enough, chosen by a hash."""

    def __init__(self, arms: int, limit: int) -> None:
        self._limit = limit * _SPARE
        self._most = max(_KEEP_MOST, 2 * arms * self._limit)
        self.count = np.zeros(arms, np.int64)
        self.number = np.zeros(0, np.int64)
        self.arm = np.zeros(0, np.int64)
        self.total = np.zeros(0)

    def add(self, number: Ints, arm: Ints, total: Floats) -> None:
        self.count += np.bincount(arm, minlength=len(self.count))
        self.number = np.concatenate([self.number, number])
        self.arm = np.concatenate([self.arm, arm])
        self.total = np.concatenate([self.total, total])
        if len(self.number) > self._most:
            order = np.lexsort((_hash(self.number), self.arm))
            by_arm = self.arm[order]
            rank = np.arange(len(by_arm)) - np.searchsorted(by_arm, by_arm)
            kept = order[rank < self._limit]
            self.number, self.arm, self.total = self.number[kept], self.arm[kept], self.total[kept]

    def of(self, arm: int) -> tuple[Ints, Floats]:
        """Numbers and totals of an arm's decisions, from the smallest total; ties by the hash."""
        mine = np.flatnonzero(self.arm == arm)
        if len(mine) < self.count[arm]:  # then only those of the lowest hash stand for all
            mine = mine[np.argsort(_hash(self.number[mine]))[: self._limit]]
        order = mine[np.lexsort((_hash(self.number[mine]), self.total[mine]))]
        return self.number[order], self.total[order]


def gather(log: Log, groups: Grid, bins: Grid, limit: int) -> Gathered:
    """Sums over the groups of the window, by arm, and over the bins of the course of arrival.

    `limit` is how many decisions of an arm a sample will have.
    """
    arms = len(log.arms)
    found = Gathered(
        Sums(arms, len(groups)), Sums(1, len(bins)), np.full(arms, -np.inf), 0, Totals(arms, limit)
    )
    for block in walk(log):
        (paid, course), late = paid_in(block, groups, bins)
        found.late += late
        total = paid[:, :-1].sum(axis=1)
        np.maximum.at(found.largest, block.arm, total)
        done = groups.place(block.followed)
        closed = np.flatnonzero(done == len(groups))
        found.closed.add(block.first + closed, block.arm[closed], total[closed])
        found.sums.add(paid, done, block.arm)
        found.course.add(course, bins.place(block.followed), np.zeros_like(block.arm))
    return found


def _hash(numbers: Ints) -> npt.NDArray[np.uint64]:
    """SplitMix64: the same order on every machine."""
    x = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))
