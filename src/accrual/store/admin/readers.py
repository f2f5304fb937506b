"""A database's tables as they are at one moment, whatever else is going on: for copies and checks."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, Protocol

from accrual.core.errors import InputError, need
from accrual.store import migrate
from accrual.store.address import Address, parse
from accrual.store.backends import backend_of
from accrual.store.background_loop import BackgroundLoop
from accrual.store.base import StoreError, one_line
from accrual.store.lock import SQLITE_ERRORS

_CHUNK = 20_000  # rows at a time


class TableReader(Protocol):
    """Reads the tables of a database, all of them as of one moment."""

    address: Address

    def chunks(self, query: str, *values: Any) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows of a query, some thousands at a time."""

    def value(self, query: str) -> Any:
        """Return the only value that a query gives."""


@contextmanager
def open_reader(url: str) -> Iterator[TableReader]:
    """Read a database that has the schema version that this version of accrual needs."""
    address = parse(url)
    migrate.check(migrate.current(url), address)
    with backend_of(address).reader(address) as reader:
        yield reader


@contextmanager
def sqlite_reader(address: Address) -> Iterator[TableReader]:
    """Read a SQLite file."""
    with closing(migrate.connect_sqlite(address, "ro")) as connection:
        connection.execute("BEGIN")
        yield SQLiteTableReader(address, connection)


@contextmanager
def postgres_reader(address: Address) -> Iterator[TableReader]:
    """Read a PostgreSQL database."""
    with BackgroundLoop() as background:
        reader = _PostgresTableReader(address, background)
        try:
            yield reader
        finally:
            background.run(reader.shut())


class SQLiteTableReader:
    """Reads the tables of a SQLite file, in a transaction."""

    def __init__(self, address: Address, connection: sqlite3.Connection) -> None:
        self.address = address
        self.connection = connection

    def chunks(self, query: str, *values: Any) -> Iterator[list[tuple[Any, ...]]]:
        numbered = query
        for i in range(len(values), 0, -1):
            numbered = numbered.replace(f"${i}", f"?{i}")
        try:
            cursor = self.connection.execute(numbered, values)
            while rows := cursor.fetchmany(_CHUNK):
                yield rows
        except SQLITE_ERRORS as error:
            raise StoreError(f"{self.address} cannot be read: {one_line(error)}") from error

    def value(self, query: str) -> Any:
        return next(self.chunks(query))[0][0]


class _PostgresTableReader:
    def __init__(self, address: Address, background: BackgroundLoop) -> None:
        self.address = address
        self._background = background
        self._asyncpg = need("asyncpg", "postgres")
        self._failures = (self._asyncpg.PostgresError, self._asyncpg.InterfaceError, OSError, ValueError)
        try:
            background.run(self._begin())
        except self._failures as error:
            raise InputError(f"cannot open {address}: {one_line(error)}") from None

    async def _begin(self) -> None:
        self._connection = await self._asyncpg.connect(self.address.place, timeout=30)
        await self._connection.transaction(isolation="repeatable_read", readonly=True).start()

    async def shut(self) -> None:
        self._connection.terminate()

    def chunks(self, query: str, *values: Any) -> Iterator[list[tuple[Any, ...]]]:
        async def start() -> Any:
            return await self._connection.cursor(query, *values)

        async def more() -> list[tuple[Any, ...]]:
            return [tuple(row) for row in await cursor.fetch(_CHUNK)]

        try:
            cursor = self._background.run(start())
            while rows := self._background.run(more()):
                yield rows
        except self._failures as error:
            raise StoreError(f"{self.address} cannot be read: {one_line(error)}") from error

    def value(self, query: str) -> Any:
        return next(self.chunks(query))[0][0]
