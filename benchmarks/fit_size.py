"""How long a fit takes and how much memory, up to 50 million pieces of 5 million decisions.

Logs are made with DuckDB in a temporary folder: pieces in no order, ten to a decision, spread over about two
weeks of two months. Each fit is a process of its own, `accrual fit`, of which the time from beginning to end
and the greatest memory are measured. Run with `make bench-fit`; `--most 5e6` for less.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

SIZES = (5e6, 10e6, 20e6, 50e6)
DAYS = 60
SECONDS_MOST, MEMORY_MOST, CSV_MOST = 60.0, 4.0, 3.0


def make(folder: Path, pieces: int, form: str) -> None:
    """Write a log of `pieces` pieces: `decisions` and `pieces`, as CSV or Parquet."""
    connection = duckdb.connect(
        config={
            "memory_limit": "3GB",
            "temp_directory": str(folder / "spill"),
            "preserve_insertion_order": "false",
        }
    )
    decisions = pieces // 10
    gap = DAYS * 86_400_000_000 / decisions
    start = "TIMESTAMP '2024-01-01'"
    for name, query in (
        (
            "decisions",
            f"SELECT range AS id, 'arm' || (hash(range) % 5) AS arm, "
            f"{start} + to_microseconds((range * {gap})::BIGINT) AS time FROM range({decisions})",
        ),
        (
            "pieces",
            f"SELECT d AS decision, round(random(), 4) AS value, {start} + to_microseconds(t) AS time FROM "
            f"(SELECT d, (d * {gap} - ln(1 - random()) * 4 * 86400e6)::BIGINT AS t FROM "
            f"(SELECT (hash(range) % {decisions})::BIGINT AS d FROM range({pieces})))",
        ),
    ):
        connection.execute(f"COPY ({query}) TO '{folder / name}.{form}' (FORMAT {form})")
    connection.close()


def measure(folder: Path, form: str) -> tuple[float, float, float]:
    """Wall seconds, processor seconds and GiB of one fit."""
    end = "2024-03-01 00:00:00"
    command = [
        str(Path(sys.executable).with_name("accrual")), "fit", str(folder / f"decisions.{form}"),
        str(folder / f"pieces.{form}"), "--end", end, "-o", str(folder / "problem.json"),
    ]  # fmt: skip
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    if status:
        raise SystemExit(f"{' '.join(command)}: exit status {status}")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 2**20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=float, default=SIZES[-1], help="pieces of the largest log")
    parser.add_argument("--forms", default="parquet,csv")
    given = parser.parse_args()
    largest: dict[str, float] = {}
    print(f"{'form':8} {'pieces':>11} {'seconds':>8} {'processor':>9} {'s per million':>13} {'GiB':>5}")
    for form in given.forms.split(","):
        for pieces in (int(size) for size in SIZES if size <= given.most):
            with tempfile.TemporaryDirectory(prefix="accrual-bench-") as folder:
                make(Path(folder), pieces, form)
                seconds, processor, memory = measure(Path(folder), form)
            print(
                f"{form:8} {pieces:11,} {seconds:8.1f} {processor:9.1f} "
                f"{seconds / pieces * 1e6:13.2f} {memory:5.2f}",
                flush=True,
            )
            largest[form] = seconds
            if memory > MEMORY_MOST:
                print(f"  more than {MEMORY_MOST:g} GiB")
    if largest.get("parquet", 0.0) > SECONDS_MOST:
        print(f"Parquet takes more than {SECONDS_MOST:g} s")
    if len(largest) == 2 and largest["csv"] > CSV_MOST * largest["parquet"]:
        print(f"CSV takes more than {CSV_MOST:g} times as long as Parquet")
    return 0


if __name__ == "__main__":
    sys.exit(main())
