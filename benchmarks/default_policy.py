"""AgePrior beside AgeIMED and waiting IMED, in the mean and in bad runs, and beside AgePrior as it was.

    python -m benchmarks.default_policy fresh --jobs 16 --out out/before --alone     # in an older tree
    python -m benchmarks.default_policy fresh --jobs 16 --out out/default --before out/before/runs.json
    python -m benchmarks.default_policy surprise --jobs 16 --out out/surprise

There are eight sets of problems. The constants of AgePrior were chosen on `development`, `held-out` and
`seen-1` to `seen-5`: all but the first had been held out until runs on them were looked into. `fresh`, whose
author did not know the policy, is for judging; docs/measured/age_prior.md says what was seen of it. The
script checks that the sets are apart before it plays. `surprise` draws what looking for rare large totals
costs where caps are too large, and gains where they are true, on problems of `development`.

It writes runs.json (the regret of every run) and table.md. It needs only numpy, scipy and numba; the picture
of `surprise` needs matplotlib and can be drawn later from its runs.json (`surprise-picture`).
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy: processes share the cores, not threads
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import combinations, product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from benchmarks.fresh_problems import fresh
from benchmarks.seen_1_problems import seen_1
from benchmarks.seen_2_problems import seen_2
from benchmarks.seen_3_problems import seen_3
from benchmarks.seen_4_problems import seen_4
from benchmarks.seen_5_problems import seen_5

from accrual.core.arrays import Floats
from accrual.engine.simulate import simulate
from accrual.policies.age import AgeIMED
from accrual.policies.age_prior.policy import AgePrior
from accrual.policies.base import Policy
from accrual.policies.imed import IMED
from accrual.policies.thompson import ThompsonSampling
from accrual.problems import families as kinds
from accrual.problems.gallery import ENTRIES
from accrual.problems.laws import BernoulliLaw, BetaLaw, EmpiricalLaw, Law, LeavingLaw, LumpLaw, ScaledLaw
from accrual.problems.paper import setting1, setting2
from accrual.problems.problem import Problem
from accrual.problems.spreads import SpreadLike

RUNS, MANY_RUNS, MANY_ARMS = 200, 20, 100
FLOOR = ("no delay: IMED", "no delay: TS")
ALONE = "alone "  # before a set's name: AgePrior only
NEW, BEFORE, AGE, WAITING = "AgePrior", "AgePrior before", "AgeIMED", "IMED(waiting)"
DEVELOPMENT_SEED, HELD_OUT_SEED = 500, 20_261_117
SURPRISES = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0)
LOOSE, JACKPOTS = ("caps20-smooth", "caps20-ten", "caps20-lumps"), ("jackpot", "hidden-60", "hidden-20")
BESIDES = ("noisiest", "heavy-tails", "setting1")  # where larger totals are looked for in vain, or rightly

plain, lumps = kinds.plain, kinds.lumps
GROUPS = kinds.GROUPS


class Case(NamedTuple):
    problem: Problem
    horizon: int
    seed: int


def sure(total: float) -> Law:
    """Make a law that always pays the same, evenly."""
    return ScaledLaw(BernoulliLaw(1.0), total)


def loose(laws: Sequence[Law], times: float = 20.0) -> Problem:
    """Make arms whose caps are `times` too large."""
    return plain(100, [ScaledLaw(law, 1.0 / times) for law in laws])


def churn(stay: Sequence[float], pays: Sequence[float], months: int, rounds: int) -> Problem:
    """Make monthly payments until the customer leaves."""
    laws = [LeavingLaw((1.0,) + (s,) * (months - 1), p) for s, p in zip(stay, pays, strict=True)]
    return Problem([1.0] * len(laws), months * rounds, months, laws)


def empirical(totals: Floats, spread: SpreadLike | Floats | None = None) -> Law:
    """Make a law of these totals, each with the same chance, all with one spread (even unless given)."""
    shares = np.full(GROUPS, 1.0 / GROUPS) if spread is None else np.asarray(spread)
    return EmpiricalLaw(np.outer(totals, shares))


def quantiles(count: int = 400) -> Floats:
    return np.asarray((np.arange(count) + 0.5) / count)


def development() -> dict[str, Case]:
    """The problems on which constants were chosen."""
    gallery = {
        id: ENTRIES[id].problem for id in ("w5000-late", "k100", "k1000", "playlist", "sparse", "lump")
    }
    coins = [0.3 + arm / 20 for arm in range(6)]
    smooth = [BernoulliLaw(p, "begin_middle") for p in (0.3, 0.4, 0.45, 0.5, 0.6)]
    ten = [BetaLaw(a, 2.0) for a in (1.0, 1.5, 2.0, 2.5, 3.0, 1.2, 1.7, 2.2, 2.7, 3.5)]
    problems = {
        "noisiest": plain(100, [*map(sure, np.linspace(0.36, 0.42, 9)), LumpLaw(0.46)]),
        "noisy-middle": plain(100, [*map(BernoulliLaw, (0.3, 0.33, 0.36, 0.4)), LumpLaw(0.46, "begin"),
                                    LumpLaw(0.3, "begin")]),
        "churn": churn([0.8, 0.85, 0.9, 0.93, 0.96], [0.9, 0.85, 0.75, 0.7, 0.62], 12, 20),
        "churn-long": churn([0.7, 0.9, 0.95, 0.6], [0.9, 0.5, 0.45, 1.0], 24, 10),
        "half-half": kinds.bimodal([0.4, 0.45, 0.5, 0.55, 0.42, 0.5], [0.5] * 6),
        "two-speeds": kinds.two_speeds([0.4, 0.5, 0.45], [0.5, 0.56, 0.4]),
        "jackpot": kinds.jackpot([0.02, 0.02, 0.02], 0.04),
        "hidden-60": kinds.hidden_jackpot([0.02, 0.022, 0.024], 0.018, 60),
        "hidden-20": kinds.hidden_jackpot([0.05, 0.055, 0.06], 0.045, 20),
        "nothing": plain(100, lumps(0.0, 0.1, 0.2, 0.3, 0.35)),
        "nothing-smooth": plain(100, [BernoulliLaw(p) for p in (0.0, 0.2, 0.3, 0.3, 0.4)]),
        "beyond-begin": kinds.long_window(coins, "begin", 32_000),
        "beyond-end": kinds.long_window(coins, "end", 32_000),
        "beyond-lumps": plain(16_000, lumps(0.2, 0.3, 0.4, 0.5, spread="uniform")),
        "caps20-smooth": loose(smooth),
        "caps20-ten": loose(ten),
        "caps20-lumps": loose(lumps(0.3, 0.4, 0.45, 0.5, 0.6)),
        "late-surprise": kinds.late_surprise([0.3, 0.3, 0.3, 0.5], 0.3),
        "lure": kinds.lure([0.8, 0.6, 0.5, 0.3], [0.2, 0.3, 0.3, 0.5]),
        "at-cap": plain(100, lumps(0.7, 0.8, 0.9, 1.0)),
        "near-cap": plain(100, lumps(0.9, 0.92, 0.95, 0.98)),
        "mixed-caps": kinds.mixed_caps([1, 2, 10, 40, 100], [0.5, 0.55, 0.45, 0.5, 0.7]),
        "heavy-tails": kinds.heavy_tails([0.02, 0.025, 0.03, 0.04]),
        "needle": kinds.needle(100, 0.3, 0.6, 0.63),
        "k2": plain(100, lumps(0.5, 0.55)),
        "k2-apart": plain(100, lumps(0.3, 0.6)),
        "tiers": plain(100, lumps(*[0.2] * 20, *[0.4] * 12, *[0.5] * 6, 0.55, 0.6)),
        "setting1": setting1(),
        "delay-10": kinds.fixed_delay([0.3] * 5 + [0.4] * 3 + [0.5, 0.6]),
        **gallery,
    }  # fmt: skip
    shorter = {"delay-10": 5000, "k1000": 10_000, "k2-apart": 10_000}
    return {
        name: Case(problem, 8000 if "beyond" in name else shorter.get(name, 20_000), DEVELOPMENT_SEED + i)
        for i, (name, problem) in enumerate(problems.items())
    }


def held_out() -> dict[str, Case]:
    """Other numbers of the same kinds, and other ways of paying."""
    u = quantiles()
    ramp = np.arange(1, GROUPS + 1) / np.arange(1, GROUPS + 1).sum()
    week = np.array([1.0 if group % 7 == 6 else 0.02 for group in range(GROUPS)])
    ends = np.array([0.5, *[0.0] * (GROUPS - 2), 0.5])

    def parts(early: float, late: float) -> Law:
        """Half of the cap at the beginning, half at the end, each paid with a chance of its own."""
        chances = [early] + [0.0] * (GROUPS - 2) + [late]
        return BernoulliLaw(chances, ends)

    def bought(chance: float, size: float) -> Law:
        """Nothing, or with this chance an amount with a long tail, of this median."""
        spent = np.minimum(size * np.exp(0.8 * np.sqrt(2) * _erfinv(2 * u - 1)), 1.0)
        return empirical(np.concatenate([spent, np.zeros(round(len(u) * (1 - chance) / chance))]), ramp)

    def mood(mean: float) -> Law:
        """Every piece of a decision is larger or smaller together."""
        return empirical(2 * mean * u)

    def fading(early: float, late: float) -> Law:
        """A decision that pays early pays nothing late, and the other way round."""
        first, last = np.zeros(GROUPS), np.zeros(GROUPS)
        first[:4], last[-4:] = early / 4, late / 4
        return EmpiricalLaw([first, last])

    def plans(yearly: float, monthly: float) -> Law:
        """A few pay the whole cap at once, some pay monthly for a third of the window, others nothing."""
        rows = np.zeros((100, GROUPS))
        rows[: round(100 * yearly), 0] = 1.0
        rows[round(100 * yearly) : round(100 * (yearly + monthly)), : GROUPS // 3] = 1.0 / GROUPS
        return EmpiricalLaw(rows)

    gallery = {id: ENTRIES[id].problem for id in (
        "late-best", "w5000-early", "w5000-even", "caps4", "late-surprise", "at-cap", "near-cap", "jackpot",
        "hidden-jackpot", "lure", "mixed-caps", "bimodal", "two-speeds", "needle", "heavy-tails", "delay-2",
        "beyond-early", "beyond-late")}  # fmt: skip
    dice = np.random.default_rng(HELD_OUT_SEED)
    problems = {
        **gallery,
        "noisiest": plain(80, [*map(sure, np.linspace(0.28, 0.36, 7)), LumpLaw(0.41)]),
        "noisiest-of-20": plain(100, [*map(sure, np.linspace(0.5, 0.58, 19)), LumpLaw(0.64, "end")]),
        "noisier-worse": plain(100, [BernoulliLaw(0.5), BernoulliLaw(0.55), LumpLaw(0.45), LumpLaw(0.35)]),
        "until-they-leave": churn([0.75, 0.82, 0.88, 0.91, 0.95, 0.85],
                                  [0.95, 0.8, 0.8, 0.66, 0.6, 0.9], 18, 15),
        "half-early-half-late": plain(100, [parts(0.6, 0.3), parts(0.5, 0.5), parts(0.4, 0.7),
                                            parts(0.55, 0.4)]),
        "one-pays-nothing": plain(120, lumps(0.15, 0.0, 0.25, 0.3, 0.22, spread="middle")),
        "half-pay-nothing": plain(100, lumps(*[0.0] * 6, 0.05, 0.08, 0.1, 0.12)),
        "jackpot-50": kinds.jackpot([0.008, 0.01, 0.012, 0.01], 0.02),
        "hidden-25": kinds.hidden_jackpot([0.04, 0.045, 0.05, 0.042], 0.036, 25),
        "far-beyond-begin": kinds.long_window([0.2, 0.35, 0.3, 0.5], "begin", 40_000),
        "far-beyond-end": kinds.long_window([0.2, 0.35, 0.3, 0.5], "end", 40_000),
        "caps20-smooth": loose([BetaLaw(2.0, b) for b in (2.0, 3.0, 4.0, 5.0, 1.5, 2.5)]),
        "caps20-lumps": loose(lumps(0.1, 0.2, 0.25, 0.35, spread="end")),
        "caps20-mood": loose([mood(m) for m in (0.2, 0.3, 0.35, 0.4, 0.25)]),
        "caps50-churn": Problem([50.0] * 4, 120, 12, [ScaledLaw(LeavingLaw((1.0,) + (s,) * 11, p), 0.02)
                                for s, p in [(0.8, 0.9), (0.9, 0.7), (0.95, 0.5), (0.85, 0.6)]]),
        "purchases": plain(160, [bought(0.1, 0.05), bought(0.2, 0.03), bought(0.05, 0.15),
                                 bought(0.15, 0.06)]),
        "moods": plain(100, [mood(m) for m in (0.25, 0.3, 0.35, 0.4, 0.28, 0.33)]),
        "either-or": plain(100, [fading(0.8, 0.1), fading(0.3, 0.5), fading(0.1, 0.9), fading(0.6, 0.35)]),
        "plans": plain(240, [plans(0.02, 0.3), plans(0.05, 0.15), plans(0.08, 0.1), plans(0.03, 0.4)]),
        "weekly": plain(140, [BernoulliLaw(p, week / week.sum()) for p in (0.3, 0.35, 0.4, 0.5)]),
        "two-alike": plain(100, lumps(0.5, 0.5, 0.3, 0.3)),
        "k2-near": plain(60, lumps(0.2, 0.23)),
        "k3-skewed": plain(100, [BetaLaw(0.3, 0.6), BetaLaw(0.3, 0.5), BetaLaw(0.4, 0.5)]),
        "k15-even": plain(100, lumps(*np.linspace(0.1, 0.4, 15).round(3))),
        "sparse": plain(100, lumps(*[0.004] * 7, 0.01)),
        "k150": plain(100, lumps(*(round(0.25 + 0.2 * p, 3) for p in dice.random(150)), spread="uniform")),
        "k600": plain(100, lumps(*(round(0.02 + 0.5 * p * p, 3) for p in dice.random(600)))),
        "k40-tiers": plain(100, lumps(*[0.1] * 25, *[0.25] * 10, *[0.35] * 4, 0.42)),
        "listeners-30": Problem([59.0] * 30, 590, 59, kinds.listeners(30, 77)),
        "playlist-like": Problem([60.0] * 5, 60, 15, [LeavingLaw((1.0,) + (s,) * 14, p) for s, p in
                                 [(0.84, 0.95), (0.9, 0.75), (0.95, 0.55), (0.97, 0.5), (0.99, 0.36)]]),
        "setting2-1-late": setting2(1, "late"),
        "setting2-3-uniform": setting2(3, "uniform"),
        "delay-8": kinds.fixed_delay([0.1, 0.15, 0.2, 0.25, 0.3, 0.2, 0.15, 0.35], 40),
    }  # fmt: skip
    return {
        name: Case(
            problem, 10_000 if "beyond" in name else 3000 if "delay" in name else 20_000, HELD_OUT_SEED + i
        )
        for i, (name, problem) in enumerate(problems.items())
    }


def _erfinv(x: Floats) -> Floats:
    from scipy.special import erfinv

    return np.asarray(erfinv(x))


SETS: dict[str, Callable[[], Mapping[str, tuple[Problem, int, int]]]] = {
    "development": development, "held-out": held_out, "seen-1": seen_1, "seen-2": seen_2, "seen-3": seen_3,
    "seen-4": seen_4, "seen-5": seen_5, "fresh": fresh,
}  # fmt: skip


def cases(which: str) -> dict[str, Case]:
    made = SETS["development" if which == "surprise" else which.removeprefix(ALONE)]()
    return {name: Case(*case) for name, case in made.items()}


def check_apart() -> None:
    """Stop if two sets have a seed or a problem in common."""
    for first, last in combinations(map(cases, SETS), 2):
        assert not {case.seed for case in first.values()} & {case.seed for case in last.values()}
        for (name, mine), (other, case) in product(first.items(), last.items()):
            same = np.array_equal(mine.problem.group_means, case.problem.group_means)
            assert not same or mine.problem.arm_laws != case.problem.arm_laws, (name, other)


def compared(which: str) -> dict[str, Policy]:
    """What is compared, by column."""
    floors = {FLOOR[0]: IMED(immediate=True), FLOOR[1]: ThompsonSampling(immediate=True)}
    others = {AGE: AgeIMED(), WAITING: IMED()}
    if which == "surprise":
        return {**floors, **{f"{s:g}": AgePrior(surprise=s) for s in SURPRISES}, **others}
    if which.startswith(ALONE):
        return {NEW: AgePrior()}
    return {**floors, NEW: AgePrior(), **others}


class Task(NamedTuple):
    set: str
    name: str
    runs: range


def play(task: Task) -> tuple[Task, dict[str, list[float]]]:
    """Regret of every run, by column."""
    case = cases(task.set)[task.name]
    policies = compared(task.set)
    result = simulate(case.problem, policies, case.horizon, task.runs, case.seed, checkpoints=1, threads=1)
    return task, {label: result.final_regret[p].tolist() for p, label in enumerate(result.labels)}


def tasks(which: str, runs: int, only: Iterable[str]) -> list[Task]:
    """The longest first."""
    chosen = set(only) or ({*LOOSE, *JACKPOTS, *BESIDES} if which == "surprise" else set())
    sized = []
    for name, case in cases(which).items():
        if not chosen or name in chosen:
            arms = len(case.problem.caps)
            count, step = (runs, 10) if arms <= MANY_ARMS else (min(runs, MANY_RUNS), 1)
            work = case.horizon * (arms + 30) * step
            sized += [
                (work, Task(which, name, range(r, min(r + step, count)))) for r in range(0, count, step)
            ]
    return [task for _, task in sorted(sized, key=lambda pair: -pair[0])]


Regret = dict[str, dict[str, list[float]]]  # problem, policy, runs


def floor_of(mine: dict[str, list[float]]) -> float:
    return min(float(np.mean(mine[label])) for label in FLOOR)


def table(regret: Regret) -> str:
    """Markdown: mean, 99 % quantile and worst run over the no-delay floor's mean."""
    labels = [label for label in next(iter(regret.values())) if label not in FLOOR]
    text = ["| problem | no delay | " + " | ".join(labels) + " |", "|---" * (len(labels) + 2) + "|"]
    for problem, mine in regret.items():
        floor = floor_of(mine)
        cells = [
            f"{np.mean(mine[label]) / floor:.2f} ({np.quantile(mine[label], 0.99) / floor:.1f}, "
            f"{np.max(mine[label]) / floor:.1f})"
            for label in labels
        ]
        text.append(f"| {problem} | {floor:.4g} | " + " | ".join(cells) + " |")
    return "\n".join(text)


def verdicts(regret: Regret) -> str:
    """What is asked of a default, and where it is missed."""
    text = []
    for problem, mine in regret.items():
        floor = floor_of(mine)
        mean, age, waiting = (float(np.mean(mine[label])) for label in (NEW, AGE, WAITING))
        if mean > 1.5 * min(age, waiting):
            text.append(
                f"{problem}: {mean / min(age, waiting):.2f} times the better of AgeIMED and waiting IMED"
            )
        worst = np.max(mine[NEW]) / floor
        if worst > 15.0 and np.max(mine[AGE]) <= 6.0 * floor:
            lost = np.mean(np.array(mine[NEW]) > 15.0 * floor)
            text.append(f"{problem}: worst run {worst:.1f} times the floor ({lost:.1%} of runs above 15)")
    for label in (BEFORE, AGE, WAITING):
        if all(label in mine for mine in regret.values()):
            logs = [np.log(np.mean(mine[NEW]) / np.mean(mine[label])) for mine in regret.values()]
            ends = [np.log(np.max(mine[NEW]) / np.max(mine[label])) for mine in regret.values()]
            text.append(f"geometric mean over {label}: {np.exp(np.mean(logs)):.3f} in the mean, "
                        f"{np.exp(np.mean(ends)):.3f} in the worst run, {len(logs)} problems")  # fmt: skip
    return "\n".join(f"- {line}" for line in text)


def draw_surprise(regret: Regret, path: Path) -> None:
    """Draw regret over the floor by `surprise`, and AgeIMED's and waiting IMED's."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    for ax, names, title in zip(
        figure.subplots(1, 2, sharey=True),
        (LOOSE, JACKPOTS),
        ("caps 20 times too large", "true caps"),
        strict=True,
    ):
        for colour, name in zip(("#0072B2", "#D55E00", "#009E73"), names, strict=True):
            mine = regret[name]
            means = [np.mean(mine[f"{s:g}"]) / floor_of(mine) for s in SURPRISES]
            ax.plot(SURPRISES, means, marker="o", color=colour, label=name)
            ax.axhline(np.mean(mine[AGE]) / floor_of(mine), color=colour, linestyle=":", linewidth=1.0)
            ax.axhline(np.mean(mine[WAITING]) / floor_of(mine), color=colour, linestyle="--", linewidth=0.7)
        ax.axvline(AgePrior().surprise, color="#BBBBBB", zorder=0)
        ax.set(title=title, xlabel="surprise", yscale="log")
        ax.legend(frameon=False)
    figure.supylabel("mean regret over the no-delay floor")
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("set", choices=[*SETS, "surprise", "surprise-picture"])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument(
        "--runs", type=int, default=RUNS, help=f"at most {MANY_RUNS} of them beyond {MANY_ARMS} arms"
    )
    parser.add_argument("--only", action="append", default=[], help="a problem; may be repeated")
    parser.add_argument("--alone", action="store_true", help="AgePrior only, for --before of another version")
    parser.add_argument("--before", type=Path, help="runs.json of another version of AgePrior")
    parser.add_argument("--out", type=Path, default=Path("out/default_policy"))
    given = parser.parse_args()
    if given.set == "surprise-picture":
        draw_surprise(json.loads((given.out / "runs.json").read_text()), given.out / "surprise.png")
        return
    check_apart()
    given.out.mkdir(parents=True, exist_ok=True)
    begin = time.time()
    which = ALONE * given.alone + given.set
    todo = tasks(which, given.runs, given.only)
    # Machine code is kept on disk: made once here, it is found by every process.
    simulate(kinds.fixed_delay([0.3, 0.5], 4), compared(which), 100, 1, threads=1, checkpoints=1)
    print(f"compiled after {time.time() - begin:.0f} s; {len(todo)} tasks", flush=True)
    found: Regret = {}
    with ProcessPoolExecutor(given.jobs) as pool:
        for done, (task, runs) in enumerate(pool.map(play, todo), start=1):
            for label, values in runs.items():
                found.setdefault(task.name, {}).setdefault(label, []).extend(values)
            if done % 100 == 0:
                print(f"{done} of {len(todo)} after {time.time() - begin:.0f} s", flush=True)
    regret = {name: found[name] for name in cases(given.set) if name in found}
    (given.out / "runs.json").write_text(json.dumps(regret))
    if given.alone:
        return
    if given.before is not None:
        older = json.loads(given.before.read_text())
        for name, mine in regret.items():
            mine[BEFORE] = older[name][NEW]
    text = f"{table(regret)}\n" if given.set == "surprise" else f"{table(regret)}\n\n{verdicts(regret)}\n"
    (given.out / "table.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
