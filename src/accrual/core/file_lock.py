"""Lock a file against other processes; the operating system drops the lock when a process ends."""

from __future__ import annotations

try:
    import fcntl
except ImportError:  # such as on Windows: files are not locked there, and each program has to run once only
    fcntl = None  # type: ignore[assignment]


def try_lock(descriptor: int) -> bool:
    """Lock the open file, and tell whether that worked: not if another process has locked it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as first, open(first.name) as second:
    ...     print(try_lock(first.fileno()), try_lock(second.fileno()))
    ...     unlock(first.fileno())
    ...     print(try_lock(second.fileno()))
    True False
    True
    """
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def unlock(descriptor: int) -> None:
    """Unlock the open file, so that others can lock it."""
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
