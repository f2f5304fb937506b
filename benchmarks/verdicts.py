"""Verdicts: false winners, power, the coverage of the interval of `state()`, and plans compared with trials.

Run with `make verdicts`; `--runs 100` is quick. A part (false, control, power, limit, coverage, fresh, plan,
drift, guardrails, adding, by_hand, swap, picture) may be named to run it alone.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import logging
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from own_policy import PieceMOSS
from tests.live.watching import first_trip

import accrual as ac
from accrual.core.errors import need
from accrual.core.jit.compiler import kernel
from accrual.core.random import floor_coin, pair
from accrual.engine.fast_loop import Chain, Checkpoints, PolicyPlan
from accrual.engine.feed import RunFeed
from accrual.engine.law_kernels import pack
from accrual.evaluate.plan import even_shares, plan, trials
from accrual.live import estimate as estimates
from accrual.live.estimate import estimate, shared_spread
from accrual.live.watch.evidence import bound_of, comparison_error, find_beaten, no_evidence, score
from accrual.live.watch.guardrails import no_guards
from accrual.live.watch.sequences import estimates as differences
from accrual.live.watch.verdicts import verdict
from accrual.live.watch.watcher import Pace
from accrual.policies.floor import Shares, drawn, propensity
from accrual.problems.laws import Law

Floats = npt.NDArray[np.float64]

WINDOW, GROUPS, HORIZON = 400, 20, 4000
POLICIES = {"AgeIMED": ac.AgeIMED(), "AgeTS": ac.AgeTS(), "a user's (PieceMOSS)": PieceMOSS()}
KINDS: dict[str, Callable[[str], ac.LumpLaw | ac.BetaLaw | ac.LeavingLaw]] = {
    "all or nothing": lambda spread: ac.LumpLaw(0.3, spread),
    "dense": lambda spread: ac.BetaLaw(3.0, 7.0, spread),
    "leaving": lambda spread: ac.LeavingLaw(0.85, 0.9, spread),
}
SPREADS = ("begin", "uniform", "end")


def share(hits: int, runs: int) -> str:
    p = hits / runs
    return f"{100 * p:.1f} ± {100 * np.sqrt(max(p * (1 - p), 1 / runs) / runs):.1f} %"


def false_winners(runs: int, jobs: int) -> None:
    """How often equal arms get a winner, with a look in every round."""
    print(f"false winners: equal arms, floor 0.1, {HORIZON:,} rounds, window {WINDOW}, a look in every round")
    worst = 0
    total = cells = 0
    for arms, policy in itertools.product((2, 3, 4, 5), POLICIES):
        shown = []
        for kind, spread in itertools.product(KINDS, SPREADS):
            problem = ac.Problem([1.0] * arms, WINDOW, GROUPS, [KINDS[kind](spread)] * arms)
            found = trials(problem, POLICIES[policy], 0.1, HORIZON, runs, seed=arms, jobs=jobs)
            hits = int((found.winner >= 0).sum())
            worst, total, cells = max(worst, hits), total + hits, cells + 1
            shown.append(f"{100 * hits / runs:.1f}")
        print(f"  {arms} arms, {policy}: {' '.join(shown)} %", flush=True)
    print(f"  columns: {', '.join(f'{k} {s}' for k, s in itertools.product(KINDS, SPREADS))}")
    print(f"  all {cells} cells {share(total, runs * cells)}; the worst {share(worst, runs)}", flush=True)


def sparse(runs: int, jobs: int) -> None:
    """The same where decisions seldom pay, and with a larger floor."""
    for p, floor in itertools.product((0.01, 0.3), (0.05, 0.2)):
        problem = ac.Problem([1.0] * 2, WINDOW, GROUPS, [ac.LumpLaw(p)] * 2)
        found = trials(problem, ac.AgeIMED(), floor, HORIZON, runs, seed=9, jobs=jobs)
        print(
            f"  2 arms, chance {p}, floor {floor}: {share(int((found.winner >= 0).sum()), runs)}", flush=True
        )


def control(runs: int) -> None:
    """The old rule: an arm whose pointwise interval no other arm's reaches, with a look every 50 rounds."""
    print(
        f"control: 'no other arm's interval reaches it', two equal arms (0.3), no floor, {HORIZON:,} rounds"
    )
    estimates._Z = 1.96  # as the interval was when there was that rule
    for label in ("AgeTS", "AgeIMED"):
        problem = ac.Problem([1.0] * 2, WINDOW, GROUPS, [ac.LumpLaw(0.3)] * 2)
        hits = 0
        for run in range(runs):
            edges = POLICIES[label].edges(WINDOW).astype(float)
            for chain, _ in looks(problem, POLICIES[label], range(50, HORIZON + 1, 50), run):
                shared = shared_spread(chain.stats, edges)
                known = [estimate(chain.stats, shared, arm) for arm in range(2)]
                a, b = (one.interval if one else (0.0, 1.0) for one in known)
                if a[0] > b[1] or b[0] > a[1]:
                    hits += 1
                    break
        print(f"  {label}: {share(hits, runs)}", flush=True)


def looks(problem: ac.Problem, policy: ac.Policy, rounds: range | list[int], run: int, seed: int = 1):  # type: ignore[no-untyped-def]
    """Play one run and stop at each of `rounds`."""
    laws = pack(problem)
    feed = RunFeed(problem, laws, seed, run)
    one = PolicyPlan(policy, problem, laws)
    chain = Chain(one, feed.span, (seed, run))
    start = 1
    none = Checkpoints(np.zeros(0, np.int64), np.zeros(0))
    for stop in rounds:
        while start <= stop:
            length = min(feed.span, stop + 1 - start)
            chain.advance(feed.read(length), start, length, none)
            start += length
        yield chain, one.params


def power(runs: int, jobs: int) -> None:
    """How often and how soon a real winner is found."""
    print(
        "power: 0.30 against 0.40, 6,000 rounds, window 400; the prototype: 80 % by 2,700 and 94 % by 2,000"
    )
    for floor, policy in itertools.product((0.1, 0.2), POLICIES):
        problem = ac.Problem([1.0] * 2, 400, 20, [ac.LumpLaw(0.3), ac.LumpLaw(0.4)])
        found = trials(problem, POLICIES[policy], floor, 6000, runs, seed=3, jobs=jobs)
        right = found.winner == 1
        print(
            f"  floor {floor}, {policy}: found {share(int(right.sum()), runs)}, median round of these "
            f"{np.median(found.round[right]):,.0f}, of all "
            f"{np.median(np.where(right, found.round, 6001)):,.0f}; "
            f"wrong {share(int((found.winner == 0).sum()), runs)}; regret {found.regret.mean():.0f}",
            flush=True,
        )


# The problems on which the interval was made, and others of the same six kinds that it had never seen.
KNOWN: dict[str, tuple[int, list[Law]]] = {
    "lumps, begin_middle, w 100": (100, [ac.LumpLaw(p, "begin_middle") for p in (0.2, 0.3, 0.4, 0.5)]),
    "coins, end, w 500": (500, [ac.BernoulliLaw(p, "end") for p in (0.2, 0.3, 0.4, 0.5)]),
    "speeds differ, w 200": (200, [ac.LumpLaw(0.4, s) for s in ("begin", "uniform", "end")]),
    "sparse, w 100": (100, [ac.LumpLaw(p) for p in (0.01, 0.02, 0.03, 0.04)]),
    "equal arms, w 100": (100, [ac.LumpLaw(0.3)] * 4),
    "leaving, w 80": (80, [ac.LeavingLaw(stay, 0.8) for stay in (0.7, 0.8, 0.9)]),
}
FRESH: dict[str, tuple[int, list[Law]]] = {
    "lumps, middle_end, w 160": (160, [ac.LumpLaw(p, "middle_end") for p in (0.1, 0.15, 0.35)]),
    "coins, begin, w 240": (240, [ac.BernoulliLaw(p, "begin") for p in (0.05, 0.25, 0.3, 0.6, 0.65)]),
    "speeds differ, w 120": (120, [ac.LumpLaw(0.25, s) for s in ("very_begin", "middle", "very_end")]),
    "sparse, w 140": (140, [ac.LumpLaw(p, "middle") for p in (0.005, 0.015, 0.05)]),
    "equal arms, w 60": (60, [ac.LumpLaw(0.55, "end")] * 6),
    "leaving, w 200": (200, [ac.LeavingLaw(stay, 0.6) for stay in (0.8, 0.85, 0.93)]),
}


@kernel
def _told(shares: Shares, means: Floats, bet: float, bound: float, run: int, rounds: int) -> int:
    """Play one test of a gambler with a single bet; return the decision after which it has won, or 0."""
    log, paid = 0.0, 0.5
    for i in range(rounds):
        arm, chance = drawn(shares, 0, floor_coin(7, run, i))
        u, _ = pair((7, run), i, 0, 0)
        total = 1.0 if u < means[arm] else 0.0
        s = (total - paid / (i + 1.0)) / chance
        paid += total
        log += np.log1p(bet * shares.least[0] * (s if arm == 0 else -s))
        if log >= bound:
            return i + 1
    return 0


def limit(runs: int) -> None:
    """What a gambler would need who knew the difference beforehand, and so the best bet for it."""
    print(
        "limit: 0.30 against 0.40, floor 0.1, the pick is the better arm; a single bet that suits these arms"
    )
    shares = even_shares(2, 0.1)
    for bet in (0.4, 0.45, 0.5):
        bound = float(np.log(bound_of(2, comparison_error(0))))
        found = np.array([_told(shares, np.array([0.4, 0.3]), bet, bound, run, 5600) for run in range(runs)])
        print(
            f"  bet {bet}: found {share(int((found > 0).sum()), runs)} within 6,000 rounds, "
            f"median round of these {np.median(found[found > 0]) + 400:,.0f}",
            flush=True,
        )


def coverage(runs: int, jobs: int, cases: dict[str, tuple[int, list[Law]]], seed: int) -> None:
    """How often the pointwise interval of `state()` holds the mean, at five ages of a bandit."""
    print(
        "coverage of state()'s interval, AgeIMED, at t = w/2, w, 2w, 5w, 20w: least and greatest of the arms"
    )
    least, held_all = 1.0, []
    for name, (window, laws) in cases.items():
        problem = ac.Problem([1.0] * len(laws), window, 20, laws)
        rounds = [window // 2, window, 2 * window, 5 * window, 20 * window]
        arrived = np.array([np.append(0.0, np.cumsum(law.means(20))) for law in laws])

        def one(run: int, problem: ac.Problem = problem, rounds: list[int] = rounds,
                arrived: Floats = arrived) -> Floats:  # fmt: skip
            held = np.full((len(rounds), len(arrived)), np.nan)
            edges = np.append(0.0, ac.AgeIMED().edges(problem.window))
            ages = np.linspace(0.0, problem.window, 21)
            for t, (chain, _) in enumerate(looks(problem, ac.AgeIMED(), rounds, run, seed)):
                shared = shared_spread(chain.stats, edges[1:])
                for arm in range(len(arrived)):
                    known = estimate(chain.stats, shared, arm)
                    if known is not None:  # what it estimates: what is paid by the greatest age reached
                        true = np.interp(edges[known.reached], ages, arrived[arm])
                        held[t, arm] = known.interval[0] <= true <= known.interval[1]
            return held

        with ThreadPoolExecutor(jobs) as pool:
            held = np.nanmean(np.array(list(pool.map(one, range(runs)))), axis=0)
        least = min(least, held.min())
        held_all += held.ravel().tolist()
        print(f"  {name}: " + ", ".join(f"{row.min():.2f}–{row.max():.2f}" for row in held), flush=True)
    print(f"  the least {least:.3f}, the mean {np.mean(held_all):.3f}", flush=True)


def plans(runs: int, jobs: int) -> None:
    """What `plan` promises beside trials with AgeIMED."""
    print("plans beside trials with AgeIMED: decisions by which half, and four of five, have a verdict")
    for base, more, floor, arms in (
        (0.3, 0.1, 0.1, 2),
        (0.3, 0.1, 0.2, 2),
        (0.1, 0.05, 0.2, 2),
        (0.3, 0.15, 0.3, 4),
    ):
        promise = plan(base, more, floor, arms, window=100)
        line = promise.lines[0]
        assert line.half is not None
        assert line.most is not None
        laws = [ac.LumpLaw(base)] * (arms - 1) + [ac.LumpLaw(base + more)]
        problem = ac.Problem([1.0] * arms, 100, 20, laws)
        horizon = int(3 * line.most + 100)
        found = trials(problem, ac.AgeIMED(), floor, horizon, runs, seed=5, jobs=jobs)
        when = np.where(found.winner == arms - 1, found.round, np.inf)
        half, most = np.quantile(when, (0.5, 0.8), method="higher")
        print(
            f"  {arms} arms, {base} and {base + more:g}, floor {floor}: planned {line.half + 100:,.0f} and "
            f"{line.most + 100:,.0f}, found {half:,.0f} and {most:,.0f}: "
            f"{100 * ((line.half + 100) / half - 1):+.0f} % and "
            f"{100 * ((line.most + 100) / most - 1):+.0f} %",
            flush=True,
        )


def drift(runs: int) -> None:
    """Equal arms that pay 0.2 on one day and 0.5 on the next: both alike, so there is no winner."""
    hits = plain = 0
    for run in range(runs):
        dice = np.random.default_rng(run)
        evidence = no_evidence(np.tile([0.0, 1.0], (2, 1)), np.full(2, 0.05), comparison_error(0), 0)
        shares = even_shares(2, 0.1)
        sums, counts = np.zeros(2), np.zeros(2)
        for day in range(10):
            pick = int(np.argmax((sums + 0.5) / (counts + 1.0)))
            forced = dice.random(400) < 0.1
            arms = np.where(forced, dice.integers(2, size=400), pick)
            totals = (dice.random(400) < (0.2 if day % 2 else 0.5)).astype(np.float64)
            for arm, total in zip(arms.tolist(), totals.tolist(), strict=True):
                score(evidence, arm, total, propensity(shares, pick, arm))
            sums += np.bincount(arms, totals, 2)
            counts += np.bincount(arms, minlength=2)
        find_beaten(evidence)
        hits += bool(evidence.beaten.any())
        means = sums / counts
        error = np.sqrt((means * (1 - means) / counts).sum())
        plain += abs(means[0] - means[1]) > 3.0 * error
    print(
        "drift: equal arms, 0.5 on odd days and 0.2 on even ones, 10 days of 400 decisions, a greedy policy"
    )
    print(
        f"  verdicts: {share(hits, runs)}; plain means 3 standard errors apart: {share(plain, runs)}",
        flush=True,
    )


def guardrails(runs: int) -> None:
    """How often an arm within the margin trips, and how soon one beyond it does."""
    rounds, margin = 6000, 0.02
    print(
        f"guardrails: all or nothing, margin {margin}, {rounds:,} closed decisions, "
        "the pick changes every 300"
    )
    for means, floor in itertools.product(
        ((0.05, 0.05), (0.05, 0.07), (0.05, 0.05, 0.07, 0.07), (0.05, 0.12), (0.05, 0.05, 0.05, 0.12)),
        (0.1, 0.3),
    ):
        shares = even_shares(len(means), floor)
        found = np.zeros(runs, np.int64)
        for run in range(runs):
            guards = no_guards([0], [(0.0, 1.0)], [margin], shares.least, comparison_error(0), 0)
            found[run] = first_trip(guards, shares, np.array(means), (5, run), 300, rounds)
        hits = found > 0
        when = f", the median round of these {np.median(found[hits]):,.0f}" if hits.any() else ""
        print(f"  {means}, floor {floor}: {share(int(hits.sum()), runs)}{when}", flush=True)


# The whole life of a bandit, live, in memory, with the default policy. Each returns whether something false
# was ever said.

LOOK = 200  # decisions between two looks


def play(bandit: ac.Bandit, dice: np.random.Generator, means: dict[str, float], decisions: int) -> None:
    for _ in range(decisions):
        one = bandit.decide()
        if dice.random() < means[one.arm]:
            bandit.observe(one.id, 1.0, age=0)


def adding_life(comparisons: int, decisions: int, run: int) -> bool:
    """Two equal arms, of which the older is retired by hand and another added, again and again."""
    dice = np.random.default_rng([1, run])
    bandit = ac.Bandit(["0", "1"], window=10, floor=0.4, seed=run)
    means = {str(arm): 0.3 for arm in range(comparisons + 2)}
    for number in range(comparisons):
        if number:
            bandit.retire_arm(bandit.arms[0])
            bandit.add_arm(str(number + 1))
        play(bandit, dice, means, decisions)
        if bandit.state().verdict.winner is not None:
            return True
    return False


def by_hand_life(arms: int, decisions: int, run: int) -> bool:
    """Equal arms, of which the two that seem most different are kept by hand, half-way."""
    dice = np.random.default_rng([2, run])
    bandit = ac.Bandit([str(arm) for arm in range(arms)], window=10, floor=0.5, seed=run)
    means = {str(arm): 0.3 for arm in range(arms)}
    play(bandit, dice, means, decisions)
    difference, errors = differences(bandit._follower.ledger.watched[1])
    away = difference / np.where(errors > 0.0, errors, np.inf)
    kept = {str(arm) for arm in np.unravel_index(int(np.argmax(away)), away.shape)}
    for name in means.keys() - kept:
        bandit.retire_arm(name)
    false = bandit.state().verdict.winner is not None
    play(bandit, dice, means, decisions)
    return false or bandit.state().verdict.winner is not None


def swap_life(every: int, decisions: int, run: int) -> bool:
    """Two arms that change places every so many decisions.

    It is false that an arm paid more on average over a range of decisions in which it did not, and that an
    arm wins that was itself shown to pay less.
    """
    logging.getLogger("accrual.live").setLevel(logging.ERROR)  # the alarm is raised, as it should be
    dice = np.random.default_rng([3, run])
    bandit = ac.Bandit(["a", "b"], window=10, floor=0.2, seed=run)
    more = np.where(np.arange(decisions) // every % 2 == 0, 0.2, -0.2)
    sums = np.append(0.0, more.cumsum())  # of a less b
    step = min(LOOK, every)
    for start in range(0, decisions, step):
        low, high = (0.3, 0.5) if more[start] < 0.0 else (0.5, 0.3)
        play(bandit, dice, {"a": low, "b": high}, min(step, decisions - start))
        found = bandit.state().verdict
        for pair_ in found.pairs:
            sign = 1.0 if pair_.first == "a" else -1.0
            for span, direction in ((pair_.ahead, sign), (pair_.behind, -sign)):
                if span is not None and direction * (sums[span[1] + 1] - sums[span[0]]) <= 0.0:
                    return True
            if found.winner is not None and pair_.behind is not None:
                return True
    return False


def lives(title: str, life: Callable[[int], bool], runs: int, jobs: int) -> None:
    """Live many lives, in processes of their own, and say in how many something false was ever said."""
    print(f"  {title}: ", end="", flush=True)
    false = [life(0)]  # compiles, and keeps what it has compiled for the others
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        for wrong in pool.map(life, range(1, runs), chunksize=max(runs // (8 * jobs), 1)):
            false.append(wrong)
            if len(false) % max(runs // 10, 1) == 0:
                print(f"{len(false)} ", end="", flush=True)
    print(f"runs; false {share(sum(false), len(false))}", flush=True)


def adding(runs: int, jobs: int, comparisons: int, decisions: int) -> None:
    title = f"{comparisons} comparisons of two equal arms one after the other, {decisions:,} decisions each"
    lives(title, functools.partial(adding_life, comparisons, decisions), runs, jobs)


def by_hand(runs: int, jobs: int, decisions: int) -> None:
    title = f"ten equal arms, the two most separated kept by hand after {decisions:,} of {2 * decisions:,}"
    lives(title, functools.partial(by_hand_life, 10, decisions), runs, jobs)


def swap(runs: int, jobs: int, decisions: int) -> None:
    for every in (decisions // 4, decisions // 40):
        title = f"0.5 and 0.3 that change places every {every:,} of {decisions:,} decisions"
        lives(title, functools.partial(swap_life, every, decisions), runs, jobs)


def picture() -> None:
    """Draw one test: how much more an arm that pays 0.40 pays than one that pays 0.30, as decisions close."""
    dice = np.random.default_rng(6)
    shares = even_shares(2, 0.2)
    evidence = no_evidence(np.tile([0.0, 1.0], (2, 1)), shares.least, comparison_error(0), 0)
    arms = np.where(dice.random(4000) < 0.2, dice.integers(2, size=4000), 1)
    for arm in arms.tolist():
        score(evidence, arm, float(dice.random() < (0.3, 0.4)[arm]), propensity(shares, 1, arm))
    (one,) = verdict(evidence, [0, 1], lambda arm: ("old", "new")[arm], Pace(0, 1.0, 0.0)).pairs
    scored, low, high = np.array([*one.sequence, (4000, *one.interval)]).T
    figure = need("matplotlib.figure", "plot").Figure(figsize=(7, 3.2), layout="constrained")
    axes = figure.subplots()
    axes.fill_between(scored, low, high, alpha=0.3, linewidth=0)
    axes.axhline(0.0, color="black", linewidth=0.8)
    axes.axhline(0.1, color="black", linewidth=0.8, linestyle=":")
    fell = evidence.beaten[1, 0]
    if fell:
        axes.axvline(fell, linewidth=0.8)
        axes.annotate(f"verdict after {fell:,}", (fell, 0.3), xytext=(6, 0), textcoords="offset points")
    axes.set(xlabel="closed decisions", ylabel="new pays more than old by", ylim=(-0.2, 0.4), xlim=(0, 4000))
    path = Path(__file__).parent.parent / "docs" / "img" / "verdict.png"
    figure.savefig(path, dpi=110)
    print(f"wrote {path.name}")


def main() -> None:
    parts = (
        "false",
        "control",
        "power",
        "limit",
        "coverage",
        "fresh",
        "plan",
        "drift",
        "guardrails",
        "adding",
        "by_hand",
        "swap",
        "picture",
    )
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"any of {', '.join(parts)}; all unless given")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--comparisons", type=int, default=60, help="of adding")
    parser.add_argument(
        "--decisions", type=int, help="of adding in a comparison (1000 unless given), of by_hand before arms "
        "retire (4000), of swap in all (16000)",
    )  # fmt: skip
    given = parser.parse_args()
    for part in given.parts or parts:
        began = time.perf_counter()
        if part == "false":
            false_winners(given.runs, given.jobs)
            sparse(given.runs, given.jobs)
        elif part == "control":
            control(max(given.runs // 5, 1))
        elif part == "power":
            power(given.runs, given.jobs)
        elif part == "limit":
            limit(2 * given.runs)
        elif part == "coverage":
            coverage(max(given.runs // 2, 1), given.jobs, KNOWN, seed=1)
        elif part == "fresh":
            coverage(max(given.runs // 2, 1), given.jobs, FRESH, seed=77)
        elif part == "plan":
            plans(given.runs, given.jobs)
        elif part == "drift":
            drift(max(given.runs // 5, 1))
        elif part == "guardrails":
            guardrails(given.runs)
        elif part == "adding":
            adding(given.runs, given.jobs, given.comparisons, given.decisions or 1000)
        elif part == "by_hand":
            by_hand(given.runs, given.jobs, given.decisions or 4000)
        elif part == "swap":
            swap(given.runs, given.jobs, given.decisions or 16_000)
        elif part == "picture":
            picture()
        else:
            parser.error(f"no part is called {part!r}; there are {', '.join(parts)}")
        print(f"  ({time.perf_counter() - began:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
