"""Whether a database is as it should be: everything that can be checked of it, checked."""

from __future__ import annotations

import sqlite3

from accrual.store.admin.readers import SQLiteTableReader, TableReader
from accrual.store.base import StoreError
from accrual.store.checksums import SUMS, check_list, check_row, columns_of, digest
from accrual.store.events import pack
from accrual.store.lock import SQLITE_ERRORS
from accrual.store.sqlite import KeyIndex, event_rows, hashes_between

_CHUNK = 20_000  # events

_EVENTS = """(
    SELECT bandit, seq, at FROM decision UNION ALL SELECT bandit, seq, at FROM piece
    UNION ALL SELECT bandit, seq, at FROM change
)"""

# What is wrong, and how many there are of it: for both databases.
_CHECKS = {
    "bandits without a head": """
        SELECT count(*) FROM bandit b WHERE NOT EXISTS (SELECT 1 FROM head h WHERE h.bandit = b.number)
    """,
    "heads, arms, events or snapshots of no bandit": f"""
        SELECT count(*) FROM (
            SELECT bandit FROM {_EVENTS} AS e UNION SELECT bandit FROM head UNION SELECT bandit FROM arm
            UNION SELECT bandit FROM snapshot
        ) AS x WHERE NOT EXISTS (SELECT 1 FROM bandit b WHERE b.number = x.bandit)
    """,
    "heads that are not at the last event": f"""
        SELECT count(*) FROM head h
        LEFT JOIN (SELECT bandit, max(seq) AS seq, max(at) AS at FROM {_EVENTS} AS e GROUP BY bandit) AS x
            ON x.bandit = h.bandit
        WHERE h.seq <> coalesce(x.seq, 0) OR h.at <> coalesce(x.at, h.at)
    """,
    "heads that miscount decisions or arms": """
        SELECT count(*) FROM head h
        WHERE h.decisions <> (SELECT count(*) FROM decision d WHERE d.bandit = h.bandit)
            OR h.arms <> (SELECT count(*) FROM arm a WHERE a.bandit = h.bandit)
    """,
    "positions used twice": f"""
        SELECT count(*) FROM (
            SELECT bandit, seq FROM {_EVENTS} AS e GROUP BY bandit, seq HAVING count(*) > 1
        ) AS x
    """,
    "events before the one before them": f"""
        SELECT count(*) FROM (
            SELECT at, lag(at) OVER (PARTITION BY bandit ORDER BY seq) AS earlier FROM {_EVENTS} AS e
        ) AS x WHERE at < earlier
    """,
    "decisions out of order": """
        SELECT count(*) FROM (
            SELECT id, row_number() OVER (PARTITION BY bandit ORDER BY seq) - 1 AS place FROM decision
        ) AS x WHERE id <> place
    """,
    "decisions at a wrong round": """
        SELECT count(*) FROM decision d JOIN bandit b ON b.number = d.bandit
        WHERE b.rounds AND d.at <> d.id + 1
    """,
    "decisions for no arm": """
        SELECT count(*) FROM decision d
        WHERE NOT EXISTS (SELECT 1 FROM arm a WHERE a.bandit = d.bandit AND a.number = d.arm)
    """,
    "pieces of no decision, or before it": """
        SELECT count(*) FROM piece p LEFT JOIN decision d ON d.bandit = p.bandit AND d.id = p.decision
        WHERE d.id IS NULL OR d.seq > p.seq
    """,
    "closings of no decision, or before it": """
        SELECT count(*) FROM change c LEFT JOIN decision d ON d.bandit = c.bandit AND d.id = c.subject
        WHERE c.kind = 2 AND (d.id IS NULL OR d.seq > c.seq)
    """,
    "arms without an event, or the other way round": """
        SELECT (SELECT count(*) FROM arm a WHERE NOT EXISTS (
            SELECT 1 FROM change c WHERE c.bandit = a.bandit AND c.kind = 3 AND c.subject = a.number
        )) + (SELECT count(*) FROM change c WHERE c.kind IN (3, 4) AND NOT EXISTS (
            SELECT 1 FROM arm a WHERE a.bandit = c.bandit AND a.number = c.subject
        ))
    """,
    "pieces whose lateness is wrong": """
        SELECT count(*) FROM piece p JOIN decision d ON d.bandit = p.bandit AND d.id = p.decision
        LEFT JOIN change c ON c.bandit = p.bandit AND c.kind = 2 AND c.subject = p.decision AND c.seq < p.seq
        WHERE p.late <> (p.age >= d."window" OR p.at >= d.at + d."window" OR c.seq IS NOT NULL)
    """,
    "pieces whose age is not that of their arrival": """
        SELECT count(*) FROM piece p JOIN decision d ON d.bandit = p.bandit AND d.id = p.decision
        WHERE NOT p.stated AND p.age <> p.at - d.at
    """,
    "keys used twice": """
        SELECT count(*) FROM (
            SELECT 1 FROM piece WHERE key IS NOT NULL GROUP BY bandit, decision, key HAVING count(*) > 1
            UNION ALL
            SELECT 1 FROM decision WHERE key IS NOT NULL GROUP BY bandit, key, part HAVING count(*) > 1
        ) AS x
    """,
    "snapshots beyond the end of their log": """
        SELECT count(*) FROM snapshot s JOIN head h ON h.bandit = s.bandit WHERE s.seq > h.seq
    """,
}


def verify(reader: TableReader) -> list[str]:
    """Return what is wrong with a database, as far as its tables tell: an empty list if nothing is."""
    found = []
    if isinstance(reader, SQLiteTableReader):
        found += _broken(reader)
        if found:  # the other queries need tables that can be read
            return found
    for wrong, query in _CHECKS.items():
        count = reader.value(query)
        if count:
            found.append(f"{count:,} {wrong}")
    if not found and isinstance(reader, SQLiteTableReader):
        try:
            found += _blocks(reader) + _keys(reader)
        except StoreError as error:
            found.append(str(error))
    return found


def _broken(reader: SQLiteTableReader) -> list[str]:
    """Return what SQLite itself finds wrong, and the first row that is not what its checksum says."""
    connection: sqlite3.Connection = reader.connection
    try:
        rows = next(reader.chunks("PRAGMA integrity_check"))
        found = [f"the file is damaged: {text}" for (text,) in rows if text != "ok"]
        if found:
            return found
        for table in SUMS:
            for row in connection.execute(f"SELECT {columns_of(table)} FROM {table}"):
                check_row(table, row, "a row")
        check_list(connection, "bandit")
        check_list(connection, "api_key")
    except (StoreError, *SQLITE_ERRORS) as error:
        return [str(error)]
    return []


def _blocks(reader: SQLiteTableReader) -> list[str]:
    """Return what is wrong with the blocks of events: they must say what the tables say."""
    connection: sqlite3.Connection = reader.connection
    wrong = 0
    after: dict[int, int] = {}
    query = "SELECT bandit, seq, body, digest FROM block ORDER BY bandit, seq"
    for bandit, seq, body, was in connection.execute(query):
        events = pack(event_rows(connection, bandit, after.get(bandit, 0), seq))
        same = digest(bandit, seq, body) == was and body == events.tobytes()
        wrong += not same
        after[bandit] = seq
    for bandit, last in connection.execute("SELECT bandit, seq FROM head").fetchall():
        start = after.get(bandit, 0)
        if len(event_rows(connection, bandit, start, last)) != last - start:
            return [f"event {last} of bandit {bandit} is missing"]
    return [f"{wrong:,} blocks of events that are not those of the tables"] if wrong else []


def _keys(reader: SQLiteTableReader) -> list[str]:
    """Return what is wrong with the index of keys: it must find every key of the tables where it is."""
    connection: sqlite3.Connection = reader.connection
    wrong = 0
    for (bandit,) in connection.execute("SELECT number FROM bandit").fetchall():
        (last,) = connection.execute(
            "SELECT coalesce(max(seq), 0) FROM key_run WHERE bandit = ?", (bandit,)
        ).fetchone()
        index = KeyIndex(connection, bandit, last)
        for after in range(0, last, _CHUNK):
            for hash_, kind, row in hashes_between(connection, bandit, after, min(after + _CHUNK, last)):
                wrong += row not in index.find(hash_, kind)
    return [f"{wrong:,} keys that their index does not find"] if wrong else []
