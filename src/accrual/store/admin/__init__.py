"""What an operator does with a database: back up, export, verify, recover, keep keys."""

from __future__ import annotations

from accrual.store.admin.backups import backup, copy_file, copy_tables, restore, restore_file, restore_tables
from accrual.store.admin.exports import export
from accrual.store.admin.key_table import KeyRow, KeyTable, PostgresKeys, SQLiteKeys, open_keys
from accrual.store.admin.readers import TableReader, open_reader, postgres_reader, sqlite_reader
from accrual.store.admin.recovery import recover, recover_file
from accrual.store.admin.verification import verify

__all__ = [
    "KeyRow",
    "KeyTable",
    "PostgresKeys",
    "SQLiteKeys",
    "TableReader",
    "backup",
    "copy_file",
    "copy_tables",
    "export",
    "open_keys",
    "open_reader",
    "postgres_reader",
    "recover",
    "recover_file",
    "restore",
    "restore_file",
    "restore_tables",
    "sqlite_reader",
    "verify",
]
