"""Copies of pending decisions, for decisions that are only tried: those of which something ends soon.

What ends is then learned by a copy of the statistics, and the pending decisions stay as they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from accrual.core.jit import njit
from accrual.live.pending import begin
from accrual.live.queues import HEAP, NONE, USED, Floats, Ints, Queues, no_rows, push, take


class Draft(NamedTuple):
    """Memory for copies of pending decisions."""

    queues: Queues
    places: Ints  # of rows in the heap, those that are still to be looked at


def room_for(queues: int, rows: int) -> Draft:
    """Return a draft with room for so many rows."""
    return Draft(no_rows(queues, rows), np.zeros(rows, np.int64))


@njit
def copy_due(draft: Draft, queues: Queues, ends: Floats, until: float, more: int) -> bool:
    """Copy the decisions of which something is due by `until`. False if `more` others would not fit."""
    trial, places, most = draft.queues, draft.places, len(draft.places) - more
    trial.counts[USED] = 0
    trial.counts[HEAP] = 0
    for number in range(len(trial.free)):
        trial.free[number] = number
    for group in range(len(trial.heads)):
        trial.heads[group] = NONE
        trial.tails[group] = NONE
        trial.dues[group] = np.inf
    for group in range(len(queues.heads)):
        number = queues.heads[group]
        while number != NONE and queues.rows[number]["due"] <= until:
            if trial.counts[USED] >= most:
                return False
            _copy(trial, queues, ends, number)
            number = queues.rows[number]["next"]
    # In a heap, a row that is due lies below rows that are due too, so the search ends at one that is not.
    seen = found = 0
    if queues.counts[HEAP] > 0 and queues.rows[queues.heap[0]]["due"] <= until:
        places[0] = 0
        found = 1
    while seen < found:
        if trial.counts[USED] >= most:
            return False
        _copy(trial, queues, ends, queues.heap[places[seen]])
        for below in range(2 * places[seen] + 1, min(2 * places[seen] + 3, queues.counts[HEAP])):
            if queues.rows[queues.heap[below]]["due"] <= until:
                if found >= len(places):
                    return False
                places[found] = below
                found += 1
        seen += 1
    return trial.counts[USED] <= most


@njit
def _copy(trial: Queues, queues: Queues, ends: Floats, number: int) -> None:
    copy = take(trial)
    trial.rows[copy] = queues.rows[number]
    push(trial, ends, copy)


@njit
def add(draft: Draft, ends: Floats, id_: int, arm: int, at: float, window: float) -> None:
    """Add a decision, which has paid nothing, to a draft that has room for it."""
    number = take(draft.queues)
    begin(draft.queues, ends, number, id_, arm, at, window)
    draft.queues.rows[number]["source"] = NONE
