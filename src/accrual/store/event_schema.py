"""Events as rows and as columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from accrual.store.accept import Rows
from accrual.store.base import ArmRow, Events, Kind

Event = tuple[int, int, float, int, int, float, float]  # as the columns of `Events`

# How a block of events is kept: without gaps, in one byte order.
PACKED = np.dtype(
    [
        ("seq", "<i8"),
        ("kind", "<i1"),
        ("at", "<f8"),
        ("decision", "<i8"),
        ("arm", "<i4"),
        ("value", "<f8"),
        ("age", "<f8"),
    ]
)

_DECISION, _PIECE = int(Kind.DECISION), int(Kind.PIECE)


def merged(rows: Rows, arms: Sequence[ArmRow]) -> list[Event]:
    """What an acceptance keeps, as events in order; `arms` are all there are."""
    events: list[Event] = [
        (seq, _PIECE, at, decision, -1, value, age) for seq, decision, _, value, age, _, at, _ in rows.pieces
    ]
    if rows.decisions or rows.changes:
        events += [
            (seq, _DECISION, at, id_, arm, float(salt), window)
            for id_, seq, arm, at, window, _, _, _, salt in rows.decisions
        ]
        events += [change(seq, kind, subject, at, arms) for seq, kind, subject, at in rows.changes]
        events.sort()
    return events


def change(seq: int, kind: int, subject: int, at: float, arms: Sequence[ArmRow]) -> Event:
    """A closing, or an arm that comes or goes, as an event."""
    if kind == Kind.CLOSE:
        return (seq, kind, at, subject, -1, 0.0, 0.0)
    if kind == Kind.ADD_ARM:
        return (seq, kind, at, -1, subject, arms[subject].cap, arms[subject].window)
    return (seq, kind, at, -1, subject, 0.0, 0.0)


def pack(events: Iterable[Event]) -> npt.NDArray[Any]:
    """Events as one array, a record for each."""
    return np.array(list(events), PACKED)


def unpack(packed: npt.NDArray[Any]) -> Events:
    """Events in columns."""
    return Events(
        seq=packed["seq"].astype(np.int64),
        kind=packed["kind"].astype(np.int64),
        at=packed["at"].astype(np.float64),
        decision=packed["decision"].astype(np.int64),
        arm=packed["arm"].astype(np.int64),
        value=packed["value"].astype(np.float64),
        age=packed["age"].astype(np.float64),
    )


def columns(events: Sequence[Event]) -> Events:
    """Events in columns."""
    return unpack(pack(events))
