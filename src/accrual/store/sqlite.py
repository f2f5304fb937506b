"""Decisions and pieces in a SQLite file: one process writes, others may read.

Every append is one transaction, synced to the disk before it returns (WAL, synchronous=FULL). The
tables are the truth. Beside them, events are kept once more in blocks, some thousands in a row of
the table `block`, because reading them one row at a time would take most of a refold.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from accrual.core.errors import InputError
from accrual.store import schema
from accrual.store.accept import Acceptance, Head
from accrual.store.address import Address
from accrual.store.base import (
    AddArm,
    Answer,
    ArmRow,
    BanditRow,
    Closed,
    DecisionRow,
    Events,
    Item,
    StoreError,
)
from accrual.store.columns import PACKED, Event, merged, pack, unpack
from accrual.store.lock import FileLock
from accrual.store.tables import ADD_ARM, ADD_CHANGE, ADD_DECISION, ADD_PIECE, TableBook, arm_rows, event_rows

_BLOCK = 4096  # events, at least
_DECISIONS_MOST = 80_000  # remembered; others are looked up
_CACHE = 65_536  # KiB: random keys fall all over their index, and most would be read again with 2 MiB
_CHECKPOINT = 4_000  # pages of the write-ahead log: for the same reason, a page is in it many times over
_POLL = 0.01
_T = TypeVar("_T")

_SAVE = """
INSERT INTO snapshot (bandit, form, seq, body) VALUES (?, ?, ?, ?)
ON CONFLICT (bandit, form) DO UPDATE SET seq = excluded.seq, body = excluded.body
WHERE length(excluded.body) > 0
"""


class _Log:
    """What the writer remembers of a bandit's log. Forgotten whenever a transaction fails."""

    def __init__(self, connection: sqlite3.Connection, bandit: int) -> None:
        row = connection.execute(
            "SELECT rounds, seq, at, decisions FROM bandit JOIN head ON bandit = number WHERE number = ?",
            [bandit],
        ).fetchone()
        if row is None:
            raise InputError(f"no bandit has the number {bandit}")
        self.rounds = bool(row[0])
        self.head = Head(*row[1:])
        self.book = TableBook(connection, bandit)
        (blocks,) = connection.execute(
            "SELECT coalesce(max(seq), 0) FROM block WHERE bandit = ?", [bandit]
        ).fetchone()
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
    >>> from accrual.store.base import Choose, Pay
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = SQLiteStore(f"{folder}/plays.db")
    ...     plays = store.create("plays", {}, [AddArm("jazz", 1.0, 80.0)], rounds=True, now=0.0)
    ...     _, answer = store.append(plays.number, [Choose((0,), (80.0,)), Pay(0, 0.7, age=0.0)], now=0.0)
    ...     store.close()
    >>> answer.seq, answer.late
    (3, False)
    """

    shared = False

    def __init__(self, path: str, readonly: bool = False) -> None:
        self.address = Address("sqlite", os.fspath(path))
        self._logs: dict[int, _Log] = {}
        self._writing, self._reading = threading.Lock(), threading.Lock()
        self._lock: FileLock | None = None
        self._writer: sqlite3.Connection | None = None
        self._closed = False
        if readonly:
            schema.check(schema.current(str(self.address)), self.address)
        else:
            self._lock = FileLock(
                f"{path}.lock",
                f"{self.address} is open for writing already; one store at a time may have it so",
            )
        try:
            if self._lock is not None:
                self._settle()
                self._prepare()
                self._writer = self._connect_durably()
            self._reader = self._connect("ro")
        except BaseException:
            self.close()
            raise

    def _settle(self) -> None:
        """Write the write-ahead log again, as it is.

        After a sync that failed, the system may show what was written and yet never put it on the disk.
        SQLite would take it for committed and write on behind it.
        """
        try:
            with open(f"{self.address.place}-wal", "r+b") as log:
                body = log.read()
                log.seek(0)
                log.write(body)
                log.flush()
                os.fsync(log.fileno())
        except FileNotFoundError:
            pass
        except OSError as error:
            raise StoreError(f"{self.address} cannot be written: {error.strerror}") from error

    def _prepare(self) -> None:
        """A new file gets its tables; an old one must have those that are needed."""
        with closing(self._connect("rwc")) as connection:
            found = schema.sqlite_version(connection, self.address)
            (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables:
            schema.check(found, self.address)
        else:
            schema.upgrade(str(self.address))

    def _connect(self, mode: str) -> sqlite3.Connection:
        return schema.connect_sqlite(self.address, mode)

    def _connect_durably(self) -> sqlite3.Connection:
        """A connection that syncs what it commits. A backup, for one, has no write-ahead log yet."""
        connection = self._connect("rw")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA cache_size = {-_CACHE}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT}")
        return connection

    def create(self, name: str, config: Mapping[str, Any], arms: Sequence[AddArm], rounds: bool,
               now: float) -> BanditRow:  # fmt: skip
        with self._transaction() as connection:
            if _find(connection, name) is not None:
                raise InputError(f"there is a bandit {name!r} already")
            number = connection.execute(
                "INSERT INTO bandit (name, config, rounds) VALUES (?, ?, ?)",
                [name, json.dumps(dict(config)), rounds],
            ).lastrowid
            assert number is not None
            connection.execute("INSERT INTO head VALUES (?, 0, 0.0, 0, 0)", [number])
            self._append(connection, number, arms, now, 0.0)
            return BanditRow(number, name, dict(config), rounds)

    def find(self, name: str) -> BanditRow | None:
        return self._read(lambda connection: _find(connection, name))

    def names(self) -> list[str]:
        return self._read(lambda connection: [
            name for (name,) in connection.execute("SELECT name FROM bandit ORDER BY number")
        ])  # fmt: skip

    def append(self, bandit: int, items: Sequence[Item], now: float, skew: float = 0.0) -> list[Answer]:
        with self._transaction() as connection:
            return self._append(connection, bandit, items, now, skew)

    def _append(
        self, connection: sqlite3.Connection, bandit: int, items: Sequence[Item], now: float, skew: float
    ) -> list[Answer]:
        log = self._logs.get(bandit)
        if log is None:
            log = self._logs[bandit] = _Log(connection, bandit)
        book = log.book
        # Most pieces are new. So first none is looked up; where a key turns out to be taken, after all
        # (the unique index says so), this starts again and looks for each.
        for doubtful in (False, True):
            taking = Acceptance(book, log.head, log.rounds)
            taking.begin(now, skew)
            book.begin(doubtful)
            answers = taking.accept(items)
            rows = taking.rows
            try:
                connection.executemany(ADD_PIECE, [(bandit, *row) for row in rows.pieces])
                break
            except sqlite3.IntegrityError:
                if doubtful:
                    raise
                connection.execute("ROLLBACK")
                connection.execute("BEGIN IMMEDIATE")
                book.forget()
        for add, new in ((ADD_DECISION, rows.decisions), (ADD_ARM, rows.arms), (ADD_CHANGE, rows.changes)):
            if new:
                connection.executemany(add, [(bandit, *row) for row in new])
        head = taking.head
        if head.seq > log.head.seq:
            connection.execute(
                "UPDATE head SET seq = ?, at = ?, decisions = ?, arms = ? WHERE bandit = ?",
                [*head, len(book.arms), bandit],
            )
            log.head = head
            log.tail += merged(rows, book.arms)
            if len(log.tail) >= _BLOCK:
                body = pack(log.tail).tobytes()
                connection.execute("INSERT INTO block VALUES (?, ?, ?)", [bandit, head.seq, body])
                log.tail = []
        if len(book.decisions) > _DECISIONS_MOST:
            book.decisions = dict(islice(book.decisions.items(), len(book.decisions) // 2, None))
        return answers

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Committed, and synced, when it is left; forgotten if anything fails on the way."""
        with self._writing:
            connection = self._writer
            if connection is None:
                raise InputError(f"{self.address} is open for reading only, or closed")
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            except BaseException as error:
                self._logs.clear()
                self._recover(connection)
                if isinstance(error, sqlite3.Error):
                    raise StoreError(f"{self.address} cannot be written: {error}") from error
                raise

    def _recover(self, connection: sqlite3.Connection) -> None:
        """After a failure: end the transaction, if need be with a new connection."""
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            connection.close()
            self._writer = self._connect_durably()

    def read(self, bandit: int, after: int, limit: int) -> Events:
        return self._read(lambda connection: _events(connection, bandit, after, limit))

    def read_rows(self, bandit: int, after: int, limit: int) -> Events:
        """Like `read`, but from the tables alone: what the blocks must equal."""
        upto = after + limit
        return self._read(lambda connection: unpack(pack(event_rows(connection, bandit, after, upto))))

    def head(self, bandit: int) -> int:
        return self._read(lambda connection: _head(connection, bandit))

    def arms(self, bandit: int) -> list[ArmRow]:
        return self._read(lambda connection: arm_rows(connection, bandit))

    def decision(self, bandit: int, id: int) -> DecisionRow | None:
        row = self._read(lambda connection: connection.execute(
            'SELECT id, seq, arm, at, "window", seen, salt FROM decision WHERE bandit = ? AND id = ?',
            [bandit, id],
        ).fetchone())  # fmt: skip
        return None if row is None else DecisionRow(*row)

    def wait(self, bandit: int, after: int, timeout: float) -> bool:
        end = time.monotonic() + timeout
        while self.head(bandit) <= after:
            if time.monotonic() >= end:
                return False
            time.sleep(_POLL)
        return True

    def save_snapshot(self, bandit: int, seq: int, form: str, body: bytes) -> None:
        with self._transaction() as connection:
            for given in (body, b""):  # the second changes nothing, but has the statement let go of the first
                connection.execute(_SAVE, [bandit, form, seq, given])

    def load_snapshot(self, bandit: int, form: str) -> tuple[int, bytes] | None:
        found: tuple[int, bytes] | None = self._read(lambda connection: connection.execute(
            "SELECT seq, body FROM snapshot WHERE bandit = ? AND form = ?", [bandit, form]
        ).fetchone())  # fmt: skip
        return found

    def _read(self, job: Callable[[sqlite3.Connection], _T]) -> _T:
        """What `job` finds, all of it as of one moment."""
        with self._reading:
            if self._closed:
                raise Closed("the store has been closed")
            try:
                self._reader.execute("BEGIN")
                try:
                    return job(self._reader)
                finally:
                    self._reader.execute("ROLLBACK")
            except sqlite3.Error as error:
                raise StoreError(f"{self.address} cannot be read: {error}") from error

    def close(self) -> None:
        """Let go of the file."""
        with self._writing, self._reading:
            for connection in (getattr(self, "_reader", None), self._writer):
                if connection is not None:
                    connection.close()
            self._writer = None
            self._closed = True
            if self._lock is not None:
                self._lock.release()


def _find(connection: sqlite3.Connection, name: str) -> BanditRow | None:
    row = connection.execute(
        "SELECT number, name, config, rounds FROM bandit WHERE name = ?", [name]
    ).fetchone()
    return None if row is None else BanditRow(row[0], row[1], json.loads(row[2]), bool(row[3]))


def _head(connection: sqlite3.Connection, bandit: int) -> int:
    row = connection.execute("SELECT seq FROM head WHERE bandit = ?", [bandit]).fetchone()
    return 0 if row is None else int(row[0])


def _events(connection: sqlite3.Connection, bandit: int, after: int, limit: int) -> Events:
    upto = min(after + limit, _head(connection, bandit))  # positions have no gaps here
    parts, last = [], after
    for seq, body in connection.execute(
        "SELECT seq, body FROM block WHERE bandit = ? AND seq > ? ORDER BY seq", [bandit, after]
    ):
        parts.append(np.frombuffer(body, PACKED))
        last = seq
        if last >= upto:
            break
    if last < upto:
        parts.append(pack(event_rows(connection, bandit, last, upto)))
    if not parts:
        return unpack(np.zeros(0, PACKED))
    first = int(parts[0]["seq"][0])
    return unpack(np.concatenate(parts)[after + 1 - first : upto + 1 - first])
