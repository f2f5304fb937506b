"""What learning from contexts, and from pieces, is worth; and what a contextual decision costs.

``make contexts`` plays four problems with contexts, T = 20,000, 40 runs (20 of the big one), on seeds on
which no constant was chosen. It compares the regret of AgeLinTS with the same policy without delay, the same
policy waiting, LinTS and LinUCB waiting, two habits, and a policy without contexts. Then come ten problems of
each of the four kinds, problems without contexts, problems whose contexts are useless, the effect of alpha,
few decisions, and the cost of a decision. The exit code is 1 if a claim does not hold. ``python
benchmarks/contexts.py kinds`` (or ``costs``, ``without``, ``alphas``, ``few``, ``worth``) measures one of
these; ``picture`` draws the picture of docs/contexts.md.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import accrual as ac
from accrual.core.arrays import Floats
from accrual.core.jit.compiler import kernel
from accrual.policies.base import Moment
from accrual.problems.contexts import Contexts, LinearLaw
from accrual.problems.gallery import ENTRIES, generate
from accrual.studies.gallery import BESIDE, NO_CONTEXT, usual_rows
from accrual.studies.gallery.habits import EarlyLinTS

MEASURED = ("ctx-same", "ctx-cross", "ctx-sparse", "ctx-big")
KINDS: dict[str, Callable[[int], ac.Problem]] = {
    "ctx-same": lambda seed: generate(9, 5, seed=seed),
    "ctx-cross": lambda seed: generate(9, 5, spread="both", seed=seed),
    "ctx-sparse": lambda seed: generate(9, 5, pay="once", active=3, strength=0.05, seed=seed),
    "ctx-big": lambda seed: generate(29, 50, spread="context", strength=0.05, seed=seed),
}
DRAWS, DRAWN_FROM = 10, 7001
HORIZON, RUNS, SEED = 20_000, 40, 17
WAITING_MOST, WORST_MOST, CONSTANT_MOST, USELESS_MOST = 0.75, 2.5, 1.1, 1.5
DECIDE_MOST = {(10, 10): 3.0, (40, 10): 15.0, (30, 50): 40.0}  # microseconds, by (columns, arms)
LEARN_LEAST = 1e6  # bucket ends a second, for contexts of 10 numbers


def worth(runs: int) -> bool:
    """Print the regret of all policies on the four problems; whether the claims hold."""
    held = True
    for name in MEASURED:
        problem = ENTRIES[name].problem
        assert problem.contexts is not None
        rows = usual_rows(problem)
        count = max(2, runs // 2) if name == "ctx-big" else runs
        policies = {f"{row}: {v}": policy for row, variants in rows.items() for v, policy in variants.items()}
        final = ac.simulate(problem, policies, HORIZON, count, SEED, checkpoints=1).final_regret
        regret = dict(zip(policies, final, strict=True))
        print(f"\n{name} (features {problem.contexts.width - 1}, arms {len(problem.caps)}, runs {count})")
        shown = {}
        for row, variants in rows.items():
            best = min((regret[f"{row}: {v}"] for v in variants), key=lambda values: float(values.mean()))
            shown[row] = best
            print(
                f"  {row:20} {best.mean():8.0f} ± {best.std(ddof=1) / np.sqrt(count):4.0f}"
                f"   worst run over mean {best.max() / best.mean():.2f}",
                flush=True,
            )
        age = shown["AgeLinTS"]
        ratio = age.mean() / shown["AgeLinTS(waiting)"].mean()
        print(f"  AgeLinTS over the same learner waiting: {ratio:.2f}")
        held &= bool(ratio <= WAITING_MOST and age.max() <= WORST_MOST * age.mean())
    return held


def kinds(runs: int) -> bool:
    """Print the same for several problems of each of the four kinds; whether the claims hold.

    One problem may be a lucky or an unlucky one of its kind.
    """
    held = True
    for kind, make in KINDS.items():
        found: dict[str, list[Floats]] = {}
        draws = DRAWS // 2 if kind == "ctx-big" else DRAWS
        for seed in range(DRAWN_FROM, DRAWN_FROM + draws):
            policies = {
                "AgeLinTS": ac.AgeLinTS(), "AgeLinTS(waiting)": ac.AgeLinTS(buckets=1), **BESIDE,
            }  # fmt: skip
            final = ac.simulate(make(seed), policies, HORIZON, runs, SEED + seed, checkpoints=1).final_regret
            for row, regret in zip(policies, final, strict=True):
                found.setdefault(row, []).append(regret)
        print(f"\n{kind}: {draws} problems of this kind, {runs} runs each")
        for row, parts in found.items():
            means = np.array([part.mean() for part in parts])
            print(
                f"  {row:20} {means.mean():8.0f} ± {means.std(ddof=1) / np.sqrt(draws):4.0f}"
                f"   worst run over its problem's mean {max(part.max() / part.mean() for part in parts):.2f}"
            )
        age, waiting = (np.array([part.mean() for part in found[row]]) for row in list(found)[:2])
        each = age / waiting
        print(
            f"  AgeLinTS over the same learner waiting: {age.mean() / waiting.mean():.2f}"
            f" (from {each.min():.2f} to {each.max():.2f})",
            flush=True,
        )
        held &= bool(age.mean() <= WAITING_MOST * waiting.mean())
        held &= all(part.max() <= WORST_MOST * part.mean() for part in found["AgeLinTS"])
    return held


def alphas(runs: int) -> bool:
    """Print what alpha does to the mean and to the worst run, where contexts have two features."""
    for window in (100, 2000):
        policies = {f"alpha {alpha:g}": ac.AgeLinTS(alpha=alpha) for alpha in (0.5, 0.7, 1.0)} | {
            "waiting": ac.AgeLinTS(buckets=1)
        }
        found = []
        for seed in range(DRAWN_FROM, DRAWN_FROM + 4):
            problem = generate(2, 5, "both", seed=seed, window=window)
            found.append(
                ac.simulate(problem, policies, HORIZON, runs, SEED + seed, checkpoints=1).final_regret
            )
        print(f"\ntwo features, window {window}: {len(found)} problems, {runs} runs each")
        for row, label in enumerate(policies):
            means = [part[row].mean() for part in found]
            worst = max(part[row].max() / part[row].mean() for part in found)
            print(
                f"  {label:10} {np.mean(means):6.0f}   worst run over its problem's mean {worst:.2f}",
                flush=True,
            )
    return True  # nothing is claimed


def few(runs: int) -> bool:
    """Print what contexts are worth while decisions are few: 10 arms learn 30 numbers each."""
    for strength in (0.03, 0.08):
        found = []
        for seed in range(DRAWN_FROM, DRAWN_FROM + 4):
            problem = generate(29, 10, "both", strength=strength, seed=seed, window=500)
            policies = {"AgeLinTS": ac.AgeLinTS(), NO_CONTEXT: BESIDE[NO_CONTEXT]}
            result = ac.simulate(problem, policies, 8000, runs, SEED + seed, checkpoints=16)
            found.append(result.regret.mean(axis=1))
        lin, plain = np.mean(found, axis=0)
        shown = {500, 1000, 2000, 4000, 8000}
        parts = zip(result.rounds.tolist(), lin / plain, strict=True)
        text = ", ".join(f"{ratio:.2f} after {rounds:,}" for rounds, ratio in parts if rounds in shown)
        print(f"few decisions, strength {strength}: AgeLinTS over no context {text}", flush=True)
    return True  # nothing is claimed


def without(runs: int) -> bool:
    """Print what contexts cost where they help nobody; whether the claims hold."""
    constant, alone, useless = [], [], []
    for seed in range(301, 313):
        dice = np.random.default_rng(seed)
        pay = "pieces" if seed % 2 else "once"
        levels = 0.15 * dice.normal(size=(5, 1)) + (1.0 if pay == "pieces" else 0.5)
        effects = np.concatenate([levels, np.zeros((5, 9))], axis=1)
        plain, blurred = (
            ac.Problem(
                [6.4 if pay == "pieces" else 1.0] * 5,
                2000,
                laws=[LinearLaw(row, pay=pay) for row in rows],  # type: ignore[arg-type]
                contexts=Contexts(numbers=rows.shape[1] - 1),
            )
            for rows in (levels, effects)
        )
        policies = {"lin": ac.AgeLinTS(), "age": ac.AgeTS()}
        lin, age = ac.simulate(plain, policies, HORIZON, runs, SEED, checkpoints=1).final_regret.mean(axis=1)
        (lost,) = ac.simulate(blurred, [ac.AgeLinTS()], HORIZON, runs, SEED, checkpoints=1).final_regret.mean(
            axis=1
        )
        print(
            f"  {pay:6} {seed}: AgeTS {age:6.0f}, AgeLinTS constant {lin:6.0f}, useless {lost:6.0f}",
            flush=True,
        )
        alone.append(age)
        constant.append(lin)
        useless.append(lost)
    first, second = sum(constant) / sum(alone), sum(useless) / sum(constant)
    print(f"constant context over AgeTS: {first:.2f}; nine useless features over none: {second:.2f}")
    return bool(first <= CONSTANT_MOST and second <= USELESS_MOST)


def costs() -> bool:
    """Print the cost of a decision, of learning and of a refresh; whether the claims hold."""
    held = True
    for (width, arms), most in DECIDE_MOST.items():
        policy = ac.AgeLinTS()
        choose, learn, refresh = _loops(policy)
        params = policy.params(np.ones(arms), 2000, width)
        stats = policy.stats(params)
        x = np.random.default_rng(1).uniform(-1.0, 1.0, (1000, width))
        x[:, 0] = 1.0
        for decisions in (10, 20_000):
            per_learn = _seconds(learn, params, stats, x, decisions) / decisions
        stats.pulls[:] = 20_000 // arms
        refresh(params, stats)
        per_refresh = statistics.median(_seconds(refresh, params, stats) for _ in range(7))
        choose(params, stats, x, 10)
        each = statistics.median(_seconds(choose, params, stats, x, 5000) / 5000 for _ in range(7))
        ends = 8.0 / per_learn
        memory = sum(array.nbytes for array in stats) / 1e6
        print(
            f"width {width}, {arms} arms: decide {1e6 * each:.2f} µs, learn {1e6 * per_learn:.2f} µs"
            f" a decision ({ends:.2g} bucket ends/s), refresh {1e3 * per_refresh:.2f} ms,"
            f" statistics {memory:.2f} MB"
        )
        held &= 1e6 * each <= most and (width > 10 or ends >= LEARN_LEAST)
    return held


def _seconds(function: Any, *arguments: Any) -> float:
    begin = time.process_time()
    function(*arguments)
    return time.process_time() - begin


def _loops(policy: ac.Policy) -> tuple[Any, Any, Any]:
    functions = policy.functions
    survey, index, decided, finished, estimate = (
        functions.survey,
        functions.index,
        functions.decided,
        functions.finished,
        functions.refresh,
    )

    @kernel
    def choose(params: Any, stats: Any, x: Floats, decisions: int) -> int:
        total = 0
        for i in range(decisions):
            moment = Moment(i + 2, 1.0, 3, 4)
            context = x[i % len(x)]
            survey(params, stats, moment, context)
            best, choice = -np.inf, 0
            for arm in range(len(params.cap)):
                value = index(params, stats, arm, moment, context)
                if value > best:
                    best, choice = value, arm
            total += choice
        return total

    @kernel
    def learn(params: Any, stats: Any, x: Floats, decisions: int) -> None:
        for i in range(decisions):
            arm, context = i % len(params.cap), x[i % len(x)]
            decided(params, stats, arm, context)
            for group in range(len(params.prior)):
                finished(params, stats, arm, group, 0.01 * group, 0.01 * group + 0.01, context)

    @kernel
    def refresh(params: Any, stats: Any) -> None:
        estimate(params, stats)

    return choose, learn, refresh


def picture(path: str) -> None:
    """Draw regret on the first of the four problems."""
    policies = {
        "no delay": ac.AgeLinTS(immediate=True),
        "AgeLinTS": ac.AgeLinTS(),
        "the same learner waiting": ac.AgeLinTS(buckets=1),
        "an attribution window of a tenth": EarlyLinTS(),
        "no context": ac.AgeTS(),
    }
    ac.simulate(ENTRIES["ctx-same"].problem, policies, HORIZON, 10, SEED, checkpoints=100).plot(path)


def measure(part: str = "") -> bool:
    """Measure everything, or one part; whether all claims hold."""
    parts: dict[str, Callable[[], bool]] = {
        "costs": costs,
        "without": lambda: without(RUNS // 2),
        "alphas": lambda: alphas(RUNS),
        "few": lambda: few(RUNS // 5),
        "worth": lambda: worth(RUNS),
        "kinds": lambda: kinds(RUNS // DRAWS),
    }
    held = [parts[name]() for name in ([part] if part else parts)]
    return all(held)


if __name__ == "__main__":
    if sys.argv[1:] == ["picture"]:
        picture("docs/img/contexts.png")
        sys.exit()
    sys.exit(0 if measure(*sys.argv[1:]) else 1)
