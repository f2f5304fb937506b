"""The service at a steady load for a long time: memory, errors, and whether the state is the log's.

A third of the requests are decisions, the rest single pieces of the last fifty thousand decisions. First the
script finds the highest rate of the service, then it sends 70 % of that rate. It compares memory after one
fifth of the time, when all caches are full, with memory at the end; a run that is too short for that only
shows both. docs/store.md says that keys take two bytes each for as long as the bandit lives; the limit is on
the memory beyond that.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time

from benchmarks.http_load import load
from benchmarks.served import Running, Traffic, new_file, pin_self, service

from accrual.live.verify_snapshots import verify_snapshots
from accrual.store.sqlite.store import SQLiteStore

SHARE = 0.7
GROWTH_MOST = 0.05
LONG = 1800.0  # seconds
KEY = 2  # bytes in memory


def soak(running: Running, seconds: float) -> tuple[int, float, float]:
    """How many errors there were, and by what share memory grew: in all, and beyond what keys take."""
    traffic = Traffic(running)
    turns = itertools.cycle([traffic.decision, traffic.recent_piece, traffic.recent_piece])

    def make() -> bytes:
        return next(turns)()

    most = load(running.port, make, 64, 5.0).rate
    print(f"{most:,.0f} requests a second at most; {SHARE:.0%} of that for {seconds:,.0f} s", flush=True)
    memory, errors, keys = [], 0, []
    begin = time.monotonic()
    for _ in range(10):
        tally = load(running.port, make, 64, seconds / 10, SHARE * most)
        errors += tally.errors
        memory.append(running.memory)
        keys.append(tally.rate * seconds / 10)  # each request has one
        print(
            f"{time.monotonic() - begin:6.0f} s: {tally.rate:,.0f} a second, "
            f"p99 {tally.quantile(0.99):.1f} ms, {memory[-1] / 2**20:,.1f} MiB, {errors} errors",
            flush=True,
        )
    growth = memory[-1] / memory[1] - 1
    return errors, growth, growth - KEY * sum(keys[2:]) / memory[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600.0)
    seconds = parser.parse_args().seconds
    pin_self(1)
    with new_file() as (store, folder):
        window = f"{max(int(seconds / 30), 1)}s"  # so that decisions close as fast as they come, soon
        with service(store, folder, window) as running:
            errors, growth, beyond = soak(running, seconds)
        log = (folder / "log").read_text()
        kept = SQLiteStore(str(folder / "load.db"), readonly=True)
        compared, wrong = verify_snapshots(kept)  # the service left one when it stopped: its state
        events = sum(kept.head(row.number) for row in [kept.find(name) for name in kept.names()] if row)
        kept.close()
    print(
        f"{events:,} events; memory grew by {growth:.1%}, by {beyond:.1%} beyond the keys'; {errors} errors; "
        f"{compared} states compared"
    )
    failures = [
        *wrong,
        *(
            [f"memory grew by more than {GROWTH_MOST:.0%} beyond the keys'"]
            if seconds >= LONG and beyond > GROWTH_MOST
            else []
        ),
        *(["there were errors"] if errors or '"level":"error"' in log else []),
        *(["no state was compared"] if not compared else []),
    ]
    for failure in failures:
        print("failed:", failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
