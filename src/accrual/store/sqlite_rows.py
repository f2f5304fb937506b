"""The tables of a SQLite store, row by row, each row checked as it is read."""

from __future__ import annotations

import sqlite3

from accrual.store.accept import Book, Head, Piece, Rows
from accrual.store.base import Answer, ArmRow, DecisionRow, Kind, Status
from accrual.store.checksums import SUMS, columns_of, damaged, sound
from accrual.store.event_schema import Event, change
from accrual.store.key_index import BATCH, CLOSING, OF_ARM, PIECE, KeyIndex, hash_of, hash_of_change


def _insert(table: str) -> str:
    marks = ", ".join("?" * (len(SUMS[table][1]) + 1))
    return f"INSERT INTO {table} ({columns_of(table)}) VALUES ({marks})"


ADD = {table: _insert(table) for table in ("decision", "piece", "arm", "change")}

_PIECES = f"SELECT {columns_of('piece')} FROM piece WHERE bandit = ?"
_DECISIONS = f"SELECT {columns_of('decision')} FROM decision WHERE bandit = ?"
_CHANGES = f"SELECT {columns_of('change')} FROM change WHERE bandit = ?"
_ARMS = f"SELECT {columns_of('arm')} FROM arm NOT INDEXED WHERE bandit = ? ORDER BY number"
_RETIRED = "SELECT subject FROM change WHERE bandit = ? AND kind = 4"
_HEAD = f"SELECT {columns_of('head')} FROM head WHERE bandit = ?"
_BETWEEN = " AND seq > ? AND seq <= ?"

_PIECE, _DECISION = int(Kind.PIECE), int(Kind.DECISION)


class TableBook(Book):
    """Looks up in the tables what it does not remember.

    Parameters
    ----------
    connection : sqlite3.Connection
        In a transaction.
    bandit : int
    head : Head
        Where the log ends.
    """

    def __init__(self, connection: sqlite3.Connection, bandit: int, head: Head) -> None:
        super().__init__()
        self._connection = connection
        self._bandit = bandit
        self.arms = arm_rows(connection, bandit)
        self.index = KeyIndex(connection, bandit, head.seq)
        self._new: list[
            int
        ] = []  # the hashes of pieces' keys that were not found, in the order of the pieces

    def begin(self) -> None:
        """Remember nothing of earlier appends but decisions."""
        self._new.clear()
        self.pieces.clear()
        self.batches.clear()
        self.changes.clear()

    def find_decision(self, id: int) -> tuple[float, float] | None:
        row = decision_row(self._connection, self._bandit, id)
        closed = self.find_change(Kind.CLOSE, id) is not None
        found = self.decisions[id] = (row.at, 0.0 if closed else row.window)
        return found

    def find_piece(self, decision: int, key: str) -> Piece | None:
        hash_ = hash_of(PIECE, decision, key)
        for seq in self.index.find(hash_, PIECE):
            row = self._connection.execute(f"{_PIECES} AND seq = ?", (self._bandit, seq)).fetchone()
            if row is None:
                raise damaged(f"event {seq} is missing")
            found = Piece._make(sound("piece", row, f"event {seq}")[1:])
            if found.decision == decision and found.key == key:
                return found
        self._new.append(hash_)
        return None

    def keep_keys(self, rows: Rows) -> None:
        """Take the keys of what is kept into the index."""
        keyed = [seq for seq, _, key, *_ in rows.pieces if key is not None]
        for hash_, seq in zip(self._new, keyed, strict=True):
            self.index.add(hash_, PIECE, seq)
        for id_, _, _, _, _, _, key, part, _ in rows.decisions:
            if key is not None and part == 0:
                self.index.add(hash_of(BATCH, 0, key), BATCH, id_)
        for seq, kind, subject, _ in rows.changes:
            index_kind = CLOSING if kind == Kind.CLOSE else OF_ARM
            self.index.add(hash_of_change(kind, subject), index_kind, seq)

    def find_batch(self, key: str) -> Answer | None:
        for id_ in self.index.find(hash_of(BATCH, 0, key), BATCH):
            seq, at = 0, 0.0
            arms: list[int] = []
            for row in self._connection.execute(f"{_DECISIONS} AND id >= ? ORDER BY id", (self._bandit, id_)):
                _, number, where, arm, made, _, _, own, part, _ = sound("decision", row, f"decision {row[1]}")
                if (number, part) != (id_ + len(arms), len(arms)) or own != key:
                    break
                if not arms:
                    seq, at = where, made
                arms.append(arm)
            if arms:
                return Answer(Status.STORED, seq, at, id_, tuple(arms))
            decision_row(self._connection, self._bandit, id_)  # it is of another key; or damaged
        return None

    def find_change(self, kind: Kind, subject: int) -> Answer | None:
        index_kind = CLOSING if kind == Kind.CLOSE else OF_ARM
        for seq in self.index.find(hash_of_change(int(kind), subject), index_kind):
            row = self._connection.execute(f"{_CHANGES} AND seq = ?", (self._bandit, seq)).fetchone()
            if row is None:
                raise damaged(f"event {seq} is missing")
            _, _, kind_, subject_, at = sound("change", row, f"event {seq}")
            if (kind_, subject_) == (kind, subject):
                return Answer(Status.STORED, seq, at)
        return None


def head_row(connection: sqlite3.Connection, bandit: int) -> tuple[Head, int] | None:
    """Where a bandit's log ends, and how many arms it has had; None if there is no such bandit."""
    row = connection.execute(_HEAD, (bandit,)).fetchone()
    if row is None:
        return None
    _, seq, at, decisions, arms = sound("head", row, f"the head of bandit {bandit}")
    return Head(seq, at, decisions), arms


def decision_row(connection: sqlite3.Connection, bandit: int, id: int) -> DecisionRow:
    """A decision that has been made."""
    row = connection.execute(f"{_DECISIONS} AND id = ?", (bandit, id)).fetchone()
    if row is None:
        raise damaged(f"decision {id} (table decision) is missing")
    _, _, seq, arm, at, window, seen, _, _, salt = sound("decision", row, f"decision {id}")
    return DecisionRow(id, seq, arm, at, window, seen, salt)


def arm_rows(connection: sqlite3.Connection, bandit: int) -> list[ArmRow]:
    """All arms that there have been."""
    head = head_row(connection, bandit)
    retired = {subject for (subject,) in connection.execute(_RETIRED, (bandit,))}
    found: list[ArmRow] = []
    for row in connection.execute(_ARMS, (bandit,)):
        _, number, name, cap, window = sound("arm", row, f"arm {len(found)}")
        if number == len(found):
            found.append(ArmRow(name, cap, window, number in retired))
    if head is not None and len(found) != head[1]:
        raise damaged(f"arm {len(found)} (table arm) is missing")
    return found


def event_rows(connection: sqlite3.Connection, bandit: int, after: int, upto: int) -> list[Event]:
    """The events at positions beyond `after`, up to `upto`."""
    where = (bandit, after, upto)
    events: list[Event] = []
    for row in connection.execute(f"{_PIECES}{_BETWEEN} ORDER BY seq", where):
        _, seq, decision, _, value, age, _, at, _ = sound("piece", row, f"event {row[1]}")
        events.append((seq, _PIECE, at, decision, -1, value, age))
    for row in connection.execute(f"{_DECISIONS}{_BETWEEN}", where):
        _, id_, seq, arm, at, window, _, _, _, salt = sound("decision", row, f"event {row[2]}")
        events.append((seq, _DECISION, at, id_, arm, float(salt), window))
    arms = arm_rows(connection, bandit)
    for row in connection.execute(f"{_CHANGES}{_BETWEEN}", where):
        _, seq, kind, subject, at = sound("change", row, f"event {row[1]}")
        if kind != Kind.CLOSE and not 0 <= subject < len(arms):
            raise damaged(f"event {seq} is of arm {subject}, which there is not")
        events.append(change(seq, kind, subject, at, arms))
    events.sort()
    for place, event in enumerate(events, after + 1):
        if event[0] != place:
            raise damaged(f"event {place} is missing")
    return events
