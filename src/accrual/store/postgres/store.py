"""A store in PostgreSQL, for many workers at once.

Any number of threads may use one store. An append is one transaction of two round trips: the first locks the
end of the log and reads what the rules need, the second writes.
"""

from __future__ import annotations

import json
import math
import os
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from accrual.core.errors import InputError, need
from accrual.store.address import parse
from accrual.store.base import (
    NUMBERS_END,
    AddArm,
    Answers,
    BanditRow,
    Requests,
    StoreClosed,
    StoredArm,
    StoreError,
    StoreRequest,
    amended,
    checked_snapshot,
    digest,
    may_be_erased,
    one_line,
)
from accrual.store.events import BanditTableRow, DecisionRow, Events, quoted
from accrual.store.postgres.connection import connect, open_pool, version_of
from accrual.store.postgres.event_columns import event_query, events_of_columns
from accrual.store.postgres.log import ARMS, append, array
from accrual.store.postgres.notifications import Notifications
from accrual.store.schema import VERSION_TABLE, check_version

_CLOCK = 60.0  # seconds for which the server's time is known
_POLL = 0.5  # seconds between queries for new events without a notification
_RETRY_PAUSE = 0.01  # seconds

_CREATE = """
INSERT INTO bandit (name, config, rounds) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING RETURNING number
"""
_CREATE_HEAD = "INSERT INTO head (bandit, seq, at, decisions, arms) VALUES ($1, 0, $2, 0, 0)"

_READ = event_query()
_BANDITS = f"SELECT {quoted(BanditTableRow._fields)} FROM bandit"
_LOCKED = f"{_BANDITS} WHERE number = $1 FOR UPDATE"
_DECISION = f"SELECT {quoted(DecisionRow._fields)} FROM decision WHERE bandit = $1 AND id = $2"
_CONTEXTS = "SELECT context FROM decision WHERE bandit = $1 AND id >= $2 AND id < $3 ORDER BY id"
_USED = "SELECT key FROM decision WHERE bandit = $1 AND key = ANY($2::TEXT[]) AND part = 0"
_HEADS = "SELECT bandit, seq FROM head WHERE bandit = ANY($1::BIGINT[])"

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
        `postgresql://user:password@host/name`, with whatever else libpq understands.
    connections : int
        How many connections there may be at once, besides one for notifications.
    """

    shared = True

    def __init__(self, url: str, connections: int = 4) -> None:
        self._address = parse(url)
        with connect(self._address) as connection:
            check_version(version_of(connection), self._address)
        self._pool = open_pool(self._address, connections)
        self._process = os.getpid()
        self._notifications = Notifications(self._address)
        self._failure: type[Exception] = need("psycopg", "postgres").Error
        # Also called when the store is no longer used, and when the process ends.
        self._closing = weakref.finalize(self, _close, self._pool, self._notifications, self._process)
        self._asked, self._ahead = -math.inf, 0.0  # when the server's time was asked, and how far it is ahead

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        """Lend a connection. If something fails on it, it is not known whether that was done."""
        if os.getpid() != self._process:
            raise InputError("the store was opened before a fork; open it again in the new process")
        try:
            with self._pool.connection() as connection:
                yield connection
        except need("psycopg_pool", "postgres").PoolClosed:
            raise StoreClosed("the store has been closed") from None
        except self._failure as error:
            raise StoreError(f"{self._address}: {one_line(error)}") from error

    def _rows(self, query: str, *values: Any) -> list[Any]:
        """Return the rows of a query; send the query again if the connection was lost."""
        left = self._pool.max_size
        while True:
            with self._connection() as connection:
                try:
                    return connection.execute(query, values, binary=True).fetchall()  # type: ignore[no-any-return]
                except self._failure:
                    if not connection.closed or not left:
                        raise
            left -= 1
            time.sleep(_RETRY_PAUSE)  # the pool makes a new connection

    # What is written.

    def create(self, name: str, config: Mapping[str, Any], arms: Sequence[AddArm], rounds: bool,
               now: float, history: Sequence[Requests] = ()) -> BanditRow:  # fmt: skip
        """Make a new bandit, with its first arms as the first events, and its history; one transaction."""
        at = 0.0 if rounds else now + 0.0
        with self._connection() as connection, connection.transaction():
            made = connection.execute(_CREATE, [name, json.dumps(config), rounds]).fetchone()
            if made is None:
                raise InputError(f"there is a bandit {name!r} already")
            connection.execute(_CREATE_HEAD, [made[0], at])
            for part in (Requests(arms, at), *history):
                append(connection, made[0], *part)
            return BanditRow(made[0], name, dict(config), rounds)

    def amend(self, bandit: int, changes: Mapping[str, Any]) -> BanditRow:
        with self._connection() as connection, connection.transaction():
            found = connection.execute(_LOCKED, [bandit]).fetchone()
            if found is None:
                raise InputError(f"no bandit has the number {bandit}")
            row = BanditTableRow._make(found)
            config = amended(json.loads(row.config), changes)
            connection.execute(
                "UPDATE bandit SET config = $2 WHERE number = $1", [bandit, json.dumps(config)]
            )
            return BanditRow(bandit, row.name, config, row.rounds)

    def erase(self, bandit: int, now: float) -> bool:
        with self._connection() as connection, connection.transaction():
            found = connection.execute(_LOCKED, [bandit]).fetchone()
            if found is None or not may_be_erased(json.loads(BanditTableRow._make(found).config), now):
                return False
            connection.execute("SELECT 1 FROM head WHERE bandit = $1 FOR UPDATE", [bandit])
            for table in ("head", "arm", "decision", "piece", "change", "snapshot"):
                connection.execute(f"DELETE FROM {table} WHERE bandit = $1", [bandit])
            connection.execute("DELETE FROM bandit WHERE number = $1", [bandit])
            return True

    def append(self, bandit: int, requests: Sequence[StoreRequest], now: float, skew: float = 0.0) -> Answers:
        with self._connection() as connection, connection.pipeline():
            connection.execute("BEGIN")
            answers, stored = append(connection, bandit, requests, now, skew)
            connection.execute("COMMIT")
        if stored:
            self._notifications.send(bandit)
        return answers

    def save_snapshot(self, bandit: int, seq: int, form: str, body: bytes) -> None:
        with self._connection() as connection:
            values = [bandit, form, seq, body, digest(bandit, seq, form.encode() + body)]
            connection.execute(_SAVE, values)

    def probe(self) -> None:
        with self._connection() as connection:
            connection.execute(f"UPDATE {VERSION_TABLE} SET version_num = version_num")

    # What is read.

    def find(self, name: str) -> BanditRow | None:
        rows = self._rows(f"{_BANDITS} WHERE name = $1", name)
        if not rows:
            return None
        row = BanditTableRow._make(rows[0])
        return BanditRow(row.number, row.name, json.loads(row.config), row.rounds)

    def names(self) -> list[str]:
        return [row[0] for row in self._rows("SELECT name FROM bandit ORDER BY number")]

    def read(self, bandit: int, after: int, limit: int) -> Events:
        (sent,) = self._rows(_READ, bandit, min(after, NUMBERS_END - 1), limit)
        return events_of_columns(sent)

    def head(self, bandit: int) -> int:
        rows = self._rows("SELECT seq FROM head WHERE bandit = $1", bandit)
        return int(rows[0][0]) if rows else 0

    def arms(self, bandit: int) -> list[StoredArm]:
        return [StoredArm._make(row) for row in self._rows(ARMS, bandit)]

    def decision(self, bandit: int, id: int) -> DecisionRow | None:
        rows = self._rows(_DECISION, bandit, id) if 0 <= id < NUMBERS_END else []
        return DecisionRow._make(rows[0]) if rows else None

    def contexts(self, bandit: int, first: int, count: int) -> list[bytes | None]:
        end = min(first + count, NUMBERS_END - 1)
        return [row[0] for row in self._rows(_CONTEXTS, bandit, min(first, end), end)]

    def used_keys(self, bandit: int, keys: Sequence[str]) -> set[str]:
        return {row[0] for row in self._rows(_USED, bandit, array(keys))}

    def wait(self, positions: Mapping[int, int], timeout: float) -> dict[int, int]:
        """Wait until one of these bandits has an event beyond its position; return their last positions.

        Notifications may be lost, so the database is queried now and then in any case. One query serves all
        bandits, so idle bandits cost next to nothing.
        """
        end = time.monotonic() + timeout
        which = list(positions)
        while True:
            heard = self._notifications.count
            found = {
                bandit: seq for bandit, seq in self._rows(_HEADS, array(which)) if seq > positions[bandit]
            }
            left = end - time.monotonic()
            if found or left <= 0:
                return found
            named = self._notifications.wait(positions, heard, min(left, _POLL))
            if not named and time.monotonic() >= end:
                return {}
            which = named or list(positions)

    def load_snapshot(self, bandit: int, form: str) -> tuple[int, bytes] | None:
        query = "SELECT seq, body, digest FROM snapshot WHERE bandit = $1 AND form = $2"
        rows = self._rows(query, bandit, form)
        return checked_snapshot(bandit, form, rows[0]) if rows else None

    def clock(self) -> float:
        """Return the server's time, asked once a minute: a worker's wrong clock then does no harm."""
        if time.monotonic() - self._asked > _CLOCK:
            begun = time.monotonic()
            ((found,),) = self._rows("SELECT extract(epoch FROM clock_timestamp())::float8")
            self._asked = time.monotonic()
            self._ahead = found - (begun + self._asked) / 2
        return time.monotonic() + self._ahead

    def close(self) -> None:
        self._closing()


def _close(pool: Any, notifications: Notifications, process: int) -> None:
    if os.getpid() == process:  # in a process that was forked since, the connections are not its own
        pool.close()
        notifications.close()
