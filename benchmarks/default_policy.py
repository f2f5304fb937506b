"""AgePrior beside other policies, on the gallery, the paper's settings and two listening services.

    python benchmarks/default_policy.py held-out --jobs 16 --out out/default

There are two sets of problems. The constants of AgePrior were chosen on `development`; nothing was chosen on
`held-out`. The sets have no seed in common, and no problem except the gallery's older ones, which are widely
known. Of the newer kinds (`accrual.problems.families`) each set has its own numbers. The script checks this
before it plays.

It writes default_policy.json (every number), .csv (the same) and .md (the table), and needs only numpy, scipy
and numba. With matplotlib, it draws a picture from the same folder:

    python benchmarks/default_policy.py picture --out out/default
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy: processes share the cores, not threads
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import csv
import json
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from accrual.engine.batches import play_batches
from accrual.engine.simulate import simulate
from accrual.policies.age_imed import AgeIMED
from accrual.policies.age_prior.policy import AgePrior
from accrual.policies.age_ts import AgeTS
from accrual.policies.base import Policy
from accrual.policies.imed import IMED
from accrual.policies.thompson import ThompsonSampling
from accrual.problems import families as kinds
from accrual.problems.gallery import ENTRIES
from accrual.problems.paper import CONFIGS, SCENARIOS, setting2
from accrual.problems.problem import Problem
from accrual.studies.gallery.habits import EarlyReward, PiecesAsPulls
from accrual.studies.gallery.listening import gaussian_filter, listening, listening_new

RUNS, MANY_RUNS, MANY_ARMS = 100, 20, 50
FLOOR = ("no delay: IMED", "no delay: TS")
OLDER = (
    "setting1", "playlist", "late-best", "lump", "sparse", "k100", "w5000-early", "w5000-even", "w5000-late",
    "caps4", "k2", "k1000",
)  # fmt: skip
FRESH_SEED, DEVELOPMENT_SEED = 20_261_115, 1000


# The problems of the gallery that have no contexts, which is what these policies are for.
PROBLEMS = {id: entry.problem for id, entry in ENTRIES.items() if isinstance(entry.problem, Problem)}


class Case(NamedTuple):
    problem: Problem
    horizon: int
    seed: int


def development() -> dict[str, Case]:
    """The problems on which constants were chosen."""
    coins = [0.3 + arm / 20 for arm in range(6)]
    new = {
        "late-surprise": (kinds.late_surprise([0.3, 0.3, 0.3, 0.5], 0.3), 20_000),
        "late-mild": (kinds.late_surprise([0.2, 0.3, 0.4, 0.4, 0.6], 0.15, 0.6), 20_000),
        "at-cap": (kinds.plain(100, kinds.lumps(0.7, 0.8, 0.9, 1.0)), 20_000),
        "near-cap": (kinds.plain(100, kinds.lumps(0.9, 0.92, 0.95, 0.98)), 20_000),
        "jackpot": (kinds.jackpot([0.02, 0.02, 0.02], 0.04), 20_000),
        "hidden-jackpot": (kinds.hidden_jackpot([0.02, 0.022, 0.024], 0.018, 60), 20_000),
        "lure": (kinds.lure([0.8, 0.6, 0.5, 0.3], [0.2, 0.3, 0.3, 0.5]), 20_000),
        "mixed-caps": (kinds.mixed_caps([1, 2, 10, 40, 100], [0.5, 0.55, 0.45, 0.5, 0.7]), 20_000),
        "bimodal": (kinds.bimodal([0.3, 0.35, 0.4, 0.45], [0.9, 0.6, 0.4, 0.1]), 20_000),
        "two-speeds": (kinds.two_speeds([0.4, 0.5, 0.45], [0.5, 0.55, 0.4]), 20_000),
        "needle": (kinds.needle(100, 0.3, 0.6, 0.63), 20_000),
        "heavy-tails": (kinds.heavy_tails([0.02, 0.025, 0.03, 0.04]), 20_000),
        "delay-2": (kinds.fixed_delay([0.4, 0.6]), 3_000),
        "delay-10": (kinds.fixed_delay([0.3] * 5 + [0.4] * 3 + [0.5, 0.6]), 5_000),
        "beyond-early": (kinds.long_window(coins, "begin", 20_000), 8_000),
        "beyond-late": (kinds.long_window(coins, "end", 12_000), 8_000),
    }
    cases = {name: Case(*given, DEVELOPMENT_SEED + i) for i, (name, given) in enumerate(new.items())}
    for i, name in enumerate(OLDER):
        cases[name] = Case(PROBLEMS[name], min(ENTRIES[name].horizon, 30_000), DEVELOPMENT_SEED + 100 + i)
    return cases


def held_out() -> dict[str, Case]:
    """The problems of the final table."""
    cases = {name: Case(problem, ENTRIES[name].horizon, FRESH_SEED + i)
             for i, (name, problem) in enumerate(PROBLEMS.items()) if name != "equal"}  # fmt: skip
    for c in CONFIGS:
        for s in SCENARIOS:
            cases[f"setting2-{c}-{s}"] = Case(setting2(c, s), 100_000, FRESH_SEED + 100 + c)
    return cases


def check_apart() -> None:
    """Stop if the two sets have a seed in common, or a problem other than the gallery's older ones."""
    first, last = development(), held_out()
    assert not {case.seed for case in first.values()} & {case.seed for case in last.values()}
    assert SERVICE_SEED["development"] != SERVICE_SEED["held-out"]
    for name in set(first) & set(last) - set(OLDER):
        assert not np.array_equal(first[name].problem.group_means, last[name].problem.group_means), name


SETS = {"development": development, "held-out": held_out}
SERVICES = {"listening": listening, "listening-new": listening_new}
SERVICE_SEED = {"development": 1, "held-out": 7}


def compared(problem: Problem) -> dict[str, Policy]:
    """What is compared on a problem, by column."""
    return {
        FLOOR[0]: IMED(immediate=True),
        FLOOR[1]: ThompsonSampling(immediate=True),
        "AgePrior": AgePrior(),
        "AgeIMED": AgeIMED(),
        "AgeTS": AgeTS(),
        "IMED(waiting)": IMED(),
        "ThompsonSampling(waiting)": ThompsonSampling(),
        "pieces as pulls": PiecesAsPulls(problem.groups),
        "first tenth": EarlyReward(0.1),
    }


class Task(NamedTuple):
    """A few runs of one problem; of a service by one player alone, for the filter takes long."""

    set: str
    name: str
    runs: range
    player: str = ""


def play(task: Task) -> tuple[Task, dict[str, list[list[float]]]]:
    """Regret at half and at the end of every run, by column."""
    if task.name in SERVICES:
        entry = SERVICES[task.name](SERVICE_SEED[task.set])
        who: Any = (gaussian_filter(entry.history) if task.player == "Gaussian filter with history"
                    else compared(entry.service.problem)[task.player])  # fmt: skip
        days = play_batches(entry.service, {"": who}, task.runs, entry.seed)[0].cumsum(axis=1)
        return task, {task.player: days[:, [days.shape[1] // 2 - 1, -1]].tolist()}
    case = SETS[task.set]()[task.name]
    result = simulate(
        case.problem, compared(case.problem), case.horizon, task.runs, case.seed, checkpoints=2, threads=1
    )
    return task, {label: result.regret[p].tolist() for p, label in enumerate(result.labels)}


def tasks(which: str, runs: int, only: Iterable[str]) -> list[Task]:
    """The longest first."""
    chosen = set(only)
    cut = []
    for name in SERVICES:
        players = ["Gaussian filter with history", *compared(listening().service.problem)]
        for player in players:
            if player != FLOOR[0] and (not chosen or name in chosen):
                cut += [Task(which, name, range(r, r + 1), player) for r in range(min(runs, MANY_RUNS))]
    sized = []
    for name, case in SETS[which]().items():
        if not chosen or name in chosen:
            count = runs if len(case.problem.caps) <= MANY_ARMS else min(runs, MANY_RUNS)
            step = 10 if count > MANY_RUNS else 2
            work = case.horizon * (len(case.problem.caps) + 30) * step
            sized += [
                (work, Task(which, name, range(r, min(r + step, count)))) for r in range(0, count, step)
            ]
    return cut + [task for _, task in sorted(sized, key=lambda pair: -pair[0])]


def figures(regret: dict[tuple[str, str], list[list[float]]]) -> list[dict[str, Any]]:
    """One row for each problem and column."""
    rows = []
    for problem in dict.fromkeys(name for name, _ in regret):
        mine = {label: np.array(runs) for (name, label), runs in regret.items() if name == problem}
        floors = [mine[label][:, 1].mean() for label in FLOOR if label in mine]
        for label, runs in mine.items():
            end = runs[:, 1]
            rows.append({
                "problem": problem, "policy": label, "runs": len(end), "mean": end.mean(),
                "se": end.std(ddof=1) / np.sqrt(len(end)) if len(end) > 1 else np.nan,
                "q95": np.quantile(end, 0.95), "worst": end.max(),
                "growth": end.mean() / max(runs[:, 0].mean(), 1e-300), "over_floor": end.mean() / min(floors),
                "q95_over_floor": np.quantile(end, 0.95) / min(floors),
                "worst_over_floor": end.max() / min(floors),
            })  # fmt: skip
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown: mean (95 % quantile, worst run) over the no-delay floor's mean."""
    labels = [label for label in dict.fromkeys(row["policy"] for row in rows) if label not in FLOOR]
    text = ["| problem | no delay | " + " | ".join(labels) + " |", "|---" * (len(labels) + 2) + "|"]
    for problem in dict.fromkeys(row["problem"] for row in rows):
        mine = {row["policy"]: row for row in rows if row["problem"] == problem}
        floor = min(mine[label]["mean"] for label in FLOOR if label in mine)
        cells = [
            "{over_floor:.2f} ({q95_over_floor:.1f}, {worst_over_floor:.1f})".format(**mine[label])
            if label in mine
            else "–"
            for label in labels
        ]
        text.append(f"| {problem} | {floor:.4g} | " + " | ".join(cells) + " |")
    return "\n".join(text)


def verdicts(rows: list[dict[str, Any]], policy: str = "AgePrior") -> str:
    """Where `policy` misses what is asked of a default."""
    text = []
    for problem in dict.fromkeys(row["problem"] for row in rows):
        mine = {row["policy"]: row for row in rows if row["problem"] == problem}
        if policy not in mine:
            continue
        it, wait, age = (mine[label]["over_floor"] for label in (policy, "IMED(waiting)", "AgeIMED"))
        if it > 1.2 * min(wait, age):
            text.append(f"{problem}: {it / min(wait, age):.2f} times the better of IMED waiting and AgeIMED")
        if it > 3.0 >= wait:
            text.append(f"{problem}: {it:.2f} times the floor, IMED waiting {wait:.2f}")
        if problem in ("k2", "lump") and mine[policy]["worst_over_floor"] > 4.0:
            text.append(f"{problem}: worst run {mine[policy]['worst_over_floor']:.1f} times the floor")
        if "jackpot" in problem and mine[policy]["growth"] > 1.3:
            text.append(f"{problem}: R(T) / R(T/2) = {mine[policy]['growth']:.2f}")
        old = mine.get("Gaussian filter with history")
        if old is not None and mine[policy]["mean"] > 0.8 * old["mean"]:
            text.append(f"{problem}: {mine[policy]['mean'] / old['mean']:.2f} of the filter with history")
    settings = [
        row["over_floor"] for row in rows if row["policy"] == policy and row["problem"].startswith("setting")
    ]
    if settings:
        text.append(f"Settings 1 and 2: {np.mean(settings):.3f} of the floor on average")
    return "\n".join(f"- {line}" for line in text)


def picture(out: Path) -> None:
    """Draw what default_policy.json holds: the problems of the gallery, means and worst runs."""
    from accrual.studies.gallery import GalleryLine, draw

    rows = json.loads((out / "default_policy.json").read_text())
    shown = [row for row in rows if row["policy"] not in FLOOR and not row["problem"].startswith("setting2")]
    table = [
        GalleryLine(row["problem"], row["policy"], "", row["runs"], row["mean"], row["se"], row["over_floor"],
             row["q95"] / row["mean"], row["worst"] / row["mean"], np.nan)
        for row in shown
    ]  # fmt: skip
    draw(out / "default_policy.png", table, {})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("set", choices=[*SETS, "picture"])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument(
        "--runs", type=int, default=RUNS, help=f"at most {MANY_RUNS} of them beyond {MANY_ARMS} arms"
    )
    parser.add_argument("--only", action="append", default=[], help="a problem; may be repeated")
    parser.add_argument("--out", type=Path, default=Path("out/default_policy"))
    given = parser.parse_args()
    if given.set == "picture":
        picture(given.out)
        return
    check_apart()
    begin = time.time()
    todo = tasks(given.set, given.runs, given.only)
    # Machine code is kept on disk: made once here, it is found by every process.
    small = kinds.fixed_delay([0.3, 0.5], 4)
    simulate(small, compared(small), 100, 1, threads=given.jobs, checkpoints=1)
    print(f"compiled after {time.time() - begin:.0f} s; {len(todo)} tasks", flush=True)
    regret: dict[tuple[str, str], list[list[float]]] = {}
    with ProcessPoolExecutor(given.jobs) as pool:
        for done, (task, runs) in enumerate(pool.map(play, todo), start=1):
            for label, values in runs.items():
                regret.setdefault((task.name, label), []).extend(values)
            if done % 50 == 0:
                print(f"{done} of {len(todo)} after {time.time() - begin:.0f} s", flush=True)
    rows = figures(regret)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "default_policy.json").write_text(json.dumps(rows, indent=1))
    with open(given.out / "default_policy.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    text = f"{table(rows)}\n\n{verdicts(rows)}\n"
    (given.out / "default_policy.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
