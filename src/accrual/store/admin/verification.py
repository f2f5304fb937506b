"""Verify a database: check all that can be checked."""

from __future__ import annotations

from accrual.store.backends import TableReader

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
    "events earlier than the event before them": f"""
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
    "arms without an event, or events without an arm": """
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
    """Return what is wrong with a database, as far as its tables show: an empty list if nothing is."""
    found = reader.damage()
    if found:  # the other queries need tables that can be read
        return found
    for wrong, query in _CHECKS.items():
        count = reader.value(query)
        if count:
            found.append(f"{count:,} {wrong}")
    return found or reader.wrong_copies()
