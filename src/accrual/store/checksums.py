"""Checksums: what a SQLite file holds is what was stored, or the file is refused.

SQLite has none of its own but for its write-ahead log. So every row that anything is computed from has
one, of all its columns: a CRC-32, which finds any single wrong byte. What is kept in one piece (a block
of events, a snapshot) has a digest. PostgreSQL has checksums of its own for every page.
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

_PIECE = struct.Struct("<qqqdddBB").pack
_DECISION = struct.Struct("<qqqqddqqq").pack
_CHANGE = struct.Struct("<qqqqd").pack
_ARM = struct.Struct("<qqdd").pack
_HEAD = struct.Struct("<qqdqq").pack
_BANDIT = struct.Struct("<qB").pack
_KEY = struct.Struct("<dd").pack
_PLACE = struct.Struct("<qq").pack
Row = Sequence[Any]

_NONE = 1  # in place of the checksum of a text that is not there

# 0.0 and -0.0 are one number to SQLite: hence `+ 0.0`.


def _text(text: str | None) -> int:
    return _NONE if text is None else crc32(text.encode())


def piece_sum(row: Row) -> int:
    """Of a row of `piece`."""
    bandit, seq, decision, key, value, age, stated, at, late = row
    word = _NONE if key is None else crc32(key.encode())
    return crc32(_PIECE(bandit, seq, decision, value + 0.0, age + 0.0, at + 0.0, stated, late), word)


def decision_sum(row: Row) -> int:
    """Of a row of `decision`."""
    bandit, id_, seq, arm, at, window, seen, key, part, salt = row
    return crc32(_DECISION(bandit, id_, seq, arm, at + 0.0, window, seen, part, salt), _text(key))


def change_sum(row: Row) -> int:
    """Of a row of `change`."""
    bandit, seq, kind, subject, at = row
    return crc32(_CHANGE(bandit, seq, kind, subject, at + 0.0))


def arm_sum(row: Row) -> int:
    """Of a row of `arm`."""
    bandit, number, name, cap, window = row
    return crc32(_ARM(bandit, number, cap, window), _text(name))


def head_sum(row: Row) -> int:
    """Of a row of `head`."""
    bandit, seq, at, decisions, arms = row
    return crc32(_HEAD(bandit, seq, at + 0.0, decisions, arms))


def bandit_sum(row: Row) -> int:
    """Of a row of `bandit`."""
    number, name, config, rounds = row
    return crc32(_BANDIT(number, rounds), crc32(config.encode(), _text(name)))


def key_sum(row: Row) -> int:
    """Of a row of `api_key`."""
    id_, name, scopes, digest_, made, ends = row
    words = crc32(scopes.encode(), crc32(name.encode(), crc32(b"\0", _text(id_))))
    return crc32(_KEY(made, -1.0 if ends is None else ends + 0.0), crc32(digest_, words))


SUMS: dict[str, tuple[Callable[[Row], int], tuple[str, ...]]] = {  # of each table, and of which columns
    "piece": (piece_sum, ("bandit", "seq", "decision", "key", "value", "age", "stated", "at", "late")),
    "decision": (
        decision_sum, ("bandit", "id", "seq", "arm", "at", "window", "seen", "key", "part", "salt"),
    ),
    "change": (change_sum, ("bandit", "seq", "kind", "subject", "at")),
    "arm": (arm_sum, ("bandit", "number", "name", "cap", "window")),
    "head": (head_sum, ("bandit", "seq", "at", "decisions", "arms")),
    "bandit": (bandit_sum, ("number", "name", "config", "rounds")),
    "api_key": (key_sum, ("id", "name", "scopes", "digest", "made", "ends")),
}  # fmt: skip

# Tables of which a row that is gone would not be missed by any other; and what a row of theirs is called.
_COUNTED = {"bandit": "bandits", "api_key": "keys"}


def columns_of(table: str) -> str:
    """A table's columns, as they are written in a query, and its checksum."""
    return ", ".join(f'"{name}"' for name in (*SUMS[table][1], "sum"))


def sound(table: str, row: Sequence[Any], where: str) -> Sequence[Any]:
    """A row of `columns_of`, without its checksum; an error that names `where` it is, if that is wrong."""
    try:
        if SUMS[table][0](row[:-1]) == row[-1]:
            return row[:-1]
    except (struct.error, TypeError, ValueError, AttributeError, OverflowError):
        pass  # a type that was never stored there
    raise damaged(f"{where} (table {table}, row {row[0]!r}, {row[1]!r})")


def damaged(where: str) -> StoreDamaged:
    """The error for something that is not as it was stored."""
    return StoreDamaged(f"damaged: {where}; accrual db recover saves what comes before it")


def digest(bandit: int, seq: int, body: bytes) -> bytes:
    """Of what is kept in one piece for a bandit, up to a position."""
    return hashlib.blake2b(_PLACE(bandit, seq) + body, digest_size=16).digest()


def sound_snapshot(bandit: int, form: str, row: Sequence[Any]) -> tuple[int, bytes] | None:
    """Position and body of a snapshot (seq, body, digest); None if it is from before there were digests."""
    seq, body, was = row
    if was is None:
        return None
    try:
        same = digest(bandit, seq, form.encode() + bytes(body)) == bytes(was)
    except (struct.error, TypeError, ValueError):
        same = False
    if not same:
        raise StoreDamaged(f"damaged: the snapshot at {seq!r}; it is not used")
    return int(seq), bytes(body)


def teach(connection: sqlite3.Connection) -> None:
    """Let a connection's SQL compute checksums, for migrations and copies: `piece_sum(bandit, seq, ...)`."""
    for table, (function, columns) in SUMS.items():
        connection.create_function(f"{table}_sum", len(columns), partial(_of, function), deterministic=True)
    connection.create_function("digest", 3, digest, deterministic=True)


def _of(function: Callable[[Row], int], *row: Any) -> int:
    return function(row)


def fill(connection: sqlite3.Connection, *tables: str) -> None:
    """Write the checksums of all rows of some tables anew; of all tables unless any is named.

    For whoever has just written these rows, or knows them to be right.
    """
    teach(connection)
    for table in tables or SUMS:
        names = ", ".join(f'"{name}"' for name in SUMS[table][1])
        connection.execute(f"UPDATE {table} SET sum = {table}_sum({names})")
        if table in _COUNTED:
            count(connection, table)
    if not tables:
        connection.execute("UPDATE block SET digest = digest(bandit, seq, body)")


def count(connection: sqlite3.Connection, table: str) -> None:
    """Take note of which rows a table has."""
    connection.execute(
        "INSERT INTO seal (name, sum) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET sum = ?2",
        (table, _all(connection, table)),
    )


def counted(connection: sqlite3.Connection, table: str) -> None:
    """Complain if the rows of a table are not those of which note was taken."""
    found = connection.execute("SELECT sum FROM seal WHERE name = ?", (table,)).fetchone()
    if found is None or found[0] != _all(connection, table):
        raise damaged(f"the list of {_COUNTED[table]} (table {table})")


def _all(connection: sqlite3.Connection, table: str) -> int:
    total = 0
    for row in connection.execute(f"SELECT {columns_of(table)} FROM {table} NOT INDEXED ORDER BY 1"):
        sound(table, row, f"one of the {_COUNTED[table]}")
        total = crc32(row[-1].to_bytes(4, "little"), total)
    return total
