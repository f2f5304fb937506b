"""A store in PostgreSQL, for many workers at once.

The driver is asynchronous and runs in a thread of its own; any number of threads may use one store. An append
is one call of a function of the schema: one round trip, one transaction.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from accrual.core.errors import InputError
from accrual.store.base import (
    NUMBERS_END,
    AddArm,
    Answer,
    BanditRow,
    NewDecisions,
    Requests,
    Status,
    StoredArm,
    StoreRequest,
    amended,
    checked_snapshot,
    digest,
    may_be_erased,
)
from accrual.store.events import PACKED, BanditTableRow, DecisionRow, Events, quoted
from accrual.store.postgres.arrays import append_query, column, decode, encode, event_query
from accrual.store.postgres.pool import PostgresPool
from accrual.store.schema import VERSION_TABLE

_CLOCK = 60.0  # seconds for which the server's time is known

_CREATE = """
INSERT INTO bandit (name, config, rounds) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING RETURNING number
"""

_APPEND = append_query()
_READ = event_query()
_BANDITS = f"SELECT {quoted(BanditTableRow._fields)} FROM bandit"
_LOCKED = f"{_BANDITS} WHERE number = $1 FOR UPDATE"
_DECISION = f"SELECT {quoted(DecisionRow._fields)} FROM decision WHERE bandit = $1 AND id = $2"

_ARMS = """
SELECT a.name, a.cap, a."window", c.seq IS NOT NULL AS retired, a.about
FROM arm a LEFT JOIN change c ON c.bandit = a.bandit AND c.kind = 4 AND c.subject = a.number
WHERE a.bandit = $1 ORDER BY a.number
"""

_CONTEXTS = "SELECT context FROM decision WHERE bandit = $1 AND id >= $2 AND id < $3 ORDER BY id"
_SET_CONTEXTS = """
UPDATE decision SET context = given.context
FROM unnest($2::BIGINT[], $3::BYTEA[]) AS given (id, context)
WHERE decision.bandit = $1 AND decision.id = given.id
"""
_HEADS = "SELECT bandit, seq FROM head WHERE bandit = ANY($1::bigint[])"
_ABOUT = "SELECT about FROM arm WHERE bandit = $1 AND number = $2"
_SET_ABOUT = "UPDATE arm SET about = $3 WHERE bandit = $1 AND number = $2"

_SAVE = """
INSERT INTO snapshot (bandit, form, seq, body, digest) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (bandit, form) DO UPDATE SET seq = excluded.seq, body = excluded.body, digest = excluded.digest
WHERE excluded.seq >= snapshot.seq
"""


class PostgresStore:
    """A store in a PostgreSQL database that `accrual db init` has made ready.

    Parameters
    ----------
    url : str
        `postgresql://user:password@host/name`, with whatever else the driver, asyncpg, understands.
    connections : int
        How many connections there may be at once, besides one for notifications.
    timeout : float
        How many seconds an operation may take.
    """

    shared = True

    def __init__(self, url: str, connections: int = 4, timeout: float = 60.0) -> None:
        self._pool = PostgresPool(url, connections, timeout)
        self._asked, self._ahead = -math.inf, 0.0  # when the server's time was asked, and how far it is ahead

    # What is written.

    def create(self, name: str, config: Mapping[str, Any], arms: Sequence[AddArm], rounds: bool,
               now: float, history: Sequence[Requests] = ()) -> BanditRow:  # fmt: skip
        """Make a new bandit, with its first arms as the first events, and its history; one transaction."""
        at = 0.0 if rounds else now + 0.0

        async def job(connection: Any) -> BanditRow:
            async with connection.transaction():
                number = await connection.fetchval(_CREATE, name, json.dumps(config), rounds)
                if number is None:
                    raise InputError(f"there is a bandit {name!r} already")
                await connection.execute(
                    "INSERT INTO head (bandit, seq, at, decisions, arms) VALUES ($1, 0, $2, 0, 0)", number, at
                )
                for part in (Requests(arms, at), *history):
                    row = await connection.fetchrow(
                        _APPEND, number, part.now, part.skew, *encode(part.requests)
                    )
                    await _store_more(connection, number, part.requests, decode(part.requests, row))
            return BanditRow(number, name, dict(config), rounds)

        return self._pool.run(self._pool.once(job))

    def amend(self, bandit: int, changes: Mapping[str, Any]) -> BanditRow:
        """Change entries of a bandit's configuration that no event depends on; None removes one."""

        async def job(connection: Any) -> BanditRow:
            async with connection.transaction():
                row = await connection.fetchrow(_LOCKED, bandit)
                if row is None:
                    raise InputError(f"no bandit has the number {bandit}")
                config = amended(json.loads(row["config"]), changes)
                await connection.execute(
                    "UPDATE bandit SET config = $2 WHERE number = $1", bandit, json.dumps(config)
                )
                return BanditRow(bandit, row["name"], config, row["rounds"])

        return self._pool.run(self._pool.once(job))

    def erase(self, bandit: int, now: float) -> bool:
        """Remove a bandit and all its events, in one transaction, if its `ERASE_AT` is not after `now`."""

        async def job(connection: Any) -> bool:
            async with connection.transaction():
                row = await connection.fetchrow(_LOCKED, bandit)
                if row is None or not may_be_erased(json.loads(row["config"]), now):
                    return False
                await connection.execute("SELECT 1 FROM head WHERE bandit = $1 FOR UPDATE", bandit)
                for table in ("head", "arm", "decision", "piece", "change", "snapshot"):
                    await connection.execute(f"DELETE FROM {table} WHERE bandit = $1", bandit)
                await connection.execute("DELETE FROM bandit WHERE number = $1", bandit)
                return True

        return self._pool.run(self._pool.once(job))

    def append(
        self, bandit: int, requests: Sequence[StoreRequest], now: float, skew: float = 0.0
    ) -> list[Answer]:
        """Store what is new among `requests`, in this order, in one transaction; durable on return."""
        if not requests:
            return []
        columns = encode(requests)
        more = any(
            isinstance(request, AddArm) or (isinstance(request, NewDecisions) and request.contexts)
            for request in requests
        )

        async def job(connection: Any) -> list[Answer]:
            async with connection.transaction() if more else nullcontext():
                row = await connection.fetchrow(_APPEND, bandit, now + 0.0, skew, *columns)
                return await _store_more(connection, bandit, requests, decode(requests, row))

        async def append() -> list[Answer]:
            answers = await self._pool.once(job)
            if any(answer.status is Status.STORED for answer in answers):
                self._pool.notifications.send(bandit)
            return answers

        return self._pool.run(append())

    def save_snapshot(self, bandit: int, seq: int, form: str, body: bytes) -> None:
        """Store a snapshot of the events up to `seq`; it replaces an earlier snapshot of this form."""
        self._pool.rows(_SAVE, bandit, form, seq, body, digest(bandit, seq, form.encode() + body))

    def probe(self) -> None:
        """Write something that changes nothing; raise `StoreError` if nothing can be written now."""
        self._pool.rows(f"UPDATE {VERSION_TABLE} SET version_num = version_num")

    # What is read.

    def find(self, name: str) -> BanditRow | None:
        """Return the bandit of this name; None if there is none."""
        rows = self._pool.rows(f"{_BANDITS} WHERE name = $1", name)
        if not rows:
            return None
        row = BanditTableRow._make(rows[0])
        return BanditRow(row.number, row.name, json.loads(row.config), row.rounds)

    def names(self) -> list[str]:
        """Return the names of all bandits, in the order in which they were made."""
        return [row[0] for row in self._pool.rows("SELECT name FROM bandit ORDER BY number")]

    def read(self, bandit: int, after: int, limit: int) -> Events:
        """Return at most `limit` events beyond position `after`."""
        (sent,) = self._pool.rows(_READ, bandit, min(after, NUMBERS_END - 1), limit)
        return Events._make(column(sent[name], PACKED[name].kind) for name in Events._fields)

    def head(self, bandit: int) -> int:
        """Return the position of the last event, 0 if there is none."""
        return self._pool.run(self._head(bandit))

    def arms(self, bandit: int) -> list[StoredArm]:
        """Return all arms that have been added, in the order of their numbers."""
        return [StoredArm._make(row) for row in self._pool.rows(_ARMS, bandit)]

    def decision(self, bandit: int, id: int) -> DecisionRow | None:
        """Return the decision of this id; None if there is none."""
        rows = self._pool.rows(_DECISION, bandit, id) if 0 <= id < NUMBERS_END else []
        return DecisionRow._make(rows[0]) if rows else None

    def contexts(self, bandit: int, first: int, count: int) -> list[bytes | None]:
        """Return the contexts of the decisions from id `first` on, at most `count` of them."""
        end = min(first + count, NUMBERS_END - 1)
        return [row[0] for row in self._pool.rows(_CONTEXTS, bandit, min(first, end), end)]

    def used_keys(self, bandit: int, keys: Sequence[str]) -> set[str]:
        """Return those of `keys` that decisions are stored under."""
        query = "SELECT key FROM decision WHERE bandit = $1 AND key = ANY($2::TEXT[]) AND part = 0"
        return {row[0] for row in self._pool.rows(query, bandit, list(keys))}

    def wait(self, positions: Mapping[int, int], timeout: float) -> dict[int, int]:
        """Wait until one of these bandits has an event beyond its position; return their last positions."""

        async def find(bandits: Iterable[int]) -> dict[int, int]:
            rows = await self._pool.fetch(_HEADS, list(bandits))
            return {bandit: seq for bandit, seq in rows if seq > positions[bandit]}

        return self._pool.run(self._pool.notifications.wait(positions, find, timeout))

    def load_snapshot(self, bandit: int, form: str) -> tuple[int, bytes] | None:
        """Return the snapshot of this form, with its position; None if there is none."""
        query = "SELECT seq, body, digest FROM snapshot WHERE bandit = $1 AND form = $2"
        rows = self._pool.rows(query, bandit, form)
        return checked_snapshot(bandit, form, rows[0]) if rows else None

    def clock(self) -> float:
        """Return the server's time, asked once a minute: a worker's wrong clock then does no harm."""
        if time.monotonic() - self._asked > _CLOCK:
            begun = time.monotonic()
            ((found,),) = self._pool.rows("SELECT extract(epoch FROM clock_timestamp())::float8")
            self._asked = time.monotonic()
            self._ahead = found - (begun + self._asked) / 2
        return time.monotonic() + self._ahead

    def close(self) -> None:
        """Close the connections to the database."""
        self._pool.close()

    async def _head(self, bandit: int) -> int:
        rows = await self._pool.fetch("SELECT seq FROM head WHERE bandit = $1", bandit)
        return int(rows[0][0]) if rows else 0


async def _store_more(
    connection: Any, bandit: int, requests: Sequence[StoreRequest], answers: list[Answer]
) -> list[Answer]:
    """Store what `accrual_append` does not take, in its transaction; return what became of each request."""
    final = list(answers)
    for place, (request, answer) in enumerate(zip(requests, answers, strict=True)):
        if isinstance(request, NewDecisions):
            if request.contexts or answer.status is Status.AGAIN:
                final[place] = await _with_contexts(connection, bandit, request, answer)
        elif isinstance(request, AddArm):
            final[place] = await _with_about(connection, bandit, request, answer)
    return final


async def _with_contexts(connection: Any, bandit: int, request: NewDecisions, answer: Answer) -> Answer:
    """Store the contexts of new decisions; refuse a key that was used for other contexts, or for none."""
    ids = range(answer.number, answer.number + len(answer.arms))
    if answer.status is Status.STORED:
        await connection.execute(_SET_CONTEXTS, bandit, list(ids), list(request.contexts or ()))
        return answer._replace(contexts=request.contexts)
    if answer.status is Status.AGAIN:
        rows = await connection.fetch(_CONTEXTS, bandit, ids.start, ids.stop)
        stored = tuple([row[0] for row in rows])
        contexts = None if stored[0] is None else stored
        same = contexts == (tuple(request.contexts) if request.contexts else None)
        return answer._replace(contexts=contexts) if same else Answer(Status.CONFLICT)
    return answer


async def _with_about(connection: Any, bandit: int, request: AddArm, answer: Answer) -> Answer:
    """Store the features of a new arm; refuse an arm that is stored with other features."""
    if answer.status is Status.STORED and request.about is not None:
        await connection.execute(_SET_ABOUT, bandit, answer.number, request.about)
    if answer.status is not Status.AGAIN:
        return answer
    stored = await connection.fetchval(_ABOUT, bandit, answer.number)
    return answer if stored == request.about else Answer(Status.CONFLICT)
