"""Bandits in a SQLite file: one process writes, others may read.

`SQLiteBackend` is all that can be done with such a file. `SQLiteStore` is its store; `connect_sqlite` opens
any SQLite file; `check_place`, `sync` and `write_file` are for backups, which are SQLite files whatever
database they are of.
"""

from __future__ import annotations

from accrual.store.sqlite.backend import SQLiteBackend, write_file
from accrual.store.sqlite.file import check_place, connect_sqlite, sync
from accrual.store.sqlite.store import SQLiteStore

__all__ = ["SQLiteBackend", "SQLiteStore", "check_place", "connect_sqlite", "sync", "write_file"]
