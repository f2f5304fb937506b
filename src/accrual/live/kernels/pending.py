"""The decisions whose window is not over, in arrays: found by id, and in the order in which they are due.

Memory grows with these decisions alone, but for 32 bytes (of the rings) for each decision made since the
oldest of them. A decision that was closed, or whose own window is over, keeps its row until the window of
its arm is over.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accrual.core.arrays import Floats, Ints
from accrual.core.jit import njit
from accrual.live.watch import Finished

USED, HEAP = range(2)  # places in `Queues.counts`
NONE = -1  # no row
ROW = np.dtype(
    [
        ("id", np.int64),
        ("arm", np.int64),
        ("group", np.int64),  # the first group that is not finished
        ("next", np.int64),  # the next row of the queue
        ("before", np.int64),  # the row before it in the queue; or its place in the heap
        ("source", np.int64),  # the row of `Pending.paid` that says what its groups have paid, or NONE
        ("closed", np.int64),  # 1 once no more pieces are taken, else 0
        ("at", np.float64),  # when the decision was made
        ("window", np.float64),  # from this age on no pieces are taken
        ("arm_window", np.float64),  # at this age all groups are over
        ("due", np.float64),  # when the next group is over, or the decision's own window before that
        ("done", np.float64),  # what the finished groups have paid
        ("total", np.float64),  # what all pieces together have paid
    ]
)


class Queues(NamedTuple):
    """Decisions in the order in which they are due, each in a row.

    While a decision's window goes on beyond the policy's next group, the decision waits in the queue of that
    group. A group lasts equally long for all of these, so the first in a queue is due first. A decision whose
    window ends before the group does waits in a heap instead: for the end of its own window, if that is
    shorter than its arm's, and then for each of its groups. Groups that go beyond the arm's window are due at
    the end of that window.
    """

    counts: Ints  # rows in use; rows in the heap
    free: Ints  # from the number of rows in use on: the numbers of the unused rows
    rows: npt.NDArray[np.void]
    heads: Ints  # groups: the first row of each queue, or NONE
    tails: Ints  # groups: the last row of each queue, or NONE
    dues: Floats  # groups: when the first row of each queue is due; infinite if there is none
    heap: Ints


def no_rows(groups: int, room: int) -> Queues:
    """Return empty queues."""
    return Queues(
        counts=np.zeros(2, np.int64),
        free=np.arange(room),
        rows=np.zeros(room, ROW),
        heads=np.full(groups, NONE),
        tails=np.full(groups, NONE),
        dues=np.full(groups, np.inf),
        heap=np.zeros(room, np.int64),
    )


def with_rows(old: Queues, room: int) -> Queues:
    """Return the same queues with more rows."""
    new = no_rows(len(old.heads), room)
    had = len(old.rows)
    new.free[:had], new.rows[:had], new.heap[:had] = old.free, old.rows, old.heap
    return old._replace(free=new.free, rows=new.rows, heap=new.heap)


@njit
def take(queues: Queues) -> int:
    """Take a free row into use; return its number."""
    number = queues.free[queues.counts[USED]]
    queues.counts[USED] += 1
    return number


@njit
def give_back(queues: Queues, number: int) -> None:
    """Free a row that is in no queue."""
    queues.counts[USED] -= 1
    queues.free[queues.counts[USED]] = number


@njit
def group_over(row: Any, ends: Floats) -> float:
    """Return when the next group of a row is over: when the group ends, or the window of the arm."""
    over: float = row["at"] + min(ends[row["group"]], row["arm_window"])
    return over


@njit
def group_at(ends: Floats, age: float) -> int:
    """Return the group of an age, which is how many groups are over. numpy's search takes long to compile."""
    low, high = 0, len(ends)
    while low < high:
        middle = (low + high) // 2
        if ends[middle] <= age:
            low = middle + 1
        else:
            high = middle
    return low


@njit
def push(queues: Queues, ends: Floats, number: int) -> None:
    """Queue a row for the end of its group, or of its own window before that."""
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
    """Return the row that is due first, and of equals that of the earlier decision; NONE if there is none."""
    # Of rows that are due at the same time, those in later groups were made earlier.
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
    """Take a row out of its queue, or out of the heap."""
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
    """Move up the row at `place` of the heap, which may be due before the row above it."""
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
    """Move down the row at `place` of the heap, which may be due after the rows below it."""
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


NEXT, FIRST, LATE, SHUT, OLDEST = range(5)  # places in `Pending.counts`
CLOSED = -1  # no row: the window of the decision's arm is over
_ROWS = 64  # rows of a new bandit
RINGS = ("arms", "propensities", "totals", "streams")  # fields of `Pending` that are rings, like `where`


class OpenSums(NamedTuple):
    """Sums over the decisions that still take pieces, so that a state need not visit each decision."""

    waiting: Ints  # arms x groups: decisions whose first unfinished group is this one
    windows: Ints  # arms x groups + 1: decisions whose window covers this many whole groups
    parts: Floats  # arms x groups + 1: the parts of the next group that these windows cover, added up
    ahead: Floats  # arms x 2: what unfinished groups have paid; the rounding error of that sum


class Pending(NamedTuple):
    """The decisions whose window is not over.

    A ring holds decision `id` at ``id % len(where)``, from the oldest decision with a row on.
    """

    counts: Ints
    """The next id; the oldest id with a row; late pieces so far; rows of closed decisions; the oldest id that
    still takes pieces."""
    where: Ints
    """A ring: the row of each decision, or CLOSED."""
    queues: Queues
    paid: Floats
    """Rows x groups: what each group has paid."""
    arms: Ints
    propensities: Floats
    """Rings."""
    totals: Floats
    """A ring: the total, once the window is over. It waits here because decisions are scored in the order of
    their ids."""
    streams: Floats
    """A ring x streams: what has come of each stream other than the reward."""
    contexts: Floats
    """Rows x width: the encoded context of each decision; of width 0 for a policy without contexts."""
    sums: OpenSums


def none_pending(arms: int, groups: int, queues: int, width: int = 0, streams: int = 0) -> Pending:
    """Return arrays that hold no decisions yet."""
    return Pending(
        counts=np.zeros(5, np.int64),
        where=np.full(_ROWS, CLOSED),
        queues=no_rows(queues, _ROWS),
        paid=np.zeros((_ROWS, groups)),
        arms=np.zeros(_ROWS, np.int64),
        propensities=np.zeros(_ROWS),
        totals=np.zeros(_ROWS),
        streams=np.zeros((_ROWS, streams)),
        contexts=np.zeros((_ROWS, width)),
        sums=_no_sums(arms, queues),
    )


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
    rings: dict[str, Any] = {}
    for name in RINGS:
        ring = getattr(old, name)
        rings[name] = np.zeros((len(where), *ring.shape[1:]), ring.dtype)
        rings[name][ids % len(where)] = ring[ids % len(old.where)]
    return old._replace(where=where, queues=with_rows(old.queues, has), paid=paid, contexts=contexts, **rings)


def _power(least: int) -> int:
    """Return the least power of two that is at least this."""
    return 1 << (int(least) - 1).bit_length()


@njit
def has_room(pending: Pending, more: int) -> bool:
    """Return whether `more` decisions fit."""
    ids = pending.counts[NEXT] - pending.counts[FIRST] + more
    return pending.queues.counts[USED] + more <= len(pending.paid) and ids <= len(pending.where)


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
    whole = group_at(ends, window)
    sums.windows[arm, whole] += sign
    if whole < len(ends):
        begins = ends[whole - 1] if whole > 0 else 0.0
        sums.parts[arm, whole] += sign * ((window - begins) / (ends[whole] - begins))
        if sums.windows[arm, whole] == 0:
            sums.parts[arm, whole] = 0.0  # without rounding errors


@njit
def add_group(sums: OpenSums, row: Any, sign: int) -> None:
    """Add a decision's group, and what it has paid ahead, to the sums; take both out with a `sign` of -1."""
    sums.waiting[row["arm"], row["group"]] += sign
    add_ahead(sums, row, sign)


@njit
def add_ahead(sums: OpenSums, row: Any, sign: int) -> None:
    """Add what a decision has paid in unfinished groups to the sums, or take it out with a `sign` of -1.

    The rounding error of each addition is summed too (Knuth's two-sum), so that decisions that come and go
    for years leave nothing behind.
    """
    ahead, more = sums.ahead[row["arm"]], sign * (row["total"] - row["done"])
    was = ahead[0]
    total = was + more
    taken = total - was
    ahead[0] = total
    ahead[1] += (was - (total - taken)) + (more - taken)


@njit
def begin(queues: Queues, rules: Any, number: int, id_: int, arm: int, at: float, window: float) -> None:
    """Fill a row, and queue it for its first group."""
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

    Its groups still finish at their own ages. If they finished now, decisions that are known to pay nothing
    more would be counted before those that may still pay, and every mean would be too low.
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
    """Find the oldest decision that still takes pieces, after one of them has stopped doing so."""
    counts, mask = pending.counts, len(pending.where) - 1
    counts[OLDEST] = max(counts[OLDEST], counts[FIRST])
    while counts[OLDEST] < counts[NEXT]:
        number = pending.where[counts[OLDEST] & mask]
        if number != CLOSED and pending.queues.rows[number]["closed"] == 0:
            break
        counts[OLDEST] += 1


@njit
def leave(pending: Pending, number: int) -> None:
    """Remove a decision whose arm's window is over; its total stays until all earlier ones have left too."""
    pending.counts[SHUT] -= pending.queues.rows[number]["closed"]
    place = pending.queues.rows[number]["id"] & (len(pending.where) - 1)
    pending.where[place] = CLOSED
    pending.totals[place] = pending.queues.rows[number]["total"]
    give_back(pending.queues, number)


@njit
def finished_decision(pending: Pending, id_: int) -> Finished:
    """Return a decision that has left, if the oldest one that has not is older, or is itself."""
    place = id_ & (len(pending.where) - 1)
    return Finished(
        id_, pending.arms[place], pending.totals[place], pending.propensities[place], pending.streams[place]
    )


@njit
def oldest_has_left(pending: Pending) -> bool:
    """Return whether the oldest decision that was not passed has left."""
    oldest, made = pending.counts[FIRST], pending.counts[NEXT]
    return oldest < made and pending.where[oldest & (len(pending.where) - 1)] == CLOSED


class TrialPending(NamedTuple):
    """Copies of the pending decisions that are due soon, for decisions that are only tried.

    A copy of the statistics learns what finishes, and the pending decisions stay as they are.
    """

    queues: Queues
    places: Ints  # rows of the heap that `copy_due` has yet to visit


def no_trial_pending(queues: int, rows: int) -> TrialPending:
    """Return memory for this many copies."""
    return TrialPending(no_rows(queues, rows), np.zeros(rows, np.int64))


@njit
def copy_due(trial_pending: TrialPending, queues: Queues, ends: Floats, until: float, more: int) -> bool:
    """Copy the decisions that are due by `until`; return False if `more` others would not fit."""
    trial, places, most = trial_pending.queues, trial_pending.places, len(trial_pending.places) - more
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
    visited = found = 0
    if queues.counts[HEAP] > 0 and queues.rows[queues.heap[0]]["due"] <= until:
        places[0] = 0
        found = 1
    while visited < found:
        if trial.counts[USED] >= most:
            return False
        _copy(trial, queues, ends, queues.heap[places[visited]])
        for below in range(2 * places[visited] + 1, min(2 * places[visited] + 3, queues.counts[HEAP])):
            if queues.rows[queues.heap[below]]["due"] <= until:
                if found >= len(places):
                    return False
                places[found] = below
                found += 1
        visited += 1
    return trial.counts[USED] <= most


@njit
def _copy(trial: Queues, queues: Queues, ends: Floats, number: int) -> None:
    copy = take(trial)
    trial.rows[copy] = queues.rows[number]
    push(trial, ends, copy)


@njit
def add_trial(trial_pending: TrialPending, rules: Any, id_: int, arm: int, at: float, window: float) -> None:
    """Add a decision that is only tried; there must be room for it."""
    number = take(trial_pending.queues)
    begin(trial_pending.queues, rules, number, id_, arm, at, window)
    trial_pending.queues.rows[number]["source"] = NONE
