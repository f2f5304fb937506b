"""Locks on SQLite files. The operating system releases them when a process ends."""

from __future__ import annotations

import os
import stat
import threading
from collections import Counter

import apsw

from accrual.core.errors import InputError
from accrual.core.files import try_lock, unlock
from accrual.store.base import StoreError

Inode = tuple[int, int]

# A process that closes any descriptor of a file loses SQLite's locks on the file. So the descriptor that has
# the lock stays open until this process has no connection to the file.
_descriptors: dict[Inode, int] = {}
_held: set[Inode] = set()
_connections: Counter[Inode] = Counter()
_registry = threading.Lock()


def _inode(path: str) -> Inode:
    found = os.stat(path)
    return (found.st_dev, found.st_ino)


def _close_unused(inode: Inode) -> None:
    if inode not in _held and not _connections[inode] and inode in _descriptors:
        os.close(_descriptors.pop(inode))


class Connection(apsw.Connection):
    """A connection to a SQLite file that is counted among the open ones of its file (see `_connections`)."""

    _file: Inode | None = None

    def watch(self, path: str) -> None:
        """Count this connection as one to the file at `path`."""
        self._file = _inode(path)
        with _registry:
            _connections[self._file] += 1

    def close(self, force: bool = False) -> None:
        super().close(force)
        if self._file is not None:
            with _registry:
                _connections[self._file] -= 1
                _close_unused(self._file)
            self._file = None


class FileLock:
    """A lock on a file, taken at once; if another process has it, an `InputError` says `why`.

    The lock is on the file itself, whatever path leads to it: a link to it is the same file.

    Parameters
    ----------
    path : str
        A file that is there.
    """

    def __init__(self, path: str, why: str) -> None:
        self.path = os.path.realpath(path)
        self._mine = False
        try:
            if not stat.S_ISREG(os.stat(self.path).st_mode):
                raise InputError(f"{path} is not a file")
            with _registry:
                self.inode = _inode(self.path)
                if self.inode in _held:
                    raise InputError(why)
                if self.inode not in _descriptors:
                    _descriptors[self.inode] = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
                if not try_lock(_descriptors[self.inode]):
                    _close_unused(self.inode)
                    raise InputError(why)
                _held.add(self.inode)
        except OSError as error:
            raise InputError(f"cannot open {path}: {error.strerror}") from None
        self._mine = True

    def check(self) -> None:
        """Raise `StoreError` if the path leads to another file by now, or to none."""
        try:
            found = _inode(self.path)
        except OSError as error:
            raise StoreError(f"{self.path} was removed or cannot be reached: {error.strerror}") from None
        if found != self.inode:
            raise StoreError(f"{self.path} was replaced by another file while it was open; start again")

    def release(self) -> None:
        """Release the lock."""
        if self._mine:
            self._mine = False
            with _registry:
                _held.discard(self.inode)
                unlock(_descriptors[self.inode])
                _close_unused(self.inode)
