"""Checksums: what a SQLite file holds is what was stored, or the file is refused.

SQLite has checksums for its write-ahead log alone. So every row that anything is computed from has one here,
of all its columns: a CRC-32, which finds any single wrong byte. A block of events and a snapshot have a
digest. PostgreSQL has checksums of its own for every page.
"""

from __future__ import annotations

import hashlib
import sqlite3
import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from zlib import crc32

from accrual.store.base import StoreDamaged
from accrual.store.events import TABLES, column_types, quoted

_PLACE = struct.Struct("<qq").pack
_LAST: dict[type, Callable[[Any], bytes]] = {
    bytes: bytes,
    int: struct.Struct("<q").pack,
    float: lambda value: struct.pack("<d", value + 0.0),
}
_CODES = {int: "q", float: "d", bool: "B"}
_NO_TEXT = 1  # in place of the checksum of a text that is NULL
Row = Sequence[Any]


def _row_sum(table: str) -> Callable[[Row], int]:
    """Compile the checksum of a table's rows: of all texts, then of all numbers, then of all flags.

    Last come bytes, and what may be NULL and is no text; a NULL adds nothing. 0.0 and -0.0 are one number to
    SQLite: hence `+ 0.0`.
    """
    types = column_types(table)
    texts = [name for name, type_ in types.items() if type_ in (str, str | None)]
    numbers = [name for name, type_ in types.items() if type_ in (int, float)]
    packed = [*numbers, *(name for name, type_ in types.items() if type_ is bool)]
    codes = "".join(_CODES[types[name]] for name in packed)
    values = ", ".join(f"{name} + 0.0" if types[name] is float else name for name in packed)
    words = ""
    for name in texts:
        empty, seed = (words, f", {words}") if words else (str(_NO_TEXT), "")
        words = f"({empty} if {name} is None else crc32({name}.encode(){seed}))"
    seed = f", {words}" if words else ""
    text = f"def row_sum(row):\n    {', '.join(types)} = row\n    return crc32(pack({values}){seed})"
    names: dict[str, Any] = {"crc32": crc32, "pack": struct.Struct(f"<{codes}").pack}
    exec(text, names)
    last = [place for place, name in enumerate(types) if name not in (*texts, *packed)]
    return partial(_with_last, names["row_sum"], last) if last else names["row_sum"]


def _with_last(function: Callable[[Row], int], places: Sequence[int], row: Row) -> int:
    total = function(row)
    for place in places:
        value = row[place]
        if value is not None:
            total = crc32(_LAST[type(value)](value), crc32(bytes((place,)), total))
    return total


# Of each table of which every row has a checksum, in the column `sum`.
SUMS: dict[str, Callable[[Row], int]] = {
    table: _row_sum(table) for table in ("piece", "decision", "change", "arm", "head", "bandit", "api_key")
}

# Tables of which a row that is gone would not be missed by any other; and what a row of theirs is called.
_LISTED = {"bandit": "bandits", "api_key": "keys"}


def columns_of(table: str) -> str:
    """Return a table's columns and its checksum, as a query has them."""
    return quoted((*TABLES[table]._fields, "sum"))


def checked_row(table: str, row: Sequence[Any], where: str = "") -> Any:
    """Return a row of `columns_of` as the table's row class, if its checksum is right; see `check_row`."""
    check_row(table, row, where)
    return tuple.__new__(TABLES[table], row[:-1])  # faster than the class's own `_make`


def check_row(table: str, row: Sequence[Any], where: str = "") -> None:
    """Complain of a row of `columns_of` whose checksum is wrong.

    Parameters
    ----------
    table : str
    row : sequence
    where : str, optional
        What the row is called in the error; by default it is called by the position of its event.
    """
    try:
        if SUMS[table](row[:-1]) == row[-1]:
            return
    except (struct.error, TypeError, ValueError, AttributeError, OverflowError, KeyError):
        pass  # a type that was never stored there
    where = where or f"event {row[TABLES[table]._fields.index('seq')]!r}"
    raise damaged(f"{where} (table {table}, row {row[0]!r}, {row[1]!r})")


def damaged(where: str) -> StoreDamaged:
    """Return the error for something that is not as it was stored."""
    return StoreDamaged(f"damaged: {where}; accrual db recover saves what comes before it")


def digest(bandit: int, seq: int, body: bytes) -> bytes:
    """Return the digest of a block or snapshot of a bandit, up to a position."""
    return hashlib.blake2b(_PLACE(bandit, seq) + body, digest_size=16).digest()


def checked_snapshot(bandit: int, form: str, row: Sequence[Any]) -> tuple[int, bytes]:
    """Return position and body of a snapshot (seq, body, digest)."""
    seq, body, was = row
    try:
        same = digest(bandit, seq, form.encode() + bytes(body)) == bytes(was)
    except (struct.error, TypeError, ValueError):
        same = False
    if not same:
        raise StoreDamaged(f"damaged: the snapshot at {seq!r}; it is not used")
    return int(seq), bytes(body)


def fill(connection: sqlite3.Connection, *tables: str) -> None:
    """Write the checksums of all rows of some tables anew; of all tables unless any is named.

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
    """Keep a checksum of which rows a table has."""
    connection.execute(
        "INSERT INTO seal (name, sum) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET sum = excluded.sum",
        (table, _list_sum(connection, table)),
    )


def check_list(connection: sqlite3.Connection, table: str) -> None:
    """Complain if a table has other rows than when its list was sealed."""
    sealed = connection.execute("SELECT sum FROM seal WHERE name = ?", (table,)).fetchone()
    if sealed is None or sealed[0] != _list_sum(connection, table):
        raise damaged(f"the list of {_LISTED[table]} (table {table})")


def _list_sum(connection: sqlite3.Connection, table: str) -> int:
    total = 0
    for row in connection.execute(f"SELECT {columns_of(table)} FROM {table} NOT INDEXED ORDER BY 1"):
        checked_row(table, row, f"one of the {_LISTED[table]}")
        total = crc32(row[-1].to_bytes(4, "little"), total)
    return total
