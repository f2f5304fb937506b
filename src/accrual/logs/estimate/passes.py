"""The passes that a fit makes over a log; each can be made over parts of it, whose findings merge.

They find counts, exact sums, largest values and smallest hashes, none of which depends on how the
log was cut into parts or in what order the parts are merged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from accrual.core.groups import NUDGE, followed_for, is_within
from accrual.logs.estimate.arm_means import GroupMeans, ScorePowers, WeightSums
from accrual.logs.estimate.grids import Grid
from accrual.logs.estimate.intervals import Sums
from accrual.logs.tables import Log

# One pass over a log, decision by decision, in blocks that fit in memory.

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_DECISIONS = 1 << 13  # in a block: what they paid in 50 groups stays near the core
_PIECES = 1 << 18


@dataclass(frozen=True)
class DecisionBlock:
    """Some decisions in a row, and their pieces."""

    # arm, at, followed, own, hash, propensity: for each decision: its arm, its time (in ticks), how long
    # the log has seen it, its own window (infinite where there is none), a hash of its id, which is the
    # same in any part of a log, and its propensity (1 where there is none).
    arm: Ints
    at: Floats
    followed: Floats
    own: Floats
    hash: npt.NDArray[np.uint64]
    propensity: Floats
    # Of (decision in the block, age, value), arrays; to be read before the next block.
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
                log.arm_numbers[arm[some]], tick[some], followed, own[some], hashed[some],
                propensity[some].astype(np.float64), pieces.take(place, len(arm[some])),
            )  # fmt: skip
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
        self._held: tuple[npt.NDArray[np.uint32], Floats, Floats] | None = None

    def take(self, first: int, count: int) -> Iterator[tuple[Ints, Floats, Floats]]:
        """Give the pieces of the decisions from `first` on, which must be those that come next."""
        while True:
            batch = self._held or next(self._batches, None)
            self._held = None
            if batch is None:
                return
            decision, age, value = batch
            _in_order(decision)
            end = int(np.searchsorted(decision, first + count))
            if end:
                yield np.subtract(decision[:end], first, dtype=np.int64), age[:end], value[:end]
            if end < len(decision):
                self._held = (decision[end:], age[end:], value[end:])
                return


def _in_order(numbers: npt.NDArray[Any], first: int | None = None) -> None:
    """Make sure that DuckDB read a table in order, which everything here relies on."""
    if (numbers[1:] < numbers[:-1]).any() or (first is not None and len(numbers) and numbers[0] != first):
        raise RuntimeError("the log's tables were not read in order")


Hashes = npt.NDArray[np.uint64]
P = TypeVar("P", bound="Mergeable")

_KEEP_MOST = 2_000_000
_SPARE = 20  # totals kept for each decision of a sample, at least


def longest_followed(log: Log) -> float:
    """Give the longest time for which a decision was followed."""
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
    """How reward comes in, arms together: fine, without intervals."""

    grid: Grid
    scale: float  # what pay is multiplied by before it is rounded to whole numbers and added
    finished: Ints  # how many decisions were followed through exactly 0, 1, 2, ... cells.
    paid: Ints  # what decisions paid in the cells that they were followed through, scaled
    largest: Floats  # the most that one decision of each arm paid in all, taking every piece as positive

    def merge(self, other: ArrivalCurve) -> None:
        """Add what another part of the log says."""
        self.finished = (
            self.finished + other.finished
        )  # not in place: what a cluster sent cannot be written to
        self.paid = self.paid + other.paid
        self.largest = np.maximum(self.largest, other.largest)

    @property
    def edges(self) -> Floats:
        """The ages at which cells end."""
        return self.grid.edges

    @property
    def means(self) -> Floats:
        """What a decision pays in each cell on average."""
        seen = np.cumsum(self.finished[::-1])[::-1][1:]
        return np.asarray(self.paid / self.scale / np.maximum(seen, 1.0))


def trace_curve(log: Log, grid: Grid, scale: float, arms: int) -> ArrivalCurve:
    """Give the mean cumulative function of all decisions."""
    cells = len(grid)
    curve = ArrivalCurve(
        grid, scale, np.zeros(cells + 1, np.int64), np.zeros(cells, np.int64), np.zeros(arms)
    )  # fmt: skip
    for block in decision_blocks(log):
        done = grid.place(block.followed)
        curve.finished += np.bincount(done, minlength=cells + 1)
        total = np.zeros(len(done))
        for decision, age, value in block.pieces:
            at = grid.place(age)
            np.add.at(total, decision, np.abs(value))
            # A cell that the log's end cut off is left out; so is what came after the own window.
            fine = at < done[decision]
            np.add.at(curve.paid, at[fine], np.rint(value[fine] * scale).astype(np.int64))
        np.maximum.at(curve.largest, block.arm, total)
    return curve


@dataclass
class FinalPass:
    """Everything the last pass finds."""

    sums: Sums  # by arm, over the groups of the window
    weights: WeightSums  # by arm, over the groups of the window: what the arms' means are made of
    course: Sums  # of all arms, over the bins of the course of arrival
    largest: Floats  # the largest total of a decision of each arm, closed or not
    late: int
    closed: Totals

    def merge(self, other: FinalPass) -> None:
        """Add what another part of the log says."""
        self.sums.merge(other.sums)
        self.weights.merge(other.weights)
        self.course.merge(other.course)
        self.largest = np.maximum(self.largest, other.largest)
        self.late += other.late
        self.closed.merge(other.closed)


class Totals:
    """Totals of closed decisions, by arm: all of them, or as many as are enough, chosen by their hashes."""

    def __init__(self, arms: int, limit: int) -> None:
        self._limit = limit * _SPARE
        self._most = max(_KEEP_MOST, 2 * arms * self._limit)
        self.count = np.zeros(arms, np.int64)
        # Hashes, arms, totals and times, in pieces: to join them block by block would copy all each time.
        self._kept: list[tuple[Hashes, Ints, Floats, Floats]] = []
        self._held = 0

    def add(self, hashed: Hashes, arm: Ints, total: Floats, at: Floats) -> None:
        """Add decisions."""
        self.count += np.bincount(arm, minlength=len(self.count))
        self._take(hashed, arm, total, at)

    def merge(self, other: Totals) -> None:
        """Add the decisions of another part of the log."""
        self.count = self.count + other.count
        self._take(*other._joined())

    def of(self, arm: int) -> tuple[Hashes, Floats, Floats]:
        """Give hashes, totals and times of an arm's decisions, from the smallest total; ties by the hash."""
        hashed, arms, total, at = self._joined()
        mine = np.flatnonzero(arms == arm)
        if self.count[arm] > self._limit and self.count.sum() > self._most:
            mine = mine[np.argsort(hashed[mine])[: self._limit]]  # those of the lowest hash stand for all
        order = mine[np.lexsort((hashed[mine], total[mine]))]
        return hashed[order], total[order], at[order]

    def _joined(self) -> tuple[Hashes, Ints, Floats, Floats]:
        if len(self._kept) != 1:
            empty = (np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
            hashed, arm, total, at = (
                np.concatenate(column) for column in zip(empty, *self._kept, strict=True)
            )
            self._kept = [(hashed, arm, total, at)]
        return self._kept[0]

    def _take(self, hashed: Hashes, arm: Ints, total: Floats, at: Floats) -> None:
        self._kept.append((hashed, arm, total, at))
        self._held += len(hashed)
        if self._held <= self._most:
            return
        hashed, arm, total, at = self._joined()
        order = np.lexsort((hashed, arm))
        by_arm = arm[order]
        rank = np.arange(len(by_arm)) - np.searchsorted(by_arm, by_arm)
        kept = order[rank < self._limit]
        self._kept, self._held = [(hashed[kept], arm[kept], total[kept], at[kept])], len(kept)


@dataclass(frozen=True)
class FinalPassPlan:
    """What the last pass needs to know of the whole log."""

    arms: int
    # groups, bins: of the window, and of the course of arrival.
    groups: Grid
    bins: Grid
    sample: int  # how many decisions of an arm a sample will have
    largest: Floats  # the most that one decision of each arm paid
    decisions: int
    least_propensity: float | None  # None where decisions of an arm weigh the same

    def weight(self, block: DecisionBlock) -> Floats:
        """Give the weight of each decision, at most 1; see `accrual.logs.estimate.arm_means`."""
        if self.least_propensity is None:
            return np.ones(len(block.arm))
        return np.sqrt(self.least_propensity / block.propensity)


def final_pass(log: Log, plan: FinalPassPlan) -> FinalPass:
    """Add up over the groups of the window, by arm, and over the bins of the course of arrival."""
    largest, most = plan.largest, plan.largest.max(keepdims=True)
    totals = FinalPass(
        Sums(len(plan.groups), largest, plan.decisions),
        WeightSums(len(plan.groups), largest, plan.decisions),
        Sums(len(plan.bins), most, plan.decisions),
        np.full(plan.arms, -np.inf), 0, Totals(plan.arms, plan.sample),
    )  # fmt: skip
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


def score_pass(log: Log, plan: FinalPassPlan, found: GroupMeans) -> ScorePowers:
    """Add up the powers of what each decision moves its arm's mean by."""
    powers = ScorePowers(found, plan.largest, plan.decisions)
    for block in decision_blocks(log):
        (paid,), _ = paid_in(block, plan.groups)
        powers.add(paid, plan.groups.place(block.followed), block.arm, plan.weight(block))
    return powers


class Mergeable(Protocol):
    """What a pass finds in a part of a log."""

    def merge(self, other: Any) -> None:
        """Add what was found in another part."""


def merged(parts: Sequence[P]) -> P:
    """Merge what the same pass found in the parts of a log."""
    first, *others = parts
    for other in others:
        first.merge(other)
    return first
