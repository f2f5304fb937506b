"""A few pending decisions to try things with: those that fall due soon, copied.

What is due can then be done to spare statistics, and the pending decisions stay as they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from accrual.core.jit import njit
from accrual.live.pending import COUNT, ROW, Ints, Pending, Rows, rise, sink

NOWHERE = -1


class Draft(NamedTuple):
    counts: Ints  # as in `Pending`
    heap: Ints
    rows: Rows
    sources: Ints  # each row's number among the pending ones, or NOWHERE: it has paid nothing


def room_for(rows: int) -> Draft:
    """Memory for that many."""
    return Draft(np.zeros(4, np.int64), np.arange(rows), np.zeros(rows, ROW), np.zeros(rows, np.int64))


@njit
def copy_due(draft: Draft, pending: Pending, until: float, more: int) -> bool:
    """Copy the decisions of which something is due by `until`. False if `more` others would not fit."""
    heap, rows = pending.heap, pending.rows
    most = len(draft.rows) - more
    places = draft.sources  # in the heap, where whatever is due lies below something that is, too
    found = 0
    if pending.counts[COUNT] > 0 and rows[heap[0]]["due"] <= until:
        places[0] = 0
        found = 1
    seen = 0
    while seen < found:
        for below in range(2 * places[seen] + 1, min(2 * places[seen] + 3, pending.counts[COUNT])):
            if rows[heap[below]]["due"] <= until:
                if found >= most:
                    return False
                places[found] = below
                found += 1
        seen += 1
    if found > most:
        return False
    draft.counts[COUNT] = 0
    for number in range(found):
        source = heap[places[number]]
        draft.sources[number] = source
        draft.rows[number] = rows[source]
        draft.heap[number] = number
        draft.counts[COUNT] = number + 1
        rise(draft.heap, draft.rows, number)
    for number in range(found, found + more):
        draft.heap[number] = number
    return True


@njit
def add(draft: Draft, id_: int, arm: int, at: float, window: float, due: float) -> None:
    """One more decision, where there is room for it."""
    place = draft.counts[COUNT]
    number = draft.heap[place]
    row = draft.rows[number]
    row["id"] = id_
    row["arm"] = arm
    row["group"] = 0
    row["at"] = at
    row["window"] = window
    row["due"] = due
    row["done"] = 0.0
    draft.sources[number] = NOWHERE
    draft.counts[COUNT] = place + 1
    rise(draft.heap, draft.rows, place)


@njit
def drop(draft: Draft) -> None:
    """The decision that is due first has closed."""
    heap, last = draft.heap, draft.counts[COUNT] - 1
    number = heap[0]
    heap[0] = heap[last]
    heap[last] = number
    draft.counts[COUNT] = last
    if last > 0:
        sink(heap, draft.rows, last)
