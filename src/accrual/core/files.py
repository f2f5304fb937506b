"""Write files that appear whole or not at all, and lock files against other processes."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from accrual.core.errors import InputError

try:
    import fcntl
except ImportError:  # such as on Windows, where files are not locked: start each program only once there
    fcntl = None  # type: ignore[assignment]


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a path to write to; if the block ends without an error, that file replaces `path`.

    The temporary file lies beside `path`, because a rename is atomic only within one file system. It keeps
    the ending of `path`, which decides a picture's format. After an error, it is deleted.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(f"{folder}/a.txt") as partial:
    ...         _ = partial.write_text("all of it")
    ...     os.listdir(folder)
    ['a.txt']
    """
    target = Path(os.path.realpath(path))  # a link's own target is replaced, not the link
    if not target.parent.is_dir():
        raise InputError(f"{path}: there is no folder {str(target.parent)!r}")
    # Two machines that share the folder may have the same process number.
    partial = target.with_name(f".{target.stem}.{os.urandom(8).hex()}.part{target.suffix}")
    try:
        yield partial
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def write_csv(path: str | os.PathLike[str], rows: Iterable[Iterable[Any]]) -> None:
    """Write rows, the head first, as a CSV file; it appears whole or not at all."""
    with replacing(path) as partial, open(partial, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def try_lock(descriptor: int) -> bool:
    """Lock the open file; return False if another process has locked it.

    The operating system drops the lock when the process ends.

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
