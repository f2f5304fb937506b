"""Which source files the result of some code depends on: its own, and those that it imports."""

from __future__ import annotations

import functools
import hashlib
import re
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[3]  # the folder that holds the package
# Only imports at the left margin, or first in a `try` there. Others are for type checkers, or for work that a
# kernel does not do, such as drawing a picture.
_IMPORT = re.compile(r"^(?:try:\n +)?from (accrual[\w.]*) import (\([^)]*\)|.*)$", re.MULTILINE)


def source_files(path: Path) -> frozenset[Path]:
    """Return a file and all files of this package that it imports, directly or through others.

    Examples
    --------
    >>> import accrual.core.random as random
    >>> sorted({path.parent.name for path in source_files(Path(random.__file__))})
    ['core', 'jit']
    """
    seen: set[Path] = set()
    todo = [path]
    while todo:
        file = todo.pop()
        if file not in seen:
            seen.add(file)
            for module, names in _IMPORT.findall(file.read_text(encoding="utf-8")):
                parts = [module, *(f"{module}.{name}" for name in re.findall(r"\w+", names))]
                todo.extend(found for part in parts if (found := _file_of(part)) is not None)
    return frozenset(seen)


@functools.cache
def source_hash(path: Path) -> str:
    """Hash the contents of a file's `source_files`."""
    digest = hashlib.sha256()
    for file in sorted(source_files(path)):
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _file_of(module: str) -> Path | None:
    """Return the file of a module of this package; None where there is no such module."""
    place = _ROOT.joinpath(*module.split("."))
    return next((file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()), None)
