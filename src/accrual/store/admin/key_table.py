"""The keys of a service, kept beside the bandits that it serves.

Here a key is a row; what makes one good is `accrual.service.keys`'. Neither the secret nor anything
it could be found from is kept: only its SHA-256 digest, and a secret is 256 random bits.

A running service and `accrual keys` use these tables at the same time. That is safe on SQLite as
well: the one-writer rule is there for events, whose order the writer keeps in memory, and writers take
turns (`accrual.store.lock.Turn`).
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from typing import Any, NamedTuple, Protocol

from accrual.core.errors import InputError, need
from accrual.store import migrate
from accrual.store.address import Address, parse
from accrual.store.backends import backend_of
from accrual.store.background_loop import BackgroundLoop
from accrual.store.base import StoreError, one_line
from accrual.store.checksums import check_list, checked_row, columns_of, fill
from accrual.store.events import KeyTableRow, quoted
from accrual.store.lock import SQLITE_ERRORS, Turn

_ALL = f"SELECT {quoted(KeyTableRow._fields)} FROM api_key ORDER BY made, id"
_MARKS = ", ".join(f"?{place}" for place in range(1, len(KeyTableRow._fields) + 1))
_ADD = f"INSERT INTO api_key ({quoted(KeyTableRow._fields)}) VALUES ({_MARKS})"
_END = "UPDATE api_key SET ends = CASE WHEN ends < ?1 THEN ends ELSE ?1 END WHERE id = ?2 RETURNING id"

_Statements = Sequence[tuple[str, tuple[Any, ...]]]


class KeyRow(NamedTuple):
    """A key, as it is kept."""

    id: str
    name: str
    scopes: frozenset[str]
    digest: bytes
    made: float
    ends: float | None  # not good from this time on


class KeyTable(Protocol):
    """All keys that there have been."""

    def all(self) -> list[KeyRow]:
        """Return all keys, in the order in which they were made."""

    def add(self, row: KeyRow, ends_other: tuple[str, float] | None = None) -> None:
        """Add a key; with `ends_other`, let another key (its id) end at a time, in the same transaction."""

    def end(self, id: str, at: float) -> bool:
        """Let a key be good until `at` at most. False if there is none of this id."""

    def close(self) -> None:
        """Let go of the database."""


def open_keys(url: str) -> KeyTable:
    """Open the table of keys in the database at `url`, which must have its tables.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     url = f"sqlite:///{folder}/plays.db"
    ...     migrate.make_tables(url)
    ...     table = open_keys(url)
    ...     table.add(KeyRow("k1", "shop", frozenset({"write"}), b"digest", 1.0, None))
    ...     table.end("k1", 5.0), table.end("k2", 5.0)
    ...     table.all()
    ...     table.close()
    (True, False)
    [KeyRow(id='k1', name='shop', scopes=frozenset({'write'}), digest=b'digest', made=1.0, ends=5.0)]
    """
    address = parse(url)
    migrate.check(migrate.current(url), address)
    return backend_of(address).open_keys(address)


def _row(found: Any) -> KeyRow:
    row = KeyTableRow._make(found)
    return KeyRow(row.id, row.name, frozenset(row.scopes.split()), bytes(row.digest), row.made, row.ends)


def _adding(row: KeyRow, ends_other: tuple[str, float] | None) -> _Statements:
    scopes = " ".join(sorted(row.scopes))
    stored = KeyTableRow(
        id=row.id, name=row.name, scopes=scopes, digest=row.digest, made=row.made, ends=row.ends
    )
    add = (_ADD, tuple(stored))
    return [add] if ends_other is None else [add, (_END, ends_other[::-1])]


class SQLiteKeys:
    """In a SQLite file.

    One connection stays open for reading: a process that is out of file descriptors still learns which
    keys have ended. To write, there is another for each operation.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._path = os.path.realpath(address.place)
        self._reader: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._reading = threading.Lock()
        self._turn = Turn(address.place)

    def all(self) -> list[KeyRow]:
        with self._reading:
            try:
                found = self._connected().execute(f"SELECT {columns_of('api_key')} FROM api_key NOT INDEXED")
                rows = [checked_row("api_key", row, "a key") for row in found]
                check_list(self._connected(), "api_key")
            except (*SQLITE_ERRORS, InputError) as error:
                self._leave()
                raise StoreError(f"{self._address}: the keys cannot be read: {one_line(error)}") from error
        return sorted(map(_row, rows), key=lambda row: (row.made, row.id))

    def _connected(self) -> sqlite3.Connection:
        """Return the connection for reading; a new one if the path leads to another file by now."""
        try:
            found = os.stat(self._path)
        except OSError as error:
            raise InputError(f"{self._path}: {error.strerror}") from None
        if self._reader is None or self._file != (found.st_dev, found.st_ino):
            self._leave()
            self._reader = migrate.connect_sqlite(self._address, "ro")
            self._file = (found.st_dev, found.st_ino)
        return self._reader

    def _leave(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def add(self, row: KeyRow, ends_other: tuple[str, float] | None = None) -> None:
        self._run(_adding(row, ends_other))

    def end(self, id: str, at: float) -> bool:
        return bool(self._run([(_END, (at, id))]))

    def close(self) -> None:
        with self._reading:
            self._leave()
            self._turn.close()

    def _run(self, statements: _Statements) -> list[Any]:
        with self._turn.taken(), closing(migrate.connect_sqlite(self._address, "rw")) as connection:
            try:
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("BEGIN IMMEDIATE")
                check_list(connection, "api_key")
                for statement, values in statements:
                    named = {str(place): value for place, value in enumerate(values, 1)}  # ?1, ?2 are names
                    found = connection.execute(statement, named).fetchall()
                fill(connection, "api_key")
                connection.execute("COMMIT")
                return found
            except sqlite3.IntegrityError:
                raise InputError("there is a key of this id already") from None
            except SQLITE_ERRORS as error:
                raise StoreError(f"{self._address}: {one_line(error)}") from error


class PostgresKeys:
    """In a PostgreSQL database."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._asyncpg = need("asyncpg", "postgres")
        self._background = BackgroundLoop()

    def all(self) -> list[KeyRow]:
        return [_row(found) for found in self._run([(_ALL, ())])]

    def add(self, row: KeyRow, ends_other: tuple[str, float] | None = None) -> None:
        self._run(_adding(row, ends_other))

    def end(self, id: str, at: float) -> bool:
        return bool(self._run([(_END, (at, id))]))

    def close(self) -> None:
        self._background.close()

    def _run(self, statements: _Statements) -> list[Any]:
        return self._background.run(self._work(statements))

    async def _work(self, statements: _Statements) -> list[Any]:
        try:
            connection = await self._asyncpg.connect(self._address.place, timeout=30)
            try:
                async with connection.transaction():
                    for statement, values in statements:
                        found = await connection.fetch(statement.replace("?", "$"), *values, timeout=30)
                return found  # type: ignore[no-any-return]
            finally:
                await connection.close(timeout=5)
        except self._asyncpg.UniqueViolationError:
            raise InputError("there is a key of this id already") from None
        except (OSError, TimeoutError, self._asyncpg.PostgresError, self._asyncpg.InterfaceError) as error:
            raise StoreError(f"{self._address}: {one_line(error)}") from error
