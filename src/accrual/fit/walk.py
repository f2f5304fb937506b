"""One pass over a log, decision by decision, in blocks that fit in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from accrual.fit.tables import Log

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_DECISIONS = 1 << 16
_PIECES = 1 << 18
_ROUNDING = 1e-9  # of a group: what ages and edges may be off by


@dataclass(frozen=True)
class Block:
    """Some decisions in a row, and their pieces.

    Attributes
    ----------
    first : int
        The number of the first decision.
    arm, followed, own : ndarray
        For each decision: its arm, how long the log has seen it, and its own window (infinite
        where there is none).
    pieces : iterator
        Of (decision in the block, age, value), arrays; to be read before the next block.
    """

    first: int
    arm: Ints
    followed: Floats
    own: Floats
    pieces: Iterator[tuple[Ints, Floats, Floats]]


def walk(log: Log) -> Iterator[Block]:
    """All decisions of a log in order, with all their pieces."""
    pieces = _Pieces(log)
    place = 0
    end, unit = log.query("SELECT tick FROM ended")[0][0], 1e6 if log.timestamps else 1.0
    own_window = "coalesce(own_window, 'inf'::DOUBLE)"
    query = f"SELECT rowid, arm, tick::DOUBLE, {own_window} FROM decided"
    for number, arm, tick, own in log.stream(query, _DECISIONS):
        for low in range(0, len(arm), _DECISIONS):
            some = slice(low, low + _DECISIONS)
            _in_order(number[some], place)
            followed = np.minimum((end - tick[some]) / unit, own[some])
            block = Block(
                place, arm[some].astype(np.int64), followed, own[some], pieces.take(place, len(arm[some]))
            )
            yield block
            for _ in block.pieces:  # whatever was not read
                pass
            place += len(arm[some])


def completed(followed: Floats, edges: Floats) -> Ints:
    """How many of the groups that end at `edges` have ended for one followed so long."""
    return np.searchsorted(edges * (1.0 - _ROUNDING), followed, side="right")


def paid_in(block: Block, *grids: Floats) -> list[tuple[Floats, int]]:
    """What each decision paid in the groups of each grid, and how many pieces came too late for it.

    A grid is the ages at which groups end. Too late is at the last of them or after it, and at the
    end of the decision's own window or after it.
    """
    rows = len(block.arm)
    paid = [np.zeros(rows * len(edges)) for edges in grids]
    late = [0] * len(grids)
    for decision, age, value in block.pieces:
        in_time = age < block.own[decision]
        for i, edges in enumerate(grids):
            group = completed(age, edges)
            inside = in_time & (group < len(edges))
            late[i] += len(age) - int(inside.sum())
            cells = decision[inside] * len(edges) + group[inside]
            paid[i] += np.bincount(cells, value[inside], minlength=len(paid[i]))
    return [(each.reshape(rows, -1), count) for each, count in zip(paid, late, strict=True)]


class _Pieces:
    """A log's pieces, handed out to blocks of decisions."""

    def __init__(self, log: Log) -> None:
        self._batches = log.stream("SELECT decision, age, value FROM paid", _PIECES)
        self._held: tuple[npt.NDArray[np.uint32], Floats, Floats] | None = None

    def take(self, first: int, count: int) -> Iterator[tuple[Ints, Floats, Floats]]:
        """The pieces of the decisions from `first` on, which must be those that come next."""
        while True:
            batch = self._held or next(self._batches, None)
            self._held = None
            if batch is None:
                return
            decision, age, value = batch
            _in_order(decision)
            end = int(np.searchsorted(decision, first + count))
            if end:
                yield decision[:end].astype(np.int64) - first, age[:end], value[:end]
            if end < len(decision):
                self._held = (decision[end:], age[end:], value[end:])
                return


def _in_order(numbers: npt.NDArray[np.generic], first: int | None = None) -> None:
    """Everything here relies on tables being read in order; DuckDB does that, and this makes sure."""
    rows = numbers.astype(np.int64)
    if (np.diff(rows) < 0).any() or (first is not None and len(rows) and rows[0] != first):
        raise RuntimeError("the log's tables were not read in order")
