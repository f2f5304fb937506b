"""The schema version that this accrual reads and writes, and the refusal of any other.

Each kind of database has one schema: `sqlite/schema.sql` and `postgres/schema.sql`. When either changes,
change `VERSION` too.
"""

from __future__ import annotations

import os

from accrual.core.errors import InputError
from accrual.store.address import Address

VERSION = "1"

VERSION_TABLE = "accrual_version"
READ_VERSION = f"SELECT version_num FROM {VERSION_TABLE}"
SET_VERSION = f"INSERT INTO {VERSION_TABLE} (version_num) VALUES ('{VERSION}')"


def check_version(found: str | None, address: Address) -> None:
    """Refuse a database whose schema version is not `VERSION`; `found` is None where there are no tables."""
    if found is None:
        check_there(address)
        raise InputError(f"{address} has no tables of accrual; make them: accrual db init {address}")
    if found != VERSION:
        raise InputError(
            f"{address} has tables of schema version {found!r}, made by another accrual; this accrual reads "
            f"version {VERSION!r} only: install the other accrual, or use another database"
        )


def check_there(address: Address) -> None:
    """Refuse the address of a SQLite file that is not there, and of which nothing was left behind."""
    ends = ("", "-wal", "-shm", "-journal")
    if address.scheme == "sqlite" and not any(os.path.lexists(address.place + end) for end in ends):
        raise InputError(f"there is no file {address.place}; is the path right?")
