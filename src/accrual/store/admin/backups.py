"""Backups: a SQLite file with everything in it, of either database and for either.

A backup holds the database as it was at one moment, between two transactions, and is taken while others
write. It is a store like any other: it can be opened, verified and exported.
"""

from __future__ import annotations

import os

from accrual.core.errors import InputError
from accrual.core.files import replacing
from accrual.store.address import parse
from accrual.store.backends import backend_of
from accrual.store.sqlite import check_place, sync


def backup(url: str, path: str | os.PathLike[str]) -> None:
    """Write all that the database at `url` holds to a file at `path`, where none may be.

    Examples
    --------
    >>> import tempfile
    >>> from accrual.store.backends import open_store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     open_store(f"sqlite:///{folder}/plays.db").close()  # a new one
    ...     backup(f"sqlite:///{folder}/plays.db", f"{folder}/monday.db")
    ...     open_store(f"sqlite:///{folder}/monday.db").names()
    []
    """
    address = parse(url)
    check_place(path)
    with replacing(path, private=True) as partial:
        backend_of(address).backup(address, partial)
        sync(partial)
    sync(os.path.dirname(os.path.realpath(path)))


def restore(url: str, path: str | os.PathLike[str]) -> None:
    """Put all that a backup holds into the database at `url`, which must hold nothing yet."""
    address = parse(url)
    if not os.path.isfile(path):
        raise InputError(f"there is no backup at {os.fspath(path)}")
    backend_of(address).restore(address, path)
