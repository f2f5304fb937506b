"""The databases that a store can be in: one object for each, found by the scheme of an address.

What differs between databases is reached through these objects alone. To add a database, write its class and
add a row to `BACKENDS`.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from accrual.core.errors import InputError
from accrual.store.address import Address, parse
from accrual.store.base import Store

if TYPE_CHECKING:
    from accrual.store.admin import KeyTable, TableReader

Path = str | os.PathLike[str]


class Backend(Protocol):
    """What can be done with a database of one kind. Modules are imported when they are needed."""

    several_workers: bool  # whether several processes may write to one database
    makes_itself: bool  # whether a database that is not there is made when it is first opened

    def open_store(self, address: Address, readonly: bool) -> Store:
        """Open the store."""

    def open_keys(self, address: Address) -> KeyTable:
        """Open the table of API keys."""

    def version(self, address: Address) -> str | None:
        """Return the schema version of the database; None where there are no tables of accrual."""

    def make_tables(self, address: Address) -> None:
        """Make the tables where there are none; refuse those of another schema version."""

    def reader(self, address: Address) -> AbstractContextManager[TableReader]:
        """Read tables, all of them as of one moment."""

    def backup(self, address: Address, to: Path) -> None:
        """Write all that the database holds to a SQLite file, which is there and empty."""

    def restore(self, address: Address, path: Path) -> None:
        """Put all that a backup holds into a database that holds nothing yet."""

    def recover(self, address: Address, path: Path, until: float | None) -> list[str]:
        """Write what is sound in a damaged database to a new file; return a report."""


class SQLiteBackend:
    """A file, to which one process at a time writes."""

    several_workers = False
    makes_itself = True

    def open_store(self, address: Address, readonly: bool) -> Store:
        from accrual.store.sqlite import SQLiteStore

        return SQLiteStore(address.place, readonly)

    def open_keys(self, address: Address) -> KeyTable:
        from accrual.store.admin import SQLiteKeys

        return SQLiteKeys(address)

    def version(self, address: Address) -> str | None:
        from accrual.store.migrate import sqlite_file_version

        return sqlite_file_version(address)

    def make_tables(self, address: Address) -> None:
        from accrual.store.migrate import make_sqlite_tables

        make_sqlite_tables(address)

    def reader(self, address: Address) -> AbstractContextManager[TableReader]:
        from accrual.store.admin import sqlite_reader

        return sqlite_reader(address)

    def backup(self, address: Address, to: Path) -> None:
        from accrual.store.admin import copy_file

        copy_file(address, to)

    def restore(self, address: Address, path: Path) -> None:
        from accrual.store.admin import restore_file

        restore_file(address, path)

    def recover(self, address: Address, path: Path, until: float | None) -> list[str]:
        from accrual.store.admin import recover_file

        return recover_file(address, path, until)


class PostgresBackend:
    """A PostgreSQL database, which several workers share."""

    several_workers = True
    makes_itself = False

    def open_store(self, address: Address, readonly: bool) -> Store:
        from accrual.store.postgres import PostgresStore

        return PostgresStore(address.place)

    def open_keys(self, address: Address) -> KeyTable:
        from accrual.store.admin import PostgresKeys

        return PostgresKeys(address)

    def version(self, address: Address) -> str | None:
        from accrual.store.migrate import postgres_version

        return postgres_version(address)

    def make_tables(self, address: Address) -> None:
        from accrual.store.migrate import make_postgres_tables

        make_postgres_tables(address)

    def reader(self, address: Address) -> AbstractContextManager[TableReader]:
        from accrual.store.admin import postgres_reader

        return postgres_reader(address)

    def backup(self, address: Address, to: Path) -> None:
        from accrual.store.admin import copy_tables

        copy_tables(address, to)

    def restore(self, address: Address, path: Path) -> None:
        from accrual.store.admin import restore_tables

        restore_tables(address, path)

    def recover(self, address: Address, path: Path, until: float | None) -> list[str]:
        raise InputError("PostgreSQL has means of its own to recover; this is for SQLite files")


BACKENDS: dict[str, Backend] = {"sqlite": SQLiteBackend(), "postgresql": PostgresBackend()}


def backend_of(address: Address) -> Backend:
    """Return the backend of a database."""
    return BACKENDS[address.scheme]


def open_store(url: str, readonly: bool = False) -> Store:
    """Open the store at `url`: ``sqlite:///plays.db`` or ``postgresql://user@host/name``.

    One process at a time may write to a SQLite file; any may open it with `readonly`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = open_store(f"sqlite:///{folder}/plays.db")
    ...     print(store.names())
    ...     store.close()
    []
    """
    address = parse(url)
    return backend_of(address).open_store(address, readonly)
