"""The keys of a service, kept beside the bandits that it serves.

Here a key is a row; what makes one good is `accrual.service.keys`'. Neither the secret nor anything
it could be found from is kept: only its SHA-256 digest, and a secret is 256 random bits.

A running service and `accrual keys` use these tables at the same time. That is safe on SQLite as
well: the one-writer rule is there for events, whose order the writer keeps in memory.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any, NamedTuple, Protocol

from accrual.core.errors import InputError, need
from accrual.store import schema
from accrual.store.address import Address, parse
from accrual.store.background import Background
from accrual.store.base import StoreError

_ALL = "SELECT id, name, scopes, digest, made, ends FROM api_key ORDER BY made, id"
_ADD = "INSERT INTO api_key (id, name, scopes, digest, made, ends) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
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
        """In the order in which they were made."""

    def add(self, row: KeyRow, ends_other: tuple[str, float] | None = None) -> None:
        """One more; with `ends_other`, another key of that id ends at that time, in one transaction."""

    def end(self, id: str, at: float) -> bool:
        """Let a key be good until `at` at most. False if there is none of this id."""

    def close(self) -> None:
        """Let go of the database."""


def open_keys(url: str) -> KeyTable:
    """The keys in the database at `url`, which must have its tables.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     url = f"sqlite:///{folder}/plays.db"
    ...     _ = schema.upgrade(url)
    ...     table = open_keys(url)
    ...     table.add(KeyRow("k1", "shop", frozenset({"write"}), b"digest", 1.0, None))
    ...     table.end("k1", 5.0), table.end("k2", 5.0)
    ...     table.all()
    ...     table.close()
    (True, False)
    [KeyRow(id='k1', name='shop', scopes=frozenset({'write'}), digest=b'digest', made=1.0, ends=5.0)]
    """
    schema.check(schema.current(url), parse(url))
    address = parse(url)
    return SQLiteKeys(address) if address.dialect == "sqlite" else PostgresKeys(address)


def _row(found: Any) -> KeyRow:
    id_, name, scopes, digest, made, ends = found
    return KeyRow(id_, name, frozenset(scopes.split()), bytes(digest), made, ends)


def _adding(row: KeyRow, ends_other: tuple[str, float] | None) -> _Statements:
    scopes = " ".join(sorted(row.scopes))
    add = (_ADD, (row.id, row.name, scopes, row.digest, row.made, row.ends))
    return [add] if ends_other is None else [add, (_END, ends_other[::-1])]


class SQLiteKeys:
    """In a SQLite file. A connection lives as long as one operation."""

    def __init__(self, address: Address) -> None:
        self._address = address

    def all(self) -> list[KeyRow]:
        return [_row(found) for found in self._run([(_ALL, ())])]

    def add(self, row: KeyRow, ends_other: tuple[str, float] | None = None) -> None:
        self._run(_adding(row, ends_other))

    def end(self, id: str, at: float) -> bool:
        return bool(self._run([(_END, (at, id))]))

    def close(self) -> None:
        """Nothing is open."""

    def _run(self, statements: _Statements) -> list[Any]:
        with closing(schema.connect_sqlite(self._address, "rw")) as connection:
            try:
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("BEGIN" if statements[0][0] == _ALL else "BEGIN IMMEDIATE")
                for statement, values in statements:
                    found = connection.execute(statement, values).fetchall()
                connection.execute("COMMIT")
                return found
            except sqlite3.IntegrityError:
                raise InputError("there is a key of this id already") from None
            except sqlite3.Error as error:
                raise StoreError(f"{self._address}: {error}") from error


class PostgresKeys:
    """In a PostgreSQL database."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._asyncpg = need("asyncpg", "postgres")
        self._background = Background()

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
            raise StoreError(f"{self._address}: {error or type(error).__name__}") from error
