"""Measure what a policy-round costs on this machine (`accrual bench`)."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Sequence

from accrual.core.progress import no_progress_bar
from accrual.engine.simulate import simulate
from accrual.policies.base import Policy
from accrual.policies.catalog import CATALOG
from accrual.policies.tpucbfrg import TPUCBFR, TPUCBFRG
from accrual.policies.ucb1 import UCB1, DelayedUCB1
from accrual.problems.paper import setting1, setting2
from accrual.problems.problem import Problem
from accrual.problems.spreads import NAMES


def compared(alpha: int) -> list[Policy]:
    """Return the headline's policies: two that use no pieces, the even spread, and the eight named spreads.

    Examples
    --------
    >>> len(compared(50))
    11
    """
    return [UCB1(), DelayedUCB1(), TPUCBFR(alpha), *(TPUCBFRG(alpha, name) for name in NAMES)]


def compile_for(problem: Problem, policies: Sequence[Policy]) -> None:
    """Compile every kernel and make every table, so that the time for them is not measured."""
    with no_progress_bar():
        simulate(problem, policies, horizon=max(len(problem.caps), 2), runs=1, threads=1)


def measure(
    problem: Problem,
    policies: Sequence[Policy],
    horizon: int,
    runs: int = 1,
    threads: int = 1,
    repeats: int = 5,
) -> float:
    """Measure the median nanoseconds per policy-round over `repeats` simulations, compilation left out.

    One thread is measured in processor time, so that other work on the machine does not count;
    several threads by the wall clock.

    Examples
    --------
    >>> import accrual as ac
    >>> measure(ac.paper.setting1(), [ac.UCB1()], horizon=1000, repeats=1) > 0
    True
    """
    compile_for(problem, policies)
    clock = time.process_time if threads == 1 else time.perf_counter
    seconds = []
    with no_progress_bar():
        for _ in range(repeats):
            began = clock()
            simulate(problem, policies, horizon, runs, threads=threads)
            seconds.append(clock() - began)
    return statistics.median(seconds) * 1e9 / (horizon * runs * len(policies))


def report() -> list[tuple[str, str]]:
    """Measure for some seconds, and return rows of (what was measured, value with unit)."""
    cores = os.cpu_count() or 1
    one, two = setting1(), setting2(4, "late")
    rows = [
        ("Setting 1, 11 policies, one core", measure(one, compared(50), 50_000)),
        (
            f"Setting 1, 11 policies, all cores ({cores})",
            measure(one, compared(50), 50_000, runs=2 * cores, threads=cores, repeats=3),
        ),
        ("Setting 2 (200, 100) late, 11 policies, one core", measure(two, compared(100), 20_000, repeats=3)),
    ]
    rows += [
        (f"Setting 1, {policy.label} alone, one core", measure(one, [policy], 30_000, repeats=3))
        for policy in (kind.example(50) for kind in CATALOG.values())
    ]
    return [(name, f"{cost:,.0f} ns per policy-round") for name, cost in rows]
