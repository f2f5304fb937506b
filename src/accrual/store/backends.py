"""The kinds of database that a store can be in, and what can be done with each.

All that differs between databases is behind `Backend`. Data flows one way: this module and those below it
know no database; each database has a sub-room with a class that implements `Backend`; `BACKENDS` names that
class. To add a database, write its sub-room and add a row.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pkgutil import resolve_name
from typing import Any, NamedTuple, Protocol

from accrual.store.address import Address, parse
from accrual.store.base import Store
from accrual.store.events import KeyTableRow, quoted
from accrual.store.schema import check_version

Path = str | os.PathLike[str]
Statements = Sequence[tuple[str, tuple[Any, ...]]]  # each with the values of $1, $2, ...

# The class of each scheme of an address. It is imported when it is first needed: nobody pays for a driver
# that is not used.
BACKENDS = {
    "sqlite": "accrual.store.sqlite:SQLiteBackend",
    "postgresql": "accrual.store.postgres:PostgresBackend",
}


class TableReader(Protocol):
    """Reads the tables of a database, all of them at one moment."""

    address: Address

    def chunks(self, query: str, *values: Any) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows of a query, some thousands at a time; `values` replace $1, $2, ... in the query."""

    def value(self, query: str) -> Any:
        """Return the only value that a query returns."""

    def damage(self) -> list[str]:
        """Return what is damaged so that the tables cannot be read or trusted."""

    def wrong_copies(self) -> list[str]:
        """Return what is wrong with what this database stores besides the tables and could make from them."""


class KeyRow(NamedTuple):
    """The API key of a client of the service, as it is stored.

    What makes a key valid is the business of `accrual.service.keys`. Only the SHA-256 digest of the secret is
    stored, and the secret is 256 random bits: nothing stored leads back to it.
    """

    id: str
    name: str
    scopes: frozenset[str]
    digest: bytes
    made: float
    ends: float | None  # the key is not valid from this time on


class KeyTable(ABC):
    """All API keys that there have been, in the database of the bandits.

    A running service and `accrual keys` may use the table at the same time.
    """

    @abstractmethod
    def all(self) -> list[KeyRow]:
        """Return all keys, in the order in which they were made."""

    def add(self, row: KeyRow, ends_other: tuple[str, float] | None = None) -> None:
        """Add a key; with `ends_other`, let another key (its id) end at a time, in the same transaction."""
        stored = KeyTableRow(
            id=row.id, name=row.name, scopes=" ".join(sorted(row.scopes)), digest=row.digest, made=row.made,
            ends=row.ends,
        )  # fmt: skip
        statements: list[tuple[str, tuple[Any, ...]]] = [(_ADD_KEY, tuple(stored))]
        if ends_other is not None:
            statements.append((_END_KEY, ends_other[::-1]))
        self._run(statements)

    def end(self, id: str, at: float) -> bool:
        """End a key at `at`, unless it ends before. Return False if there is no key of this id."""
        return bool(self._run([(_END_KEY, (at, id))]))

    @abstractmethod
    def close(self) -> None:
        """Close the connections to the database."""

    @abstractmethod
    def _run(self, statements: Statements) -> list[Any]:
        """Run statements in one transaction; return the rows of the last."""


_MARKS = ", ".join(f"${place}" for place in range(1, len(KeyTableRow._fields) + 1))
_ADD_KEY = f"INSERT INTO api_key ({quoted(KeyTableRow._fields)}) VALUES ({_MARKS})"
_END_KEY = "UPDATE api_key SET ends = CASE WHEN ends < $1 THEN ends ELSE $1 END WHERE id = $2 RETURNING id"


def key_of(found: Sequence[Any]) -> KeyRow:
    """Return a row of table `api_key` as a key."""
    row = KeyTableRow._make(found)
    return KeyRow(row.id, row.name, frozenset(row.scopes.split()), bytes(row.digest), row.made, row.ends)


class Backend(Protocol):
    """What can be done with a database of one kind. Callers check the schema version, except as stated."""

    several_workers: bool  # whether several processes may write to one database
    makes_itself: bool  # whether a database that is not there is made when it is first opened

    def open_store(self, address: Address, readonly: bool) -> Store:
        """Open the store, if its schema version is ours."""

    def open_keys(self, address: Address) -> KeyTable:
        """Open the table of API keys."""

    def version(self, address: Address) -> str | None:
        """Return the schema version of the database; None where there are no tables of accrual."""

    def make_tables(self, address: Address) -> None:
        """Make the tables where there are none; refuse those of another schema version."""

    def reader(self, address: Address) -> AbstractContextManager[TableReader]:
        """Read tables, all of them at one moment."""

    def backup(self, address: Address, to: Path) -> None:
        """Write all that the database holds to a SQLite file, which is there and empty."""

    def restore(self, address: Address, path: Path) -> None:
        """Put all that a backup holds into a database that holds nothing yet."""


def backend_of(address: Address) -> Backend:
    """Return the backend of a database."""
    backend: Backend = resolve_name(BACKENDS[address.scheme])()
    return backend


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


def schema_version(url: str) -> str | None:
    """Return the schema version of a database; None where there are no tables of accrual.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     url = f"sqlite:///{folder}/plays.db"
    ...     before = schema_version(url)
    ...     make_tables(url)
    ...     before, schema_version(url)
    (None, '1')
    """
    address = parse(url)
    return backend_of(address).version(address)


def make_tables(url: str) -> None:
    """Make the tables of a database that has none; refuse tables of another schema version."""
    address = parse(url)
    backend_of(address).make_tables(address)


def check_tables(url: str) -> Backend:
    """Refuse a database that has no tables of accrual, or those of another version; return its backend."""
    address = parse(url)
    backend = backend_of(address)
    check_version(backend.version(address), address)
    return backend


def open_keys(url: str) -> KeyTable:
    """Open the table of API keys in the database at `url`, which must have the tables of accrual.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     url = f"sqlite:///{folder}/plays.db"
    ...     make_tables(url)
    ...     table = open_keys(url)
    ...     table.add(KeyRow("k1", "shop", frozenset({"write"}), b"digest", 1.0, None))
    ...     table.end("k1", 5.0), table.end("k2", 5.0)
    ...     table.all()
    ...     table.close()
    (True, False)
    [KeyRow(id='k1', name='shop', scopes=frozenset({'write'}), digest=b'digest', made=1.0, ends=5.0)]
    """
    return check_tables(url).open_keys(parse(url))


@contextmanager
def open_reader(url: str) -> Iterator[TableReader]:
    """Read the tables of the database at `url`, if its schema version is ours."""
    with check_tables(url).reader(parse(url)) as reader:
        yield reader
