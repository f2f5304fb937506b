"""A ledger that follows a log: it is always exactly the fold of the events up to a position."""

from __future__ import annotations

import hashlib
import io
import logging
import zipfile
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accrual.core.arrays import Floats
from accrual.core.errors import InputError
from accrual.core.jit import fingerprint
from accrual.live.contexts import numbers_of
from accrual.live.ledger import Ledger
from accrual.live.watch import NO_STREAM
from accrual.store.base import (
    AddArm,
    Answer,
    Answers,
    NewDecisions,
    Status,
    Store,
    StoreDamaged,
    StoreRequest,
)
from accrual.store.events import EVENT_TYPES, Events, Kind, columns

_CHUNK = 1 << 17  # events read at a time
_COPY_EVERY = 20_000  # events between two copies of the ledger in memory, at least
_SNAPSHOT_EVERY = 200_000  # events between two snapshots in the store, at least
_BYTES_PER_EVENT = 64  # of a copy or snapshot, for each event since the one before, at most
_COPIES = 3  # copies in memory
_COPY_MOST = 1 << 24  # bytes: a larger ledger is not copied in memory; the store's snapshot must do
_FORMAT = 1  # of snapshots: one of another format is not used
_SNAPSHOT_MOST = 900_000_000  # bytes: what a database takes in one value

Arrays = dict[str, npt.NDArray[Any]]

log = logging.getLogger("accrual.live")


class LogFollower:
    """A ledger, and how far in the log it is.

    Parameters
    ----------
    bandit : int
        Its number in the store.
    new_ledger : callable
        Makes a ledger of the first arms, which are the log's first events.
    upto : int, optional
        The position to which the log is folded at first; all of it unless given.

    Attributes
    ----------
    position : int
        How far the log has been folded.
    intact : bool
        Whether the ledger is the fold of the events up to `position`: no fold has failed halfway.
    """

    def __init__(
        self, store: Store, bandit: int, new_ledger: Callable[[], Ledger], upto: int | None = None
    ) -> None:
        self._store = store
        self._bandit = bandit
        self._new_ledger = new_ledger
        self._one_event = {type_: _one_event(type_) for type_ in EVENT_TYPES.values()}
        self._copies: deque[tuple[int, Arrays]] = deque(maxlen=_COPIES)
        self._begin(upto)
        self.catch_up(upto)

    def _begin(self, upto: int | None) -> None:
        """Start at the store's snapshot, or at the first arms."""
        self.ledger = self._new_ledger()
        self.position = self._start = len(self.ledger.arms)
        self._form = form_of(self.ledger)
        self._copies.clear()
        found = self._load(self._store.head(self._bandit) if upto is None else upto)
        if found is not None:
            self.position = found[0]
            self.ledger.restore(found[1])
        self._snapshot_position = self.position
        self._next_copy = self.position + _COPY_EVERY
        self.intact = True

    def _load(self, upto: int) -> tuple[int, Arrays] | None:
        """Return the store's snapshot, unless it is of a later position than `upto`, or damaged."""
        try:
            snapshot = self._form and self._store.load_snapshot(self._bandit, self._form)
        except StoreDamaged as error:  # the log has all that the snapshot had
            log.warning("a snapshot is damaged", extra={"error": str(error)})
            return None
        if not snapshot or not self._start <= snapshot[0] <= upto:
            return None
        arrays = unpack_snapshot(snapshot[1])
        return None if arrays is None else (snapshot[0], arrays)

    def catch_up(self, upto: int | None = None) -> int:
        """Fold all that the log has now, or has up to a position; return how many events that was."""
        before = self.position
        if not self.intact:
            self._begin(upto)
        while upto is None or self.position < upto:
            limit = _CHUNK if upto is None else min(_CHUNK, upto - self.position)
            events = self._store.read(self._bandit, self.position, limit)
            if not len(events.seq):
                break
            check_events(self.ledger, self.position, events)
            self._fold(events, details_from_store(self._store, self._bandit, self.ledger, events))
        return self.position - before

    def _fold(self, events: Events, details: EventDetails) -> None:
        self.intact = False
        self.ledger.extend(events, *details)
        self.position = int(events.seq[-1])
        self.intact = True
        self._copy_if_due()

    def fold_answers(self, requests: Sequence[StoreRequest], answers: Answers) -> None:
        """Fold what has just been appended, and what others have appended before it."""
        new = answers.events
        if not new:
            return
        if new[0].seq != self.position + 1 or new[-1].seq != self.position + len(new):
            self.catch_up()
            return
        details = details_from_requests(self.ledger, requests, answers)
        if len(new) == 1:  # the common case: arrays that are there already are filled
            one, fields = self._one_event[type(new[0])]
            for column, value in zip(fields, new[0], strict=True):
                column[0] = value
            self._fold(one, details)
        else:
            self._fold(columns(new), details)

    def skip(self, events: int) -> None:
        """Advance the position by events that the ledger has already folded."""
        self.position += events
        self.intact = True
        self._copy_if_due()

    def _copy_if_due(self) -> None:
        """Copy the ledger's arrays for `at`, if enough has happened since the last copy."""
        if self.position >= self._next_copy:
            last = self._copies[-1][0] if self._copies else self._start
            self._next_copy = self.position + _COPY_EVERY
            arrays = self.ledger.arrays(watched=False)  # `at` needs no watchers
            size = sum(array.nbytes for array in arrays.values())
            if size <= _COPY_MOST and self.position - last >= size // _BYTES_PER_EVENT:
                self._copies.append((self.position, {name: array.copy() for name, array in arrays.items()}))

    def save_snapshot(self, now: bool = False) -> None:
        """Save a snapshot in the store if one is due; with `now`, if there is any new event."""
        new = self.position - self._snapshot_position
        if self._form is None or new < (1 if now else _SNAPSHOT_EVERY):
            return
        arrays = self.ledger.arrays()
        if not now and new < sum(array.nbytes for array in arrays.values()) // _BYTES_PER_EVENT:
            return
        body = pack_snapshot(arrays)
        if body is not None:
            self._store.save_snapshot(self._bandit, self.position, self._form, body)
        self._snapshot_position = self.position

    def at(self, position: int) -> Ledger:
        """Return another ledger, as this one was at an earlier position of the log.

        That ledger does not judge arms: see `Ledger.only_choose`. Another thread may go on folding meanwhile.
        """
        if not self._start <= position <= self.position:
            raise InputError(
                f"the log has been read from {self._start} to {self.position}, not at {position}"
            )
        ledger, start = self._new_ledger(), self._start
        ledger.only_choose()
        copy = next((copy for copy in reversed(list(self._copies)) if copy[0] <= position), None)
        copy = copy or self._load(position)
        if copy is not None:
            start = copy[0]
            ledger.restore(copy[1])
        fold_log(self._store, self._bandit, ledger, start, position)
        return ledger


def _one_event(type_: type[Any]) -> tuple[Events, list[npt.NDArray[Any]]]:
    """Return columns for one event of a type, and those of them that its fields are written to."""
    events = columns([type_._make([0] * len(type_._fields))])
    return events, [getattr(events, name) for name in type_._fields]


class EventDetails(NamedTuple):
    """What a part of a log holds beyond the columns of its events."""

    contexts: Floats | None = None  # decisions x features
    about: Sequence[bytes | None] = ()  # what is known about the arms that it adds


def details_from_store(store: Store, bandit: int, ledger: Ledger, events: Events) -> EventDetails:
    """Read from the store what events hold beyond their columns."""
    about: list[bytes | None] = []
    if ledger.arms.features is not None and (added_arms := events.arm[events.kind == Kind.ADD_ARM].tolist()):
        arms = store.arms(bandit)
        about = [arms[number].about for number in added_arms]
    if ledger.features is None:
        return EventDetails(about=about)
    ids = events.decision[events.kind == Kind.DECISION]
    stored = store.contexts(bandit, int(ids[0]), len(ids)) if len(ids) else []
    return EventDetails(numbers_of(stored, len(ledger.features)), about)


def details_from_requests(
    ledger: Ledger, requests: Sequence[StoreRequest], answers: Sequence[Answer]
) -> EventDetails:
    """Return what the events of these requests hold beyond their columns."""
    if ledger.features is None and ledger.arms.features is None:
        return EventDetails()
    stored: list[bytes | None] = []
    about = []
    for request, answer in zip(requests, answers, strict=True):
        if answer.status is not Status.STORED:
            continue
        if isinstance(request, AddArm):
            about.append(request.about)
        elif isinstance(request, NewDecisions):
            stored += request.contexts or (None,) * len(request.arms)
    contexts = None if ledger.features is None else numbers_of(stored, len(ledger.features))
    return EventDetails(contexts, about)


def fold_log(store: Store, bandit: int, ledger: Ledger, position: int, upto: int) -> None:
    """Fold the events after `position`, where the ledger is, up to the position `upto`."""
    while position < upto:
        events = store.read(bandit, position, min(_CHUNK, upto - position))
        check_events(ledger, position, events)
        inside = int(np.searchsorted(events.seq, upto, side="right"))  # positions may have gaps
        part = Events._make(column[:inside] for column in events)
        ledger.extend(part, *details_from_store(store, bandit, ledger, part))
        position = int(events.seq[-1])


def check_events(ledger: Ledger, after: int, events: Events) -> None:
    """Raise `StoreDamaged` if events after position `after` cannot follow on what `ledger` has folded.

    Compiled code does not check bounds, so all that it indexes by is checked here.
    """
    seq, kind, at, propensity = events.seq, events.kind, events.at, events.propensity
    decision, arm, value, age = events.decision, events.arm, events.value, events.age
    made = kind == Kind.DECISION
    added = kind == Kind.ADD_ARM
    decisions = ledger.decisions + np.cumsum(made) - made  # before each event
    arms = len(ledger.arms) + np.cumsum(added) - added
    cap, window, stream = events.cap, events.window, events.stream
    of_decision = (kind == Kind.PIECE) | (kind == Kind.CLOSE)
    rules = {
        "is not behind the event before it": np.diff(seq, prepend=after) < 1,
        "is of an unknown kind": (kind < 0) | (kind > max(Kind)),
        "is earlier than the event before it": ~(np.diff(at, prepend=max(ledger.now, -1e300)) >= 0)
        | ~np.isfinite(at),
        "is a decision out of order": made & (decision != decisions),
        "is of an unknown decision": of_decision & ((decision < 0) | (decision >= decisions)),
        "is of an unknown arm": (made | (kind == Kind.RETIRE_ARM)) & ((arm < 0) | (arm >= arms)),
        "is an arm out of order": added & (arm != arms),
        "is of an unknown stream": (kind == Kind.PIECE) & ((stream < NO_STREAM) | (stream >= ledger.streams)),
        "has an impossible value or age": ~np.isfinite(value) | ~np.isfinite(age) | ~(age >= 0),
        "has an impossible window": (made | added) & ~((window > 0) & (window <= ledger.span)),
        "has an impossible propensity": ~((propensity >= 0) & (propensity <= 1)),
        "has an impossible cap": added & ~(cap > 0),
    }
    for wrong, where in rules.items():
        if where.any():
            raise StoreDamaged(f"damaged: event {int(seq[np.argmax(where)])} {wrong}; see accrual db verify")


def form_of(ledger: Ledger) -> str | None:
    """Return a name for the snapshots that a ledger may start from: those of its policy and its code.

    Return None if the code is in no file (if it was typed into a console, for example): then nobody could
    tell later whether it is still the same.
    """
    code = fingerprint(ledger.kernel.kernel, Ledger, type(ledger.policy))
    if code is None:
        return None
    features = ledger.features
    shown = repr(ledger.watchers)
    if features is not None:
        shown += f" {features.written()}"
    if ledger.arms.features is not None:
        shown += f" about {ledger.arms.features.written()}"
    words = f"{ledger.policy!r} {ledger.window} {ledger.span!r} {ledger.limits!r} {code} {shown}"
    return f"{_FORMAT}-{hashlib.sha256(words.encode()).hexdigest()[:32]}"


def pack_snapshot(arrays: Arrays) -> bytes | None:
    """Return arrays as bytes; None if they are too large to store."""
    if sum(array.nbytes for array in arrays.values()) > _SNAPSHOT_MOST:
        return None
    out = io.BytesIO()
    np.savez(out, **arrays)  # type: ignore[arg-type]
    return out.getvalue()


def unpack_snapshot(body: bytes) -> Arrays | None:
    """Return the arrays that `pack_snapshot` packed; None if the bytes are damaged."""
    try:
        with np.load(io.BytesIO(body), allow_pickle=False) as file:
            return dict(file)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
