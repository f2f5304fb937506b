"""A SQLite file: how it is made, how it is opened, and who may write to it.

A file that is in use has one connection that writes durably and one that reads (`SQLiteFile`). Its locks are
in `accrual.store.sqlite.lock`.

SQLite's checksum VFS (https://sqlite.org/cksumvfs.html) writes a checksum to the last 8 bytes of every page
and checks it whenever a page is read, so damaged rows and damaged indexes are refused. apsw brings SQLite and
this VFS; Python's own sqlite3 module cannot have it. What the write-ahead log has lost is noticed by a note
beside the file: see `SQLiteFile.acknowledge`.
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TypeVar
from zlib import crc32

import apsw
import apsw.sqlite_extra

from accrual.core.errors import InputError
from accrual.store.address import Address, sqlite_address
from accrual.store.base import StoreClosed, StoreDamaged, StoreError, one_line
from accrual.store.schema import READ_VERSION, SET_VERSION, VERSION_TABLE, check_version
from accrual.store.sqlite.lock import Connection, FileLock

_CACHE = 16_384  # KiB
_CHECKPOINT = 4_000  # pages of the write-ahead log: a page is in it many times over
_BESIDE = ("-wal", "-shm", "-journal")  # what SQLite adds to a file's name for files that belong to it
_CHECKSUM = 8  # bytes at the end of each page
_BUSY = 10_000  # milliseconds to wait for another process that writes
_NOTE = struct.Struct("<qqI")  # the last append: bandit and position; and a CRC-32 of both
_MODES = {"ro": apsw.SQLITE_OPEN_READONLY, "rw": apsw.SQLITE_OPEN_READWRITE}
_T = TypeVar("_T")


@cache
def _load_checksums() -> None:
    """Make the checksum VFS that of all later connections of apsw in this process."""
    try:
        with closing(apsw.Connection(":memory:")) as connection:
            apsw.sqlite_extra.load(connection, "cksumvfs")
    except (apsw.sqlite_extra.NotAvailable, LookupError, apsw.Error) as error:
        raise InputError(
            f"this apsw does not have SQLite's checksum VFS ({one_line(error)}); install apsw from PyPI: "
            "pip install --force-reinstall apsw"
        ) from None


def connect_sqlite(address: Address, mode: str) -> Connection:
    """Open a connection that begins no transaction by itself; `mode` is ro or rw."""
    _load_checksums()
    path = os.path.abspath(address.place)
    try:
        place = "file:" + "".join(f"%{byte:02x}" for byte in os.fsencode(path))
        connection = Connection(place, flags=_MODES[mode] | apsw.SQLITE_OPEN_URI)
        connection.watch(path)
        connection.set_busy_timeout(_BUSY)
        return connection
    except (apsw.Error, OSError) as error:
        raise InputError(f"cannot open {address}: {one_line(error)}") from None


# The tables of a file.


def file_version(address: Address) -> str | None:
    """Return the schema version of a SQLite file; None where there is no file, or no tables of accrual."""
    if not os.path.exists(address.place):
        return None
    if not os.path.getsize(address.place):
        raise InputError(
            f"{address} has 0 bytes, so whatever it held is lost: restore a backup; or, to start empty, "
            "remove the file first"
        )
    # A power cut while the file was being made leaves a journal. SQLite must undo what the journal holds
    # before anything can be read, and only a connection that may write does so.
    mode = "rw" if os.path.exists(f"{address.place}-journal") else "ro"
    with closing(connect_sqlite(address, mode)) as connection:
        version = version_of(connection, address)
        if version is not None and connection.reserve_bytes() != _CHECKSUM:
            raise StoreDamaged(f"{address}: its pages have no checksums; copy it with accrual db restore")
        return version


def version_of(connection: apsw.Connection, address: Address) -> str | None:
    """Return the schema version of an open SQLite file; None where there are no tables of accrual."""
    try:
        tables = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
        made = connection.execute(tables, (VERSION_TABLE,)).fetchone() is not None
        version: str | None = connection.execute(READ_VERSION).get if made else None
        return version
    except apsw.Error as error:
        if is_damage(error):
            raise failure(f"{address} cannot be read", error) from None
        raise InputError(f"cannot read {address}: {one_line(error)}") from None


def make_tables(address: Address) -> None:
    """Make the tables in a SQLite file, and the file where there is none.

    A new file appears whole or not at all, and only where there is no file.
    """
    if os.path.lexists(address.place):
        with closing(connect_sqlite(address, "rw")) as connection:
            _make_tables(connection, address, "WAL")
        return
    place = os.path.realpath(address.place)
    stale = _left_beside(place)
    if stale and not os.path.lexists(place):  # otherwise another process has made the file meanwhile
        raise InputError(
            f"there is no {place}, but {' and '.join(stale)} of an earlier database, which SQLite would "
            "read as a part of the new one; put the earlier database back, or, to start empty, move away "
            f"{' and '.join(stale)}"
        )
    partial = f"{place}.{os.urandom(8).hex()}.new"
    try:
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with closing(connect_sqlite(sqlite_address(partial), "rw")) as connection:
            _make_tables(connection, address, "MEMORY")  # so that no other files lie beside it
        with suppress(FileExistsError):  # another process has made it meanwhile
            os.link(partial, place)
        sync(Path(place).parent)
    except OSError as error:
        raise InputError(f"cannot open {address}: {error.strerror}") from None
    finally:
        with suppress(OSError):
            os.unlink(partial)


def _make_tables(connection: Connection, address: Address, journal: str) -> None:
    found = version_of(connection, address)
    if found is not None:
        check_version(found, address)
        return
    try:
        add_checksums(connection)
        connection.execute(f"PRAGMA journal_mode = {journal}")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN IMMEDIATE")
        if version_of(connection, address) is None:  # another process may have made them meanwhile
            connection.execute(Path(__file__).with_name("schema.sql").read_text(encoding="utf-8"))
            connection.execute(SET_VERSION)
        connection.execute("COMMIT")
    except apsw.Error as error:
        raise InputError(f"cannot make tables in {address}: {one_line(error)}") from None


def add_checksums(connection: apsw.Connection) -> None:
    """Write a file that has no checksums anew, so that it has them."""
    if connection.reserve_bytes() != _CHECKSUM:
        connection.reserve_bytes(reserve=_CHECKSUM)
        connection.execute("VACUUM")


# The place of a file.


def _left_beside(place: str) -> list[str]:
    """Return the files beside a database that SQLite would read as a part of it."""
    return [place + end for end in _BESIDE if os.path.lexists(place + end)]


def note_of(place: str) -> str:
    """Return where the note of the last append to a file is: see `SQLiteFile.acknowledge`."""
    return f"{os.path.realpath(place)}.last"


def check_place(path: str | os.PathLike[str]) -> None:
    """Refuse a place for a new file where a file is, or what SQLite would read as a part of the new file.

    A write-ahead log that was left behind by another database would be replayed into it.
    """
    place = os.path.realpath(path)
    there = [place] * os.path.lexists(place) + _left_beside(place)
    if there:
        raise InputError(
            f"there is {' and '.join(there)} already; choose another place, or move away all files that "
            f"belong together: {', '.join(place + end for end in ('', *_BESIDE))}"
        )


def sync(path: str | os.PathLike[str]) -> None:
    """Wait until a file or a folder is on the disk."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


# A file in use.


class SQLiteFile:
    """The connections of this process to a SQLite file. Any number of threads may use them.

    Parameters
    ----------
    path : str
        Made if there is none.
    readonly : bool
        Read what another process may be writing.
    forget : callable
        Called when a transaction fails: what the caller remembers of it may not be stored.
    """

    def __init__(self, path: str, readonly: bool, forget: Callable[[], None]) -> None:
        self.address = sqlite_address(path)
        self.writer: apsw.Connection | None = None
        """None where it is open for reading only, or closed."""
        self._forget = forget
        self._process = os.getpid()
        self._writing, self._reading = threading.Lock(), threading.Lock()
        self._lock: FileLock | None = None
        self._note: int | None = None
        self._closed = False
        if readonly:
            check_version(file_version(self.address), self.address)
        else:
            place = self.address.place
            if not os.path.lexists(place):
                make_tables(self.address)
            self._lock = FileLock(
                place,
                f"{self.address} is open for writing already, by a running service for example; only one "
                "store at a time may write to it",
            )
        with self.opening():
            if self._lock is not None:
                check_version(file_version(self.address), self.address)
                _rewrite_wal(self.address)
                self.writer = _connect_durably(self.address)
                self._open_note(self.writer)
            self.reader = connect_sqlite(self.address, "ro")

    @contextmanager
    def opening(self) -> Iterator[None]:
        """Close the file if the block fails, and raise an error that says that it cannot be opened."""
        try:
            yield
        except apsw.Error as error:
            self.close()
            raise failure(f"{self.address} cannot be opened", error) from error
        except BaseException:
            self.close()
            raise

    def _open_note(self, connection: apsw.Connection) -> None:
        """Open the note of the last append, and refuse a file that has lost that append with its log.

        SQLite ends a write-ahead log at the first frame whose checksum is wrong, without a word, because a
        power cut leaves the last transaction half written.
        """
        path = note_of(self.address.place)
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            note = os.pread(file, _NOTE.size, 0)
        except OSError as error:
            raise InputError(f"cannot open {path}: {error.strerror}") from None
        if len(note) == _NOTE.size and _NOTE.unpack(note)[2] == crc32(note[:-4]):
            bandit, seq, _ = _NOTE.unpack(note)
            head = connection.execute("SELECT seq FROM head WHERE bandit = ?", (bandit,)).fetchone()
            if head is not None and head[0] < seq:
                os.close(file)
                raise StoreDamaged(
                    f"{self.address}: damaged: events that were acknowledged are lost: the log of bandit "
                    f"{bandit} ends at {head[0]:,}, not at {seq:,}; restore a backup, or, to go on without "
                    f"these events, remove {path}"
                )
        self._note = file

    def acknowledge(self, bandit: int, seq: int) -> None:
        """Note an append after it was committed. The note is not synced: after a power cut it may be old."""
        if self._note is not None:
            body = _NOTE.pack(bandit, seq, 0)[:-4]
            with suppress(OSError):  # the append is durable all the same
                os.pwrite(self._note, body + struct.pack("<I", crc32(body)), 0)

    @contextmanager
    def transaction(self) -> Iterator[apsw.Connection]:
        """Yield the writing connection: what the block does is synced at its end, or undone if it fails."""
        self._check_process()
        with self._writing:
            connection = self.writer
            if connection is None or self._lock is None:
                raise InputError(f"{self.address} is open for reading only, or closed")
            self._lock.check()
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            except BaseException as error:
                self._forget()
                self._roll_back(connection)
                if isinstance(error, apsw.Error):
                    raise failure(f"{self.address} cannot be written", error) from error
                if isinstance(error, StoreError):
                    raise type(error)(f"{self.address}: {one_line(error)}") from None
                raise

    def checkpoint(self, how: str = "PASSIVE") -> None:
        """Move the write-ahead log into the database; with TRUNCATE, empty it too if no reader needs it."""
        with self._writing:
            if self.writer is not None:
                self.writer.execute(f"PRAGMA wal_checkpoint({how})")

    def _roll_back(self, connection: apsw.Connection) -> None:
        """End a transaction that failed, if need be with a new connection."""
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except apsw.Error:
            connection.close()
            self.writer = _connect_durably(self.address)

    def _check_process(self) -> None:
        """Refuse a forked process: connections and the lock belong to the process that made them."""
        if os.getpid() != self._process:
            raise InputError(f"{self.address} was opened before a fork; open it again in the new process")

    def read(self, job: Callable[[apsw.Connection], _T]) -> _T:
        """Return what `job` reads, all of it at one moment."""
        self._check_process()
        with self._reading:
            if self._closed:
                raise StoreClosed("the store has been closed")
            try:
                self.reader.execute("BEGIN")
                try:
                    return job(self.reader)
                finally:
                    if self.reader.in_transaction:  # some errors end it
                        self.reader.execute("ROLLBACK")
            except apsw.Error as error:
                raise failure(f"{self.address} cannot be read", error) from error
            except StoreDamaged as error:
                raise StoreDamaged(f"{self.address}: {one_line(error)}") from None

    def close(self) -> None:
        """Close the connections and release the lock."""
        if os.getpid() != self._process:
            return  # it is another process's
        with self._writing, self._reading:
            reader = getattr(self, "reader", None)
            if reader is not None:
                reader.close()
            if self.writer is not None:
                self.writer.close()  # the last to close moves the write-ahead log into the database
            self.writer = None
            self._closed = True
            if self._note is not None:
                os.close(self._note)
                self._note = None
                with suppress(OSError):
                    os.unlink(note_of(self.address.place))  # all is in the database itself
            if self._lock is not None:
                self._lock.release()


def _connect_durably(address: Address) -> apsw.Connection:
    """Return a connection that syncs what it commits. (A backup, for example, has no write-ahead log yet.)"""
    connection = connect_sqlite(address, "rw")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA cache_size = {-_CACHE}")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT}")
    return connection


def _rewrite_wal(address: Address) -> None:
    """Write the write-ahead log again, as it is.

    After a sync that failed, the system may show what was written and yet never write it to the disk. SQLite
    would take that for committed and append to it. SQLite's own lock keeps other processes from writing
    meanwhile.
    """
    wal = f"{os.path.realpath(address.place)}-wal"
    if not os.path.exists(wal):
        return
    with closing(connect_sqlite(address, "rw")) as connection:
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


def is_damage(error: apsw.Error) -> bool:
    """Return whether an error of SQLite says that the file is damaged."""
    wrong_checksum = getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_DATA
    return wrong_checksum or isinstance(error, apsw.CorruptError)


def failure(what: str, error: apsw.Error) -> StoreError:
    """Return the error to raise for an error of SQLite: the file cannot be reached now, or is damaged."""
    if not is_damage(error):
        return StoreError(f"{what}: {one_line(error)}")
    wrong = "a page has a wrong checksum" if isinstance(error, apsw.IOError) else one_line(error)
    return StoreDamaged(f"{what}: damaged: {wrong}; restore a backup")
