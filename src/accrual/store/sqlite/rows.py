"""The tables of a SQLite file: rows, each checked as it is read, and what follows from rows."""

from __future__ import annotations

import sqlite3
from typing import Any

from accrual.store.accept import LogLookup, NewRows, known_batch
from accrual.store.base import NUMBERS_END, Answer, Status, StoredArm, digest
from accrual.store.events import (
    ArmRow,
    ChangeRow,
    DecisionRow,
    Event,
    HeadRow,
    Kind,
    PieceRow,
    events_of_rows,
    insert_into,
    pack,
    seq_of,
)
from accrual.store.sqlite.checksums import checked_row, columns_of, damaged, fill
from accrual.store.sqlite.key_index import BATCH, CLOSING, OF_ARM, PIECE, KeyIndex, hash_of, hash_of_change

BLOCK = 4096  # events of a block, at least

ADD = {table: insert_into(table, "sum") for table in ("decision", "piece", "arm", "change", "head", "bandit")}

_PIECES = f"SELECT {columns_of('piece')} FROM piece WHERE bandit = ?"
_DECISIONS = f"SELECT {columns_of('decision')} FROM decision WHERE bandit = ?"
_CHANGES = f"SELECT {columns_of('change')} FROM change WHERE bandit = ?"
_ARMS = f"SELECT {columns_of('arm')} FROM arm NOT INDEXED WHERE bandit = ? ORDER BY number"
_RETIRED = f"SELECT subject FROM change WHERE bandit = ? AND kind = {int(Kind.RETIRE_ARM)}"
_HEAD = f"SELECT {columns_of('head')} FROM head WHERE bandit = ?"


class TableLookup(LogLookup):
    """Finds requests' decisions, keys and arms in the tables where they are not in memory.

    Parameters
    ----------
    connection : sqlite3.Connection
        In a transaction.
    bandit : int
    head : HeadRow
        Where the log ends.
    """

    def __init__(self, connection: sqlite3.Connection, bandit: int, head: HeadRow) -> None:
        super().__init__()
        self._connection = connection
        self._bandit = bandit
        self.arms = arm_rows(connection, bandit)
        self.index = KeyIndex(connection, bandit, head.seq)
        self._new: list[int] = []  # hashes of pieces' keys that were not found, in the order of the pieces

    def begin(self) -> None:
        """Forget what earlier appends found, except decisions."""
        self._new.clear()
        self.pieces.clear()
        self.batches.clear()
        self.changes.clear()

    def find_decision(self, id: int) -> tuple[float, float] | None:
        row = decision_row(self._connection, self._bandit, id)
        closed = self.find_change(Kind.CLOSE, id) is not None
        known = self.decisions[id] = (row.at, 0.0 if closed else row.window)
        return known

    def find_piece(self, decision: int, key: str) -> PieceRow | None:
        hash_ = hash_of(PIECE, decision, key)
        for seq in self.index.find(hash_, PIECE):
            row = self._connection.execute(f"{_PIECES} AND seq = ?", (self._bandit, seq)).fetchone()
            if row is None:
                raise damaged(f"event {seq} is missing")
            piece: PieceRow = checked_row("piece", row, f"event {seq}")
            if piece.decision == decision and piece.key == key:
                return piece
        self._new.append(hash_)
        return None

    def add_keys(self, rows: NewRows) -> None:
        """Add the keys of new rows to the index."""
        keyed = [row.seq for row in rows.piece if row.key is not None]
        for hash_, seq in zip(self._new, keyed, strict=True):
            self.index.add(hash_, PIECE, seq)
        for decision in rows.decision:
            if decision.key is not None and decision.part == 0:
                self.index.add(hash_of(BATCH, 0, decision.key), BATCH, decision.id)
        for change in rows.change:
            index_kind = CLOSING if change.kind == Kind.CLOSE else OF_ARM
            self.index.add(hash_of_change(change.kind, change.subject), index_kind, change.seq)

    def find_batch(self, key: str) -> Answer | None:
        for id_ in self.index.find(hash_of(BATCH, 0, key), BATCH):
            batch: list[DecisionRow] = []
            for row in self._connection.execute(f"{_DECISIONS} AND id >= ? ORDER BY id", (self._bandit, id_)):
                decision: DecisionRow = checked_row("decision", row)
                if (decision.id, decision.part, decision.key) != (id_ + len(batch), len(batch), key):
                    break
                batch.append(decision)
            if batch:
                return known_batch(batch)
            decision_row(self._connection, self._bandit, id_)  # the decision has another key, or is damaged
        return None

    def find_change(self, kind: Kind, subject: int) -> Answer | None:
        index_kind = CLOSING if kind == Kind.CLOSE else OF_ARM
        for seq in self.index.find(hash_of_change(int(kind), subject), index_kind):
            row = self._connection.execute(f"{_CHANGES} AND seq = ?", (self._bandit, seq)).fetchone()
            if row is None:
                raise damaged(f"event {seq} is missing")
            change: ChangeRow = checked_row("change", row, f"event {seq}")
            if (change.kind, change.subject) == (kind, subject):
                return Answer(Status.STORED, seq, change.at)
        return None


def head_row(connection: sqlite3.Connection, bandit: int) -> HeadRow | None:
    """Return where a bandit's log ends; None if there is no such bandit."""
    row = connection.execute(_HEAD, (bandit,)).fetchone()
    return None if row is None else checked_row("head", row, f"the head of bandit {bandit}")


def decision_row(connection: sqlite3.Connection, bandit: int, id: int) -> DecisionRow:
    """Return a decision that has been made."""
    row = connection.execute(f"{_DECISIONS} AND id = ?", (bandit, id)).fetchone()
    if row is None:
        raise damaged(f"decision {id} (table decision) is missing")
    decision: DecisionRow = checked_row("decision", row, f"decision {id}")
    return decision


def context_rows(connection: sqlite3.Connection, bandit: int, first: int, count: int) -> list[bytes | None]:
    """Return the contexts of the decisions from id `first` on, at most `count` of them."""
    end = min(first + count, NUMBERS_END - 1)
    where = (bandit, min(first, end), end)
    rows = connection.execute(f"{_DECISIONS} AND id >= ? AND id < ? ORDER BY id", where)
    return [checked_row("decision", row).context for row in rows]


def arm_rows(connection: sqlite3.Connection, bandit: int) -> list[StoredArm]:
    """Return all arms that have been added."""
    head = head_row(connection, bandit)
    retired = {subject for (subject,) in connection.execute(_RETIRED, (bandit,))}
    arms: list[StoredArm] = []
    for row in connection.execute(_ARMS, (bandit,)):
        arm: ArmRow = checked_row("arm", row, f"arm {len(arms)}")
        if arm.number == len(arms):
            arms.append(StoredArm(arm.name, arm.cap, arm.window, arm.number in retired, arm.about))
    if head is not None and len(arms) != head.arms:
        raise damaged(f"arm {len(arms)} (table arm) is missing")
    return arms


def event_rows(connection: sqlite3.Connection, bandit: int, after: int, upto: int) -> list[Event]:
    """Return the events at positions beyond `after`, up to `upto`, from the tables."""

    def rows(table: str, query: str) -> list[Any]:
        found = connection.execute(f"{query} AND seq > ? AND seq <= ? ORDER BY seq", (bandit, after, upto))
        return [checked_row(table, row) for row in found]

    arms = arm_rows(connection, bandit)
    changes: list[ChangeRow] = rows("change", _CHANGES)
    for change in changes:
        if change.kind != Kind.CLOSE and not 0 <= change.subject < len(arms):
            raise damaged(f"event {change.seq} is of arm {change.subject}, which does not exist")
    events = events_of_rows(rows("decision", _DECISIONS), rows("piece", _PIECES), changes, arms)
    for place, event in enumerate(events, after + 1):
        if seq_of(event) != place:
            raise damaged(f"event {place} is missing")
    return events


# What follows from the rows.


def add_block(connection: sqlite3.Connection, bandit: int, seq: int, events: list[Event]) -> None:
    """Store events once more as a block, which ends at position `seq`."""
    body = pack(events).tobytes()
    connection.execute(
        "INSERT INTO block VALUES (?, ?, ?, ?)", [bandit, seq, body, digest(bandit, seq, body)]
    )


def complete_file(connection: sqlite3.Connection) -> None:
    """Add what follows from the rows of a new file: their checksums, and blocks of events."""
    fill(connection)
    for bandit, last in connection.execute("SELECT bandit, seq FROM head").fetchall():
        for end in range(BLOCK, last + 1, BLOCK):
            add_block(connection, bandit, end, event_rows(connection, bandit, end - BLOCK, end))
