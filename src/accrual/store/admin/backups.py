"""Backups: a SQLite file with everything in it, of either database and for either.

A backup holds the database as it was at one moment, between two transactions, and is taken while
others write. It is a store like any other: it can be opened, verified and exported.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from accrual.core.errors import InputError, need
from accrual.core.files import replacing
from accrual.store import migrate
from accrual.store.address import Address, parse, sqlite_address
from accrual.store.admin.readers import TableReader, open_reader
from accrual.store.backends import backend_of
from accrual.store.background_loop import BackgroundLoop
from accrual.store.base import one_line
from accrual.store.checksums import digest, fill
from accrual.store.events import TABLES, column_types, insert_into, pack, select_all
from accrual.store.lock import SQLITE_ERRORS, FileLock
from accrual.store.sqlite import event_rows

_BLOCK = 4096  # events


def backup(url: str, path: str | os.PathLike[str]) -> None:
    """Write all that the database at `url` holds to a new file; in place of any that is there.

    Examples
    --------
    >>> import tempfile
    >>> from accrual.store.backends import open_store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     open_store(f"sqlite:///{folder}/plays.db").close()  # a new one
    ...     backup(f"sqlite:///{folder}/plays.db", f"{folder}/monday.db")
    ...     open_store(f"sqlite:///{folder}/monday.db").names()
    []
    """
    address = parse(url)
    check_place(Path(path), again=True)
    with replacing(path, private=True) as partial:
        backend_of(address).backup(address, partial)
        _sync(partial)
    _sync(Path(os.path.realpath(path)).parent)


def check_place(path: Path, again: bool) -> None:
    """Refuse a place where SQLite would take something else for a part of the file.

    A write-ahead log that was left behind by another database would be replayed into the new one. With
    `again`, a backup may lie there, which is replaced if no process has it open.
    """
    place = os.path.realpath(path)
    there = [place] * os.path.lexists(place) + migrate.left_beside(place)
    if again and there == [place]:
        FileLock(place, f"{path} is open for writing; back up to another place").release()
    elif there:
        raise InputError(
            f"there is {' and '.join(there)} already; take another place, or move away all files that "
            f"belong together: {', '.join(place + end for end in ('', '-wal', '-shm', '-journal'))}"
        )


def restore(url: str, path: str | os.PathLike[str]) -> None:
    """Put all that a backup holds into the database at `url`, which must hold nothing yet."""
    address = parse(url)
    if not os.path.isfile(path):
        raise InputError(f"there is no backup at {os.fspath(path)}")
    backend_of(address).restore(address, path)


def restore_file(address: Address, path: str | os.PathLike[str]) -> None:
    """Restore a backup to a SQLite file; see `restore`."""
    check_place(Path(address.place), again=False)
    place = Path(os.path.realpath(address.place))
    with replacing(place.with_name(f"{place.name}.restored"), private=True) as partial:
        copy_file(sqlite_address(os.path.abspath(path)), partial)
        _one_file(partial)
        _sync(partial)
        try:
            os.link(partial, place)  # unlike a rename, this never takes the place of another file
        except OSError as error:
            raise InputError(f"cannot restore to {address}: {error.strerror}") from None
    os.unlink(place.with_name(f"{place.name}.restored"))
    _sync(place.parent)


def restore_tables(address: Address, path: str | os.PathLike[str]) -> None:
    """Restore a backup to a PostgreSQL database; see `restore`."""
    with open_reader(str(sqlite_address(os.path.abspath(path)))) as reader:
        migrate.make_postgres_tables(address)
        _fill(reader, address)


def copy_file(address: Address, to: str | os.PathLike[str]) -> None:
    """Copy a SQLite file as it is at one moment."""
    migrate.check(migrate.sqlite_file_version(address), address)
    try:
        with (
            closing(migrate.connect_sqlite(address, "ro")) as source,
            closing(sqlite3.connect(to)) as target,
        ):
            source.backup(target)
        _one_file(Path(to))
    except SQLITE_ERRORS as error:
        raise InputError(f"cannot copy {address}: {one_line(error)}") from None


def copy_tables(address: Address, to: str | os.PathLike[str]) -> None:
    """Copy the tables of a PostgreSQL database to a SQLite file."""
    with open_reader(address.place) as reader:
        os.unlink(to)  # a new file is made whole
        migrate.make_sqlite_tables(sqlite_address(to))
        with closing(migrate.connect_sqlite(sqlite_address(to), "rw")) as target:
            target.execute("BEGIN")
            for table in TABLES:
                for rows in reader.chunks(select_all(table)):
                    target.executemany(insert_into(table), rows)
            finish(target)
            target.execute("COMMIT")
    _one_file(Path(to))


def finish(target: sqlite3.Connection) -> None:
    """Add what follows from the rows of a new SQLite file: their checksums, and blocks of events."""
    fill(target)
    for bandit, last in target.execute("SELECT bandit, seq FROM head").fetchall():
        for start in range(0, last - _BLOCK + 1, _BLOCK):
            body = pack(event_rows(target, bandit, start, start + _BLOCK)).tobytes()
            sum_ = digest(bandit, start + _BLOCK, body)
            target.execute("INSERT INTO block VALUES (?, ?, ?, ?)", [bandit, start + _BLOCK, body, sum_])


def _one_file(path: Path) -> None:
    """Move the write-ahead log of a SQLite file into it, so that it is one file, also while it is read."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")


def _fill(reader: TableReader, address: Address) -> None:
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


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
