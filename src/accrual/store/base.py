"""What a store keeps, and what every store can do.

A store holds bandits. A bandit is a name, a configuration and a log of events: decisions, pieces,
closings, and arms that come and go. Events are only ever added. Each has a position,
`seq`, which rises in the order in which events became durable: a reader that has read up to a position has
seen all that there will ever be before it. Gaps in the positions are allowed.

Time in a log never goes back. A bandit whose window is a number of rounds has the number of its
decisions for a clock, which the log itself gives: a decision is made in the round that it is, from
1 on, and anything else happens in the round of the last decision. Otherwise the time of an event is
that of the caller's clock, or of the event before it where that is later.

A store knows nothing of policies. It answers for three things alone: that what it has
acknowledged is durable, that a request that comes twice is stored once, and that all readers read the
same events in the same order.
"""

from __future__ import annotations

import hashlib
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, Protocol

from accrual.store.events import DecisionRow, Events


class StoreError(OSError):
    """The database failed or is out of reach. What was to be stored may or may not have been.

    A caller that tries again with the same keys has it stored once.
    """


class StoreClosed(StoreError):
    """The store has been closed and cannot be used any more."""


class StoreDamaged(StoreError):
    """What the database holds is not what was stored. The message says where."""


def one_line(error: BaseException) -> str:
    """Return an error's message in one line: SQLite may quote a whole table."""
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


# What a caller may ask to have stored.


class NewDecisions(NamedTuple):
    """Decisions, already chosen: one for each of `arms`."""

    arms: tuple[int, ...]  # their numbers, from 0 on, in the order in which arms were added
    windows: tuple[float, ...]  # each decision's own
    seen: int = 0  # the position up to which the caller that chose them had read the log
    key: str | None = None  # makes the whole batch idempotent
    salt: int = 0  # of the draws that they were chosen by
    propensities: tuple[float | None, ...] = ()  # of the arms; empty where there is no floor
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
    stream: int | None = None  # the number of the guardrail that it is of; None for the reward


def derived_key(decision: int, value: float, age: float, stream: int | None = None) -> str:
    """Return the key of a piece that came without one but with a stated age (by `age` or by `when`).

    The same piece sent again is then the same piece. A piece that states no age has no key at all:
    each is a piece of its own.

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
    """Nothing more will come for a decision."""

    decision: int


class AddArm(NamedTuple):
    """A new arm, under a name that no arm of the bandit has had."""

    name: str
    cap: float
    window: float
    about: bytes | None = None  # what is known about it, as `ArmRow` has it


class RetireArm(NamedTuple):
    """Never choose this arm again."""

    arm: int


StoreRequest = NewDecisions | NewPiece | CloseDecision | AddArm | RetireArm


class Requests(NamedTuple):
    """Requests that are appended together, as by a caller whose clock says `now`: see `Store.append`."""

    requests: Sequence[StoreRequest]
    now: float
    skew: float = 0.0


# What a caller is answered.


class Status(Enum):
    """What became of a request."""

    STORED = "stored"
    AGAIN = "again"  # it had been stored before, the same: nothing was added
    CONFLICT = "conflict"  # its key had been used for something else: nothing was added
    UNKNOWN = "unknown"  # it speaks of a decision or an arm that there is not: nothing was added
    FUTURE = "future"  # it states an age that the decision has not reached: nothing was added
    EARLY = "early"  # it states a time before its decision was made: nothing was added


class Answer(NamedTuple):
    """What became of a request, and where it is in the log (where it was, if stored before)."""

    status: Status
    seq: int = 0  # of the request's first event
    at: float = 0.0  # that event's time
    number: int = 0  # the first decision's id, or the new arm's number
    arms: tuple[int, ...] = ()  # the decisions' arms
    late: bool = False  # the piece's age was past the window, or its decision had closed
    age: float = 0.0  # the piece's, as stored: with it, requests and answers make up the events
    propensities: tuple[float | None, ...] = ()  # of the decisions, as stored; empty if none has one
    warning: str = ""  # what a live bandit has to say of a piece that was stored; a store says nothing
    contexts: tuple[bytes | None, ...] | None = None  # of the decisions, as stored; None for none


class StoredArm(NamedTuple):
    """An arm, as it was added."""

    name: str
    cap: float
    window: float
    retired: bool
    about: bytes | None = None  # as `ArmRow` has it


class BanditRow(NamedTuple):
    """A bandit, as the store has it."""

    number: int
    name: str
    config: Mapping[str, Any]
    rounds: bool  # whether its clock is the number of its decisions


def wait_for_events(
    head: Callable[[int], int], positions: Mapping[int, int], timeout: float, pause: float
) -> dict[int, int]:
    """Do what `Store.wait` does by looking at each bandit's last event every `pause` seconds."""
    end = time.monotonic() + timeout
    while True:
        found = {bandit: last for bandit, after in positions.items() if (last := head(bandit)) > after}
        if found or time.monotonic() >= end:
            return found
        time.sleep(pause)


# Entries of a configuration that say that a bandit is put away: see `accrual.live.archive`.
ARCHIVED = "archived"  # since when
ERASE_AT = "erase_at"  # the time from which on `Store.erase` may erase it


def amended(config: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration with some entries set, and without those that are None.

    Examples
    --------
    >>> amended({"a": 1, "b": 2}, {"b": None, "c": 3})
    {'a': 1, 'c': 3}
    """
    return {key: value for key, value in {**config, **changes}.items() if value is not None}


def may_be_erased(config: Mapping[str, Any], now: float) -> bool:
    """Whether a bandit of this configuration may be erased by `now`."""
    return ERASE_AT in config and float(config[ERASE_AT]) <= now


class Store(Protocol):
    """Where events are kept. One published suite, `accrual.testing.StoreSuite`, holds for all."""

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

        Its number is never given to another. False if there is no such bandit, or if it is not time.
        """

    def append(
        self, bandit: int, requests: Sequence[StoreRequest], now: float, skew: float = 0.0
    ) -> list[Answer]:
        """Store what is new among `requests`, in this order, in one transaction; durable on return.

        A request that cannot be stored changes nothing and keeps no other from being stored; its answer
        is the status alone. An exception (`StoreError`) means that nothing is known to have been
        stored. Each request finds what those before it left. -0.0 is stored as 0.0:

        - `NewDecisions`: unknown if one of its arms is. Its key known: again with the decisions there are,
          whatever arms it brings now, if they are as many and for the same contexts;
          otherwise a conflict.
        - `NewPiece`: unknown if its decision is. Its age is `age`, or `when` less the decision's time (0 if
          that is below 0 by no more than `skew`), and is then stated; or else the event's time less
          the decision's. Early if `when` is before the decision by more than `skew`; future if the
          decision's time and the stated age lie beyond the event's time and `skew`. Its key (given, or
          derived from a stated age) known for this decision: again if the stream, the value and the stated
          age, or that none was stated, are the same; otherwise a conflict. Stored otherwise;
          late if its age is not below the decision's window, the event's time not before the
          decision's time and window, or the decision closed by an event before it.
        - `CloseDecision`, `RetireArm`: again if it has been.
        - `AddArm`: stored under a new name. Again if the arm of this name has this cap, this window and this
          `about`, byte by byte, or none as it has none; otherwise a conflict.
        """

    def read(self, bandit: int, after: int, limit: int) -> Events:
        """Return at most `limit` events beyond position `after`."""

    def head(self, bandit: int) -> int:
        """Return the position of the last event, 0 if there is none."""

    def arms(self, bandit: int) -> list[StoredArm]:
        """Return all arms that there have been, in the order of their numbers."""

    def decision(self, bandit: int, id: int) -> DecisionRow | None:
        """Return one decision; None if there is none of this id."""

    def contexts(self, bandit: int, first: int, count: int) -> list[bytes | None]:
        """Return the contexts of the decisions from id `first` on, at most `count` of them."""

    def used_keys(self, bandit: int, keys: Sequence[str]) -> set[str]:
        """Return those of these keys under which decisions are stored."""

    def wait(self, positions: Mapping[int, int], timeout: float) -> dict[int, int]:
        """Wait until one of these bandits, by number, has an event beyond its position here.

        Return the positions of the last events of those that have; none if none came in time.
        """

    def save_snapshot(self, bandit: int, seq: int, form: str, body: bytes) -> None:
        """Keep `body`, what the events up to `seq` come to, in place of any earlier one of this form."""

    def load_snapshot(self, bandit: int, form: str) -> tuple[int, bytes] | None:
        """Return the snapshot of this form, with its position; None if there is none."""

    def clock(self) -> float:
        """Return the time in seconds since 1970, by one clock for all processes that share the store."""

    def probe(self) -> None:
        """Store something that changes nothing; raise `StoreError` if nothing can be stored now."""

    def close(self) -> None:
        """Close the connections to the database."""
