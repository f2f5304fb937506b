"""The last closed decisions of a bandit, with what each paid, read from its store alone."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from accrual.live.contexts import numbers_of
from accrual.live.guards import REWARD
from accrual.store.base import Store
from accrual.store.event_schema import DecisionRow, Events, Kind

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_CHUNK = 1 << 16  # events read at a time


class ClosedLog(NamedTuple):
    """Decisions one after the other whose windows are over, in the order in which they were made.

    Attributes
    ----------
    arm, total, propensity : ndarray
        Of each decision; the propensity is 0 where none was recorded.
    contexts : ndarray
        Decisions x features, as stored.
    closed : int
        How many decisions of the bandit's own have closed in all.
    """

    arm: Ints
    total: Floats
    propensity: Floats
    contexts: Floats
    closed: int


class Bounds(NamedTuple):
    """How much of a log is read at most."""

    decisions: int
    events: int


def read_closed(
    store: Store, bandit: int, made: range, window: float, features: int, bounds: Bounds
) -> ClosedLog:
    """Read the last closed decisions, as many as `bounds` allows.

    Which they are depends on time alone, not on what was paid: those made a whole window before the last
    event of the log. So they are a fair sample of their time.

    Parameters
    ----------
    store : Store
    bandit : int
        Its number in the store.
    made : range
        The ids of the decisions that may be read.
    window : float
        The bandit's: no arm has a longer one.
    features : int
        How many there are.
    bounds : Bounds
    """

    def row(id: int) -> DecisionRow:
        found = store.decision(bandit, id)
        assert found is not None
        return found

    head = store.head(bandit)
    end = float(store.read(bandit, head - 1, 1).at[-1])
    upto = made.start + bisect_left(made, True, key=lambda id: row(id).at + window > end)
    kept = range(max(made.start, upto - bounds.decisions), upto)
    first = kept.start + bisect_left(kept, True, key=lambda id: row(id).seq > head - bounds.events)
    log = ClosedLog(
        np.zeros(upto - first, np.int64), np.zeros(upto - first), np.zeros(upto - first),
        numbers_of(store.contexts(bandit, first, upto - first), features), upto - made.start,
    )  # fmt: skip
    if first < upto:
        _fill(log, first, _chunks(store, bandit, row(first).seq - 1, head))
    return log


def _chunks(store: Store, bandit: int, after: int, head: int) -> Iterator[Events]:
    while after < head:
        events = store.read(bandit, after, _CHUNK)
        yield events
        after = int(events.seq[-1])


def _fill(log: ClosedLog, first: int, chunks: Iterator[Events]) -> None:
    """Take in what a log says of the decisions from `first` on."""
    count = len(log.arm)
    made, window = np.zeros(count), np.zeros(count)
    shut = np.full(count, np.iinfo(np.int64).max)  # the position from which on nothing is taken any more
    for events in chunks:
        place = events.decision - first
        mine = (place >= 0) & (place < count)
        (new,) = np.nonzero(mine & (events.kind == Kind.DECISION))
        at = place[new]
        log.arm[at], log.propensity[at] = events.arm[new], events.propensity[new]
        made[at], window[at] = events.at[new], events.age[new]
        (over,) = np.nonzero(mine & (events.kind == Kind.CLOSE))
        shut[place[over]] = events.seq[over]
        (paid,) = np.nonzero(mine & (events.kind == Kind.PIECE) & (events.arm == REWARD))
        at = place[paid]
        in_time = (events.age[paid] < window[at]) & (events.at[paid] < made[at] + window[at])
        in_time &= events.seq[paid] < shut[at]
        np.add.at(log.total, at[in_time], events.value[paid[in_time]])
