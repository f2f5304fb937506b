"""A lock on a file, for as long as a process lives: the operating system lets go of it."""

from __future__ import annotations

import os

from accrual.core.errors import InputError

try:
    import fcntl
except ImportError:  # no such locks: whoever runs two writers there is on their own
    fcntl = None  # type: ignore[assignment]


class FileLock:
    """Held from the start, or an `InputError` that says `why` it cannot be.

    Parameters
    ----------
    path : str
        A file of the lock's own. It stays: to remove it would let two hold it.
    why : str
    """

    def __init__(self, path: str, why: str) -> None:
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise InputError(f"cannot open {path}: {error.strerror}") from None
        if fcntl is not None:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(self._file)
                raise InputError(why) from None

    def release(self) -> None:
        """Let others have it."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
