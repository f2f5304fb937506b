"""A store in a SQLite file: one process writes, others may read.

Every append is one transaction, synced to the disk before it returns (WAL, synchronous=FULL). The tables are
the truth, and their UNIQUE indexes find the keys. Events are stored once more in blocks, some thousands in a
row of the table `block`, because reading them one row at a time would take most of a refold. All that is
read is checked: pages by SQLite (`accrual.store.sqlite.file`), and each block by its digest.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import apsw
import numpy as np

from accrual.core.errors import InputError
from accrual.store.accept import Acceptance, LogLookup, NewRows, known_batch
from accrual.store.base import (
    NUMBERS_END,
    AddArm,
    Answer,
    Answers,
    BanditRow,
    Requests,
    Status,
    StoreDamaged,
    StoredArm,
    StoreError,
    StoreRequest,
    amended,
    checked_snapshot,
    digest,
    may_be_erased,
    wait_for_events,
)
from accrual.store.events import (
    ArmRow,
    BanditTableRow,
    ChangeRow,
    DecisionRow,
    Event,
    Events,
    HeadRow,
    Kind,
    PieceRow,
    events_of_rows,
    insert_into,
    pack,
    quoted,
    unpack,
)
from accrual.store.sqlite.file import SQLiteFile

BLOCK = 4096  # events of a block, at least
_DECISIONS_MOST = 80_000  # that are remembered; others are looked up
_POLL = 0.01

_SAVE = """
INSERT INTO snapshot (bandit, form, seq, body, digest) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (bandit, form) DO UPDATE SET seq = excluded.seq, body = excluded.body, digest = excluded.digest
"""
_BANDITS = f"SELECT {quoted(BanditTableRow._fields)} FROM bandit"
_HEADS = f"SELECT {quoted(HeadRow._fields)} FROM head"
_SET_HEAD = f"UPDATE head SET {', '.join(f'{name} = ?' for name in HeadRow._fields)} WHERE bandit = ?"
_ARMS = f"SELECT {quoted(ArmRow._fields)} FROM arm WHERE bandit = ? ORDER BY number"
_RETIRED = f"SELECT subject FROM change WHERE bandit = ? AND kind = {int(Kind.RETIRE_ARM)}"
_DECISIONS = f"SELECT {quoted(DecisionRow._fields)} FROM decision WHERE bandit = ?"
_PIECES = f"SELECT {quoted(PieceRow._fields)} FROM piece WHERE bandit = ?"
_CHANGES = f"SELECT {quoted(ChangeRow._fields)} FROM change WHERE bandit = ?"
_FIND_PIECE = f"{_PIECES} AND decision = ? AND key = ?"
_FIND_BATCH = f"{_DECISIONS} AND key = ? ORDER BY part"
_FIND_CHANGE = f"{_CHANGES} AND kind = ? AND subject = ?"
_ADD = {table: insert_into(table) for table in NewRows._fields}
_OF_BANDIT = ("head", "arm", "decision", "piece", "change", "snapshot", "block")


class TableLookup(LogLookup):
    """Finds requests' decisions, keys and arms in the tables where they are not in memory.

    Parameters
    ----------
    connection : apsw.Connection
        In a transaction.
    """

    def __init__(self, connection: apsw.Connection, bandit: int) -> None:
        super().__init__()
        self._connection = connection
        self._bandit = bandit
        self.arms = arm_rows(connection, bandit)

    def begin(self) -> None:
        """Forget what earlier appends found, except decisions."""
        self.pieces.clear()
        self.batches.clear()
        self.changes.clear()

    def find_decision(self, id: int) -> tuple[float, float] | None:
        row = decision_row(self._connection, self._bandit, id)
        if row is None:
            raise StoreDamaged(f"damaged: decision {id} is missing")
        closed = self.find_change(Kind.CLOSE, id) is not None
        known = self.decisions[id] = (row.at, 0.0 if closed else row.window)
        return known

    def find_piece(self, decision: int, key: str) -> PieceRow | None:
        row = self._connection.execute(_FIND_PIECE, (self._bandit, decision, key)).fetchone()
        return None if row is None else PieceRow._make(row)

    def find_batch(self, key: str) -> Answer | None:
        rows = self._connection.execute(_FIND_BATCH, (self._bandit, key))
        batch = [DecisionRow._make(row) for row in rows]
        return known_batch(batch) if batch else None

    def find_change(self, kind: Kind, subject: int) -> Answer | None:
        row = self._connection.execute(_FIND_CHANGE, (self._bandit, int(kind), subject)).fetchone()
        if row is None:
            return None
        change = ChangeRow._make(row)
        return Answer(Status.STORED, change.seq, change.at)


class _WriterLog:
    """What the writer remembers about a bandit's log, until a transaction fails."""

    def __init__(self, connection: apsw.Connection, bandit: int) -> None:
        row = bandit_row(connection, bandit)
        head = head_row(connection, bandit)
        if row is None or head is None:
            raise InputError(f"no bandit has the number {bandit}")
        self.rounds = bool(row.rounds)
        self.head = head
        self.lookup = TableLookup(connection, bandit)
        blocks = connection.execute("SELECT max(seq) FROM block WHERE bandit = ?", (bandit,)).get or 0
        self.tail: list[Event] = event_rows(connection, bandit, blocks, self.head.seq)  # in no block yet


class SQLiteStore:
    """A store in a file.

    Parameters
    ----------
    path : str
        Made if there is none.
    readonly : bool
        Read what another process may be writing.

    Examples
    --------
    >>> import tempfile
    >>> from accrual.store.base import NewDecisions, NewPiece
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = SQLiteStore(f"{folder}/plays.db")
    ...     plays = store.create("plays", {}, [AddArm("jazz", 1.0, 80.0)], rounds=True, now=0.0)
    ...     requests = [NewDecisions((0,), (80.0,)), NewPiece(0, 0.7, age=0.0)]
    ...     _, answer = store.append(plays.number, requests, now=0.0)
    ...     store.close()
    >>> answer.seq, answer.late
    (3, False)
    """

    shared = False

    def __init__(self, path: str, readonly: bool = False) -> None:
        self._logs: dict[int, _WriterLog] = {}
        self._ends: dict[int, tuple[Any, ...]] = {}  # by bandit: the head rows that this writer may find
        self._file = SQLiteFile(path, readonly, self._logs.clear)
        if self._file.writer is not None:
            with self._file.opening():
                self._ends = {head.bandit: (head,) for head in head_rows(self._file.writer)}

    def create(self, name: str, config: Mapping[str, Any], arms: Sequence[AddArm], rounds: bool,
               now: float, history: Sequence[Requests] = ()) -> BanditRow:  # fmt: skip
        with self._file.transaction() as connection:
            if _find(connection, name) is not None:
                raise InputError(f"there is a bandit {name!r} already")
            connection.execute(
                "INSERT INTO bandit (name, config, rounds) VALUES (?, ?, ?)",
                (name, json.dumps(dict(config)), rounds),
            )
            number = connection.last_insert_rowid()
            head = HeadRow(bandit=number, seq=0, at=0.0 if rounds else now + 0.0, decisions=0, arms=0)
            connection.execute(insert_into("head"), head)
            self._ends[number] = (head,)
            for part in (Requests(arms, now), *history):
                self._append(connection, number, *part)
            seq = self._logs[number].head.seq
        self._file.acknowledge(number, seq)
        return BanditRow(number, name, dict(config), rounds)

    def find(self, name: str) -> BanditRow | None:
        return self._file.read(lambda connection: _find(connection, name))

    def names(self) -> list[str]:
        return self._file.read(_names)

    def amend(self, bandit: int, changes: Mapping[str, Any]) -> BanditRow:
        with self._file.transaction() as connection:
            row = bandit_row(connection, bandit)
            if row is None:
                raise InputError(f"no bandit has the number {bandit}")
            config = amended(json.loads(row.config), changes)
            connection.execute("UPDATE bandit SET config = ? WHERE number = ?", (json.dumps(config), bandit))
        self._file.checkpoint()  # no note tells that it was lost
        return BanditRow(bandit, row.name, config, bool(row.rounds))

    def erase(self, bandit: int, now: float) -> bool:
        with self._file.transaction() as connection:
            row = bandit_row(connection, bandit)
            if row is None or not may_be_erased(json.loads(row.config), now):
                return False
            connection.execute("PRAGMA secure_delete = ON")  # zeros in place of what was there
            for table in _OF_BANDIT:
                connection.execute(f"DELETE FROM {table} WHERE bandit = ?", (bandit,))
            connection.execute("DELETE FROM bandit WHERE number = ?", (bandit,))
            connection.execute("PRAGMA secure_delete = OFF")
            self._logs.pop(bandit, None)
            self._ends.pop(bandit, None)
        self._file.checkpoint("TRUNCATE")  # the write-ahead log still has the events
        return True

    def append(self, bandit: int, requests: Sequence[StoreRequest], now: float, skew: float = 0.0) -> Answers:
        with self._file.transaction() as connection:
            answers = self._append(connection, bandit, requests, now, skew)
            seq = self._logs[bandit].head.seq
        self._file.acknowledge(bandit, seq)
        return answers

    def _append(
        self,
        connection: apsw.Connection,
        bandit: int,
        requests: Sequence[StoreRequest],
        now: float,
        skew: float,
    ) -> Answers:
        end = connection.execute(f"{_HEADS} WHERE bandit = ?", (bandit,)).fetchone()
        if end not in self._ends.get(bandit, (None,)):
            raise StoreError(
                "another process has written to it, and only one may; stop both, then start one again"
            )
        log = self._log(connection, bandit)
        lookup = log.lookup
        acceptance = Acceptance(lookup, log.head, log.rounds)
        acceptance.begin(now, skew)
        lookup.begin()
        answers = acceptance.accept(requests)
        rows, head = acceptance.rows, acceptance.head
        if head.seq == log.head.seq:
            return answers
        for table, new in rows._asdict().items():
            if new:
                connection.executemany(_ADD[table], new)
        log.head = head
        connection.execute(_SET_HEAD, (*head, bandit))
        self._ends[bandit] = (end, head)  # the transaction may still fail
        log.tail += answers.events
        if len(log.tail) >= BLOCK:
            add_block(connection, bandit, head.seq, log.tail)
            log.tail = []
        if len(lookup.decisions) > _DECISIONS_MOST:
            recent = islice(lookup.decisions.items(), len(lookup.decisions) // 2, None)
            lookup.decisions = dict(recent)
        return answers

    def _log(self, connection: apsw.Connection, bandit: int) -> _WriterLog:
        log = self._logs.get(bandit)
        if log is None:
            log = self._logs[bandit] = _WriterLog(connection, bandit)
        return log

    def read(self, bandit: int, after: int, limit: int) -> Events:
        return self._file.read(lambda connection: _events(connection, bandit, after, limit))

    def head(self, bandit: int) -> int:
        return self._file.read(lambda connection: _head(connection, bandit))

    def arms(self, bandit: int) -> list[StoredArm]:
        return self._file.read(lambda connection: arm_rows(connection, bandit))

    def decision(self, bandit: int, id: int) -> DecisionRow | None:
        if not 0 <= id < NUMBERS_END:
            return None
        return self._file.read(lambda connection: decision_row(connection, bandit, id))

    def contexts(self, bandit: int, first: int, count: int) -> list[bytes | None]:
        end = min(first + count, NUMBERS_END - 1)
        query = "SELECT context FROM decision WHERE bandit = ? AND id >= ? AND id < ? ORDER BY id"
        rows: list[Any] = self._file.read(
            lambda found: found.execute(query, (bandit, min(first, end), end)).fetchall()
        )
        return [context for (context,) in rows]

    def used_keys(self, bandit: int, keys: Sequence[str]) -> set[str]:
        query = "SELECT 1 FROM decision WHERE bandit = ? AND key = ?"
        return self._file.read(
            lambda found: {key for key in keys if found.execute(query, (bandit, key)).fetchone()}
        )

    def wait(self, positions: Mapping[int, int], timeout: float) -> dict[int, int]:
        return wait_for_events(self.head, positions, timeout, _POLL)

    def save_snapshot(self, bandit: int, seq: int, form: str, body: bytes) -> None:
        sum_ = digest(bandit, seq, form.encode() + body)
        with self._file.transaction() as connection:
            connection.execute(_SAVE, (bandit, form, seq, body, sum_))

    def load_snapshot(self, bandit: int, form: str) -> tuple[int, bytes] | None:
        found = self._file.read(lambda connection: connection.execute(
            "SELECT seq, body, digest FROM snapshot WHERE bandit = ? AND form = ?", (bandit, form)
        ).fetchone())  # fmt: skip
        return None if found is None else checked_snapshot(bandit, form, found)

    def clock(self) -> float:
        """Return this machine's time."""
        return time.time()

    def probe(self) -> None:
        with self._file.transaction() as connection:
            for change in ("version_num || '!'", "rtrim(version_num, '!')"):
                connection.execute(f"UPDATE accrual_version SET version_num = {change}")

    def close(self) -> None:
        """Close the connections to the file, and let other processes write to it."""
        self._file.close()


def _find(connection: apsw.Connection, name: str) -> BanditRow | None:
    row = connection.execute(f"{_BANDITS} WHERE name = ?", (name,)).fetchone()
    if row is None:
        return None
    found = BanditTableRow._make(row)
    return BanditRow(found.number, name, json.loads(found.config), bool(found.rounds))


def bandit_row(connection: apsw.Connection, number: int) -> BanditTableRow | None:
    row = connection.execute(f"{_BANDITS} WHERE number = ?", (number,)).fetchone()
    return None if row is None else BanditTableRow._make(row)


def _names(connection: apsw.Connection) -> list[str]:
    return [name for (name,) in connection.execute("SELECT name FROM bandit ORDER BY number")]


def head_rows(connection: apsw.Connection) -> list[HeadRow]:
    """Return where the log of each bandit ends."""
    return [HeadRow._make(row) for row in connection.execute(_HEADS)]


def head_row(connection: apsw.Connection, bandit: int) -> HeadRow | None:
    """Return where a bandit's log ends; None if there is no such bandit."""
    row = connection.execute(f"{_HEADS} WHERE bandit = ?", (bandit,)).fetchone()
    return None if row is None else HeadRow._make(row)


def _head(connection: apsw.Connection, bandit: int) -> int:
    head = head_row(connection, bandit)
    return 0 if head is None else head.seq


def decision_row(connection: apsw.Connection, bandit: int, id: int) -> DecisionRow | None:
    row = connection.execute(f"{_DECISIONS} AND id = ?", (bandit, id)).fetchone()
    return None if row is None else DecisionRow._make(row)


def arm_rows(connection: apsw.Connection, bandit: int) -> list[StoredArm]:
    """Return all arms that have been added."""
    retired = {subject for (subject,) in connection.execute(_RETIRED, (bandit,))}
    arms = map(ArmRow._make, connection.execute(_ARMS, (bandit,)))
    return [StoredArm(arm.name, arm.cap, arm.window, arm.number in retired, arm.about) for arm in arms]


# Events.


def event_rows(connection: apsw.Connection, bandit: int, after: int, upto: int) -> list[Event]:
    """Return the events at positions beyond `after`, up to `upto`, from the tables."""
    between = "AND seq > ? AND seq <= ? ORDER BY seq"
    where = (bandit, after, upto)
    events = events_of_rows(
        map(DecisionRow._make, connection.execute(f"{_DECISIONS} {between}", where)),
        map(PieceRow._make, connection.execute(f"{_PIECES} {between}", where)),
        map(ChangeRow._make, connection.execute(f"{_CHANGES} {between}", where)),
        arm_rows(connection, bandit),
    )
    for place, event in enumerate(events, after + 1):
        if event.seq != place:
            raise StoreDamaged(f"damaged: event {place} is missing")
    return events


def add_block(connection: apsw.Connection, bandit: int, seq: int, events: list[Event]) -> None:
    """Store events once more as a block, which ends at position `seq`."""
    body = pack(events)
    connection.execute(
        "INSERT INTO block VALUES (?, ?, ?, ?)", (bandit, seq, body, digest(bandit, seq, body))
    )


def _events(connection: apsw.Connection, bandit: int, after: int, limit: int) -> Events:
    upto = min(after + limit, _head(connection, bandit))  # positions have no gaps here
    after = min(after, upto)
    parts, last = [], after
    for seq, body, was in connection.execute(
        "SELECT seq, body, digest FROM block WHERE bandit = ? AND seq > ? ORDER BY seq", (bandit, after)
    ):
        if digest(bandit, seq, body) != was:
            raise StoreDamaged(f"damaged: the block of events up to {seq}; restore a backup")
        parts.append(body)
        last = seq
        if last >= upto:
            break
    if last < upto:
        parts.append(pack(event_rows(connection, bandit, last, upto)))
    events = unpack(*parts or [b""])
    inside = slice(*np.searchsorted(events.seq, [after + 1, upto + 1]))
    found = Events._make(column[inside] for column in events)
    if not np.array_equal(found.seq, np.arange(after + 1, upto + 1)):
        raise StoreDamaged(f"damaged: an event between {after + 1} and {upto} is missing")
    return found
