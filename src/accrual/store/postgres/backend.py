"""All that can be done with a PostgreSQL database: see `accrual.store.backends.Backend`."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from accrual.core.errors import InputError, need
from accrual.store.address import Address, sqlite_address
from accrual.store.backends import Backend, KeyRow, KeyTable, Statements, TableReader, key_of, open_reader
from accrual.store.base import Store, StoreError, one_line
from accrual.store.events import TABLES, KeyTableRow, column_types, quoted, select_all
from accrual.store.postgres.background_loop import BackgroundLoop
from accrual.store.postgres.pool import version_of
from accrual.store.postgres.store import PostgresStore
from accrual.store.schema import SET_VERSION, check_version
from accrual.store.sqlite import write_file

_CHUNK = 20_000  # rows at a time
_LOCK_SQL = "SELECT pg_advisory_xact_lock(4711033)"  # one process at a time; the number is arbitrary
_KEYS = f"SELECT {quoted(KeyTableRow._fields)} FROM api_key ORDER BY made, id"
_T = TypeVar("_T")


class PostgresBackend(Backend):
    """A PostgreSQL database, which several workers share."""

    several_workers = True
    makes_itself = False

    def open_store(self, address: Address, readonly: bool) -> Store:
        return PostgresStore(address.place)

    def open_keys(self, address: Address) -> KeyTable:
        return PostgresKeys(address)

    def version(self, address: Address) -> str | None:
        return _on_connection(address, version_of)

    def make_tables(self, address: Address) -> None:
        async def job(connection: Any) -> None:
            async with connection.transaction():
                await connection.execute(_LOCK_SQL)
                found = await version_of(connection)
                if found is None:
                    schema = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
                    await connection.execute(schema)
                    await connection.execute(SET_VERSION)
                else:
                    check_version(found, address)

        _on_connection(address, job)

    @contextmanager
    def reader(self, address: Address) -> Iterator[TableReader]:
        with BackgroundLoop() as background:
            reader = PostgresTableReader(address, background)
            try:
                yield reader
            finally:
                background.run(reader.close())

    def backup(self, address: Address, to: str | os.PathLike[str]) -> None:
        with open_reader(address.place) as reader:
            write_file(reader, to)

    def restore(self, address: Address, path: str | os.PathLike[str]) -> None:
        with open_reader(str(sqlite_address(os.path.abspath(path)))) as reader:
            self.make_tables(address)
            _fill(reader, address)


def _on_connection(address: Address, job: Callable[[Any], Awaitable[_T]]) -> _T:
    """Do a job on a new connection, and return what the job returns."""
    asyncpg = need("asyncpg", "postgres")

    async def run() -> _T:
        try:
            connection = await asyncpg.connect(address.place, timeout=30)
        except (OSError, ValueError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise InputError(f"cannot open {address}: {one_line(error)}") from None
        try:
            return await job(connection)
        finally:
            await connection.close()

    with BackgroundLoop() as background:
        return background.run(run())


def _fill(reader: TableReader, address: Address) -> None:
    """Copy the tables of a backup to a database that has tables but no bandits, in one transaction."""
    asyncpg = need("asyncpg", "postgres")
    with BackgroundLoop() as background:

        async def begin() -> Any:
            connection = await asyncpg.connect(address.place, timeout=30)
            await connection.transaction().start()
            await connection.execute("LOCK TABLE bandit IN ACCESS EXCLUSIVE MODE")
            if await connection.fetchval("SELECT count(*) FROM bandit"):
                connection.terminate()
                raise InputError(f"{address} holds bandits already; restore to an empty database")
            return connection

        async def commit() -> None:
            await connection.execute(
                "SELECT setval(pg_get_serial_sequence('bandit', 'number'), max(number)) FROM bandit"
            )
            await connection.execute("COMMIT")

        connection = background.run(begin())
        try:
            for table, row_class in TABLES.items():
                columns = row_class._fields
                for rows in reader.chunks(select_all(table)):
                    records = _with_flags(table, rows)
                    background.run(connection.copy_records_to_table(table, columns=columns, records=records))
            background.run(commit())
        except (asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise InputError(f"cannot restore to {address}: {one_line(error)}") from None
        finally:
            background.loop.call_soon_threadsafe(connection.terminate)


def _with_flags(table: str, rows: list[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Return rows of SQLite, where flags are numbers, as PostgreSQL takes them."""
    places = [place for place, type_ in enumerate(column_types(table).values()) if type_ is bool]
    for row in rows:
        values = list(row)
        for place in places:
            values[place] = bool(values[place])
        yield tuple(values)


class PostgresTableReader:
    """Reads the tables of a PostgreSQL database in one transaction. PostgreSQL itself finds damaged pages."""

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

    async def close(self) -> None:
        """Close the connection."""
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

    def damage(self) -> list[str]:
        return []

    def wrong_copies(self) -> list[str]:
        return []


class PostgresKeys(KeyTable):
    """API keys in a PostgreSQL database, with a connection for each operation."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._asyncpg = need("asyncpg", "postgres")
        self._background = BackgroundLoop()

    def all(self) -> list[KeyRow]:
        return [key_of(found) for found in self._run([(_KEYS, ())])]

    def close(self) -> None:
        self._background.close()

    def _run(self, statements: Statements) -> list[Any]:
        return self._background.run(self._work(statements))

    async def _work(self, statements: Statements) -> list[Any]:
        try:
            connection = await self._asyncpg.connect(self._address.place, timeout=30)
            try:
                async with connection.transaction():
                    for statement, values in statements:
                        found = await connection.fetch(statement, *values, timeout=30)
                return found  # type: ignore[no-any-return]
            finally:
                await connection.close(timeout=5)
        except self._asyncpg.UniqueViolationError:
            raise InputError("there is a key of this id already") from None
        except (OSError, TimeoutError, self._asyncpg.PostgresError, self._asyncpg.InterfaceError) as error:
            raise StoreError(f"{self._address}: {one_line(error)}") from error
