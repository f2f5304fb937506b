"""Bandits in a SQLite file: one process writes, others may read.

`SQLiteBackend` is all that can be done with such a file. `SQLiteStore` is its store; `connect_sqlite` opens
any SQLite file; `check_place`, `sync` and `write_file` are for backups, which are SQLite files whatever
database they are of.
"""

from accrual.store.sqlite.backend import SQLiteBackend as SQLiteBackend
from accrual.store.sqlite.backend import write_file as write_file
from accrual.store.sqlite.file import check_place as check_place
from accrual.store.sqlite.file import connect_sqlite as connect_sqlite
from accrual.store.sqlite.file import sync as sync
from accrual.store.sqlite.store import SQLiteStore as SQLiteStore
