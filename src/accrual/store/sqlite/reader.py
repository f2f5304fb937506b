"""The tables of a SQLite file as they are at one moment, and what can be verified of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

from accrual.store.address import Address
from accrual.store.base import StoreError, digest, one_line
from accrual.store.events import pack
from accrual.store.sqlite.checksums import SUMS, check_list, checked_row, columns_of
from accrual.store.sqlite.key_index import KeyIndex, hashes_between
from accrual.store.sqlite.lock import SQLITE_ERRORS
from accrual.store.sqlite.rows import event_rows

_CHUNK = 20_000  # rows at a time


def numbered(values: Sequence[Any]) -> dict[str, Any]:
    """Return values for a statement with $1, $2, ...: to SQLite these are names."""
    return {str(place): value for place, value in enumerate(values, 1)}


class SQLiteTableReader:
    """Reads the tables of a SQLite file, in the transaction of a connection."""

    def __init__(self, address: Address, connection: sqlite3.Connection) -> None:
        self.address = address
        self.connection = connection

    def chunks(self, query: str, *values: Any) -> Iterator[list[tuple[Any, ...]]]:
        try:
            cursor = self.connection.execute(query, numbered(values))
            while rows := cursor.fetchmany(_CHUNK):
                yield rows
        except SQLITE_ERRORS as error:
            raise StoreError(f"{self.address} cannot be read: {one_line(error)}") from error

    def value(self, query: str) -> Any:
        return next(self.chunks(query))[0][0]

    def damage(self) -> list[str]:
        """Return what SQLite itself finds wrong; otherwise the first row whose checksum is wrong."""
        try:
            rows = next(self.chunks("PRAGMA integrity_check"))
            found = [f"the file is damaged: {text}" for (text,) in rows if text != "ok"]
            if found:
                return found
            for table in SUMS:
                for row in self.connection.execute(f"SELECT {columns_of(table)} FROM {table}"):
                    checked_row(table, row, "a row")
            check_list(self.connection, "bandit")
            check_list(self.connection, "api_key")
        except (StoreError, *SQLITE_ERRORS) as error:
            return [str(error)]
        return []

    def wrong_copies(self) -> list[str]:
        """Return what is wrong with the blocks of events and with the index of keys."""
        try:
            return self._wrong_blocks() + self._wrong_keys()
        except StoreError as error:
            return [str(error)]

    def _wrong_blocks(self) -> list[str]:
        """Return what is wrong with the blocks of events: they must say what the tables say."""
        wrong = 0
        after: dict[int, int] = {}
        query = "SELECT bandit, seq, body, digest FROM block ORDER BY bandit, seq"
        for bandit, seq, body, was in self.connection.execute(query):
            events = pack(event_rows(self.connection, bandit, after.get(bandit, 0), seq))
            same = digest(bandit, seq, body) == was and body == events.tobytes()
            wrong += not same
            after[bandit] = seq
        for bandit, last in self.connection.execute("SELECT bandit, seq FROM head").fetchall():
            start = after.get(bandit, 0)
            if len(event_rows(self.connection, bandit, start, last)) != last - start:
                return [f"event {last} of bandit {bandit} is missing"]
        return [f"{wrong:,} blocks of events that are not those of the tables"] if wrong else []

    def _wrong_keys(self) -> list[str]:
        """Return what is wrong with the index of keys: it must find every key of the tables where it is."""
        wrong = 0
        for (bandit,) in self.connection.execute("SELECT number FROM bandit").fetchall():
            (last,) = self.connection.execute(
                "SELECT coalesce(max(seq), 0) FROM key_run WHERE bandit = ?", (bandit,)
            ).fetchone()
            index = KeyIndex(self.connection, bandit, last)
            for after in range(0, last, _CHUNK):
                upto = min(after + _CHUNK, last)
                for hash_, kind, row in hashes_between(self.connection, bandit, after, upto):
                    wrong += row not in index.find(hash_, kind)
        return [f"{wrong:,} keys that their index does not find"] if wrong else []
