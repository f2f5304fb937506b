"""A ledger that follows a log: always exactly the fold of the events up to a position."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from accrual.core.errors import InputError
from accrual.live import snapshot
from accrual.live.check import check_events
from accrual.live.contexts import Told, told_by_requests, told_by_store
from accrual.live.ledger import Ledger
from accrual.store.base import Answer, Store, StoreDamaged, StoreRequest
from accrual.store.event_schema import PACKED, Events, columns, seq_of, unpack
from accrual.store.new_events import events_of_answers

_CHUNK = 1 << 17  # events read at a time
_OFTEN = 20_000  # events between two copies of the ledger in memory, at least
_SELDOM = 200_000  # events between two snapshots in the store, at least
_DEAR = 64  # bytes of a copy or snapshot for each event since the one before, at most
_PLACES = 3  # copies in memory
_LARGE = 1 << 24  # bytes: of a ledger beyond that, memory holds no copies; the store's snapshot must do

log = logging.getLogger("accrual.live")


class LogFollower:
    """A ledger, and how far in the log it is.

    Parameters
    ----------
    store : Store
    bandit : int
        Its number in the store.
    make : callable
        Makes the ledger of the log's first events, the first arms.
    step : float
        The time from one decision of a batch to the next: 1 in rounds, 0 by the clock.
    """

    def __init__(self, store: Store, bandit: int, make: Callable[[], Ledger], step: float) -> None:
        self._store = store
        self._bandit = bandit
        self._make = make
        self._step = step
        self._one = unpack(np.zeros(1, PACKED))
        self._places: deque[tuple[int, snapshot.Arrays]] = deque(maxlen=_PLACES)
        self._begin()
        self.catch_up()

    def _begin(self) -> None:
        """Start at the store's snapshot, or at the first arms."""
        self.ledger = self._make()
        self.position = self._start = len(self.ledger.arms)
        self._form = snapshot.form_of(self.ledger)
        self._places.clear()
        found = self._load(self._store.head(self._bandit))
        if found is not None:
            self.position = found[0]
            self.ledger.restore(found[1])
        self._kept = self.position
        self._next = self.position + _OFTEN
        self._whole = True

    def _load(self, upto: int) -> tuple[int, snapshot.Arrays] | None:
        """Return the store's snapshot, unless it is of a later position than `upto`, or damaged."""
        try:
            kept = self._form and self._store.load_snapshot(self._bandit, self._form)
        except StoreDamaged as error:  # the log has it all
            log.warning("a snapshot is damaged", extra={"error": str(error)})
            return None
        if not kept or not self._start <= kept[0] <= upto:
            return None
        arrays = snapshot.unpack(kept[1])
        return None if arrays is None else (kept[0], arrays)

    @property
    def whole(self) -> bool:
        """Whether the ledger is the fold of the events up to a position: nothing failed amid one."""
        return self._whole

    def catch_up(self) -> int:
        """Fold all that the log has by now; return how many events that was."""
        before = self.position
        if not self._whole:  # something went wrong amid a fold
            self._begin()
        while True:
            events = self._store.read(self._bandit, self.position, _CHUNK)
            if not len(events.seq):
                return self.position - before
            check_events(self.ledger, self.position, events)
            self._fold(events, told_by_store(self._store, self._bandit, self.ledger, events))

    def _fold(self, events: Events, told: Told) -> None:
        self._whole = False
        self.ledger.extend(events, *told)
        self.position = int(events.seq[-1])
        self._whole = True
        self._rest()

    def take(self, requests: Sequence[StoreRequest], answers: Sequence[Answer]) -> None:
        """Fold what has just been appended, and what others have appended before it."""
        rows = events_of_answers(requests, answers, self._step)
        if not rows:
            return
        if seq_of(rows[0]) != self.position + 1 or seq_of(rows[-1]) != self.position + len(rows):
            self.catch_up()
            return
        told = told_by_requests(self.ledger, requests, answers)
        if len(rows) == 1:  # the common case, and the cheap way to have it in columns
            for column, value in zip(self._one, rows[0], strict=True):
                column[0] = value
            self._fold(self._one, told)
        else:
            self._fold(columns(rows), told)

    def skip(self, events: int) -> None:
        """Take note that the ledger has so many more events already."""
        self.position += events
        self._rest()

    def _rest(self) -> None:
        """Keep a copy of the ledger's arrays for `at`, if enough has happened since the last one."""
        if self.position >= self._next:
            last = self._places[-1][0] if self._places else self._start
            self._next = self.position + _OFTEN
            arrays = self.ledger.arrays()
            size = sum(array.nbytes for array in arrays.values())
            if size <= _LARGE and self.position - last >= size // _DEAR:
                self._places.append((self.position, {name: array.copy() for name, array in arrays.items()}))

    def keep(self, now: bool = False) -> None:
        """Save a snapshot in the store: if one is due, or `now` if there is anything new to it."""
        new = self.position - self._kept
        if self._form is None or new < (1 if now else _SELDOM):
            return
        arrays = self.ledger.arrays()
        if not now and new < sum(array.nbytes for array in arrays.values()) // _DEAR:
            return
        body = snapshot.pack(arrays)
        if body is not None:
            self._store.save_snapshot(self._bandit, self.position, self._form, body)
        self._kept = self.position

    def at(self, position: int) -> Ledger:
        """Return another ledger, as this one was at an earlier position of the log.

        Another thread may go on folding meanwhile.
        """
        if not self._start <= position <= self.position:
            raise InputError(
                f"the log has been read from {self._start} to {self.position}, not at {position}"
            )
        ledger, start = self._make(), self._start
        place = next((place for place in reversed(list(self._places)) if place[0] <= position), None)
        place = place or self._load(position)
        if place is not None:
            start = place[0]
            ledger.restore(place[1])
        while start < position:
            events = self._store.read(self._bandit, start, min(_CHUNK, position - start))
            check_events(ledger, start, events)
            inside = int(np.searchsorted(events.seq, position, side="right"))  # positions may have gaps
            part = Events._make(column[:inside] for column in events)
            ledger.extend(part, *told_by_store(self._store, self._bandit, ledger, part))
            start = int(events.seq[-1])
        return ledger
