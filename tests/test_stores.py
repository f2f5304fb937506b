"""Every store passes the published suite; and what is particular to PostgreSQL."""

from __future__ import annotations

from tests.postgres import server

from accrual.store.memory import MemoryStore
from accrual.store.postgres import PostgresStore
from accrual.store.sqlite import SQLiteStore
from accrual.testing import StoreSuite


class TestMemory(StoreSuite):
    durable = False

    def open_store(self, place):
        return MemoryStore()


class TestSQLite(StoreSuite):
    def open_store(self, place):
        return SQLiteStore(place / "plays.db")


class TestPostgres(StoreSuite):
    def open_store(self, place):
        note = place / "url"
        if not note.exists():
            note.write_text(server().tables())
        return PostgresStore(note.read_text())
