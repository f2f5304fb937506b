"""Write files that appear whole or not at all, and lock files against other processes."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from accrual.core.errors import InputError

try:
    import fcntl
except ImportError:  # such as on Windows, where files are not locked: start each program only once there
    fcntl = None  # type: ignore[assignment]

# Text that spreadsheets take for a formula, also behind spaces, behind controls and in full-width letters.
_FORMULA = re.compile(r"[\s\x00-\x1f\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")


@contextmanager
def replacing(path: str | os.PathLike[str], private: bool = False) -> Iterator[Path]:
    """Yield a path to write to; if the block ends without an error, that file replaces `path`.

    The temporary file is beside `path`, because a rename is atomic only within one file system. It keeps
    the ending of `path`, which decides a picture's format. After an error, it is deleted. With `private`, the
    temporary file exists already, and only its owner may read and write it.

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
        if private:
            os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        yield partial
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def write_csv(path: str | os.PathLike[str], rows: Iterable[Iterable[Any]]) -> None:
    """Write rows, the head first, as a CSV file; it appears whole or not at all."""
    with replacing(path) as partial, open(partial, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([csv_cell(value) for value in row] for row in rows)


def csv_cell(value: Any) -> Any:
    """Return a value for a cell of a CSV file: text that a spreadsheet would run gets an apostrophe.

    Examples
    --------
    >>> csv_cell("jazz"), csv_cell(" =1+1"), csv_cell("-0.5"), csv_cell(-0.5)
    ('jazz', "' =1+1", '-0.5', -0.5)
    """
    if not isinstance(value, str):
        return value
    value = value.replace("\r", "\n")  # Python writes a lone \r without quotes, and readers begin a row there
    if not _FORMULA.match(value):
        return value
    try:
        float(value)
        return value
    except ValueError:
        return f"'{value}"


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
