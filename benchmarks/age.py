"""The Age policies' claims: near the no-delay floor in the paper's settings, at a bounded cost.

    make age
    python benchmarks/age.py 0                 # the cost alone

First it measures the cost of a policy-round, compared with TPUCBFRG's, and at a window of 5000 compared with
one of 100. Then it plays Setting 1 and the twelve cases of Setting 2, 100 runs of 100,000 rounds, and divides
regret by that of the no-delay floor (the better of IMED and Thompson sampling when every total is known at
once). The exit code is 1 if a claim does not hold.
"""

from __future__ import annotations

import statistics
import sys
import time

import numpy as np

import accrual as ac
from accrual.problems.paper import CONFIGS, SCENARIOS

RUNS, HORIZON = 100, 100_000
MEAN_MOST, ANY_MOST, GAIN_LEAST, COST_MOST, DEFAULT_MOST, WINDOW_MOST = 1.15, 1.4, 15.0, 10.0, 6.0, 1.5
AGES = ("AgeIMED", "AgeTS")


def floors(runs: int) -> bool:
    """Print regret divided by that of the no-delay floor for every case; return whether the claims hold."""
    cases = {"setting1": ac.paper.setting1()}
    cases |= {f"setting2/c{c}/{s}": ac.paper.setting2(c, s) for c in CONFIGS for s in SCENARIOS}
    policies = {
        "IMED": ac.IMED(immediate=True),
        "TS": ac.ThompsonSampling(immediate=True),
        "AgeIMED": ac.AgeIMED(),
        "AgeTS": ac.AgeTS(),
    }
    print(f"{'case':20} {'floor':>9} {'s.e.':>6} {'AgeIMED':>9} {'ratio':>6} {'AgeTS':>9} {'ratio':>6}")
    ratios = []
    for name, problem in cases.items():
        final = ac.simulate(problem, policies, HORIZON, runs).final_regret
        mean = final.mean(axis=1)
        best = int(mean[:2].argmin())
        error = final[best].std(ddof=1) / np.sqrt(runs)
        ratio = mean[2:] / mean[best]
        ratios.append(ratio)
        print(
            f"{name:20} {mean[best]:9.0f} {error:6.0f} {mean[2]:9.0f} {ratio[0]:6.2f}"
            f" {mean[3]:9.0f} {ratio[1]:6.2f}",
            flush=True,
        )
        if name == "setting1":
            paper = ac.simulate(problem, [ac.TPUCBFRG(20, "begin")], HORIZON, runs).final_regret.mean()
            gains = paper / mean[2:]
    table = np.array(ratios)
    print(f"mean ratio: {table.mean(axis=0).round(3)}, largest: {table.max(axis=0).round(3)}")
    print(f"TPUCBFRG(20, begin) over AgeIMED and AgeTS in Setting 1: {gains.round(1)}")
    return bool(
        (table.mean(axis=0) <= MEAN_MOST).all() and (table <= ANY_MOST).all() and (gains >= GAIN_LEAST).all()
    )


def seconds(problem: ac.Problem, policy: ac.Policy, horizon: int) -> float:
    """CPU seconds of a policy-round on one core; eight copies share the draws, as in a comparison."""
    begin = time.process_time()
    ac.simulate(problem, {str(i): policy for i in range(8)}, horizon, runs=1, threads=1, checkpoints=1)
    return (time.process_time() - begin) / (8 * horizon)


def costs() -> bool:
    """Print the cost of a policy-round, medians of interleaved measurements; whether the claims hold."""
    short = ac.paper.setting1()
    long = ac.Problem(short.caps, 5000, 20)
    jobs = {
        "TPUCBFRG(20, begin), window 100": (short, ac.TPUCBFRG(20, "begin")),
        "AgePrior, window 100": (short, ac.AgePrior()),
        "AgeIMED, window 100": (short, ac.AgeIMED()),
        "AgeTS, window 100": (short, ac.AgeTS()),
        "AgeIMED, window 5000": (long, ac.AgeIMED()),
    }
    for problem, policy in jobs.values():
        seconds(problem, policy, 5_000)
    rounds = [[seconds(*job, 100_000) for job in jobs.values()] for _ in range(5)]
    medians = dict(zip(jobs, map(statistics.median, zip(*rounds, strict=True)), strict=True))
    first = medians["TPUCBFRG(20, begin), window 100"]
    for name, value in medians.items():
        print(f"{name:34} {1e9 * value:7.0f} ns   {value / first:5.2f} x")
    growth = medians["AgeIMED, window 5000"] / medians["AgeIMED, window 100"]
    print(f"AgeIMED, window 5000 over window 100: {growth:.2f}")
    default = medians["AgePrior, window 100"] <= DEFAULT_MOST * first
    others = all(medians[f"{name}, window 100"] <= COST_MOST * first for name in AGES)
    return bool(default and others and growth <= WINDOW_MOST)


if __name__ == "__main__":
    held = costs()
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    if runs:
        held &= floors(runs)
    sys.exit(0 if held else 1)
