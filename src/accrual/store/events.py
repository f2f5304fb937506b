"""The tables of a store and the events they hold: every column is declared here, once.

The row classes name the columns of each table with their types. There is one type for each kind of event
(`EVENT_TYPES`); `Events` holds many of them in columns, and `EVENT_COLUMNS` says which columns of the tables
they come from. Queries, copies and exports follow from these declarations, by name. The
first two columns of a table of events are its key; in the order of the key, rows are in the order of the log.
A column whose type has `| None` may be NULL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple, get_type_hints

import numpy as np

from accrual.core.arrays import Floats, Ints


class Kind(IntEnum):
    """What an event is."""

    DECISION = 0
    PIECE = 1
    CLOSE = 2
    ADD_ARM = 3
    RETIRE_ARM = 4


class BanditTableRow(NamedTuple):
    """A row of table `bandit`."""

    number: int
    name: str
    config: str  # JSON
    rounds: bool  # whether its clock is the number of its decisions


class HeadRow(NamedTuple):
    """A row of table `head`: where a bandit's log ends."""

    bandit: int
    seq: int  # of the last event
    at: float  # the time of the last event
    decisions: int  # how many there have been
    arms: int  # how many there have been


class ArmRow(NamedTuple):
    """A row of table `arm`."""

    bandit: int
    number: int  # from 0 on, in the order in which arms were added
    name: str
    cap: float
    window: float
    about: bytes | None  # a number for each feature of arms, packed as in a decision's context


class DecisionRow(NamedTuple):
    """A row of table `decision`."""

    bandit: int
    id: int
    seq: int
    arm: int  # its number
    at: float
    window: float
    seen: int  # the position up to which the caller that chose the arm had read the log
    key: str | None  # of the batch of decisions that it was made in
    part: int  # its place in that batch
    salt: int  # of the random draws by which it was chosen
    propensity: float | None  # the probability with which its arm was chosen; NULL if there was no floor
    context: bytes | None  # a number for each feature, each in 8 bytes, little-endian


class PieceRow(NamedTuple):
    """A row of table `piece`."""

    bandit: int
    seq: int
    decision: int
    key: str | None
    value: float
    age: float
    stated: bool  # whether the caller stated the age; otherwise it follows from the arrival
    at: float
    late: bool
    stream: int | None  # its place among the streams that the bandit declares; NULL for the reward


class ChangeRow(NamedTuple):
    """A row of table `change`: a decision was closed, or an arm added or retired."""

    bandit: int
    seq: int
    kind: int  # a `Kind`
    subject: int  # the decision's id, or the arm's number
    at: float


class SnapshotRow(NamedTuple):
    """A row of table `snapshot`."""

    bandit: int
    form: str
    seq: int
    body: bytes
    digest: bytes


class KeyTableRow(NamedTuple):
    """A row of table `api_key`."""

    id: str
    name: str
    scopes: str
    digest: bytes
    made: float
    ends: float | None


# All tables, in the order in which they are copied, but for those of SQLite alone, which follow from these.
TABLES: dict[str, type[Any]] = {
    "bandit": BanditTableRow,
    "head": HeadRow,
    "arm": ArmRow,
    "decision": DecisionRow,
    "piece": PieceRow,
    "change": ChangeRow,
    "snapshot": SnapshotRow,
    "api_key": KeyTableRow,
}


class DecisionMade(NamedTuple):
    """A decision was made."""

    seq: int
    at: float
    decision: int  # its id
    arm: int
    window: float
    salt: int  # of the random draws by which it was chosen
    propensity: float  # 0 where none was recorded
    seen: int  # the position up to which the caller that chose the arm had read the log


class PieceArrived(NamedTuple):
    """A piece of a decision arrived."""

    seq: int
    at: float
    decision: int
    stream: int  # its place among those that the bandit declares; `NO_STREAM` for a piece of the reward
    value: float
    age: float


class DecisionClosed(NamedTuple):
    """A decision was closed: no more pieces of it count."""

    seq: int
    at: float
    decision: int


class ArmAdded(NamedTuple):
    """An arm was added."""

    seq: int
    at: float
    arm: int
    cap: float
    window: float


class ArmRetired(NamedTuple):
    """An arm was retired: it is never chosen again."""

    seq: int
    at: float
    arm: int


Event = DecisionMade | PieceArrived | DecisionClosed | ArmAdded | ArmRetired

NO_STREAM = -1  # the stream of a piece of the reward

EVENT_TYPES: dict[Kind, type[Any]] = {
    Kind.DECISION: DecisionMade,
    Kind.PIECE: PieceArrived,
    Kind.CLOSE: DecisionClosed,
    Kind.ADD_ARM: ArmAdded,
    Kind.RETIRE_ARM: ArmRetired,
}


class Events(NamedTuple):
    """A part of a bandit's log, in order, in columns: one for each field of the types of events, by its name.

    Where an event has no such field, its column holds what `NONE` says.
    """

    seq: Ints
    kind: Ints
    at: Floats
    decision: Ints
    arm: Ints
    stream: Ints
    value: Floats
    age: Floats
    window: Floats
    cap: Floats
    salt: Ints
    propensity: Floats
    seen: Ints


# The types of the columns in SQLite's blocks: little-endian.
PACKED = np.dtype(
    [
        ("seq", "<i8"), ("kind", "<i1"), ("at", "<f8"), ("decision", "<i8"), ("arm", "<i4"),
        ("stream", "<i2"), ("value", "<f8"), ("age", "<f8"), ("window", "<f8"), ("cap", "<f8"),
        ("salt", "<i4"), ("propensity", "<f8"), ("seen", "<i8"),
    ]
)  # fmt: skip

# What a column of `Events` holds for an event that has no such field.
NONE = {name: -1 if name in ("decision", "arm", "stream") else 0 for name in Events._fields[3:]}

# For each kind of event the table that holds it, and from which column of that table each field comes; `seq`
# and `at` come from the columns of the same name. "arm.cap" is the column of the arm's own row.
EVENT_COLUMNS: dict[Kind, tuple[str, Mapping[str, str]]] = {
    Kind.DECISION: (
        "decision",
        {"decision": "id", **{name: name for name in ("arm", "window", "salt", "propensity", "seen")}},
    ),
    Kind.PIECE: ("piece", {name: name for name in ("decision", "stream", "value", "age")}),
    Kind.CLOSE: ("change", {"decision": "subject"}),
    Kind.ADD_ARM: ("change", {"arm": "subject", "cap": "arm.cap", "window": "arm.window"}),
    Kind.RETIRE_ARM: ("change", {"arm": "subject"}),
}


# What an export holds: its file, the table, and of each column its name there and in the table. "arm.name" is
# the column of the arm's own row. Pieces of other streams have their own file, so that they are not read as
# pieces of the reward.
_EXPORTED_PIECE = {
    "decision": "decision",
    "value": "value",
    "age": "age",
    "stored_at": "at",
    "key": "key",
    "late": "late",
}
EXPORTED: dict[str, tuple[str, Mapping[str, str]]] = {
    "decisions.parquet": (
        "decision",
        {"id": "id", "arm": "arm.name", "at": "at", "window": "window", "propensity": "propensity"},
    ),
    "pieces.parquet": ("piece", _EXPORTED_PIECE),
    "arms.parquet": ("arm", {"number": "number", "name": "name", "cap": "cap", "window": "window"}),
    "streams.parquet": ("piece", {**_EXPORTED_PIECE, "stream": "stream"}),
}


# Queries.


def column_types(table: str) -> dict[str, Any]:
    """Return the Python type of each column of a table; one that may be NULL has the type `T | None`."""
    return get_type_hints(TABLES[table])


def quoted(names: Iterable[str]) -> str:
    """Return column names as a query has them: `window` is a word of SQL."""
    return ", ".join(f'"{name}"' for name in names)


def select_all(table: str) -> str:
    """Return the query for all rows of a table, in the order of its key."""
    return f"SELECT {quoted(TABLES[table]._fields)} FROM {table} ORDER BY 1, 2"


def insert_into(table: str) -> str:
    """Return the statement that adds a row to a table of SQLite."""
    names = TABLES[table]._fields
    return f"INSERT INTO {table} ({quoted(names)}) VALUES ({', '.join('?' * len(names))})"


# Events.


def stream_number(stream: int | None) -> int:
    """Return the stream of a piece as its event has it."""
    return NO_STREAM if stream is None else stream


def events_of_rows(
    decisions: Iterable[DecisionRow],
    pieces: Iterable[PieceRow],
    changes: Iterable[ChangeRow],
    arms: Sequence[Any],
) -> list[Event]:
    """Return the events of rows, in the order of the log; `arms` are all arms, each with cap and window."""
    events: list[Event] = [
        PieceArrived(row.seq, row.at, row.decision, stream_number(row.stream), row.value, row.age)
        for row in pieces
    ]
    events += [
        DecisionMade(row.seq, row.at, row.id, row.arm, row.window, row.salt, row.propensity or 0.0, row.seen)
        for row in decisions
    ]
    for row in changes:
        if row.kind == Kind.CLOSE:
            events.append(DecisionClosed(row.seq, row.at, row.subject))
        elif row.kind == Kind.ADD_ARM:
            arm = arms[row.subject]
            events.append(ArmAdded(row.seq, row.at, row.subject, arm.cap, arm.window))
        else:
            events.append(ArmRetired(row.seq, row.at, row.subject))
    events.sort()  # every event has its position first
    return events


# Events in columns.


def pack(events: Sequence[Event]) -> bytes:
    """Return events as bytes: the columns of `PACKED`, one after the other."""
    packed = np.zeros(len(events), PACKED)
    for name, none in NONE.items():
        if none:
            packed[name] = none
    for kind, type_ in EVENT_TYPES.items():
        places = [place for place, event in enumerate(events) if type(event) is type_]
        if places:
            packed["kind"][places] = kind
            fields = zip(*(events[place] for place in places), strict=True)
            for name, values in zip(type_._fields, fields, strict=True):
                packed[name][places] = values
    return b"".join(packed[name].tobytes() for name in Events._fields)


def unpack(*parts: bytes) -> Events:
    """Return parts of a log, each packed, in columns."""
    sizes = [len(part) // PACKED.itemsize for part in parts]
    found = []
    before = 0  # bytes of an event in the columns before this one
    for name in Events._fields:
        type_ = PACKED[name]
        views = [np.frombuffer(part, type_, n, before * n) for part, n in zip(parts, sizes, strict=True)]
        found.append(np.concatenate(views).astype(np.int64 if type_.kind == "i" else np.float64))
        before += type_.itemsize
    return Events._make(found)


def columns(events: Sequence[Event]) -> Events:
    """Return events in columns."""
    return unpack(pack(events))


def records(events: Events) -> list[Event]:
    """Return events in columns one by one, each as a record of its type.

    Examples
    --------
    >>> records(columns([ArmAdded(1, 0.0, 0, 1.0, 80.0), ArmRetired(2, 0.5, 0)]))
    [ArmAdded(seq=1, at=0.0, arm=0, cap=1.0, window=80.0), ArmRetired(seq=2, at=0.5, arm=0)]
    """
    types = {
        int(kind): (type_, [Events._fields.index(name) for name in type_._fields])
        for kind, type_ in EVENT_TYPES.items()
    }
    found = []
    for values in zip(*(column.tolist() for column in events), strict=True):
        type_, places = types[values[1]]
        found.append(type_._make(values[place] for place in places))
    return found
