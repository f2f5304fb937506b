"""All that can be done with a SQLite file: see `accrual.store.backends.Backend`."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from accrual.core.errors import InputError
from accrual.core.files import replacing
from accrual.store.address import Address, sqlite_address
from accrual.store.backends import Backend, KeyRow, KeyTable, Statements, TableReader, key_of
from accrual.store.base import Store, StoreError, one_line
from accrual.store.events import TABLES, insert_into, select_all
from accrual.store.schema import check_version
from accrual.store.sqlite.checksums import check_list, checked_row, columns_of, fill
from accrual.store.sqlite.file import check_place, connect_sqlite, file_version, make_tables, sync
from accrual.store.sqlite.lock import SQLITE_ERRORS, Turn
from accrual.store.sqlite.reader import SQLiteTableReader, numbered
from accrual.store.sqlite.recovery import recover_file
from accrual.store.sqlite.rows import complete_file
from accrual.store.sqlite.store import SQLiteStore


class SQLiteBackend(Backend):
    """A file, to which one process at a time writes."""

    several_workers = False
    makes_itself = True

    def open_store(self, address: Address, readonly: bool) -> Store:
        return SQLiteStore(address.place, readonly)

    def open_keys(self, address: Address) -> KeyTable:
        return SQLiteKeys(address)

    def version(self, address: Address) -> str | None:
        return file_version(address)

    def make_tables(self, address: Address) -> None:
        make_tables(address)

    @contextmanager
    def reader(self, address: Address) -> Iterator[TableReader]:
        with closing(connect_sqlite(address, "ro")) as connection:
            connection.execute("BEGIN")
            yield SQLiteTableReader(address, connection)

    def backup(self, address: Address, to: str | os.PathLike[str]) -> None:
        check_version(file_version(address), address)
        try:
            with closing(connect_sqlite(address, "ro")) as source, closing(sqlite3.connect(to)) as target:
                source.backup(target)
            _make_one_file(to)
        except SQLITE_ERRORS as error:
            raise InputError(f"cannot copy {address}: {one_line(error)}") from None

    def restore(self, address: Address, path: str | os.PathLike[str]) -> None:
        check_place(address.place, replace=False)
        place = Path(os.path.realpath(address.place))
        restored = place.with_name(f"{place.name}.restored")
        with replacing(restored, private=True) as partial:
            self.backup(sqlite_address(os.path.abspath(path)), partial)
            sync(partial)
            try:
                os.link(partial, place)  # unlike a rename, this never replaces another file
            except OSError as error:
                raise InputError(f"cannot restore to {address}: {error.strerror}") from None
        os.unlink(restored)
        sync(place.parent)

    def recover(self, address: Address, path: str | os.PathLike[str], until: float | None) -> list[str]:
        return recover_file(address, path, until)


def write_file(reader: TableReader, to: str | os.PathLike[str]) -> None:
    """Write the tables of any database to a SQLite file, in place of an empty file that is there."""
    address = sqlite_address(to)
    os.unlink(to)  # a new file is made whole
    make_tables(address)
    with closing(connect_sqlite(address, "rw")) as target:
        target.execute("BEGIN")
        for table in TABLES:
            for rows in reader.chunks(select_all(table)):
                target.executemany(insert_into(table), rows)
        complete_file(target)
        target.execute("COMMIT")
    _make_one_file(to)


def _make_one_file(path: str | os.PathLike[str]) -> None:
    """Move the write-ahead log of a SQLite file into the file; then reading it makes no other file either."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")


class SQLiteKeys(KeyTable):
    """API keys in a SQLite file.

    One connection stays open for reading: a process that is out of file descriptors still learns which keys
    have ended. Each write opens a connection of its own. The rule that only one process writes is there for
    events, whose order the writer keeps in memory. Keys may be written meanwhile, because writers take turns
    (`Turn`).
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
                self._disconnect()
                raise StoreError(f"{self._address}: the keys cannot be read: {one_line(error)}") from error
        return sorted(map(key_of, rows), key=lambda row: (row.made, row.id))

    def _connected(self) -> sqlite3.Connection:
        """Return the connection for reading; a new one if the path leads to another file by now."""
        try:
            found = os.stat(self._path)
        except OSError as error:
            raise InputError(f"{self._path}: {error.strerror}") from None
        if self._reader is None or self._file != (found.st_dev, found.st_ino):
            self._disconnect()
            self._reader = connect_sqlite(self._address, "ro")
            self._file = (found.st_dev, found.st_ino)
        return self._reader

    def _disconnect(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def close(self) -> None:
        with self._reading:
            self._disconnect()
            self._turn.close()

    def _run(self, statements: Statements) -> list[Any]:
        with self._turn.taken(), closing(connect_sqlite(self._address, "rw")) as connection:
            try:
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("BEGIN IMMEDIATE")
                check_list(connection, "api_key")
                for statement, values in statements:
                    found = connection.execute(statement, numbered(values)).fetchall()
                fill(connection, "api_key")
                connection.execute("COMMIT")
                return found
            except sqlite3.IntegrityError:
                raise InputError("there is a key of this id already") from None
            except SQLITE_ERRORS as error:
                raise StoreError(f"{self._address}: {one_line(error)}") from error
