"""Bandits in a SQLite file: one process writes, others may read."""

from __future__ import annotations

from accrual.store.sqlite.key_index import KeyIndex, hashes_between
from accrual.store.sqlite.rows import event_rows
from accrual.store.sqlite.store import SQLiteStore

__all__ = ["KeyIndex", "SQLiteStore", "event_rows", "hashes_between"]
