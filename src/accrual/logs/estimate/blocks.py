"""The decisions of a log with all their pieces, in blocks that fit in memory.

The tables of a log are sorted, and every pass reads them in order. So a fit is the same to the bit
whatever the number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accrual.core.arrays import Floats, Ints
from accrual.core.groups import followed_for
from accrual.core.jit import kernel
from accrual.logs.estimate.cumulative_means import FollowedDecisions
from accrual.logs.log import Log

_DECISIONS = 1 << 16  # in a block
_PIECES = 1 << 18
_MANY = 64  # pieces of a decision, from which on another way to sort them is faster
_KEPT_MOST = 16_000_000  # decisions and pieces that are kept in memory: some 300 MB


class DecisionBlock(NamedTuple):
    """Some decisions in a row, with all their pieces."""

    some: FollowedDecisions
    at: Floats  # the time of each decision, in ticks
    hash: npt.NDArray[np.uint64]  # of its id


def decision_blocks(log: Log) -> Iterator[DecisionBlock]:
    """Go through all decisions of a log in order, with all their pieces by age and value.

    They are read once, if all of them fit in memory.
    """
    if log.blocks:
        yield from log.blocks
        return
    kept: list[DecisionBlock] | None = [] if log.counts.decisions + log.counts.pieces <= _KEPT_MOST else None
    for block in _read_blocks(log):
        if kept is not None:
            kept.append(block)
        yield block
    log.blocks = kept or []


def _read_blocks(log: Log) -> Iterator[DecisionBlock]:
    pieces = _Pieces(log)
    place = 0
    end, unit = log.query("SELECT tick FROM ended")[0][0], 1e6 if log.timestamps else 1.0
    least = log.least_propensity
    query = (
        "SELECT rowid, arm, tick::DOUBLE, coalesce(own_window, 'inf'::DOUBLE), hash(id), "
        "coalesce(propensity, 1.0) FROM decided"
    )
    for number, arm, tick, own, hashed, propensity in log.stream(query):
        for low in range(0, len(arm), _DECISIONS):
            part = slice(low, low + _DECISIONS)
            count = len(arm[part])
            _in_order(number[part], place)
            followed = followed_for((tick[part] - end) / unit, 0.0, own[part])
            weight = np.ones(count) if least is None else np.sqrt(least / propensity[part].astype(np.float64))
            some = FollowedDecisions(
                arm[part].astype(np.int64), weight, followed, own[part], *pieces.take(place, count)
            )
            yield DecisionBlock(some, tick[part], hashed[part])
            place += count


class _Pieces:
    """A log's pieces, handed out to blocks of decisions."""

    def __init__(self, log: Log) -> None:
        self._batches = log.stream("SELECT decision, age, value FROM paid", _PIECES)
        self._next: tuple[npt.NDArray[np.uint32], Floats, Floats] | None = None

    def take(self, first: int, count: int) -> tuple[Ints, Floats, Floats]:
        """Return where the pieces of each of `count` decisions from `first` on begin, their ages and values.

        These decisions must be those that come next.
        """
        taken: list[tuple[npt.NDArray[np.uint32], Floats, Floats]] = []
        while batch := self._next or next(self._batches, None):
            self._next = None
            decision, age, value = batch
            _in_order(decision)
            end = int(np.searchsorted(decision, first + count))
            taken.append((decision[:end], age[:end], value[:end]))
            if end < len(decision):
                self._next = (decision[end:], age[end:], value[end:])
                break
        decision, age, value = (
            (np.concatenate(x) for x in zip(*taken, strict=True)) if len(taken) > 1
            else taken[0] if taken else (np.zeros(0, np.uint32), np.zeros(0), np.zeros(0))
        )  # fmt: skip
        starts = np.searchsorted(decision, np.arange(first, first + count + 1))
        age, value = age.copy(), value.copy()
        sort_pieces(starts, age, value)
        return starts, age, value


@kernel
def sort_pieces(first: Ints, age: Floats, value: Floats) -> None:
    """Sort the pieces of each decision by age, then by value."""
    for i in range(len(first) - 1):
        low, high = first[i], first[i + 1]
        if high - low > _MANY:
            by_value = np.argsort(value[low:high], kind="mergesort")
            order = by_value[np.argsort(age[low:high][by_value], kind="mergesort")]
            age[low:high], value[low:high] = age[low:high][order], value[low:high][order]
            continue
        for j in range(low + 1, high):
            a, x, k = age[j], value[j], j
            while k > low and (age[k - 1] > a or (age[k - 1] == a and value[k - 1] > x)):
                age[k], value[k] = age[k - 1], value[k - 1]
                k -= 1
            age[k], value[k] = a, x


def _in_order(numbers: npt.NDArray[Any], first: int | None = None) -> None:
    """Make sure that DuckDB read a table in order, which everything here relies on."""
    if (numbers[1:] < numbers[:-1]).any() or (first is not None and len(numbers) and numbers[0] != first):
        raise RuntimeError("the log's tables were not read in order")
