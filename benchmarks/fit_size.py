"""How long a fit takes and how much memory, up to 50 million pieces of 5 million decisions.

Logs are made with DuckDB in a temporary folder: pieces in no order, ten to a decision, spread over about two
weeks of two months. Each fit is a process of its own, `accrual fit`, of which the time from beginning to end
and the greatest memory are measured. Run with `make bench-fit`; `--most 5e6` for less.

`--plain` measures the same means and variances in plain DuckDB beside each fit of Parquet files: in as many
groups as a fit recommends for this log, with open decisions counted in the groups that they completed, and
the variance from what every decision moves the mean by. Compare processor time: wall time depends on what
else runs.
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
END, WINDOW, GROUPS = "2024-03-01 00:00:00", 18.5 * 86400, 16
PLAIN = f"""
CREATE TEMP TABLE d AS SELECT row_number() OVER (ORDER BY time, id) AS n, id, arm, time, least({GROUPS},
  floor(epoch(TIMESTAMP '{END}' - time) / {WINDOW / GROUPS}))::INT AS done
  FROM read_parquet('decisions.parquet');
CREATE TEMP TABLE x AS SELECT d.n, any_value(arm) AS arm, floor(epoch(p.time - d.time) /
  {WINDOW / GROUPS})::INT AS g, sum(value) AS x
  FROM read_parquet('pieces.parquet') p JOIN d ON p.decision = d.id GROUP BY d.n, g
  HAVING g < any_value(done);
CREATE TEMP TABLE seen AS SELECT arm, g, count(*)::DOUBLE AS n FROM d, range({GROUPS}) r(g) WHERE done > g
  GROUP BY arm, g;
CREATE TEMP TABLE m AS SELECT arm, g, coalesce(sum(x), 0) / any_value(seen.n) AS m, any_value(seen.n) AS n
  FROM seen LEFT JOIN x USING (arm, g) GROUP BY arm, g;
CREATE TEMP TABLE reached AS SELECT arm, r.done, sum(m / sqrt(n * (n - 1))) AS r
  FROM m, range({GROUPS + 1}) r(done) WHERE g < r.done GROUP BY arm, r.done;
SELECT d.arm, any_value(means.m), sum(power(coalesce(s, 0) - coalesce(r, 0), 2)) FROM d JOIN (SELECT arm,
  sum(m) AS m FROM m GROUP BY arm) AS means ON means.arm = d.arm LEFT JOIN (SELECT x.n, sum(x / sqrt(m.n *
  (m.n - 1))) AS s FROM x JOIN m USING (arm, g) GROUP BY x.n) AS s ON d.n = s.n LEFT JOIN reached ON
  reached.arm = d.arm AND reached.done = d.done GROUP BY d.arm ORDER BY d.arm
"""


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
    command = [str(Path(sys.executable).with_name("accrual")), "fit", f"decisions.{form}", f"pieces.{form}"]
    return _measured([*command, "--end", END, "-o", "problem.json"], folder)


def measure_plain(folder: Path) -> tuple[float, float, float]:
    """Wall seconds, processor seconds and GiB of the means and variances in plain DuckDB."""
    code = (
        "import duckdb, sys; c = duckdb.connect(); [c.execute(q).fetchall() for q in sys.argv[1].split(';')]"
    )
    return _measured([sys.executable, "-c", code, PLAIN], folder)


def _measured(command: list[str], folder: Path) -> tuple[float, float, float]:
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=folder)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    if status:
        raise SystemExit(f"{' '.join(command)}: exit status {status}")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 2**20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=float, default=SIZES[-1], help="pieces of the largest log")
    parser.add_argument("--forms", default="parquet,csv")
    parser.add_argument("--sizes", help="numbers of pieces instead of the usual ones, such as 9.7e6")
    parser.add_argument("--plain", action="store_true", help="beside it the same in plain DuckDB")
    given = parser.parse_args()
    largest: dict[str, float] = {}
    usual = (size for size in SIZES if size <= given.most)
    sizes = [int(float(size)) for size in (given.sizes.split(",") if given.sizes else usual)]
    print(f"{'form':8} {'pieces':>11} {'seconds':>8} {'processor':>9} {'s per million':>13} {'GiB':>5}")
    for form in given.forms.split(","):
        for pieces in sizes:
            with tempfile.TemporaryDirectory(prefix="accrual-bench-") as folder:
                make(Path(folder), pieces, form)
                seconds, processor, memory = measure(Path(folder), form)
                plain = measure_plain(Path(folder)) if given.plain and form == "parquet" else None
            if plain:
                print(f"  plain DuckDB: {plain[1]:.1f} processor s, {plain[2]:.2f} GiB")
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
