"""A ledger that follows a log: always exactly the fold of the events up to a position."""

from __future__ import annotations

import hashlib
import io
import logging
import zipfile
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from accrual.core.errors import InputError
from accrual.core.jit import fingerprint
from accrual.live.contexts import Told, told_by_requests, told_by_store
from accrual.live.ledger import Ledger
from accrual.live.watch import REWARD
from accrual.store.accept import events_of_answers
from accrual.store.base import Answer, Store, StoreDamaged, StoreRequest
from accrual.store.events import PACKED, Events, Kind, columns, event_column, seq_of, unpack

# Whether events that were read can be folded: compiled code looks at no bounds.

_CLOSE = int(Kind.CLOSE)


def check_events(ledger: Ledger, after: int, events: Events) -> None:
    """Complain of events beyond position `after` that cannot follow on what `ledger` has folded."""
    seq, kind, at, propensity = events.seq, events.kind, events.at, events.propensity
    decision, arm, value, age = events.decision, events.arm, events.value, events.age
    made = kind == Kind.DECISION
    added = kind == Kind.ADD_ARM
    decisions = ledger.decisions + np.cumsum(made) - made  # before each event
    arms = len(ledger.arms) + np.cumsum(added) - added
    cap = getattr(events, event_column(Kind.ADD_ARM, "arm.cap"))
    window = np.where(
        made,
        getattr(events, event_column(Kind.DECISION, "window")),
        getattr(events, event_column(Kind.ADD_ARM, "arm.window")),
    )
    stream = getattr(events, event_column(Kind.PIECE, "stream"))
    of_decision = (kind == Kind.PIECE) | (kind == _CLOSE)
    rules = {
        "is at a position before the one before it": np.diff(seq, prepend=after) < 1,
        "is of no kind that there is": (kind < 0) | (kind > max(Kind)),
        "is before the one before it": ~(np.diff(at, prepend=max(ledger.now, -1e300)) >= 0)
        | ~np.isfinite(at),
        "is a decision out of order": made & (decision != decisions),
        "is of no decision that there is": of_decision & ((decision < 0) | (decision >= decisions)),
        "is of no arm that there is": (made | (kind == Kind.RETIRE_ARM)) & ((arm < 0) | (arm >= arms)),
        "is an arm out of order": added & (arm != arms),
        "is of no stream that there is": (kind == Kind.PIECE)
        & ((stream < REWARD) | (stream >= len(ledger.guardrails))),
        "has a value or an age that cannot be": ~np.isfinite(value) | ~np.isfinite(age) | ~(age >= 0),
        "has a window that cannot be": (made | added) & ~((window > 0) & (window <= ledger.span)),
        "has a propensity that cannot be": ~((propensity >= 0) & (propensity <= 1)),
        "has a cap that cannot be": added & ~(cap > 0),
    }
    for wrong, where in rules.items():
        if where.any():
            raise StoreDamaged(f"damaged: event {int(seq[np.argmax(where)])} {wrong}; see accrual db verify")


# A ledger as bytes, and back: what its events come to, so that they need not be folded again.

_FORMAT = 1  # of snapshots: one of another is not used
_MOST = 900_000_000  # bytes: what a database takes in one piece

Arrays = dict[str, npt.NDArray[Any]]


def form_of(ledger: Ledger) -> str | None:
    """Return a name for the snapshots that a ledger may start from: those of its policy and its code.

    None where the code is in no file (typed into a console, for example): it could not be told
    later whether it is still the same.
    """
    code = fingerprint(ledger.kernels.compiled.extend, Ledger, type(ledger.policy))
    if code is None:
        return None
    features = ledger.visitors.features
    shown = "" if features is None else f" {features.written()}"
    if ledger.arms.features is not None:
        shown += f" about {ledger.arms.features.written()}"
    if ledger.guardrails:
        shown += f" {ledger.guardrails!r}"
    words = f"{ledger.policy!r} {ledger.window} {ledger.span!r} {ledger.limits!r} {code}{shown}"
    return f"{_FORMAT}-{hashlib.sha256(words.encode()).hexdigest()[:32]}"


def pack_snapshot(arrays: Arrays) -> bytes | None:
    """Return arrays as bytes; None where they are too large to keep."""
    if sum(array.nbytes for array in arrays.values()) > _MOST:
        return None
    out = io.BytesIO()
    np.savez(out, **arrays)  # type: ignore[arg-type]
    return out.getvalue()


def unpack_snapshot(body: bytes) -> Arrays | None:
    """Return the arrays that `pack` made bytes of; None where the bytes are damaged."""
    try:
        with np.load(io.BytesIO(body), allow_pickle=False) as file:
            return dict(file)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


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
    upto : int, optional
        The position to which the log is folded at first; all of it unless given.
    """

    def __init__(
        self,
        store: Store,
        bandit: int,
        make: Callable[[], Ledger],
        step: float,
        upto: int | None = None,
    ) -> None:
        self._store = store
        self._bandit = bandit
        self._make = make
        self._step = step
        self._one = unpack(np.zeros(1, PACKED))
        self._places: deque[tuple[int, Arrays]] = deque(maxlen=_PLACES)
        self._begin(upto)
        self.catch_up(upto)

    def _begin(self, upto: int | None) -> None:
        """Start at the store's snapshot, or at the first arms."""
        self.ledger = self._make()
        self.position = self._start = len(self.ledger.arms)
        self._form = form_of(self.ledger)
        self._places.clear()
        found = self._load(self._store.head(self._bandit) if upto is None else upto)
        if found is not None:
            self.position = found[0]
            self.ledger.restore(found[1])
        self._kept = self.position
        self._next = self.position + _OFTEN
        self._whole = True

    def _load(self, upto: int) -> tuple[int, Arrays] | None:
        """Return the store's snapshot, unless it is of a later position than `upto`, or damaged."""
        try:
            kept = self._form and self._store.load_snapshot(self._bandit, self._form)
        except StoreDamaged as error:  # the log has it all
            log.warning("a snapshot is damaged", extra={"error": str(error)})
            return None
        if not kept or not self._start <= kept[0] <= upto:
            return None
        arrays = unpack_snapshot(kept[1])
        return None if arrays is None else (kept[0], arrays)

    @property
    def whole(self) -> bool:
        """Whether the ledger is the fold of the events up to a position: nothing failed amid one."""
        return self._whole

    def catch_up(self, upto: int | None = None) -> int:
        """Fold all that the log has by now, or has up to a position; return how many events that was."""
        before = self.position
        if not self._whole:  # something went wrong amid a fold
            self._begin(upto)
        while upto is None or self.position < upto:
            limit = _CHUNK if upto is None else min(_CHUNK, upto - self.position)
            events = self._store.read(self._bandit, self.position, limit)
            if not len(events.seq):
                break
            check_events(self.ledger, self.position, events)
            self._fold(events, told_by_store(self._store, self._bandit, self.ledger, events))
        return self.position - before

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
            arrays = {
                name: array
                for name, array in self.ledger.arrays().items()
                if not name.startswith(("evidence.", "guards."))  # which `at` does without
            }
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
        body = pack_snapshot(arrays)
        if body is not None:
            self._store.save_snapshot(self._bandit, self.position, self._form, body)
        self._kept = self.position

    def at(self, position: int) -> Ledger:
        """Return another ledger, as this one was at an earlier position of the log.

        It does not judge arms: see `Ledger.only_choose`. Another thread may go on folding meanwhile.
        """
        if not self._start <= position <= self.position:
            raise InputError(
                f"the log has been read from {self._start} to {self.position}, not at {position}"
            )
        ledger, start = self._make(), self._start
        ledger.only_choose()
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
