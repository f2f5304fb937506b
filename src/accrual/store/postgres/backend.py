"""All that can be done with a PostgreSQL database: see `accrual.store.backends.Backend`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from accrual.core.errors import InputError, need
from accrual.store.address import Address, sqlite_address
from accrual.store.backends import Backend, KeyRow, KeyTable, Statements, TableReader, key_of, open_reader
from accrual.store.base import Store, StoreError, one_line
from accrual.store.events import TABLES, KeyTableRow, quoted, select_all
from accrual.store.postgres.connection import connect, version_of
from accrual.store.postgres.store import PostgresStore
from accrual.store.schema import SET_VERSION, check_version
from accrual.store.sqlite import write_file

_CHUNK = 20_000  # rows at a time
_LOCK_SQL = "SELECT pg_advisory_xact_lock(4711033)"  # one process at a time; the number is arbitrary
_KEYS = f"SELECT {quoted(KeyTableRow._fields)} FROM api_key ORDER BY made, id"


class PostgresBackend(Backend):
    """A PostgreSQL database, which several workers share."""

    several_workers = True
    makes_itself = False

    def open_store(self, address: Address, readonly: bool) -> Store:
        return PostgresStore(address.place)

    def open_keys(self, address: Address) -> KeyTable:
        return PostgresKeys(address)

    def version(self, address: Address) -> str | None:
        with connect(address) as connection:
            return version_of(connection)

    def make_tables(self, address: Address) -> None:
        with connect(address) as connection, connection.transaction():
            connection.execute(_LOCK_SQL)
            found = version_of(connection)
            if found is None:
                connection.execute(Path(__file__).with_name("schema.sql").read_text(encoding="utf-8"))
                connection.execute(SET_VERSION)
            else:
                check_version(found, address)

    @contextmanager
    def reader(self, address: Address) -> Iterator[TableReader]:
        with closing(connect(address)) as connection:
            yield PostgresTableReader(address, connection)

    def backup(self, address: Address, to: str | os.PathLike[str]) -> None:
        with open_reader(address.place) as reader:
            write_file(reader, to)

    def restore(self, address: Address, path: str | os.PathLike[str]) -> None:
        with open_reader(str(sqlite_address(os.path.abspath(path)))) as reader:
            self.make_tables(address)
            _fill(reader, address)


def _fill(reader: TableReader, address: Address) -> None:
    """Copy the tables of a backup to a database that has tables but no bandits, in one transaction."""
    try:
        with connect(address) as connection, connection.transaction():
            connection.execute("LOCK TABLE bandit IN ACCESS EXCLUSIVE MODE")
            if connection.execute("SELECT 1 FROM bandit").fetchone():
                raise InputError(f"{address} holds bandits already; restore to an empty database")
            for table, row_class in TABLES.items():
                statement = f"COPY {table} ({quoted(row_class._fields)}) FROM STDIN"
                with connection.cursor().copy(statement) as copy:
                    for rows in reader.chunks(select_all(table)):
                        for row in rows:
                            copy.write_row(row)
            connection.execute(
                "SELECT setval(pg_get_serial_sequence('bandit', 'number'), max(number)) FROM bandit"
            )
    except need("psycopg", "postgres").Error as error:
        raise InputError(f"cannot restore to {address}: {one_line(error)}") from None


class PostgresTableReader:
    """Reads the tables of a PostgreSQL database in one transaction. PostgreSQL itself finds damaged pages."""

    def __init__(self, address: Address, connection: Any) -> None:
        self.address = address
        self._connection = connection
        self._begin()

    def _begin(self) -> None:
        self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def chunks(self, query: str, *values: Any) -> Iterator[list[tuple[Any, ...]]]:
        try:
            with self._connection.cursor("chunks") as cursor:
                cursor.execute(query, values)
                while rows := cursor.fetchmany(_CHUNK):
                    yield rows
        except need("psycopg", "postgres").Error as error:
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

    def all(self) -> list[KeyRow]:
        return [key_of(found) for found in self._run([(_KEYS, ())])]

    def close(self) -> None:
        """Do nothing: no connection is open."""

    def _run(self, statements: Statements) -> list[Any]:
        psycopg = need("psycopg", "postgres")
        try:
            with connect(self._address) as connection, connection.transaction():
                for statement, values in statements:
                    done = connection.execute(statement, values)
                return list(done) if done.description else []
        except psycopg.errors.UniqueViolation:
            raise InputError("there is a key of this id already") from None
        except (psycopg.Error, InputError) as error:
            raise StoreError(f"{self._address}: {one_line(error)}") from error
