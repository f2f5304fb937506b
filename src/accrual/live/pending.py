"""The decisions whose window is not over, in arrays: found by id, and in order of what is due next.

Memory grows with them alone, but for 32 bytes (of the rings) for each decision made since the oldest
of them. A decision that was closed before the end of its window keeps its row until that end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from accrual.core.jit import njit
from accrual.live.evidence import BEGINS, SKIPPED, Evidence, score
from accrual.live.guards import Flags, Guards, guard
from accrual.live.queues import (
    USED,
    Floats,
    Ints,
    Queues,
    give_back,
    no_rows,
    push,
    take,
    with_rows,
)

NEXT, FIRST, LATE, SHUT = range(4)
CLOSED = -1
_ROWS = 64
RINGS = ("arms", "propensities", "totals", "streams")


class Pending(NamedTuple):
    counts: Ints  # the next id, the oldest id with a row, late pieces so far, rows of closed decisions
    where: Ints  # ids from the oldest one with a row on (a ring): the row, or CLOSED
    queues: Queues
    paid: Floats  # rows x groups: what each group has paid
    arms: Ints  # a ring of ids as `where`: the arm, ...
    propensities: Floats  # ... the propensity, ...
    totals: (
        Floats  # ... once its window is over, the total: decisions are scored in the order of their ids; ...
    )
    streams: Floats  # ... and, x guardrails, what has come of each guardrail's stream
    contexts: Floats  # rows x width: what the policy saw of whom it was for; no width without contexts


def none_pending(groups: int, queues: int, width: int = 0, guardrails: int = 0) -> Pending:
    """Return arrays that hold no decisions yet."""
    return Pending(
        np.zeros(4, np.int64), np.full(_ROWS, CLOSED), no_rows(queues, _ROWS), np.zeros((_ROWS, groups)),
        np.zeros(_ROWS, np.int64), np.zeros(_ROWS), np.zeros(_ROWS), np.zeros((_ROWS, guardrails)),
        np.zeros((_ROWS, width)),
    )  # fmt: skip


def with_room(old: Pending, more: int) -> Pending:
    """Return arrays that hold the same decisions and have room for `more` others."""
    first, next_ = old.counts[FIRST], old.counts[NEXT]
    where = np.full(max(_power(next_ - first + more), len(old.where)), CLOSED)
    ids = np.arange(first, next_)
    where[ids % len(where)] = old.where[ids % len(old.where)]
    had = len(old.paid)
    has = max(_power(old.queues.counts[USED] + more), had)
    paid = np.zeros((has, old.paid.shape[1]))
    paid[:had] = old.paid
    contexts = np.zeros((has, old.contexts.shape[1]))
    contexts[:had] = old.contexts
    rings = {}
    for name in RINGS:
        ring = getattr(old, name)
        rings[name] = np.zeros((len(where), *ring.shape[1:]), ring.dtype)
        rings[name][ids % len(where)] = ring[ids % len(old.where)]
    rows = with_rows(old.queues, has)
    return Pending(old.counts, where, rows, paid, contexts=contexts, **rings)


def with_width(old: Pending, missing: Floats) -> Pending:
    """Return arrays that hold the same decisions, of whom the policy saw these further numbers."""
    more = np.tile(missing, (len(old.contexts), 1))
    return old._replace(contexts=np.concatenate([old.contexts, more], axis=1))


def _power(least: int) -> int:
    """Return the least power of two that is at least this."""
    return 1 << (int(least) - 1).bit_length()


def open_rows(pending: Pending) -> npt.NDArray[np.void]:
    """Return the rows (see `queues.ROW`) of the decisions that may still be paid for, in no order; a copy."""
    rows: npt.NDArray[np.void] = pending.queues.rows
    rows = rows[pending.where[pending.where != CLOSED]]
    return np.compress(rows["closed"] == 0, rows)


@njit
def has_room(pending: Pending, more: int) -> bool:
    counts = pending.counts
    return pending.queues.counts[USED] + more <= len(pending.paid) and counts[NEXT] - counts[
        FIRST
    ] + more <= len(pending.where)


@njit
def find(pending: Pending, id_: int) -> int:
    """Return the row of a decision that has been made, or CLOSED if its window is over."""
    if id_ < pending.counts[FIRST]:
        return CLOSED
    return pending.where[id_ & (len(pending.where) - 1)]


@njit
def enter(
    pending: Pending, ends: Floats, arm: int, at: float, window: float, propensity: float, x: Floats
) -> None:
    """Add a new decision; there must be room for it."""
    counts = pending.counts
    id_ = counts[NEXT]
    counts[NEXT] += 1
    number = take(pending.queues)
    place = id_ & (len(pending.where) - 1)
    pending.where[place] = number
    pending.arms[place] = arm
    pending.propensities[place] = propensity
    pending.totals[place] = 0.0
    pending.streams[place] = 0.0
    pending.paid[number] = 0.0
    for j in range(len(x)):
        pending.contexts[number, j] = x[j]
    begin(pending.queues, ends, number, id_, arm, at, window)
    pending.queues.rows[number]["source"] = number


@njit
def begin(queues: Queues, ends: Floats, number: int, id_: int, arm: int, at: float, window: float) -> None:
    """Fill a row, and let it wait for its first group."""
    row = queues.rows[number]
    row["id"] = id_
    row["arm"] = arm
    row["group"] = 0
    row["at"] = at
    row["window"] = window
    row["closed"] = 0
    row["done"] = 0.0
    row["total"] = 0.0
    push(queues, ends, number)


@njit
def close(pending: Pending, id_: int) -> bool:
    """Refuse further pieces of a decision; return False if its window was over, or it had been closed.

    Its groups finish at their own ages all the same. Were they to finish now, the decisions that are
    known to pay nothing more would be counted before those that still may, and every mean be too low.
    """
    number = find(pending, id_)
    if number == CLOSED or pending.queues.rows[number]["closed"] == 1:
        return False
    pending.queues.rows[number]["closed"] = 1
    pending.counts[SHUT] += 1
    return True


@njit
def leave(pending: Pending, evidence: Evidence, guards: Guards, playing: Flags, number: int) -> None:
    """Remove a decision whose window is over; score it once the windows of all before it are over too."""
    counts = pending.counts
    counts[SHUT] -= pending.queues.rows[number]["closed"]
    mask = len(pending.where) - 1
    place = pending.queues.rows[number]["id"] & mask
    pending.where[place] = CLOSED
    pending.totals[place] = pending.queues.rows[number]["total"]
    while counts[FIRST] < counts[NEXT] and pending.where[counts[FIRST] & mask] == CLOSED:
        if counts[FIRST] >= evidence.counts[BEGINS]:
            place = counts[FIRST] & mask
            if evidence.unit[0] == 0.0:  # there is no floor, so there is nothing to score
                evidence.counts[SKIPPED] += 1
            else:
                score(evidence, pending.arms[place], pending.totals[place], pending.propensities[place])
            if len(guards.margins):
                guard(
                    guards, playing, pending.arms[place], pending.streams[place], pending.propensities[place]
                )
        counts[FIRST] += 1
    give_back(pending.queues, number)
