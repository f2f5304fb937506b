"""The pending decisions, in arrays: found by id, and in order of what is due next.

Each pending decision has a row. `heap` holds the numbers of all rows: first those in use, as a
binary heap by (due, id), then the free ones. So taking a row and giving it back move one boundary,
and memory grows with the pending decisions alone, but for eight bytes (of `where`) for each
decision made since the oldest pending one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accrual.core.jit import njit

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Rows = npt.NDArray[np.void]

NEXT, FIRST, COUNT, LATE = range(4)
CLOSED = -1
_ROWS = 64
ROW = np.dtype(
    [
        ("id", np.int64),
        ("arm", np.int64),
        ("group", np.int64),  # the first that is not finished
        ("place", np.int64),  # in the heap
        ("at", np.float64),  # when it was made
        ("window", np.float64),
        ("due", np.float64),  # when its next group is over, or its window
        ("done", np.float64),  # what the finished groups have paid; without groups, all that was paid
    ]
)


class Pending(NamedTuple):
    counts: Ints  # the next id, the oldest pending id, how many are pending, late pieces so far
    where: Ints  # ids from the oldest pending one on (a ring): the row, or CLOSED
    heap: Ints  # all rows, those in use first
    rows: Rows
    paid: Floats  # rows x groups: what each group has paid


def none_pending(groups: int) -> Pending:
    """Memory for no decisions yet."""
    empty = Pending(
        np.zeros(4, np.int64), np.full(_ROWS, CLOSED), np.arange(0), np.zeros(0, ROW), np.zeros((0, groups))
    )
    return with_room(empty, _ROWS)


def with_room(old: Pending, more: int) -> Pending:
    """The same decisions, with room for `more` others."""
    first, next_ = old.counts[FIRST], old.counts[NEXT]
    where = np.full(max(_power(next_ - first + more), len(old.where)), CLOSED)
    ids = np.arange(first, next_)
    where[ids % len(where)] = old.where[ids % len(old.where)]
    had = len(old.heap)
    has = max(_power(old.counts[COUNT] + more), had)
    heap, rows, paid = np.arange(has), np.zeros(has, ROW), np.zeros((has, old.paid.shape[1]))
    heap[:had], rows[:had], paid[:had] = old.heap, old.rows, old.paid
    return Pending(old.counts, where, heap, rows, paid)


def _power(least: int) -> int:
    """The next power of two."""
    return 1 << (int(least) - 1).bit_length()


@njit
def has_room(pending: Pending, more: int) -> bool:
    counts = pending.counts
    return counts[COUNT] + more <= len(pending.heap) and counts[NEXT] - counts[FIRST] + more <= len(
        pending.where
    )


@njit
def find(pending: Pending, id_: int) -> int:
    """The row of a decision that has been made, or CLOSED."""
    if id_ < pending.counts[FIRST]:
        return CLOSED
    return pending.where[id_ & (len(pending.where) - 1)]


@njit
def enter(pending: Pending, arm: int, at: float, window: float, due: float) -> None:
    """A new decision, where there is room for it."""
    counts = pending.counts
    id_, place = counts[NEXT], counts[COUNT]
    number = pending.heap[place]
    pending.where[id_ & (len(pending.where) - 1)] = number
    row = pending.rows[number]
    row["id"] = id_
    row["arm"] = arm
    row["group"] = 0
    row["at"] = at
    row["window"] = window
    row["due"] = due
    row["done"] = 0.0
    pending.paid[number] = 0.0
    counts[NEXT] += 1
    counts[COUNT] += 1
    rise(pending.heap, pending.rows, place)


@njit
def leave(pending: Pending) -> None:
    """The decision that is due first is pending no more."""
    counts, heap, rows = pending.counts, pending.heap, pending.rows
    number, last = heap[0], counts[COUNT] - 1
    heap[0] = heap[last]
    heap[last] = number
    counts[COUNT] = last
    if last > 0:
        sink(heap, rows, last)
    mask = len(pending.where) - 1
    pending.where[rows[number]["id"] & mask] = CLOSED
    while counts[FIRST] < counts[NEXT] and pending.where[counts[FIRST] & mask] == CLOSED:
        counts[FIRST] += 1


@njit
def _earlier(a: Any, b: Any) -> bool:
    if a["due"] != b["due"]:
        return a["due"] < b["due"]
    return a["id"] < b["id"]


@njit
def rise(heap: Ints, rows: Rows, place: int) -> None:
    """Put right the row at `place`, which may be due before the one above it."""
    number = heap[place]
    while place > 0:
        above = (place - 1) // 2
        if not _earlier(rows[number], rows[heap[above]]):
            break
        heap[place] = heap[above]
        rows[heap[place]]["place"] = place
        place = above
    heap[place] = number
    rows[number]["place"] = place


@njit
def sink(heap: Ints, rows: Rows, count: int) -> None:
    """Put right the row on top, which may be due after the ones below it."""
    place = 0
    number = heap[0]
    while True:
        below = 2 * place + 1
        if below >= count:
            break
        if below + 1 < count and _earlier(rows[heap[below + 1]], rows[heap[below]]):
            below += 1
        if not _earlier(rows[heap[below]], rows[number]):
            break
        heap[place] = heap[below]
        rows[heap[place]]["place"] = place
        place = below
    heap[place] = number
    rows[number]["place"] = place
