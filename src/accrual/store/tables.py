"""The tables of a SQLite store, row by row."""

from __future__ import annotations

import sqlite3
from itertools import starmap

from accrual.store.accept import Book, Piece
from accrual.store.base import Answer, ArmRow, Kind, Status
from accrual.store.columns import Event, change

ADD_DECISION = (
    'INSERT INTO decision (bandit, id, seq, arm, at, "window", seen, key, part, salt) '
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
ADD_PIECE = (
    "INSERT INTO piece (bandit, seq, decision, key, value, age, stated, at, late) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
ADD_ARM = 'INSERT INTO arm (bandit, number, name, cap, "window") VALUES (?, ?, ?, ?, ?)'
ADD_CHANGE = "INSERT INTO change (bandit, seq, kind, subject, at) VALUES (?, ?, ?, ?, ?)"

_DECISION = """
    SELECT at, CASE WHEN EXISTS (SELECT 1 FROM change WHERE bandit = ?1 AND kind = 2 AND subject = ?2)
    THEN 0.0 ELSE "window" END FROM decision WHERE bandit = ?1 AND id = ?2
"""
_PIECE = """
    SELECT seq, decision, key, value, age, stated, at, late
    FROM piece WHERE bandit = ? AND decision = ? AND key = ?
"""
_BATCH = "SELECT seq, at, id, arm FROM decision WHERE bandit = ? AND key = ? ORDER BY part"
_CHANGE = "SELECT seq, at FROM change WHERE bandit = ? AND kind = ? AND subject = ?"
_ARMS = """
    SELECT name, cap, "window", EXISTS (
        SELECT 1 FROM change WHERE change.bandit = arm.bandit AND kind = 4 AND subject = number
    ) FROM arm WHERE bandit = ? ORDER BY number
"""


class TableBook(Book):
    """Looks up in the tables what it does not remember."""

    def __init__(self, connection: sqlite3.Connection, bandit: int) -> None:
        super().__init__()
        self._connection = connection
        self._bandit = bandit
        self._doubtful = True
        self.arms = arm_rows(connection, bandit)

    def begin(self, doubtful: bool) -> None:
        """Remember nothing of earlier appends but decisions; look for pieces if `doubtful`."""
        self._doubtful = doubtful
        self.pieces.clear()
        self.batches.clear()
        self.changes.clear()

    def forget(self) -> None:
        """Some of what is remembered did not come to pass."""
        self.decisions.clear()
        self.arms = arm_rows(self._connection, self._bandit)

    def find_decision(self, id: int) -> tuple[float, float] | None:
        found = self._connection.execute(_DECISION, (self._bandit, id)).fetchone()
        if found is not None:
            self.decisions[id] = found
        return found  # type: ignore[no-any-return]

    def find_piece(self, decision: int, key: str) -> Piece | None:
        if not self._doubtful:
            return None
        found = self._connection.execute(_PIECE, (self._bandit, decision, key)).fetchone()
        return None if found is None else Piece._make(found)

    def find_batch(self, key: str) -> Answer | None:
        found = self._connection.execute(_BATCH, (self._bandit, key)).fetchall()
        if not found:
            return None
        seq, at, first, _ = found[0]
        return Answer(Status.STORED, seq, at, first, tuple(arm for _, _, _, arm in found))

    def find_change(self, kind: Kind, subject: int) -> Answer | None:
        found = self._connection.execute(_CHANGE, (self._bandit, int(kind), subject)).fetchone()
        return None if found is None else Answer(Status.STORED, *found)


def arm_rows(connection: sqlite3.Connection, bandit: int) -> list[ArmRow]:
    """All arms that there have been."""
    return [
        ArmRow(name, cap, window, bool(retired))
        for name, cap, window, retired in connection.execute(_ARMS, (bandit,))
    ]


def event_rows(connection: sqlite3.Connection, bandit: int, after: int, upto: int) -> list[Event]:
    """The events at positions beyond `after`, up to `upto`."""
    where = (bandit, after, upto)
    events: list[Event] = connection.execute(
        "SELECT seq, 1, at, decision, -1, value, age FROM piece "
        "WHERE bandit = ? AND seq > ? AND seq <= ? ORDER BY seq",
        where,
    ).fetchall()
    events += connection.execute(
        'SELECT seq, 0, at, id, arm, salt, "window" FROM decision WHERE bandit = ? AND seq > ? AND seq <= ?',
        where,
    )
    arms = arm_rows(connection, bandit)
    events += starmap(
        lambda seq, kind, subject, at: change(seq, kind, subject, at, arms),
        connection.execute(
            "SELECT seq, kind, subject, at FROM change WHERE bandit = ? AND seq > ? AND seq <= ?", where
        ),
    )
    events.sort()
    return events
