"""How the cost of a simulation grows with arms, window, groups, horizon, runs and policies.

``make scale``. Every number is processor time on one core, without compilation, divided by that of the base,
which is measured just before and after it, so that other work on the machine matters little. ``--ray``
measures what Ray adds to a cell.
"""

from __future__ import annotations

import argparse
import os
import secrets
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import accrual as ac
from accrual.policies.base import Policy
from accrual.runs.cells import Cell, cut, gather_results
from accrual.runs.runner import Executor, Local, run_cells
from accrual.studies.bench import measure

HORIZON = 50_000
REPEATS = 9
POLICIES = ("TPUCBFRG", "DelayedUCB1", "AgeIMED")
GRID = {
    "arms": (2, 10, 50, 200),
    "window": (20, 100, 500, 2000),
    "groups": (5, 20, 50, 100),
    "horizon": (10_000, 50_000, 200_000),
    "runs": (1, 2, 4),
}
BASE = {"arms": 10, "window": 100, "groups": 20, "horizon": HORIZON, "runs": 1}


def problem(arms: int, window: int, groups: int) -> ac.Problem:
    """Setting 1's kind: caps from 1 to 23 times the window, groups that pay evenly up to their cap."""
    return ac.Problem([window * (1 + 22 * arm / max(arms - 1, 1)) for arm in range(arms)], window, groups)


def policy(name: str, groups: int) -> Policy:
    """A policy that learns with the problem's own groups."""
    made = {
        "TPUCBFRG": lambda: ac.TPUCBFRG(groups, "begin"),
        "DelayedUCB1": ac.DelayedUCB1,
        "AgeIMED": ac.AgeIMED,
    }
    return made[name]()


def cost(name: str, size: dict[str, int]) -> float:
    """Nanoseconds per policy-round."""
    made = problem(size["arms"], size["window"], size["groups"])
    return measure(made, [policy(name, size["groups"])], size["horizon"], size["runs"], repeats=REPEATS)


def ratio(name: str, changed: dict[str, int]) -> float:
    """The cost at a changed size over the base's."""
    before = cost(name, BASE)
    here = cost(name, BASE | changed)
    return here / statistics.mean([before, cost(name, BASE)])


def table() -> None:
    """Print the growth with each size, and what sharing draws saves."""
    print(f"{'':24}" + "".join(f"{name:>14}" for name in POLICIES))
    print(f"{'base, ns':24}" + "".join(f"{cost(name, BASE):>14,.0f}" for name in POLICIES))
    for what, values in GRID.items():
        for value in values:
            cells = "".join(f"{ratio(name, {what: value}):>14.2f}" for name in POLICIES)
            print(f"{what + f' {value:,}':24}{cells}", flush=True)
    one = ac.paper.setting1()
    alone = measure(one, _spreads(1), HORIZON, repeats=REPEATS)
    for count in (1, 4, 16, 64):
        here = measure(one, _spreads(count), HORIZON, repeats=REPEATS)
        print(f"{f'{count} TPUCBFRG in one run':24}{here / alone:>14.2f}", flush=True)


def _spreads(count: int) -> Sequence[Policy]:
    return [ac.TPUCBFRG(20, ac.spread.BetaBinomial(1 + rank / 8, 8)) for rank in range(count)]


def overhead(cells: int) -> None:
    """Print what a cell costs beside its rounds: with threads, and as a task of a local Ray."""
    few = {policy.label: policy for policy in _spreads(16)}
    tiny = cut("tiny", ac.paper.setting1(), few, 100, cells, size=1, rounds=range(10, 101, 10))
    with tempfile.TemporaryDirectory() as place:
        os.environ.update(RAY_TMPDIR=place, RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))
        import ray

        from accrual.runs.on_ray import OnRay

        executors: dict[str, Executor] = {"threads": Local(2), "Ray": OnRay()}
        for name, executor in executors.items():
            out, began = Path(place) / name, time.perf_counter()
            if name == "Ray":  # which would be started twice otherwise
                ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
            run_cells(tiny[:4], out, executor)  # which compiles
            first = time.perf_counter() - began
            spent = time.process_time()
            each = 1000 * _seconds(tiny, out, executor) / (cells - 4)
            spent = 1000 * (time.process_time() - spent) / (cells - 4)
            print(f"{name}: {first:.1f} s to the first cells, then {each:.1f} ms a cell, "
                  f"{spent:.1f} of them work of this process", flush=True)  # fmt: skip
        ray.shutdown()
        began = time.perf_counter()
        gather_results(tiny, out)
        print(f"reading back: {1000 * (time.perf_counter() - began) / cells:.2f} ms a cell, "
              f"{(out / 'cells' / tiny[0].name).stat().st_size / 1024:.1f} KiB each")  # fmt: skip


def _seconds(cells: Sequence[Cell], out: Path, executor: Executor) -> float:
    began = time.perf_counter()
    run_cells(cells, out, executor)
    return time.perf_counter() - began


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="How the cost of a simulation grows.")
    parser.add_argument("--ray", action="store_true", help="what Ray adds to a cell, instead")
    if parser.parse_args().ray:
        overhead(400)
    else:
        table()
    return 0


if __name__ == "__main__":
    sys.exit(main())
