"""The decisions whose window is not over, in arrays: found by id, and in order of what is due next.

Memory grows with them alone, but for 32 bytes (of the rings) for each decision made since the oldest
of them. A decision that was closed, or whose own window is over, keeps its row until its arm's window is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accrual.core.jit import njit
from accrual.live.watch import BEGINS, SKIPPED, Evidence, Flags, Guards, guard, score

# Decisions in order of what is due next.
#
# Each decision has a row. As long as its window goes on beyond the policy's next group, it waits in the
# queue of that group, which lasts equally long for all, so the first in a queue is due first. A decision whose
# window ends before the group does is in a heap instead. It waits there for the end of its own window, if that
# is shorter than its arm's, then for each of its groups, and all that go beyond its arm's window are due there.

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
        ("window", np.float64),  # from this age on nothing is taken for it
        (
            "arm_window",
            np.float64,
        ),  # at this age all its groups are over
        ("due", np.float64),  # when its next group is over, or its own window before that
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
def group_over(row: Any, ends: Floats) -> float:
    """Return when the next group of a row is over: at its own age, or with the window of its arm."""
    over: float = row["at"] + min(ends[row["group"]], row["arm_window"])
    return over


@njit
def push(queues: Queues, ends: Floats, number: int) -> None:
    """Let a row wait for the end of its group, or of its own window before that."""
    row = queues.rows[number]
    group = row["group"]
    if row["window"] < ends[group]:
        row["due"] = group_over(row, ends) if row["closed"] == 1 else row["at"] + row["window"]
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


NEXT, FIRST, LATE, SHUT, OLDEST = range(5)
CLOSED = -1
_ROWS = 64
RINGS = ("arms", "propensities", "totals", "streams")


class OpenSums(NamedTuple):
    """Sums over the decisions that may still be paid for, so that a state need not look at each of them."""

    waiting: Ints  # arms x groups: those whose first group that is not finished is this one
    windows: Ints  # arms x groups + 1: those whose window covers this many whole groups, ...
    parts: Floats  # ... and what part of the next group their windows cover, added up
    ahead: Floats  # arms x 2: what groups that are not finished have paid; the rounding error of that sum


class Pending(NamedTuple):
    counts: Ints  # the next id, the oldest id with a row, late pieces so far, rows of closed decisions, ...
    #               ... the oldest id that may still be paid for
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
    sums: OpenSums


def none_pending(arms: int, groups: int, queues: int, width: int = 0, guardrails: int = 0) -> Pending:
    """Return arrays that hold no decisions yet."""
    return Pending(
        np.zeros(5, np.int64), np.full(_ROWS, CLOSED), no_rows(queues, _ROWS), np.zeros((_ROWS, groups)),
        np.zeros(_ROWS, np.int64), np.zeros(_ROWS), np.zeros(_ROWS), np.zeros((_ROWS, guardrails)),
        np.zeros((_ROWS, width)), _no_sums(arms, queues),
    )  # fmt: skip


def _no_sums(arms: int, groups: int) -> OpenSums:
    return OpenSums(
        np.zeros((arms, groups), np.int64), np.zeros((arms, groups + 1), np.int64),
        np.zeros((arms, groups + 1)), np.zeros((arms, 2)),
    )  # fmt: skip


def with_arms(old: Pending, arms: int) -> Pending:
    """Return arrays that hold the same decisions, for more arms."""
    sums = _no_sums(arms, old.sums.waiting.shape[1])
    for new, array in zip(sums, old.sums, strict=True):
        new[: len(array)] = array
    return old._replace(sums=sums)


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
    return Pending(old.counts, where, rows, paid, contexts=contexts, sums=old.sums, **rings)


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
    pending: Pending, rules: Any, arm: int, at: float, window: float, propensity: float, x: Floats
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
    begin(pending.queues, rules, number, id_, arm, at, window)
    pending.queues.rows[number]["source"] = number
    add_window(pending.sums, rules.ends, pending.queues.rows[number], 1)
    add_group(pending.sums, pending.queues.rows[number], 1)


@njit
def add_window(sums: OpenSums, ends: Floats, row: Any, sign: int) -> None:
    """Add a decision's window to the sums, or take it out with a `sign` of -1."""
    arm, window = row["arm"], row["window"]
    whole = int(np.searchsorted(ends, window, side="right"))
    sums.windows[arm, whole] += sign
    if whole < len(ends):
        begins = ends[whole - 1] if whole > 0 else 0.0
        sums.parts[arm, whole] += sign * ((window - begins) / (ends[whole] - begins))
        if sums.windows[arm, whole] == 0:
            sums.parts[arm, whole] = 0.0  # and no rounding errors


@njit
def add_group(sums: OpenSums, row: Any, sign: int) -> None:
    """Add to the sums how far a decision is and what it has paid ahead, or take both out."""
    sums.waiting[row["arm"], row["group"]] += sign
    add_ahead(sums, row, sign)


@njit
def add_ahead(sums: OpenSums, row: Any, sign: int) -> None:
    """Add what a decision has paid in groups that are not finished, or take it out.

    The rounding error of each addition is kept (Knuth's two-sum), so that decisions that come and go for
    years leave nothing behind.
    """
    ahead, more = sums.ahead[row["arm"]], sign * (row["total"] - row["done"])
    was = ahead[0]
    total = was + more
    taken = total - was
    ahead[0] = total
    ahead[1] += (was - (total - taken)) + (more - taken)


@njit
def begin(queues: Queues, rules: Any, number: int, id_: int, arm: int, at: float, window: float) -> None:
    """Fill a row, and let it wait for its first group."""
    row = queues.rows[number]
    row["id"] = id_
    row["arm"] = arm
    row["group"] = 0
    row["at"] = at
    row["window"] = window
    row["arm_window"] = rules.windows[arm]
    row["closed"] = 0
    row["done"] = 0.0
    row["total"] = 0.0
    push(queues, rules.ends, number)


@njit
def close(pending: Pending, ends: Floats, id_: int) -> bool:
    """Refuse further pieces of a decision; return False if its window was over, or it had been closed.

    Its groups finish at their own ages all the same. Were they to finish now, the decisions that are
    known to pay nothing more would be counted before those that still may, and every mean be too low.
    """
    number = find(pending, id_)
    if number == CLOSED or pending.queues.rows[number]["closed"] == 1:
        return False
    row = pending.queues.rows[number]
    add_window(pending.sums, ends, row, -1)
    add_group(pending.sums, row, -1)
    row["closed"] = 1
    pending.counts[SHUT] += 1
    find_oldest(pending)
    return True


@njit
def find_oldest(pending: Pending) -> None:
    """Find the oldest decision that may still be paid for, after one of them no longer may."""
    counts, mask = pending.counts, len(pending.where) - 1
    counts[OLDEST] = max(counts[OLDEST], counts[FIRST])
    while counts[OLDEST] < counts[NEXT]:
        number = pending.where[counts[OLDEST] & mask]
        if number != CLOSED and pending.queues.rows[number]["closed"] == 0:
            break
        counts[OLDEST] += 1


@njit
def leave(pending: Pending, evidence: Evidence, guards: Guards, playing: Flags, number: int) -> None:
    """Remove a decision whose arm's window is over; score it once those of all before it are over too."""
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
    find_oldest(pending)


# Copies of pending decisions, for decisions that are only tried: those of which something ends soon.
#
# What ends is then learned by a copy of the statistics, and the pending decisions stay as they are.


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
def add(draft: Draft, rules: Any, id_: int, arm: int, at: float, window: float) -> None:
    """Add a decision, which has paid nothing, to a draft that has room for it."""
    number = take(draft.queues)
    begin(draft.queues, rules, number, id_, arm, at, window)
    draft.queues.rows[number]["source"] = NONE
