"""Which schema version a database has, and how it gets the one that this version of accrual needs.

Opening a database only compares two words. Alembic is asked for the SQL of the missing revisions
when there are any, and never touches the database itself: so it needs no driver of its own, and both
databases run a migration as one transaction.
"""

from __future__ import annotations

import io
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from accrual.core.errors import InputError, need
from accrual.store import checksums
from accrual.store.address import Address, parse, sqlite_address
from accrual.store.backends import backend_of
from accrual.store.background_loop import BackgroundLoop
from accrual.store.base import one_line
from accrual.store.lock import SQLITE_ERRORS, Connection

_VERSIONS = Path(__file__).parent / "migrations" / "versions"
REVISIONS = tuple(sorted(file.name[:4] for file in _VERSIONS.glob("[0-9]*.py")))  # all there have been
NEEDED = REVISIONS[-1]

_CHECKSUMS = "0005"  # the revision that adds checksums to SQLite's rows; Python computes them

VERSION_TABLE = "accrual_version"
VERSION_SQL = "SELECT version_num FROM accrual_version"
_LOCK_SQL = "SELECT pg_advisory_xact_lock(4711033)"  # one upgrade at a time; the number is arbitrary


def check(found: str | None, address: Address) -> None:
    """Complain, in one line, of a database that this version of accrual cannot work with."""
    if found == NEEDED:
        return
    if found is None:
        raise InputError(f"{address} has no tables of accrual; make them: accrual db init {address}")
    if found in REVISIONS:
        raise InputError(
            f"{address} has tables of schema version {found} and this version of accrual needs {NEEDED}; "
            f"save it with {backend_of(address).saved_by}, then: accrual db upgrade {address}"
        )
    raise InputError(
        f"{address} has tables of schema version {found!r}, made by a newer accrual; this one "
        f"knows up to {NEEDED}: install the newer accrual"
    )


def current(url: str) -> str | None:
    """Return the schema version of a database; None where there are no tables of accrual.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     url = f"sqlite:///{folder}/plays.db"
    ...     current(url), upgrade(url), current(url)
    (None, '0010', '0010')
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


def upgrade(url: str) -> str:
    """Bring a database to the schema version that this version of accrual needs; make one if there is none.

    Returns
    -------
    str
        The revision that it has now.
    """
    address = parse(url)
    backend_of(address).upgrade(address)
    return NEEDED


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


def upgrade_sqlite(address: Address) -> None:
    """Upgrade a SQLite file, or make a new one."""
    if os.path.lexists(address.place):
        with closing(connect_sqlite(address, "rw")) as connection:
            _upgrade_file(connection, address, "WAL")
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
            _upgrade_file(connection, address, "MEMORY")  # so that no other files lie beside it
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


def _upgrade_file(connection: Connection, address: Address, journal: str) -> None:
    if sqlite_version(connection, address) == NEEDED:
        return
    try:
        connection.execute(f"PRAGMA journal_mode = {journal}")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN IMMEDIATE")
        found = sqlite_version(connection, address)  # another process may have upgraded it meanwhile
        if found != NEEDED:
            for statement in _statements(missing("sqlite", found, address)):
                connection.execute(statement)
            if (found or "") < _CHECKSUMS <= NEEDED:
                checksums.fill(connection)
        connection.execute("COMMIT")
    except SQLITE_ERRORS as error:
        raise InputError(f"cannot make tables in {address}: {one_line(error)}") from None


def missing(dialect: str, found: str | None, address: Address, to: str = "head") -> str:
    """Return the SQL that leads from schema version `found` to the one that is needed."""
    if found is not None and found not in REVISIONS:
        check(found, address)
    command = need("alembic.command", "store")
    config = need("alembic.config", "store").Config(output_buffer=(out := io.StringIO()))
    config.set_main_option("script_location", "accrual.store:migrations")
    config.set_main_option("path_separator", "os")
    config.attributes.update(dialect=dialect, version_table=VERSION_TABLE)
    command.upgrade(config, f"{found}:{to}" if found else to, sql=True)
    return out.getvalue()


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


def upgrade_postgres(address: Address) -> None:
    """Upgrade the tables of a PostgreSQL database, or make them."""
    _postgres(address, _upgrade_postgres)


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


async def _upgrade_postgres(connection: Any, address: Address) -> None:
    async with connection.transaction():
        await connection.execute(_LOCK_SQL)
        found = await _version(connection, address)
        if found != NEEDED:
            await connection.execute(missing("postgresql", found, address))
