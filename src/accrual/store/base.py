"""What a store holds, and what every store can do.

A store holds bandits. A bandit is a name, a configuration and a log of events: decisions, pieces,
closings, and arms that come and go. Events are only ever added. Each has a position,
`seq`, which rises in the order in which events became durable: no event is ever added before a position that
a reader has reached. Gaps in the positions are allowed.

Time in a log never goes back. If the window of a bandit is a number of rounds, its clock is the number of its
decisions, which the log itself gives: the first decision is made at time 1, the second at 2, and any other
event has the time of the last decision. Otherwise the time of an event is that of the caller's clock, or that
of the event before it where that is later.

A store knows nothing of policies. It guarantees three things: what it has acknowledged is durable, a request
that comes twice is stored once, and all readers read the same events in the same order.
"""

from __future__ import annotations

import hashlib
import struct
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, Protocol

from accrual.store.events import DecisionRow, Event, Events


class StoreError(OSError):
    """The database failed or cannot be reached. It is not known whether the requests were stored.

    A caller may send the same requests with the same keys again: each is stored once.
    """


class StoreClosed(StoreError):
    """The store has been closed and cannot be used any more."""


class StoreDamaged(StoreError):
    """The database holds something else than what was stored. The message says where."""


def one_line(error: BaseException) -> str:
    """Return the message of an error in one line; a message of SQLite may quote a whole table."""
    return " ".join(str(error).split()) or type(error).__name__


NUMBERS_END = 2**63  # ids and positions are below it


def digest(bandit: int, seq: int, body: bytes) -> bytes:
    """Return the digest of bytes that follow from a bandit's events up to a position."""
    return hashlib.blake2b(struct.pack("<qq", bandit, seq) + body, digest_size=16).digest()


def checked_snapshot(bandit: int, form: str, row: Sequence[Any]) -> tuple[int, bytes]:
    """Return the position and the body of a stored snapshot (seq, body, digest), if its digest is right."""
    seq, body, was = row
    try:
        same = digest(bandit, seq, form.encode() + bytes(body)) == bytes(was)
    except (struct.error, TypeError, ValueError):
        same = False
    if not same:
        raise StoreDamaged(f"damaged: the snapshot at {seq!r}; it is not used")
    return int(seq), bytes(body)


# Requests: what a caller may have stored.


class NewDecisions(NamedTuple):
    """Decisions, already chosen: one for each of `arms`."""

    arms: tuple[int, ...]  # numbers of arms, from 0 on, in the order in which arms were added
    windows: tuple[float, ...]  # one for each decision
    seen: int = 0  # the position up to which the caller that chose them had read the log
    key: str | None = None  # makes the whole batch idempotent
    salt: int = 0  # of the random draws that chose the arms
    propensities: tuple[float | None, ...] = ()  # one for each decision; empty where there is no floor
    contexts: tuple[bytes, ...] | None = None  # one for each decision, as `DecisionRow` has it


def known_propensities(propensities: Sequence[float | None]) -> tuple[float | None, ...]:
    """Return propensities as an answer has them: empty where no decision has one."""
    return () if all(one is None for one in propensities) else tuple(propensities)


class NewPiece(NamedTuple):
    """A piece. Its age is as stated, or follows from the time of its event (`when`), or from its arrival."""

    decision: int
    value: float
    age: float | None = None
    when: float | None = None
    key: str | None = None  # derived where None: see `derived_key`
    stream: int | None = None  # the place of its stream among those of the bandit; None for the reward


def derived_key(decision: int, value: float, age: float, stream: int | None = None) -> str:
    """Return the key of a piece that came without one but with a stated age (by `age` or by `when`).

    So the same piece sent again is recognised. A piece that comes without a key and states no age has no key:
    each such piece is stored.

    Examples
    --------
    >>> derived_key(7, 0.5, 3.0)
    '0310b1b9363c64f778920d1a7ca9430c'
    """
    body = struct.pack(">qdd", decision, value + 0.0, age + 0.0)  # 0.0 and -0.0 are one number
    if stream is not None:
        body += struct.pack(">q", stream)
    return hashlib.sha256(body).hexdigest()[:32]


class CloseDecision(NamedTuple):
    """Close a decision: no more pieces of it will come in time."""

    decision: int


class AddArm(NamedTuple):
    """Add an arm, under a name that no arm of the bandit has had."""

    name: str
    cap: float
    window: float
    about: bytes | None = None  # its features, as `ArmRow` has them


class RetireArm(NamedTuple):
    """Never choose this arm again."""

    arm: int


StoreRequest = NewDecisions | NewPiece | CloseDecision | AddArm | RetireArm


class Requests(NamedTuple):
    """Requests that are appended together at the time `now` of the caller's clock: see `Store.append`."""

    requests: Sequence[StoreRequest]
    now: float
    skew: float = 0.0


# Answers.


class Status(Enum):
    """What became of a request."""

    STORED = "stored"
    AGAIN = "again"  # the same request was stored before: nothing was added
    CONFLICT = "conflict"  # its key was used for something else before: nothing was added
    UNKNOWN = "unknown"  # it names a decision or an arm that does not exist: nothing was added
    FUTURE = "future"  # it states an age that its decision has not reached: nothing was added
    EARLY = "early"  # it states a time before its decision: nothing was added


class Answer(NamedTuple):
    """What became of a request, and where in the log it is stored, now or from before."""

    status: Status
    seq: int = 0  # of the request's first event
    at: float = 0.0  # that event's time
    number: int = 0  # the first decision's id, or the new arm's number
    arms: tuple[int, ...] = ()  # the decisions' arms
    late: bool = False  # the piece's age was past the window, or its decision had closed
    age: float = 0.0  # the piece's, as stored
    propensities: tuple[float | None, ...] = ()  # of the decisions, as stored; empty if none has one
    warning: str = ""  # of a live bandit, about a piece that was stored; a store gives none
    contexts: tuple[bytes | None, ...] | None = None  # of the decisions, as stored; None for none


class Answers(list[Answer]):
    """An answer for each request of an append; `events` is what the append has added to the log."""

    def __init__(self, answers: Iterable[Answer], events: Sequence[Event]) -> None:
        super().__init__(answers)
        self.events = events


class StoredArm(NamedTuple):
    """An arm, as it was added."""

    name: str
    cap: float
    window: float
    retired: bool
    about: bytes | None = None  # its features, as `ArmRow` has them


class BanditRow(NamedTuple):
    """A bandit, as it is stored."""

    number: int
    name: str
    config: Mapping[str, Any]
    rounds: bool  # whether its clock is the number of its decisions


def stream_names(config: Mapping[str, Any]) -> list[str]:
    """Return the names of the streams beside the reward that a bandit declares, by their numbers."""
    return [stream["name"] for stream in config.get("streams", ())]


def wait_for_events(
    head: Callable[[int], int], positions: Mapping[int, int], timeout: float, pause: float
) -> dict[int, int]:
    """Do what `Store.wait` does: look at the last event of each bandit every `pause` seconds."""
    end = time.monotonic() + timeout
    while True:
        found = {bandit: last for bandit, after in positions.items() if (last := head(bandit)) > after}
        if found or time.monotonic() >= end:
            return found
        time.sleep(pause)


# Entries of the configuration of a bandit that is archived or deleted: see `accrual.live.archive`.
ARCHIVED = "archived"  # since when
ERASE_AT = "erase_at"  # `Store.erase` may erase the bandit from this time on


def amended(config: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration with some entries set, and without those that are None.

    Examples
    --------
    >>> amended({"a": 1, "b": 2}, {"b": None, "c": 3})
    {'a': 1, 'c': 3}
    """
    return {key: value for key, value in {**config, **changes}.items() if value is not None}


def may_be_erased(config: Mapping[str, Any], now: float) -> bool:
    """Return whether a bandit of this configuration may be erased at the time `now`."""
    return ERASE_AT in config and float(config[ERASE_AT]) <= now


class Store(Protocol):
    """Where events are stored. Every store passes one published suite, `accrual.testing.StoreSuite`."""

    shared: bool  # whether other processes may write to it too

    def create(self, name: str, config: Mapping[str, Any], arms: Sequence[AddArm], rounds: bool,
               now: float, history: Sequence[Requests] = ()) -> BanditRow:  # fmt: skip
        """Make a new bandit in one transaction: its first arms are the first events, then comes `history`."""

    def find(self, name: str) -> BanditRow | None:
        """Return the bandit of this name; None if there is none."""

    def names(self) -> list[str]:
        """Return the names of all bandits, in the order in which they were made."""

    def amend(self, bandit: int, changes: Mapping[str, Any]) -> BanditRow:
        """Change entries of a bandit's configuration that no event depends on; None removes one."""

    def erase(self, bandit: int, now: float) -> bool:
        """Remove a bandit and all its events, in one transaction, if its `ERASE_AT` is not after `now`.

        Its number is never given to another bandit. Return False if there is no such bandit, or if it is too
        early.
        """

    def append(self, bandit: int, requests: Sequence[StoreRequest], now: float, skew: float = 0.0) -> Answers:
        """Store what is new among `requests`, in this order, in one transaction; durable on return.

        A request that cannot be stored changes nothing, and the other requests are stored all the same; its
        answer is the status alone. After an exception (`StoreError`), nothing is known to have been stored.
        Each request finds what the requests before it left. -0.0 is stored as 0.0. The rules:

        - `NewDecisions`: unknown if one of its arms is unknown. If its key is known: again, with the
          decisions that are stored, whatever arms the request has now, if it has as many decisions and the
          same contexts; otherwise a conflict.
        - `NewPiece`: unknown if its decision is unknown. Its age is stated by `age`, or by `when` less the
          time of the decision (0 if that is below 0 by no more than `skew`); otherwise it is the time of the
          event less the time of the decision. Early if `when` is before the decision by more than `skew`.
          Future if the time of the decision plus the stated age is after the time of the event plus `skew`.
          If its key (given, or derived from a stated age) is known for this decision: again if the stream,
          the value and the stated age are the same, or neither states an age; otherwise a conflict. In all
          other cases stored: late if its age is not below the window of the decision, if the time of the
          event is not before the time of the decision plus its window, or if an earlier event closed the
          decision.
        - `CloseDecision`, `RetireArm`: again if the decision is closed or the arm retired already.
        - `AddArm`: stored under a new name. If there is an arm of this name: again if its cap, window and
          `about` are the same; otherwise a conflict.
        """

    def read(self, bandit: int, after: int, limit: int) -> Events:
        """Return at most `limit` events beyond position `after`."""

    def head(self, bandit: int) -> int:
        """Return the position of the last event, 0 if there is none."""

    def arms(self, bandit: int) -> list[StoredArm]:
        """Return all arms that have been added, in the order of their numbers."""

    def decision(self, bandit: int, id: int) -> DecisionRow | None:
        """Return the decision of this id; None if there is none."""

    def contexts(self, bandit: int, first: int, count: int) -> list[bytes | None]:
        """Return the contexts of the decisions from id `first` on, at most `count` of them."""

    def used_keys(self, bandit: int, keys: Sequence[str]) -> set[str]:
        """Return those of `keys` that decisions are stored under."""

    def wait(self, positions: Mapping[int, int], timeout: float) -> dict[int, int]:
        """Wait until one of these bandits, by number, has an event beyond the position given for it.

        Return the position of the last event for each bandit that has one; nothing if none came in time.
        """

    def save_snapshot(self, bandit: int, seq: int, form: str, body: bytes) -> None:
        """Store a snapshot of the events up to `seq`; it replaces an earlier snapshot of this form."""

    def load_snapshot(self, bandit: int, form: str) -> tuple[int, bytes] | None:
        """Return the snapshot of this form, with its position; None if there is none."""

    def clock(self) -> float:
        """Return the time in seconds since 1970, by one clock for all processes that share the store."""

    def probe(self) -> None:
        """Write something that changes nothing; raise `StoreError` if nothing can be written now."""

    def close(self) -> None:
        """Close the connections to the database."""
