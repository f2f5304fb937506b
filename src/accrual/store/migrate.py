"""Which schema version a database has, and how its tables are made.

There is one schema for each kind of database, `schema_sqlite.sql` and `schema_postgres.sql`. When either
changes, the version number does too. A database of another version is refused.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from accrual.core.errors import InputError, need
from accrual.store.address import Address, parse, sqlite_address
from accrual.store.backends import backend_of
from accrual.store.background_loop import BackgroundLoop
from accrual.store.base import one_line
from accrual.store.lock import SQLITE_ERRORS, Connection

NEEDED = "1"  # the schema version

VERSION_TABLE = "accrual_version"
VERSION_SQL = "SELECT version_num FROM accrual_version"
_SET_VERSION = f"INSERT INTO {VERSION_TABLE} (version_num) VALUES ('{NEEDED}')"
_LOCK_SQL = "SELECT pg_advisory_xact_lock(4711033)"  # one process at a time; the number is arbitrary


def check(found: str | None, address: Address) -> None:
    """Complain, in one line, of a database that this version of accrual cannot work with."""
    if found is None:
        raise InputError(f"{address} has no tables of accrual; make them: accrual db init {address}")
    if found != NEEDED:
        raise InputError(
            f"{address} has tables of schema version {found!r}, made by another accrual; this one reads "
            f"version {NEEDED!r} alone: install the other accrual, or take another database"
        )


def current(url: str) -> str | None:
    """Return the schema version of a database; None where there are no tables of accrual.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     url = f"sqlite:///{folder}/plays.db"
    ...     before = current(url)
    ...     make_tables(url)
    ...     before, current(url)
    (None, '1')
    """
    address = parse(url)
    return backend_of(address).version(address)


def sqlite_file_version(address: Address) -> str | None:
    """Return the schema version of a SQLite file; None where there is no file, or no tables of accrual."""
    if not os.path.exists(address.place):
        return None
    if not os.path.getsize(address.place):
        raise InputError(
            f"{address} has 0 bytes, so whatever it held is lost: restore a backup; or, if it is to be "
            "new, remove it first"
        )
    # A power cut while the file was being made leaves a journal. SQLite must undo what it holds before
    # anything can be read, and only a connection that may write does so.
    mode = "rw" if os.path.exists(f"{address.place}-journal") else "ro"
    with closing(connect_sqlite(address, mode)) as connection:
        return sqlite_version(connection, address)


def make_tables(url: str) -> None:
    """Make the tables of a database that has none; refuse tables of another schema version."""
    address = parse(url)
    backend_of(address).make_tables(address)


def sqlite_version(connection: sqlite3.Connection, address: Address) -> str | None:
    """Return the schema version of an open SQLite database."""
    try:
        found = connection.execute(
            "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?", [VERSION_TABLE]
        ).fetchone()
        return connection.execute(VERSION_SQL).fetchone()[0] if found[0] else None
    except SQLITE_ERRORS as error:
        raise InputError(f"cannot read {address}: {one_line(error)}") from None


def connect_sqlite(address: Address, mode: str) -> Connection:
    """Open a connection that begins no transaction by itself; `mode` is ro or rw."""
    path = os.path.abspath(address.place)
    try:
        place = "file:" + "".join(f"%{byte:02x}" for byte in os.fsencode(path))
        connection = sqlite3.connect(
            f"{place}?mode={mode}", uri=True, isolation_level=None, timeout=10, check_same_thread=False,
            factory=Connection,
        )  # fmt: skip
        connection.watch(path)
        connection.execute("PRAGMA cell_size_check = ON")
        return connection
    except (*SQLITE_ERRORS, OSError) as error:
        raise InputError(f"cannot open {address}: {one_line(error)}") from None


def left_beside(place: str) -> list[str]:
    """Return the files that lie beside a database and that SQLite takes for a part of it."""
    return [file for file in (f"{place}-wal", f"{place}-shm", f"{place}-journal") if os.path.lexists(file)]


def make_sqlite_tables(address: Address) -> None:
    """Make the tables in a SQLite file, and the file where there is none."""
    if os.path.lexists(address.place):
        with closing(connect_sqlite(address, "rw")) as connection:
            _fill_file(connection, address, "WAL")
        return
    # A new one appears whole or not at all, and only where there is none.
    place = os.path.realpath(address.place)
    stale = left_beside(place)
    if stale and not os.path.lexists(place):  # otherwise another process has made the file meanwhile
        raise InputError(
            f"there is no {place}, but {' and '.join(stale)} of an earlier database, which SQLite would "
            "take for a part of the new one; put the earlier database back, or, to begin anew, move away "
            f"{' and '.join(stale)}"
        )
    partial = f"{place}.{os.urandom(8).hex()}.new"
    try:
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with closing(connect_sqlite(sqlite_address(partial), "rw")) as connection:
            _fill_file(connection, address, "MEMORY")  # so that no other files lie beside it
        with suppress(FileExistsError):  # another process has made it meanwhile
            os.link(partial, place)
        folder = os.open(os.path.dirname(place), os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise InputError(f"cannot open {address}: {error.strerror}") from None
    finally:
        with suppress(OSError):
            os.unlink(partial)


def _fill_file(connection: Connection, address: Address, journal: str) -> None:
    found = sqlite_version(connection, address)
    if found is not None:
        check(found, address)
        return
    try:
        connection.execute(f"PRAGMA journal_mode = {journal}")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN IMMEDIATE")
        if sqlite_version(connection, address) is None:  # another process may have made them meanwhile
            for statement in _statements(_schema("sqlite")):
                connection.execute(statement)
            connection.execute(_SET_VERSION)
        connection.execute("COMMIT")
    except SQLITE_ERRORS as error:
        raise InputError(f"cannot make tables in {address}: {one_line(error)}") from None


def _schema(kind: str) -> str:
    """Return the statements that make all tables of an empty database."""
    return Path(__file__).with_name(f"schema_{kind}.sql").read_text(encoding="utf-8")


def _statements(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def postgres_version(address: Address) -> str | None:
    """Return the schema version of a PostgreSQL database; None where there are no tables of accrual."""
    return _postgres(address, _version)  # type: ignore[no-any-return]


def make_postgres_tables(address: Address) -> None:
    """Make the tables in a PostgreSQL database."""
    _postgres(address, _fill_postgres)


def _postgres(address: Address, job: Any) -> Any:
    asyncpg = need("asyncpg", "postgres")

    async def run() -> Any:
        try:
            connection = await asyncpg.connect(address.place, timeout=30)
        except (OSError, ValueError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise InputError(f"cannot open {address}: {one_line(error)}") from None
        try:
            return await job(connection, address)
        finally:
            await connection.close()

    with BackgroundLoop() as background:
        return background.run(run())


async def _version(connection: Any, address: Address) -> str | None:
    if await connection.fetchval("SELECT to_regclass($1)", VERSION_TABLE) is None:
        return None
    return await connection.fetchval(VERSION_SQL)  # type: ignore[no-any-return]


async def _fill_postgres(connection: Any, address: Address) -> None:
    async with connection.transaction():
        await connection.execute(_LOCK_SQL)
        found = await _version(connection, address)
        if found is not None:
            check(found, address)
            return
        await connection.execute(_schema("postgres"))
        await connection.execute(_SET_VERSION)
