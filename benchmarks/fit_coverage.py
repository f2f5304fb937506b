"""How often the 95 % intervals of a fit contain the truth, and how often its tests are false alarms.

Logs of known problems, with 30 % of the decisions still open at the end: 500 of each, by default. A case
passes if its intervals contain the truth in 92 to 98 % of the logs. Each case has a control, which counts
what open decisions have not paid yet as zero. Run with `make coverage`; `--quick` takes a minute.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import special

import accrual as ac
from accrual.logs.estimate.cumulative_means import FollowedDecisions, arm_mean
from accrual.logs.estimate.grids import EvenGrid
from accrual.logs.estimate.large_totals import FEW_PAYING
from accrual.logs.fit import fit_log
from accrual.logs.open_log import open_log

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.logs.drawn_logs import (
    CASES,
    GROUPS,
    LAWS,
    OPEN,
    TOTALS,
    estimated,
    estimated_of,
    means_of,
    study,
    totals,
)  # fmt: skip

LOW, HIGH = 0.92, 0.98
SIZES = (20, 50, 200, 2_000, 20_000)
TOTAL_SIZES = (20, 50, 200, 1_000, 5_000)
WINDOWS = 200  # logs, at most: each goes through files and DuckDB


def show_totals(repetitions: int) -> None:
    """Print the coverage of arms' means by the law of their totals."""
    print("an arm's mean, by the law of totals and the number of closed decisions")
    for name in TOTALS:
        for size in TOTAL_SIZES:
            held, few = totals(name, size, repetitions)
            print(f"{name:24} {size:6,} {held:.3f}, of which warned {few:4.0%}", flush=True)


# Totals by how large their largest are: few rare ones, none that matters, and in between. The limits of
# `accrual.logs.estimate.large_totals` were chosen with other seeds, on the laws that are not marked "new".
TAILS: dict[str, Callable[[np.random.Generator, int], npt.NDArray[np.float64]]] = {
    "1 in 200 pays 200 times": lambda dice, n: (
        np.where(dice.random(n) < 1 / 200, 200.0, 1.0) * dice.exponential(1.0, n)
    ),
    "Pareto 1.5": lambda dice, n: dice.random(n) ** (-1 / 1.5),
    "log-normal 2": lambda dice, n: dice.lognormal(0.0, 2.0, n),
    "Pareto 1.8": lambda dice, n: dice.random(n) ** (-1 / 1.8),
    "Weibull 0.3 (new)": lambda dice, n: dice.weibull(0.3, n),
    "log-normal 1.5": lambda dice, n: dice.lognormal(0.0, 1.5, n),
    "log-normal 1": lambda dice, n: dice.lognormal(0.0, 1.0, n),
    "30 % x exponential": lambda dice, n: (dice.random(n) < 0.3) * dice.exponential(1.0, n),
    "exponential": lambda dice, n: dice.exponential(1.0, n),
    "gamma 0.7 (new)": lambda dice, n: dice.gamma(0.7, 1.0, n),
    "20 % pay 1 (new)": lambda dice, n: (dice.random(n) < 0.2).astype(np.float64),
    "Poisson 1.5 (new)": lambda dice, n: dice.poisson(1.5, n).astype(np.float64),
}
TAIL_MEANS = {
    "1 in 200 pays 200 times": 1.995, "Pareto 1.5": 3.0, "log-normal 2": np.exp(2.0),
    "Pareto 1.8": 2.25, "Weibull 0.3 (new)": float(special.gamma(1.0 + 1.0 / 0.3)),
    "log-normal 1.5": np.exp(1.125), "log-normal 1": np.exp(0.5), "30 % x exponential": 0.3,
    "exponential": 1.0, "gamma 0.7 (new)": 0.7,
    "20 % pay 1 (new)": 0.2, "Poisson 1.5 (new)": 1.5,
}  # fmt: skip
TAIL_SIZES = (150, 500, 2_000, 10_000)


def show_tails(repetitions: int) -> None:
    """Print how often means hold, and what is said of large totals, by the law of totals.

    Logs of two arms of `size` closed decisions each. A mean is warned of where its own totals, or those of
    both arms together, are heavy, or where fewer than 30 decisions paid. The capped mean is that of totals
    up to the law's 98 % quantile.
    """
    print(
        f"{'totals':26} {'of an arm':>9} {'held':>6} {'warned':>6} {'of misses':>9} {'unwarned held':>13} "
        "capped"
    )
    for name, size in itertools.product(TAILS, TAIL_SIZES):
        law, true = TAILS[name], TAIL_MEANS[name]
        many = law(np.random.default_rng(5), 2_000_000)
        cap = float(np.quantile(many, 0.98))
        capped_true = float(np.minimum(many, cap).mean())
        dice = np.random.default_rng([41, size, list(TAILS).index(name)])
        held, warned, capped = [], [], []
        arm, done = np.repeat([0, 1], size), np.ones(2 * size, np.int64)
        for _ in range(repetitions):
            pay = law(dice, 2 * size)
            found = estimated(pay[:, None], done, arm, [pay.max()] * 2)
            heavy = estimated(pay[:, None], done, np.zeros_like(arm), pay.max()).large_totals(0).heavy
            for a, mean in means_of(found).items():
                held.append(mean.low <= true <= mean.high)
                warned.append(heavy or found.large_totals(a).heavy or found.paying[a] < FEW_PAYING)
            less = estimated(np.minimum(pay, cap)[:, None], done, arm, [cap] * 2)
            capped += [mean.low <= capped_true <= mean.high for mean in means_of(less).values()]
        hit, said = np.array(held), np.array(warned)
        of_misses = f"{said[~hit].mean():9.2f}" if (~hit).any() else f"{'-':>9}"
        rest = f"{hit[~said].mean():13.3f}" if (~said).any() else f"{'-':>13}"
        print(
            f"{name:26} {size:9,} {hit.mean():6.3f} {said.mean():6.2f} {of_misses} {rest} "
            f"{np.mean(capped):6.3f}",
            flush=True,
        )


def show_tail_ages(repetitions: int, size: int = 1_500) -> None:
    """Print how often the 99 % age and the last groups of the spread hold, and are warned of.

    Through the whole of a fit: each decision's total comes at one exponential age of mean 10, none after 60.
    """
    print(
        "\nthrough the whole of a fit: the 99 % age, the last three of six groups, warned, and warned where "
        "either failed"
    )
    share = np.diff(1.0 - np.exp(-np.linspace(0.0, 6.0, 7))) / (1.0 - np.exp(-6.0))
    age = -10.0 * np.log(1.0 - 0.99 * (1.0 - np.exp(-6.0)))
    for name in ("1 in 200 pays 200 times", "Pareto 1.5", "log-normal 2", "log-normal 1", "exponential"):
        rows = []
        for repetition in range(repetitions):
            dice = np.random.default_rng([43, repetition])
            made = pd.DataFrame({"id": np.arange(size), "arm": dice.integers(2, size=size)})
            made["at"] = dice.random(size) * 300.0
            paid = pd.DataFrame({"decision": np.arange(size), "value": TAILS[name](dice, size)})
            paid["age"] = -10.0 * np.log(1.0 - dice.random(size) * (1.0 - np.exp(-6.0)))
            seen = made["at"].to_numpy() + paid["age"] < 300.0
            fitted = ac.fit(made, paid[seen & (paid["value"] > 0.0)], window=60.0, groups=6, end=300.0)
            when, last = fitted.recommended.window, range(3, 6)
            rows.append(
                (
                    when.low <= age <= when.high,
                    np.mean([fitted.spread.low[g] <= share[g] <= fitted.spread.high[g] for g in last]),
                    any("large decisions" in line for line in fitted.cautions),
                )
            )
        held, groups, warned = np.array(rows, dtype=np.float64).T
        failed = (held < 1.0) | (groups < 1.0)
        print(
            f"{name:26} {held.mean():.3f} {groups.mean():.3f} {warned.mean():.2f} "
            f"{warned[failed].mean() if failed.any() else np.nan:.2f}",
            flush=True,
        )


CLUSTERS = (20, 50, 200)


def show_clusters(repetitions: int) -> None:
    """Print how often means hold where decisions share a level, with errors of decisions and of clusters.

    Two arms, ten groups, 30 % of the decisions open. A cluster's level is log-normal(0.7). Bursts are of one
    arm and follow each other; users come back at any time and get either arm.
    """
    print(f"{'clusters':10} {'number':>6} {'decisions':>9}  mean, spread: by decision, by cluster")
    for kind, number, each in itertools.product(("bursts", "users", "alone"), CLUSTERS, (5, 30)):
        dice = np.random.default_rng([31, number, each, len(kind)])
        hits: list[tuple[bool, bool, float, float]] = []
        for _ in range(repetitions):
            sizes = 1 + dice.poisson(each - 1, number)
            cluster = np.repeat(np.arange(number), sizes)
            size = len(cluster)
            level = np.ones(size) if kind == "alone" else dice.lognormal(0.0, 0.7, number)[cluster]
            arm = dice.integers(2, size=number)[cluster] if kind == "bursts" else dice.integers(2, size=size)
            late = np.repeat(dice.random(number), sizes) if kind == "bursts" else dice.random(size)
            done = np.minimum((late / OPEN * GROUPS).astype(np.int64), GROUPS)
            pay = level[:, None] * dice.exponential(1.0 / GROUPS, (size, GROUPS))
            true = 1.0 if kind == "alone" else float(np.exp(0.245))
            plain, grouped = (
                estimated(pay, done, arm, [pay.sum(axis=1).max()] * 2, c) for c in (None, cluster)
            )
            for a, mean in means_of(grouped).items():
                assert grouped.clusters is not None
                if grouped.clusters[a] < 2:
                    continue
                other = means_of(plain)[a]
                shares = [found.of(a).shares() for found in (plain, grouped)]
                spread = [np.mean((one[1] <= 1 / GROUPS) & (one[2] >= 1 / GROUPS)) for one in shares]
                hits.append((other.low <= true <= other.high, mean.low <= true <= mean.high, *spread))
        a, b, c, d = np.mean(hits, axis=0)
        print(f"{kind:10} {number:6} {number * each:9,}  {a:.3f} {c:.3f}; {b:.3f} {d:.3f}", flush=True)


PAYS = (0.3,) * 9 + (0.8,)


def show_followed(repetitions: int) -> None:
    """Print how often means hold where every decision has a follow-up of its own, by the groups shown.

    Pieces come at a constant rate, and follow-ups end anywhere; or the follow-up of every third decision ends
    at its second piece.
    """
    print(f"{'follow-up':22} {'decisions':>9} {'groups':>6} {'mean':>6} {'bias':>7} {'spread':>6}")
    for ends, size, groups in itertools.product(
        ("anywhere", "every third at a piece"), (50, 400), (1, 4, 12)
    ):
        dice = np.random.default_rng([17, size, len(ends)])
        held, spread, values = [], [], []
        for _ in range(repetitions):
            followed = dice.uniform(20.0, 120.0, size)
            ages = np.cumsum(dice.exponential(40.0, (size, 40)), axis=1)
            if ends != "anywhere":
                followed[::3] = np.minimum(followed, ages[:, 1] * (1.0 + 4e-9))[::3]
            decision, piece = np.nonzero(ages < followed[:, None])
            some = FollowedDecisions(
                np.zeros(size, np.int64), np.ones(size), followed, np.full(size, np.inf),
                np.searchsorted(decision, np.arange(size + 1)), ages[decision, piece], np.ones(len(decision)),
            )  # fmt: skip
            found = estimated_of(some, EvenGrid(100.0, groups))
            mean = arm_mean(float(found.means[0]), found.scores(0), np.inf, signed=False, plain=False)
            held.append(mean.low <= 2.5 <= mean.high)
            values.append(mean.value)
            _, low, high = found.of(0).shares()
            spread.append(np.mean((low <= 1.0 / groups) & (1.0 / groups <= high)))
        bias, share = np.mean(values) / 2.5 - 1.0, np.mean(spread)
        print(f"{ends:22} {size:9,} {groups:6} {np.mean(held):6.3f} {bias:+7.3f} {share:6.3f}", flush=True)


def bandit_logs(
    floor: float | None, repetitions: int, rounds: int = 1_000
) -> dict[str, list[tuple[float, bool]]]:
    """Fit the logs that the default policy leaves: error and hit of each arm's mean, by its decisions.

    Ten arms of which nine pay 1 in 30 % of decisions and one in 80 %; windows of 20 rounds, paid at once.
    """
    names = [str(a) for a in range(len(PAYS))]
    found: dict[str, list[tuple[float, bool]]] = {"all": [], "under 60": [], "60 to 200": [], "over 200": []}
    for repetition in range(repetitions):
        dice = np.random.default_rng([17, repetition])
        bandit = ac.Bandit(names, window=20, groups=4, seed=repetition, floor=floor or 0.0)
        rows = []
        for number in range(rounds):
            made = bandit.decide()
            pays = float(dice.random() < PAYS[int(made.arm)])
            if pays:
                bandit.observe(made.id, pays, age=0)
            rows.append((number, made.arm, number, made.propensity or 1.0, pays))
        log = pd.DataFrame(rows, columns=["id", "arm", "at", "propensity", "value"]).assign(age=0.0)
        if floor is None:
            log = log.drop(columns="propensity")
        for arm in ac.fit(log, window=20, groups=1, cap=1.0).known:
            assert arm.mean is not None
            true = PAYS[int(arm.name)]
            size = "under 60" if arm.decisions < 60 else "60 to 200" if arm.decisions <= 200 else "over 200"
            row = arm.mean.value - true, arm.mean.low <= true <= arm.mean.high
            found[size].append(row)
            found["all"].append(row)
    return found


def show_bandits(repetitions: int) -> None:
    """Print bias and coverage of arms' means in a bandit's own logs."""
    print("an arm's mean in a bandit's own log, by the arm's decisions; through the whole of a fit")
    for floor in (None, 0.1, 0.3):
        for size, rows in bandit_logs(floor, repetitions).items():
            if rows:
                bias, held = np.mean(rows, axis=0)
                print(
                    f"floor {floor}: {size:10} {len(rows):5} arms, bias {bias:+.3f}, held in {held:.3f}",
                    flush=True,
                )


def windows(size: int, repetitions: int) -> tuple[float, float]:
    """Through the whole of a fit: coverage of the window by which 99 % has come, and its mean length.

    Reward comes in pieces of 1 at exponential ages of mean 10, none after 60; the log is 200 long.
    """
    age = -10.0 * np.log(1.0 - 0.99 * (1.0 - np.exp(-6.0)))
    hits, lengths = [], []
    for repetition in range(repetitions):
        dice = np.random.default_rng([7, size, repetition])
        decisions = pd.DataFrame({"id": np.arange(size), "arm": dice.integers(2, size=size)})
        decisions["at"] = dice.random(size) * 200.0
        pieces = pd.DataFrame({"decision": np.repeat(np.arange(size), dice.poisson(2.0, size)), "value": 1.0})
        pieces["age"] = dice.exponential(10.0, len(pieces))
        end = decisions["at"].to_numpy()[pieces["decision"]] + pieces["age"] < 200.0
        with open_log(decisions, pieces[end & (pieces["age"] < 60.0)], end=200.0) as log:
            interval = fit_log(log, window=60.0, groups=6).recommended.window
        hits.append(interval.low <= age <= interval.high)
        lengths.append(interval.high - interval.low)
    return float(np.mean(hits)), float(np.mean(lengths))


SPANS = (1, 10, 1_000, 100_000)


def spans(ratio: int, repetitions: int, size: int = 2_000) -> tuple[float, float, float]:
    """Through the whole of a fit: coverage of the 99 % age where the log is `ratio` times as long as it.

    Reward comes in pieces of 1, two to a decision on average, at exponential ages of mean 10. The truth is
    the age by which 99 % has come of the reward that comes within the age watched, as the fit says. Also
    gives the interval's mean length and the mean error, both as shares of the truth.
    """
    length = ratio * 10.0 * np.log(100.0)
    hits, lengths, errors = [], [], []
    for repetition in range(repetitions):
        dice = np.random.default_rng([11, ratio, repetition])
        decisions = pd.DataFrame({"id": np.arange(size), "arm": dice.integers(2, size=size)})
        decisions["at"] = dice.random(size) * length
        pieces = pd.DataFrame({"decision": np.repeat(np.arange(size), dice.poisson(2.0, size)), "value": 1.0})
        pieces["age"] = dice.exponential(10.0, len(pieces))
        seen = decisions["at"].to_numpy()[pieces["decision"]] + pieces["age"] < length
        with open_log(decisions, pieces[seen], end=length) as log:
            advice = fit_log(log, window=5.0, groups=2).recommended
        true = -10.0 * np.log(1.0 - 0.99 * (1.0 - np.exp(-advice.watched / 10.0)))
        hits.append(advice.window.low <= true <= advice.window.high)
        lengths.append((advice.window.high - advice.window.low) / true)
        errors.append(advice.window.value / true - 1.0)
    return float(np.mean(hits)), float(np.mean(lengths)), float(np.mean(errors))


def show_spans(repetitions: int) -> None:
    """Print the coverage of the 99 % age for logs of each length."""
    print("the age by which 99 % has come, by how many times as long the log is; through the whole of a fit")
    for ratio in SPANS:
        hits, length, error = spans(ratio, repetitions)
        print(
            f"{ratio:7,}: covered in {hits:.3f}, mean length {length:.1%} of it, mean error {error:+.1%}",
            flush=True,
        )


def rows(sizes: tuple[int, ...], laws: tuple[str, ...], repetitions: int) -> Iterator[tuple[str, bool]]:
    """Lines of the table, and whether each case passes."""
    head = f"{'law':10} {'case':10} {'size':>7} {'mean':>6} {'pooled':>6} {'arms':>6}  groups"
    yield f"{head}       control (mean, pooled)", True
    for law in laws:
        for case in CASES:
            for size in sizes if law == LAWS[0] else sizes[:4]:  # in large logs one law is like another
                fitted, control = study(size, law, case, repetitions)
                figures, other = fitted.figures(), control.figures()
                low, high = fitted.worst()
                fine = all(LOW <= x <= HIGH for x in figures.values())
                skipped = f" {fitted.skipped} arms without an interval" if fitted.skipped else ""
                yield (
                    (
                        f"{law:10} {case:10} {size:7,} {figures['mean']:6.3f} {figures['pooled']:6.3f} "
                        f"{figures['arm']:6.3f}  {low:.2f} - {high:.2f}  "
                        f"{other['mean']:.3f} {other['pooled']:.3f}"
                        f"{'' if fine else '  OUTSIDE'}{skipped}"
                    ),
                    fine,
                )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--repetitions", type=int, default=500)
    parser.add_argument("--laws", default=",".join(LAWS))
    parser.add_argument("--spans", action="store_true", help="only the 99 % age by the log's length")
    parser.add_argument("--totals", action="store_true", help="only means of skewed totals and near the cap")
    parser.add_argument("--bandits", action="store_true", help="only means in a bandit's own logs")
    parser.add_argument("--followed", action="store_true", help="only means with follow-ups of their own")
    parser.add_argument("--tails", action="store_true", help="only means that rest on few large decisions")
    parser.add_argument("--clusters", action="store_true", help="only means of decisions in clusters")
    given = parser.parse_args()
    if given.tails:
        show_tails(given.repetitions)
        show_tail_ages(max(given.repetitions // 4, 1))
        return 0
    if given.clusters:
        show_clusters(given.repetitions)
        return 0
    if given.followed:
        show_followed(given.repetitions)
        return 0
    if given.totals or given.bandits:
        (show_totals if given.totals else show_bandits)(given.repetitions)
        return 0
    if given.spans:
        show_spans(min(given.repetitions, WINDOWS))
        return 0
    repetitions = 100 if given.quick else given.repetitions
    sizes = SIZES[:3] if given.quick else SIZES
    outside = 0
    for line, fine in rows(sizes, tuple(given.laws.split(",")), repetitions):
        print(line, flush=True)
        outside += not fine
    print(f"\n{outside} cases outside {LOW:.0%} to {HIGH:.0%}\n")
    print("yes at p < 0.05 where the answer is no (speed: early; dependence: early; independent groups)")
    for law in ("uniform", "bernoulli"):
        for size in sizes[:4]:
            fitted, _ = study(size, law, "early", repetitions, seed=1)
            print(
                f"{law:10} {size:7,}  speed {np.mean(fitted.speed):.3f}  "
                f"dependence {np.mean(fitted.dependence):.3f}"
            )
    print("\nthe window by which 99 % has come, through the whole of a fit")
    for size in sizes[1:4]:
        hits, length = windows(size, min(repetitions, WINDOWS))
        print(f"{size:7,} decisions: covered in {hits:.3f}, mean length {length:.2f}", flush=True)
    print()
    show_spans(min(repetitions, WINDOWS))
    return 0


if __name__ == "__main__":
    sys.exit(main())
