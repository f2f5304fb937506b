"""Checksums of rows: what a SQLite file holds is what was stored, or the file is refused.

SQLite itself has checksums only for its write-ahead log. So every row that anything is computed from has a
checksum of all its columns: a CRC-32, which finds any single wrong byte. Blocks of events, pages of keys and
snapshots have a digest (`accrual.store.base.digest`).
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any
from zlib import crc32

from accrual.store.base import StoreDamaged
from accrual.store.events import TABLES, column_types, quoted

_LAST: dict[type, Callable[[Any], bytes]] = {
    bytes: bytes,
    int: struct.Struct("<q").pack,
    float: lambda value: struct.pack("<d", value + 0.0),
}
_CODES = {int: "q", float: "d", bool: "B"}
Row = Sequence[Any]


def _row_sum(table: str) -> Callable[[Row], int]:
    """Return the function that computes the checksum of a row of a table, from the types of its columns.

    First come all texts, then all numbers, then all flags. Last come bytes, and what may be NULL and is no
    text; each with its place. A NULL adds nothing, and `+ 1` tells an empty text from a NULL. 0.0 and -0.0
    are one number to SQLite, so rows are written with 0.0.
    """
    types = [*column_types(table).values()]
    texts = [place for place, type_ in enumerate(types) if type_ in (str, str | None)]
    numbers = [place for place, type_ in enumerate(types) if type_ in (int, float)]
    packed = [*numbers, *(place for place, type_ in enumerate(types) if type_ is bool)]
    last = [place for place in range(len(types)) if place not in (*texts, *packed)]
    pack = struct.Struct("<" + "".join(_CODES[types[place]] for place in packed)).pack
    values = itemgetter(*packed) if len(packed) > 1 else lambda row: (row[packed[0]],)

    def row_sum(row: Row) -> int:
        total = 1
        for place in texts:
            if row[place] is not None:
                total = crc32(row[place].encode(), total + 1)
        total = crc32(pack(*values(row)), total)
        for place in last:
            value = row[place]
            if value is not None:
                total = crc32(_LAST[type(value)](value), crc32(bytes((place,)), total))
        return total

    return row_sum


# For each table whose rows have a checksum, in the column `sum`: the function that computes it.
SUMS: dict[str, Callable[[Row], int]] = {
    table: _row_sum(table) for table in ("piece", "decision", "change", "arm", "head", "bandit", "api_key")
}

# Tables in which no other row would miss a row that is gone; and what an error calls their rows.
_LISTED = {"bandit": "bandits", "api_key": "keys"}


def columns_of(table: str) -> str:
    """Return a table's columns and its checksum, as a query has them."""
    return quoted((*TABLES[table]._fields, "sum"))


def checked_row(table: str, row: Sequence[Any], where: str = "") -> Any:
    """Return a row of `columns_of` as the table's row class; raise `StoreDamaged` if its checksum is wrong.

    Parameters
    ----------
    table : str
    row : sequence
    where : str, optional
        What the error calls the row; by default, the position of its event.
    """
    found = row[:-1]
    try:
        if SUMS[table](found) == row[-1]:
            return tuple.__new__(TABLES[table], found)  # faster than the class's own `_make`
    except (struct.error, TypeError, ValueError, AttributeError, OverflowError, KeyError):
        pass  # a type that was never stored there
    where = where or f"event {row[TABLES[table]._fields.index('seq')]!r}"
    raise damaged(f"{where} (table {table}, row {row[0]!r}, {row[1]!r})")


def damaged(where: str) -> StoreDamaged:
    """Return the error for something that is not as it was stored."""
    return StoreDamaged(f"damaged: {where}; accrual db recover saves what comes before it")


def fill(connection: sqlite3.Connection, *tables: str) -> None:
    """Write new checksums for all rows of some tables, or of all tables if none is named.

    The caller has just written these rows, or knows that they are right.
    """
    for table in tables or SUMS:
        names = TABLES[table]._fields
        connection.create_function(
            "row_sum", len(names), lambda *row, of=SUMS[table]: of(row), deterministic=True
        )
        connection.execute(f"UPDATE {table} SET sum = row_sum({quoted(names)})")
        if table in _LISTED:
            seal_list(connection, table)


def seal_list(connection: sqlite3.Connection, table: str) -> None:
    """Store a checksum of which rows a table has."""
    connection.execute(
        "INSERT INTO seal (name, sum) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET sum = excluded.sum",
        (table, _list_sum(connection, table)),
    )


def check_list(connection: sqlite3.Connection, table: str) -> None:
    """Raise `StoreDamaged` if a table has other rows than when its list was sealed."""
    sealed = connection.execute("SELECT sum FROM seal WHERE name = ?", (table,)).fetchone()
    if sealed is None or sealed[0] != _list_sum(connection, table):
        raise damaged(f"the list of {_LISTED[table]} (table {table})")


def _list_sum(connection: sqlite3.Connection, table: str) -> int:
    total = 0
    for row in connection.execute(f"SELECT {columns_of(table)} FROM {table} NOT INDEXED ORDER BY 1"):
        checked_row(table, row, f"one of the {_LISTED[table]}")
        total = crc32(row[-1].to_bytes(4, "little"), total)
    return total
