"""All that can be done with a SQLite file: see `accrual.store.backends.Backend`."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import apsw

from accrual.core.errors import InputError
from accrual.core.files import replacing
from accrual.store.address import Address, sqlite_address
from accrual.store.backends import Backend, KeyRow, KeyTable, Statements, TableReader, key_of
from accrual.store.base import Store, StoreError, digest, one_line
from accrual.store.events import TABLES, KeyTableRow, insert_into, pack, quoted, select_all
from accrual.store.schema import check_version
from accrual.store.sqlite.file import (
    add_checksums,
    check_place,
    connect_sqlite,
    failure,
    file_version,
    make_tables,
    note_of,
    sync,
    version_of,
)
from accrual.store.sqlite.store import BLOCK, SQLiteStore, add_block, event_rows, head_rows

_CHUNK = 20_000  # rows at a time


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
        _copy(address, to)

    def restore(self, address: Address, path: str | os.PathLike[str]) -> None:
        check_place(address.place)
        place = Path(os.path.realpath(address.place))
        restored = place.with_name(f"{place.name}.restored")
        with replacing(restored, private=True) as partial:
            _copy(sqlite_address(os.path.abspath(path)), partial)
            sync(partial)
            with suppress(FileNotFoundError):
                os.unlink(note_of(address.place))  # of a file that was there before
            try:
                os.link(partial, place)  # unlike a rename, this never replaces another file
            except OSError as error:
                raise InputError(f"cannot restore to {address}: {error.strerror}") from None
        os.unlink(restored)
        sync(place.parent)


def _copy(address: Address, to: str | os.PathLike[str]) -> None:
    """Copy a SQLite file at one moment to a file that is there and empty; the copy has checksums."""
    try:
        with (
            closing(connect_sqlite(address, "ro")) as source,
            closing(connect_sqlite(sqlite_address(to), "rw")) as target,
        ):
            check_version(version_of(source, address), address)
            with target.backup("main", source, "main") as copying:
                copying.step()
            target.execute("PRAGMA journal_mode = DELETE")  # one file, and reading it makes no other
            add_checksums(target)
    except apsw.Error as error:
        raise InputError(f"cannot copy {address}: {one_line(error)}") from None


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
        for head in head_rows(target):
            for end in range(BLOCK, head.seq + 1, BLOCK):
                add_block(target, head.bandit, end, event_rows(target, head.bandit, end - BLOCK, end))
        target.execute("COMMIT")
        target.execute("PRAGMA journal_mode = DELETE")  # one file, and reading it makes no other


def _numbered(values: Sequence[Any]) -> dict[str, Any]:
    """Return values for a statement with $1, $2, ...: to SQLite these are names."""
    return {str(place): value for place, value in enumerate(values, 1)}


class SQLiteTableReader:
    """Reads the tables of a SQLite file, in the transaction of a connection."""

    def __init__(self, address: Address, connection: apsw.Connection) -> None:
        self.address = address
        self._connection = connection

    def chunks(self, query: str, *values: Any) -> Iterator[list[tuple[Any, ...]]]:
        try:
            cursor = self._connection.execute(query, _numbered(values))
            while rows := list(islice(cursor, _CHUNK)):
                yield rows
        except apsw.Error as error:
            raise failure(f"{self.address} cannot be read", error) from error

    def value(self, query: str) -> Any:
        return next(self.chunks(query))[0][0]

    def damage(self) -> list[str]:
        """Return what SQLite itself finds wrong: it reads every page, so it finds every wrong checksum."""
        try:
            rows = next(self.chunks("PRAGMA integrity_check"))
        except StoreError as error:
            return [str(error)]
        return [f"the file is damaged: {text}" for (text,) in rows if text != "ok"]

    def wrong_copies(self) -> list[str]:
        """Return what is wrong with the blocks of events: they must say what the tables say."""
        wrong = 0
        after: dict[int, int] = {}
        try:
            query = "SELECT bandit, seq, body, digest FROM block ORDER BY bandit, seq"
            blocks: Iterator[Any] = self._connection.execute(query)
            for bandit, seq, body, was in blocks:
                events = pack(event_rows(self._connection, bandit, after.get(bandit, 0), seq))
                wrong += digest(bandit, seq, body) != was or body != events
                after[bandit] = seq
            for head in head_rows(self._connection):
                event_rows(self._connection, head.bandit, after.get(head.bandit, 0), head.seq)
        except StoreError as error:
            return [str(error)]
        return [f"damaged: {wrong:,} blocks of events that are not those of the tables"] if wrong else []


_ALL_KEYS = f"SELECT {quoted(KeyTableRow._fields)} FROM api_key"


class SQLiteKeys(KeyTable):
    """API keys in a SQLite file.

    One connection stays open for reading: a process that is out of file descriptors still learns which keys
    have ended. Each write opens a connection of its own. The rule that only one process writes is there for
    events, whose order the writer keeps in memory. Keys may be written meanwhile: SQLite lets one transaction
    write at a time.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._path = os.path.realpath(address.place)
        self._reader: apsw.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._reading = threading.Lock()

    def all(self) -> list[KeyRow]:
        with self._reading:
            try:
                rows = self._connected().execute(_ALL_KEYS).fetchall()
            except (apsw.Error, InputError) as error:
                self._disconnect()
                raise StoreError(f"{self._address}: the keys cannot be read: {one_line(error)}") from error
        return sorted(map(key_of, rows), key=lambda row: (row.made, row.id))

    def _connected(self) -> apsw.Connection:
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

    def _run(self, statements: Statements) -> list[Any]:
        with closing(connect_sqlite(self._address, "rw")) as connection:
            try:
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("BEGIN IMMEDIATE")
                for statement, values in statements:
                    found = connection.execute(statement, _numbered(values)).fetchall()
                connection.execute("COMMIT")
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)")  # no note tells that a key was lost
                return found
            except apsw.ConstraintError:
                raise InputError("there is a key of this id already") from None
            except apsw.Error as error:
                raise failure(str(self._address), error) from error
