"""One pass over a log, decision by decision, in blocks that fit in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accrual.core.groups import followed_for, is_within
from accrual.fit.grids import Grid
from accrual.fit.tables import Log

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_DECISIONS = 1 << 13  # in a block: what they paid in 50 groups stays near the core
_PIECES = 1 << 18


@dataclass(frozen=True)
class DecisionBlock:
    """Some decisions in a row, and their pieces."""

    # arm, at, followed, own, hash: for each decision: its arm, its time (in ticks), how long the log has seen
    # it, its own window (infinite where there is none), and a hash of its id, which is the same in any part
    # of a log.
    arm: Ints
    at: Floats
    followed: Floats
    own: Floats
    hash: npt.NDArray[np.uint64]
    # Of (decision in the block, age, value), arrays; to be read before the next block.
    pieces: Iterator[tuple[Ints, Floats, Floats]]


def decision_blocks(log: Log) -> Iterator[DecisionBlock]:
    """Go through all decisions of a log in order, with all their pieces."""
    pieces = _Pieces(log)
    place = 0
    end, unit = log.query("SELECT tick FROM ended")[0][0], 1e6 if log.timestamps else 1.0
    own_window = "coalesce(own_window, 'inf'::DOUBLE)"
    query = f"SELECT rowid, arm, tick::DOUBLE, {own_window}, hash(id) FROM decided"
    for number, arm, tick, own, hashed in log.stream(query):
        for low in range(0, len(arm), _DECISIONS):
            some = slice(low, low + _DECISIONS)
            _in_order(number[some], place)
            followed = followed_for((tick[some] - end) / unit, 0.0, own[some])
            block = DecisionBlock(
                log.arm_numbers[arm[some]], tick[some], followed, own[some], hashed[some],
                pieces.take(place, len(arm[some])),
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
