"""The passes that a fit makes over a log: decision by decision, in blocks that fit in memory.

The tables of a log are sorted, and each pass reads them in order. So a fit is the same to the bit
whatever the number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accrual.core.arrays import Floats, Ints
from accrual.core.groups import NUDGE, followed_for, is_within
from accrual.logs.estimate.arm_means import GroupMeans, ScorePowers, WeightSums
from accrual.logs.estimate.grids import Grid
from accrual.logs.estimate.intervals import Sums
from accrual.logs.estimate.sample import ClosedTotals
from accrual.logs.log import Log

_DECISIONS = 1 << 13  # in a block: what they paid in 50 groups stays near the core
_PIECES = 1 << 18


@dataclass(frozen=True)
class DecisionBlock:
    """Some decisions in a row, and their pieces."""

    # For each decision:
    arm: Ints
    at: Floats  # its time, in ticks
    followed: Floats  # how long the log has followed it
    own: Floats  # its own window, infinite where there is none
    hash: npt.NDArray[np.uint64]  # of its id
    propensity: Floats  # 1 where there is none
    # Arrays of the decision's place in the block, age and value; to be read before the next block.
    pieces: Iterator[tuple[Ints, Floats, Floats]]


def decision_blocks(log: Log) -> Iterator[DecisionBlock]:
    """Go through all decisions of a log in order, with all their pieces."""
    pieces = _Pieces(log)
    place = 0
    end, unit = log.query("SELECT tick FROM ended")[0][0], 1e6 if log.timestamps else 1.0
    own_window = "coalesce(own_window, 'inf'::DOUBLE)"
    query = f"SELECT rowid, arm, tick::DOUBLE, {own_window}, hash(id), coalesce(propensity, 1.0) FROM decided"
    for number, arm, tick, own, hashed, propensity in log.stream(query):
        for low in range(0, len(arm), _DECISIONS):
            some = slice(low, low + _DECISIONS)
            _in_order(number[some], place)
            followed = followed_for((tick[some] - end) / unit, 0.0, own[some])
            block = DecisionBlock(
                arm=arm[some].astype(np.int64),
                at=tick[some],
                followed=followed,
                own=own[some],
                hash=hashed[some],
                propensity=propensity[some].astype(np.float64),
                pieces=pieces.take(place, len(arm[some])),
            )
            yield block
            for _ in block.pieces:  # whatever was not read
                pass
            place += len(arm[some])


def paid_in(block: DecisionBlock, *grids: Grid) -> tuple[list[Floats], int]:
    """Add up what each decision paid in the cells of each grid; count pieces too late for the first grid.

    Too late is at the end of the last group or after it, and at the end of the decision's own window
    or after it; such pay is in a column of its own, after the groups.
    """
    rows = len(block.arm)
    paid = [np.zeros(rows * (len(grid) + 1)) for grid in grids]
    late = 0
    own = np.isfinite(block.own).any()
    for decision, age, value in block.pieces:
        too_old = ~is_within(age, block.own[decision]) if own else None
        for i, grid in enumerate(grids):
            group = grid.place(age)
            if too_old is not None:
                group[too_old] = len(grid)
            late += int((group == len(grid)).sum()) if i == 0 else 0
            np.add.at(paid[i], decision * (len(grid) + 1) + group, value)
    return [each.reshape(rows, -1) for each in paid], late


class _Pieces:
    """A log's pieces, handed out to blocks of decisions."""

    def __init__(self, log: Log) -> None:
        self._batches = log.stream("SELECT decision, age, value FROM paid", _PIECES)
        self._next: tuple[npt.NDArray[np.uint32], Floats, Floats] | None = None

    def take(self, first: int, count: int) -> Iterator[tuple[Ints, Floats, Floats]]:
        """Yield the pieces of `count` decisions from `first` on, which must be those that come next."""
        while True:
            batch = self._next or next(self._batches, None)
            self._next = None
            if batch is None:
                return
            decision, age, value = batch
            _in_order(decision)
            end = int(np.searchsorted(decision, first + count))
            if end:
                yield np.subtract(decision[:end], first, dtype=np.int64), age[:end], value[:end]
            if end < len(decision):
                self._next = (decision[end:], age[end:], value[end:])
                return


def _in_order(numbers: npt.NDArray[Any], first: int | None = None) -> None:
    """Make sure that DuckDB read a table in order, which everything here relies on."""
    if (numbers[1:] < numbers[:-1]).any() or (first is not None and len(numbers) and numbers[0] != first):
        raise RuntimeError("the log's tables were not read in order")


def longest_followed(log: Log) -> float:
    """Return the longest time for which a decision was followed."""
    return float(log.query("SELECT coalesce(max(followed), 0) FROM decisions")[0][0])


def count_closed(log: Log, window: float) -> int:
    """Count the decisions that were followed for the whole of a window."""
    return int(log.query("SELECT count(*) FROM decisions WHERE followed * $1 >= $2", [NUDGE, window])[0][0])


def count_followed(log: Log, grid: Grid) -> Ints:
    """Count the decisions that were followed through exactly 0, 1, 2, ... cells."""
    counts = np.zeros(len(grid) + 1, np.int64)
    for (followed,) in log.stream("SELECT followed FROM decisions"):
        counts += np.bincount(grid.place(followed), minlength=len(counts))
    return counts


@dataclass
class ArrivalCurve:
    """How reward comes in, all arms together, in fine cells of age and without intervals."""

    grid: Grid
    finished: Ints  # how many decisions were followed through exactly 0, 1, 2, ... cells
    paid: Floats  # what decisions paid in the cells that they were followed through
    largest: Floats  # the most that one decision of each arm paid in all, taking every piece as positive

    @property
    def edges(self) -> Floats:
        """The ages at which cells end."""
        return self.grid.edges

    @property
    def means(self) -> Floats:
        """What a decision pays in each cell on average."""
        followed = np.cumsum(self.finished[::-1])[::-1][1:]
        return np.asarray(self.paid / np.maximum(followed, 1.0))


def trace_curve(log: Log, grid: Grid) -> ArrivalCurve:
    """Return the mean cumulative function of all decisions."""
    cells = len(grid)
    curve = ArrivalCurve(grid, np.zeros(cells + 1, np.int64), np.zeros(cells), np.zeros(len(log.arms)))
    for block in decision_blocks(log):
        done = grid.place(block.followed)
        curve.finished += np.bincount(done, minlength=cells + 1)
        total = np.zeros(len(done))
        for decision, age, value in block.pieces:
            at = grid.place(age)
            np.add.at(total, decision, np.abs(value))
            # A cell that the log's end cut off is left out; so is what came after the own window.
            whole = at < done[decision]
            np.add.at(curve.paid, at[whole], value[whole])
        np.maximum.at(curve.largest, block.arm, total)
    return curve


@dataclass
class FinalPass:
    """Everything that `final_pass` finds."""

    sums: Sums  # by arm, over the groups of the window
    weights: WeightSums  # by arm, over the groups of the window: what the arms' means are made of
    course: Sums  # of all arms, over the bins of the course of arrival
    largest: Floats  # the largest total of a decision of each arm, closed or not
    late: int
    closed: ClosedTotals


@dataclass(frozen=True)
class FinalPassPlan:
    """What the last two passes need to know about the log."""

    arms: int
    groups: Grid  # of the window
    bins: Grid  # of the course of arrival
    sample: int  # how many decisions of an arm a sample will have
    least_propensity: float | None  # None where all decisions of an arm weigh the same

    def weight(self, block: DecisionBlock) -> Floats:
        """Return the weight of each decision, at most 1; see `accrual.logs.estimate.arm_means`."""
        if self.least_propensity is None:
            return np.ones(len(block.arm))
        return np.sqrt(self.least_propensity / block.propensity)


def final_pass(log: Log, plan: FinalPassPlan) -> FinalPass:
    """Add up over the groups of the window, by arm, and over the bins of the course of arrival."""
    totals = FinalPass(
        sums=Sums(len(plan.groups), plan.arms),
        weights=WeightSums(len(plan.groups), plan.arms),
        course=Sums(len(plan.bins), 1),
        largest=np.full(plan.arms, -np.inf),
        late=0,
        closed=ClosedTotals(plan.arms, plan.sample),
    )
    for block in decision_blocks(log):
        (paid, course), late = paid_in(block, plan.groups, plan.bins)
        totals.late += late
        total = paid[:, :-1].sum(axis=1)
        np.maximum.at(totals.largest, block.arm, total)
        done = plan.groups.place(block.followed)
        closed = np.flatnonzero(done == len(plan.groups))
        totals.closed.add(block.hash[closed], block.arm[closed], total[closed], block.at[closed])
        totals.sums.add(paid, done, block.arm)
        totals.weights.add(paid, done, block.arm, plan.weight(block))
        totals.course.add(course, plan.bins.place(block.followed), np.zeros_like(block.arm))
    return totals


def score_pass(log: Log, plan: FinalPassPlan, found: GroupMeans, largest: Floats) -> ScorePowers:
    """Add up the powers of what each decision moves its arm's mean by; see `ScorePowers`."""
    powers = ScorePowers(found, largest)
    for block in decision_blocks(log):
        (paid,), _ = paid_in(block, plan.groups)
        powers.add(paid, plan.groups.place(block.followed), block.arm, plan.weight(block))
    return powers
