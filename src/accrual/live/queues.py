"""Decisions in order of what is due next.

Each decision has a row. As long as its window goes on beyond the policy's next group, it waits in the
queue of that group, which lasts equally long for all, so the first in a queue is due first. A decision whose
own window ends before the group does is in a heap instead, with all its groups due at that end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accrual.core.jit import njit

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Rows = npt.NDArray[np.void]

USED, HEAP = range(2)
NONE = -1
ROW = np.dtype(
    [
        ("id", np.int64),
        ("arm", np.int64),
        ("group", np.int64),  # the first that is not finished
        ("next", np.int64),  # the row behind it in its queue, and ...
        ("before", np.int64),  # ... the one before; or its place in the heap
        ("source", np.int64),  # the number of the row that knows what its groups have paid, or NONE
        ("closed", np.int64),  # 1 once nothing more may come for it, else 0
        ("at", np.float64),  # when it was made
        ("window", np.float64),
        ("due", np.float64),  # when its next group is over, or its window
        ("done", np.float64),  # what the finished groups have paid
        ("total", np.float64),  # all that was paid
    ]
)


class Queues(NamedTuple):
    counts: Ints  # rows in use; those of them in the heap
    free: Ints  # from the number of rows in use on: the numbers of the others
    rows: Rows
    heads: Ints  # groups: the first row of each queue, or NONE, ...
    tails: Ints  # ... the last ...
    dues: Floats  # ... and when the first is due; infinite where there is none
    heap: Ints


def no_rows(groups: int, room: int) -> Queues:
    """Return empty queues."""
    return Queues(
        np.zeros(2, np.int64),
        np.arange(room),
        np.zeros(room, ROW),
        np.full(groups, NONE),
        np.full(groups, NONE),
        np.full(groups, np.inf),
        np.zeros(room, np.int64),
    )


def with_rows(old: Queues, room: int) -> Queues:
    """Return the same queues with more rows."""
    new = no_rows(len(old.heads), room)
    had = len(old.rows)
    new.free[:had], new.rows[:had], new.heap[:had] = old.free, old.rows, old.heap
    return Queues(old.counts, new.free, new.rows, old.heads, old.tails, old.dues, new.heap)


@njit
def take(queues: Queues) -> int:
    """Take a free row into use; return its number."""
    number = queues.free[queues.counts[USED]]
    queues.counts[USED] += 1
    return number


@njit
def give_back(queues: Queues, number: int) -> None:
    """Let a row that is in no queue be free again."""
    queues.counts[USED] -= 1
    queues.free[queues.counts[USED]] = number


@njit
def push(queues: Queues, ends: Floats, number: int) -> None:
    """Let a row wait for the end of its group, or of its window."""
    row = queues.rows[number]
    group = row["group"]
    if row["window"] < ends[group]:
        row["due"] = row["at"] + row["window"]
        place = queues.counts[HEAP]
        queues.counts[HEAP] += 1
        queues.heap[place] = number
        _rise(queues, place)
        return
    row["due"] = row["at"] + ends[group]
    last = queues.tails[group]
    row["next"] = NONE
    row["before"] = last
    queues.tails[group] = number
    if last == NONE:
        queues.heads[group] = number
        queues.dues[group] = row["due"]
    else:
        queues.rows[last]["next"] = number


@njit
def first(queues: Queues) -> int:
    """Return the row that is due first, of equals that of the earlier decision; NONE if there is no row."""
    # Of those that are due at once, the ones in later groups were made earlier.
    due, number = np.inf, NONE
    for group in range(len(queues.dues) - 1, -1, -1):
        if queues.dues[group] < due:
            due = queues.dues[group]
            number = queues.heads[group]
    if queues.counts[HEAP] > 0:
        top = queues.heap[0]
        if number == NONE or _earlier(queues.rows[top], queues.rows[number]):
            number = top
    return number


@njit
def pull(queues: Queues, ends: Floats, number: int) -> None:
    """Take a row out of where it waits."""
    rows, heap = queues.rows, queues.heap
    row = rows[number]
    group = row["group"]
    if row["window"] < ends[group]:
        place = row["before"]
        queues.counts[HEAP] -= 1
        last = queues.counts[HEAP]
        if place < last:
            heap[place] = heap[last]
            rows[heap[place]]["before"] = place
            _sink(queues, place)
            _rise(queues, place)
        return
    before, behind = row["before"], row["next"]
    if behind == NONE:
        queues.tails[group] = before
    else:
        rows[behind]["before"] = before
    if before == NONE:
        queues.heads[group] = behind
        queues.dues[group] = np.inf if behind == NONE else rows[behind]["due"]
    else:
        rows[before]["next"] = behind


@njit
def _earlier(a: Any, b: Any) -> bool:
    if a["due"] != b["due"]:
        return a["due"] < b["due"]
    return a["id"] < b["id"]


@njit
def _rise(queues: Queues, place: int) -> None:
    """Put right the row at `place` of the heap, which may be due before the one above it."""
    heap, rows = queues.heap, queues.rows
    number = heap[place]
    while place > 0:
        above = (place - 1) // 2
        if not _earlier(rows[number], rows[heap[above]]):
            break
        heap[place] = heap[above]
        rows[heap[place]]["before"] = place
        place = above
    heap[place] = number
    rows[number]["before"] = place


@njit
def _sink(queues: Queues, place: int) -> None:
    """Put right the row at `place` of the heap, which may be due after the ones below it."""
    heap, rows, count = queues.heap, queues.rows, queues.counts[HEAP]
    number = heap[place]
    while True:
        below = 2 * place + 1
        if below >= count:
            break
        if below + 1 < count and _earlier(rows[heap[below + 1]], rows[heap[below]]):
            below += 1
        if not _earlier(rows[heap[below]], rows[number]):
            break
        heap[place] = heap[below]
        rows[heap[place]]["before"] = place
        place = below
    heap[place] = number
    rows[number]["before"] = place
