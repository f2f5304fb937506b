"""`make bench`: the library against a plain C++ loop, and the other promises about speed and memory.

The exit code is 1 if a number is over its limit.
"""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

import accrual as ac
from accrual.studies.bench import compared, compile_for

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.engine.cpp_loop import compile_loop, compiler, play_loop

HORIZON = 100_000
PAIRS = 15
SAME = 0.01  # how far apart the two may end; see `against_cpp`
FLAGS = ("-O3", "-march=native")

Floats = npt.NDArray[np.float64]


class Row(NamedTuple):
    """One line of the report."""

    what: str
    figure: str
    limit: str = ""
    good: bool = True


def main() -> int:
    """Measure, print, and say whether every limit was kept."""
    where = _pin()
    rows = [
        *against_cpp(), setting2_cost(), horizon_cost(), own_policy_cost(), memory(), import_time(),
        *first_simulation(),
    ]  # fmt: skip
    load = f"load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "load unknown"
    print(
        f"{datetime.now(UTC):%Y-%m-%d}, {_processor()}, {where}, {load}, Python {platform.python_version()}"
    )
    _show(rows)
    return 0 if all(row.good for row in rows) else 1


def against_cpp() -> list[Row]:
    """Setting 1 with the headline's policies, turn by turn with the C++ loops on the same runs."""
    problem, policies = ac.paper.setting1(), compared(50)
    unit = 1e9 / (HORIZON * len(policies))
    compile_for(problem, policies)
    if compiler() is None:
        alone = [_library(problem, policies, run)[0] * unit for run in range(PAIRS)]
        return [
            Row("Setting 1, 11 policies, library", _cost(alone)),
            Row("the same in C++", "not measured: no C++ compiler (set CXX, or install g++)"),
        ]
    taken: dict[str, list[float]] = {"library": [], "one pass": [], "two passes": []}
    apart = 0.0
    with tempfile.TemporaryDirectory() as folder:
        loops = {
            "one pass": compile_loop(Path(folder, "one"), len(problem.caps), *FLAGS),
            "two passes": compile_loop(Path(folder, "two"), len(problem.caps), *FLAGS, "-DTWO_PASSES"),
        }
        for run in range(PAIRS):
            seconds, ours = _library(problem, policies, run)
            taken["library"].append(seconds * unit)
            for name, loop in loops.items():
                seconds, theirs = play_loop(loop, problem, policies, HORIZON, run)
                taken[name].append(seconds * unit)
                apart = max(apart, float(np.max(np.abs(ours / theirs - 1))))
    rows = [Row("Setting 1, 11 policies, library", _cost(taken["library"]))]
    best = min(loops, key=lambda name: statistics.median(taken[name]))
    for name in loops:
        ratio = statistics.median(taken["library"]) / statistics.median(taken[name])
        rows.append(Row(f"C++ ({compiler()} {' '.join(FLAGS)}), best arm in {name}", _cost(taken[name])))
        # The limit is on the faster loop, whichever that is here.
        limit = ("at most 1.25", ratio <= 1.25) if name == best else ("", True)
        rows.append(Row("library / that", f"{ratio:.2f}", *limit))
    # gcc fuses multiplications and additions where numba does not. That may flip a choice between
    # two arms whose indices differ in the last bit only, and the runs then part; so far none has.
    same = "identical" if apart == 0 else f"up to {100 * apart:.2g} % apart"
    rows.append(
        Row(f"final regrets of all three, {PAIRS} runs", same, f"within {100 * SAME:g} %", apart <= SAME)
    )
    return rows


def setting2_cost() -> Row:
    """Setting 2 at (200, 100), with its Beta draws, as a multiple of Setting 1."""
    one, two = ac.paper.setting1(), ac.paper.setting2(4, "late")
    compile_for(two, compared(100))
    costs = _interleaved(
        lambda: _library(one, compared(50), 0)[0], lambda: _library(two, compared(100), 0)[0], pairs=5
    )
    ratio = costs[1] / costs[0]
    cost = costs[1] * 1e9 / (HORIZON * len(compared(100)))
    figure = f"{cost:.0f} ns per policy-round, {ratio:.1f} times Setting 1"
    return Row("Setting 2 (200, 100) late, 11 policies", figure, "at most 8 times", ratio <= 8)


def horizon_cost() -> Row:
    """Time per round at a horizon of 1e6 over that at 1e4."""
    problem, policies = ac.paper.setting1(), compared(50)
    short, long = _interleaved(
        lambda: _timed(lambda: ac.simulate(problem, policies, 10_000, runs=20, threads=1)) / 20e4,
        lambda: _timed(lambda: ac.simulate(problem, policies, 1_000_000, runs=1, threads=1)) / 1e6,
        pairs=5,
    )
    ratio = long / short
    # The cost of a round must not grow with history. README.md here says why a long run costs less.
    return Row("time per round, T = 1e6 over T = 1e4", f"{ratio:.2f}", "at most 1.2", ratio <= 1.2)


def own_policy_cost() -> Row:
    """Time of the documentation's own policy over that of the library's TPUCBFR, each alone.

    The index of the own policy takes a logarithm and two divisions per arm, where TPUCBFR's takes none;
    hence a limit of 2.
    """
    sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
    from own_policy import PieceMOSS

    problem, own_policy, tpucbfr = ac.paper.setting1(), PieceMOSS(), ac.TPUCBFR(50)
    for policy in (own_policy, tpucbfr):
        compile_for(problem, [policy])
    own, library = _interleaved(
        lambda: _library(problem, [own_policy], 0)[0], lambda: _library(problem, [tpucbfr], 0)[0], pairs=5
    )
    ratio = own / library
    return Row("a policy written outside the library / TPUCBFR", f"{ratio:.2f}", "at most 2", ratio <= 2)


def memory() -> Row:
    """The most memory a process of one long run holds."""
    peak = float(
        _python(
            "import resource, sys, accrual as ac\n"
            "policies = [ac.UCB1(), ac.TPUCBFR(50), ac.TPUCBFRG(50, 'begin')]\n"
            "ac.simulate(ac.paper.setting1(), policies, 10_000_000, runs=1, threads=1)\n"
            "unit = 1 if sys.platform == 'darwin' else 1024\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6)"
        )
    )
    return Row("peak memory of one run of T = 1e7", f"{peak:.0f} MB", "under 500 MB", peak < 500)


def import_time() -> Row:
    """`import accrual` in a fresh process, without the interpreter's own start."""
    code = "import time; t = time.perf_counter(); import accrual; print(time.perf_counter() - t)"
    seconds = statistics.median(float(_python(code)) for _ in range(5))
    return Row("import accrual", f"{1e3 * seconds:.0f} ms", "under 500 ms", seconds < 0.5)


def first_simulation() -> list[Row]:
    """The first simulation of a process, before and after another process has compiled."""
    code = (
        "import time, accrual as ac\n"
        "t = time.perf_counter()\n"
        "policies = [ac.UCB1(), ac.DelayedUCB1(), ac.TPUCBFR(50), ac.TPUCBFRG(50, 'begin')]\n"
        "ac.simulate(ac.paper.setting1(), policies, 1000, runs=1, threads=1)\n"
        "print(time.perf_counter() - t)"
    )
    with tempfile.TemporaryDirectory() as cache:
        cold, warm = (float(_python(code, NUMBA_CACHE_DIR=cache)) for _ in range(2))
    return [
        Row("first simulation, nothing compiled yet", f"{cold:.1f} s"),
        Row("first simulation of a later process", f"{warm:.1f} s", "a third of that", warm <= cold / 3),
    ]


def _library(problem: ac.Problem, policies: Sequence[ac.Policy], run: int) -> tuple[float, Floats]:
    """Seconds and final regrets of one run."""
    results = []
    seconds = _timed(
        lambda: results.append(ac.simulate(problem, policies, HORIZON, range(run, run + 1), threads=1))
    )
    return seconds, results[0].final_regret[:, 0]


def _timed(work: Callable[[], object]) -> float:
    """Processor seconds, as the C++ loop counts them too: other load on the machine is left out."""
    began = time.process_time()
    work()
    return time.process_time() - began


def _cost(nanoseconds: Sequence[float]) -> str:
    return f"{statistics.median(nanoseconds):.1f} ns per policy-round"


def _interleaved(first: Callable[[], float], second: Callable[[], float], pairs: int) -> tuple[float, float]:
    """The medians of two measurements taken turn by turn."""
    taken = [(first(), second()) for _ in range(pairs)]
    return statistics.median(a for a, _ in taken), statistics.median(b for _, b in taken)


def _python(code: str, **environment: str) -> str:
    """What `code` prints in a fresh interpreter."""
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=True
    ).stdout


def _pin() -> str:
    """Keep this process and its children on one core, where the system allows it."""
    if not hasattr(os, "sched_setaffinity"):
        return "not pinned to a core"
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    return "one core"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _show(rows: Sequence[Row]) -> None:
    cells = [(row.what, row.figure, row.limit, "" if row.good else "OVER") for row in rows]
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        for row in cells:
            print("  ".join(filter(None, row)))
        return
    table = Table()
    for title in ("measured", "figure", "limit", ""):
        table.add_column(title)
    for row in cells:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 130).print(table)


if __name__ == "__main__":
    sys.exit(main())
