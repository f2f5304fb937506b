"""The tables of a store and the events they hold: every column is declared here, once.

The row classes name the columns of each table with their types, and `EVENT_COLUMNS` says which columns make
up an event of each kind. Queries, copies and exports follow from these declarations, by name. The
first two columns of a table of events are its key; in the order of the key, rows are in the order of the log.
A column whose type has `| None` may be NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from itertools import starmap
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple, get_type_hints

import numpy as np
import numpy.typing as npt

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
    stream: int | None  # the number of the guardrail that it is of; NULL for a piece of the reward


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


class Events(NamedTuple):
    """A part of a bandit's log, in order, in columns."""

    seq: Ints
    kind: Ints
    at: Floats
    decision: Ints  # a decision's id, the decision of a piece or of a closing; -1 for arms
    arm: Ints  # a decision's arm, or that added or retired; a piece's stream; or -1
    value: Floats  # a piece's value, a decision's salt, a new arm's cap; 0 otherwise
    age: Floats  # a piece's age; a decision's or a new arm's window; 0 otherwise
    propensity: Floats  # of a decision; 0 where none was recorded, and for other kinds
    seen: Ints  # of a decision, the position up to which its chooser had read the log; 0 for other kinds


Event = tuple[int, int, float, int, int, float, float, float, int]  # a value for each column of `Events`

# What a column of `Events` holds in an event of a kind that does not have it.
NONE = {"decision": -1, "arm": -1, "value": 0.0, "age": 0.0, "propensity": 0.0, "seen": 0}

# The form of events in SQLite's blocks: without gaps, little-endian.
PACKED = np.dtype(
    [
        ("seq", "<i8"), ("kind", "<i1"), ("at", "<f8"), ("decision", "<i8"), ("arm", "<i4"), ("value", "<f8"),
        ("age", "<f8"), ("propensity", "<f8"), ("seen", "<i8"),
    ]
)  # fmt: skip

# For each kind of event the table that holds it, and from which column of that table each column of `Events`
# comes; `seq` and `at` come from the columns of the same name. "arm.cap" is the column of the arm's own row.
EVENT_COLUMNS: dict[Kind, tuple[str, Mapping[str, str]]] = {
    Kind.DECISION: (
        "decision",
        {
            "decision": "id",
            "arm": "arm",
            "value": "salt",
            "age": "window",
            "propensity": "propensity",
            "seen": "seen",
        },
    ),
    # A piece's stream is the number of its guardrail, and -1 for the reward.
    Kind.PIECE: ("piece", {"decision": "decision", "arm": "stream", "value": "value", "age": "age"}),
    Kind.CLOSE: ("change", {"decision": "subject"}),
    Kind.ADD_ARM: ("change", {"arm": "subject", "value": "arm.cap", "age": "arm.window"}),
    Kind.RETIRE_ARM: ("change", {"arm": "subject"}),
}


def event_column(kind: Kind, name: str) -> str:
    """Return which column of `Events` holds a column of the table of this kind of event.

    Examples
    --------
    >>> event_column(Kind.DECISION, "salt"), event_column(Kind.ADD_ARM, "arm.cap")
    ('value', 'value')
    """
    (column,) = (column for column, source in EVENT_COLUMNS[kind][1].items() if source == name)
    return column


# What an export holds: its file, the table, and of each column its name there and in the table. "arm.name" is
# the column of the arm's own row. Pieces of guardrails have their own file, so that they are not read as
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
    "guardrails.parquet": ("piece", {**_EXPORTED_PIECE, "stream": "stream"}),
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


# Events. Each function says where in an event the fields of its kind are, as `EVENT_COLUMNS` does by name.

_DECISION, _PIECE, _CLOSE, _ADD_ARM, _RETIRE_ARM = map(int, Kind)


def decision_event(
    seq: int, at: float, id: int, arm: int, salt: int, window: float, propensity: float | None, seen: int
) -> Event:
    """Return the event of a decision; `propensity` is None where none was recorded."""
    return (seq, _DECISION, at, id, arm, salt, window, propensity or 0.0, seen)


def piece_event(seq: int, at: float, decision: int, stream: int | None, value: float, age: float) -> Event:
    """Return the event of a piece; `stream` is None for the reward."""
    return (seq, _PIECE, at, decision, -1 if stream is None else stream, value, age, 0.0, 0)


def close_event(seq: int, at: float, decision: int) -> Event:
    """Return the event of a decision that was closed."""
    return (seq, _CLOSE, at, decision, -1, 0.0, 0.0, 0.0, 0)


def add_arm_event(seq: int, at: float, arm: int, cap: float, window: float) -> Event:
    """Return the event of an arm that was added."""
    return (seq, _ADD_ARM, at, -1, arm, cap, window, 0.0, 0)


def retire_arm_event(seq: int, at: float, arm: int) -> Event:
    """Return the event of an arm that was retired."""
    return (seq, _RETIRE_ARM, at, -1, arm, 0.0, 0.0, 0.0, 0)


_decision_fields = attrgetter("seq", "at", "id", "arm", "salt", "window", "propensity", "seen")
_piece_fields = attrgetter("seq", "at", "decision", "stream", "value", "age")
seq_of: Callable[[Event], int] = itemgetter(Events._fields.index("seq"))


def events_of_rows(
    decisions: Iterable[DecisionRow],
    pieces: Iterable[PieceRow],
    changes: Iterable[ChangeRow],
    arms: Sequence[Any],
) -> list[Event]:
    """Return the events of rows, in the order of the log; `arms` are all arms, each with cap and window."""
    events = [
        *starmap(piece_event, map(_piece_fields, pieces)),
        *starmap(decision_event, map(_decision_fields, decisions)),
    ]
    for row in changes:
        if row.kind == _CLOSE:
            events.append(close_event(row.seq, row.at, row.subject))
        elif row.kind == _ADD_ARM:
            arm = arms[row.subject]
            events.append(add_arm_event(row.seq, row.at, row.subject, arm.cap, arm.window))
        else:
            events.append(retire_arm_event(row.seq, row.at, row.subject))
    events.sort()
    return events


# Events in columns.


def pack(events: Iterable[Event]) -> npt.NDArray[Any]:
    """Return events as one array, a record for each."""
    return np.array(list(events), PACKED)


def unpack(packed: npt.NDArray[Any]) -> Events:
    """Return packed events in columns."""
    wide = {"i": np.int64, "f": np.float64}
    return Events._make(packed[name].astype(wide[PACKED[name].kind]) for name in Events._fields)


def columns(events: Sequence[Event]) -> Events:
    """Return events in columns."""
    return unpack(pack(events))
