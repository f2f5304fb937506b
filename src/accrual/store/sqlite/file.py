"""A SQLite file as it is opened: one connection that writes durably, one that reads, and the locks."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TypeVar

from accrual.core.errors import InputError
from accrual.store import migrate
from accrual.store.address import Address, sqlite_address
from accrual.store.base import StoreClosed, StoreDamaged, StoreError, one_line
from accrual.store.lock import SQLITE_ERRORS, FileLock, Turn
from accrual.store.sqlite.wal import check_wal

_CACHE = 16_384  # KiB
_CHECKPOINT = 4_000  # pages of the write-ahead log: a page is in it many times over
_T = TypeVar("_T")


class SQLiteFile:
    """The connections of this process to a SQLite file. Any number of threads may use them.

    Parameters
    ----------
    path : str
        Made if there is none.
    readonly : bool
        Read what another process may be writing.
    forget : callable
        Called when a transaction fails: what the caller remembered of it may not have come to pass.

    Attributes
    ----------
    writer : sqlite3.Connection or None
        None where it is open for reading only, or closed.
    reader : sqlite3.Connection
    """

    def __init__(self, path: str, readonly: bool, forget: Callable[[], None]) -> None:
        self.address = sqlite_address(path)
        self.writer: sqlite3.Connection | None = None
        self._forget = forget
        self._process = os.getpid()
        self._writing, self._reading = threading.Lock(), threading.Lock()
        self._lock: FileLock | None = None
        self._turn: Turn | None = None
        self._closed = False
        if readonly:
            migrate.check(migrate.current(str(self.address)), self.address)
        else:
            place = self.address.place
            if not os.path.lexists(place):
                migrate.make_tables(str(self.address))
            self._lock = FileLock(
                place,
                f"{self.address} is open for writing already; only one store at a time may write to it",
            )
        with self.opening():
            if self._lock is not None:
                self._turn = Turn(self.address.place)
                with self._turn.taken():
                    migrate.check(migrate.current(str(self.address)), self.address)
                    _rewrite_wal(self.address)
                    self.writer = _connect_durably(self.address)
            self.reader = migrate.connect_sqlite(self.address, "ro")

    @contextmanager
    def opening(self) -> Iterator[None]:
        """Close the file if the block fails, and say that it cannot be opened."""
        try:
            yield
        except SQLITE_ERRORS as error:
            self.close()
            raise _failure(f"{self.address} cannot be opened", error) from error
        except BaseException:
            self.close()
            raise

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Give the writing connection: what the block does is synced at its end, or undone if it fails."""
        self._check_process()
        with self._writing:
            connection = self.writer
            if connection is None or self._lock is None or self._turn is None:
                raise InputError(f"{self.address} is open for reading only, or closed")
            self._lock.check()
            with self._turn.taken():
                try:
                    connection.execute("BEGIN IMMEDIATE")
                    yield connection
                    connection.execute("COMMIT")
                except BaseException as error:
                    self._forget()
                    self._roll_back(connection)
                    if isinstance(error, SQLITE_ERRORS):
                        raise _failure(f"{self.address} cannot be written", error) from error
                    if isinstance(error, StoreError):
                        raise type(error)(f"{self.address}: {one_line(error)}") from None
                    raise

    def checkpoint(self) -> None:
        """Move the write-ahead log into the database and empty it, unless a reader still needs it."""
        with self._writing:
            if self.writer is not None and self._turn is not None:
                with self._turn.taken():
                    self.writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _roll_back(self, connection: sqlite3.Connection) -> None:
        """End a transaction that failed, if need be with a new connection."""
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            connection.close()
            self.writer = _connect_durably(self.address)

    def _check_process(self) -> None:
        """Complain in a forked process: connections and the lock belong to the process that made them."""
        if os.getpid() != self._process:
            raise InputError(f"{self.address} was opened before a fork; open it again in the new process")

    def read(self, job: Callable[[sqlite3.Connection], _T]) -> _T:
        """Return what `job` reads, all of it as of one moment."""
        self._check_process()
        with self._reading:
            if self._closed:
                raise StoreClosed("the store has been closed")
            try:
                self.reader.execute("BEGIN")
                try:
                    return job(self.reader)
                finally:
                    self.reader.execute("ROLLBACK")
            except SQLITE_ERRORS as error:
                raise _failure(f"{self.address} cannot be read", error) from error
            except StoreDamaged as error:
                raise StoreDamaged(f"{self.address}: {one_line(error)}") from None

    def close(self) -> None:
        """Close the connections, and let other processes write to the file."""
        if os.getpid() != self._process:
            return  # it is another process's
        with self._writing, self._reading:
            reader = getattr(self, "reader", None)
            if reader is not None:
                reader.close()
            if self.writer is not None and self._turn is not None:
                with self._turn.taken():  # the last to close moves the write-ahead log into the database
                    self.writer.close()
            self.writer = None
            self._closed = True
            if self._turn is not None:
                self._turn.close()
            if self._lock is not None:
                self._lock.release()


def _connect_durably(address: Address) -> sqlite3.Connection:
    """Return a connection that syncs what it commits. A backup, for one, has no write-ahead log yet."""
    connection = migrate.connect_sqlite(address, "rw")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA cache_size = {-_CACHE}")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT}")
    return connection


def _rewrite_wal(address: Address) -> None:
    """Write the write-ahead log again, as it is.

    After a sync that failed, the system may show what was written and yet never put it on the disk.
    SQLite would take it for committed and write on behind it. While this writes, no other process may:
    SQLite's own lock sees to that, and `Turn`.
    """
    wal = f"{os.path.realpath(address.place)}-wal"
    if not os.path.exists(wal):
        return
    check_wal(wal, address)
    with closing(migrate.connect_sqlite(address, "rw")) as connection:
        connection.execute("BEGIN IMMEDIATE")
        try:
            with open(wal, "r+b") as log:
                body = log.read()
                log.seek(0)
                log.write(body)
                log.flush()
                os.fsync(log.fileno())
        except FileNotFoundError:
            pass
        except OSError as error:
            raise StoreError(f"{address} cannot be written: {error.strerror}") from error
        finally:
            connection.execute("ROLLBACK")


def _failure(what: str, error: Exception) -> StoreError:
    """Return the error to raise for one of SQLite's: the file is out of reach for now, or damaged."""
    text = one_line(error)
    broken = type(error) in (sqlite3.DatabaseError, UnicodeDecodeError) or text.startswith(
        ("Could not decode", "no such")
    )
    return (StoreDamaged if broken else StoreError)(f"{what}: {text}")
