"""How often the 95 % intervals of `compare` and `replay` contain the truth, and how often the test is wrong.

Logs of known problems are compared, and what AgePrior and DelayedUCB1 lose per 1,000 decisions on the
true problem is found by simulation. Run with `make coverage`; `--logs 20` is quick.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pandas as pd

import accrual as ac
from accrual.core.interval import Interval
from accrual.evaluate.compare import setup as comparison_setup
from accrual.evaluate.compare.arm_differences import Means, Posterior, differ
from accrual.evaluate.compare.comparison import Play, interval
from accrual.evaluate.replay.fixed_shares import fixed, judge
from accrual.evaluate.replay.log import ReplayLog
from accrual.logs.fitted import Fitted
from accrual.problems.problem import Problem

Floats = npt.NDArray[np.float64]

WINDOW, GROUPS, HORIZON, DRAWS = 40, 10, 2000, 12
CASES = {
    "4 arms alike": (4, 1500, (0.4, 0.4, 0.4, 0.4)),
    "4 arms, close": (4, 1500, (0.36, 0.4, 0.4, 0.44)),
    "4 arms, apart": (4, 3000, (0.3, 0.4, 0.45, 0.6)),
    "2 arms, few decisions": (2, 200, (0.3, 0.5)),
    "40 arms alike": (40, 2000, (0.3,) * 40),
    "40 arms, spread": (40, 4000, tuple(np.linspace(0.1, 0.5, 40))),
}


def fitted_to(truth: Problem, decisions: int, dice: np.random.Generator) -> Fitted:
    """The fit of a log of `truth`: arms at random, each decision pays 1 or nothing, at an even age."""
    arm = dice.integers(len(truth.caps), size=decisions)
    pays = np.flatnonzero(dice.random(decisions) < truth.means[arm])
    made = pd.DataFrame(
        {"id": np.arange(decisions), "arm": np.array(truth.arms)[arm], "at": np.arange(decisions)}
    )
    pieces = pd.DataFrame({"decision": pays, "value": 1.0, "age": dice.integers(0, WINDOW, len(pays))})
    with ac.open_log(made, pieces, end=decisions + WINDOW) as log:
        return ac.fit_log(log, window=WINDOW, groups=GROUPS, cap=1.0)


POLICIES: dict[str, ac.Policy] = {"AgePrior": ac.AgePrior(), "DelayedUCB1": ac.DelayedUCB1()}


def lost_by(fitted: Fitted, seed: int) -> tuple[list[Interval], bool]:
    """What a comparison says that the policies lose per 1,000, and whether arms are said to differ."""
    setup = comparison_setup.set_up(fitted, seed=seed)
    problems = [setup.possible.draw(d).problem for d in range(DRAWS)]
    regret = [
        ac.simulate(problem, POLICIES, HORIZON, range(2 * d, 2 * d + 2), seed=seed).final_regret
        for d, problem in enumerate(problems)
    ]
    lost = np.concatenate(regret, axis=1) * (1000 / HORIZON)
    play = Play(2, setup.possible.posterior.alike)
    return [interval(row, play, (0.0, np.inf)) for row in lost], setup.possible.signal.found


def tails(logs: int) -> None:
    """Coverage of what is lost where means rest on few large decisions, and how often that is said."""
    print(
        "two arms, one pays 1.5 times as much as the other, caps given; lost per 1,000, and whether large "
        "totals are warned of"
    )
    for name, size, whale in (("1 in 200 pays 200 times", 600, 1 / 200), ("exponential", 600, 0.0)):
        dice = np.random.default_rng(3)
        many = [factor * _totals(dice, 20_000, whale) for factor in (1.0, 1.5)]
        cap = 3.0 * float(max(one.max() for one in many))
        laws = [ac.EmpiricalLaw(np.repeat(one[:, None] / cap / GROUPS, GROUPS, axis=1)) for one in many]
        truth = Problem([cap, cap], WINDOW, GROUPS, laws, arms=["a0", "a1"])
        true = ac.simulate(truth, POLICIES, HORIZON, 100, seed=1).final_regret.mean(axis=1) * 1000 / HORIZON
        held, said = np.zeros(2), 0
        for number in range(logs):
            dice = np.random.default_rng([number, 5])
            arm = dice.integers(2, size=size)
            made = pd.DataFrame({"id": np.arange(size), "arm": arm, "at": np.arange(size)})
            paid = np.where(arm, 1.5, 1.0) * _totals(dice, size, whale)
            pieces = pd.DataFrame(
                {"decision": made["id"], "value": paid, "age": dice.integers(0, WINDOW, size)}
            )
            fitted = ac.fit(made, pieces, window=WINDOW, groups=GROUPS, end=size + WINDOW, cap=cap)
            found, _ = lost_by(fitted, number)
            held += [one.low <= loss <= one.high for one, loss in zip(found, true, strict=True)]
            said += any("large decisions" in line for line in fitted.cautions)
        shown = ", ".join(f"{p} {true[i]:.0f} held {held[i] / logs:.2f}" for i, p in enumerate(POLICIES))
        print(f"  {name}: {shown}; warned in {said / logs:.2f}", flush=True)


def _totals(dice: np.random.Generator, count: int, whale: float) -> Floats:
    return np.asarray(np.where(dice.random(count) < whale, 200.0, 1.0) * dice.exponential(1.0, count))


def losses(logs: int) -> None:
    """Coverage of what is lost, case by case."""
    print("what is lost per 1,000: truth, mean of the estimates, coverage; arms differ: found")
    for name, (arms, decisions, chances) in CASES.items():
        names = [f"a{a}" for a in range(arms)]
        truth = Problem([1.0] * arms, WINDOW, GROUPS, [ac.LumpLaw(p) for p in chances], arms=names)
        true = ac.simulate(truth, POLICIES, HORIZON, 200, seed=1).final_regret.mean(axis=1) * 1000 / HORIZON
        held, found, cried = np.zeros(2), np.zeros(2), 0
        for number in range(logs):
            dice = np.random.default_rng([number, arms])
            lost, differ_found = lost_by(fitted_to(truth, decisions, dice), number)
            cried += differ_found
            for p, one in enumerate(lost):
                held[p] += one.low <= true[p] <= one.high
                found[p] += one.value / logs
        shown = "; ".join(
            f"{label} {true[p]:.1f}, {found[p]:.1f}, {100 * held[p] / logs:.0f} %"
            for p, label in enumerate(POLICIES)
        )
        print(f"  {name}: {shown}; {100 * cried / logs:.0f} %", flush=True)


def false_alarms(logs: int) -> None:
    """How often arms that pay alike are said to differ, at 5 %."""
    print("arms that pay alike, said to differ:")
    laws: dict[str, Callable[[np.random.Generator, int], Floats]] = {
        "log-normal": lambda dice, n: dice.lognormal(0.0, 1.2, n),
        "clicks of 5 %": lambda dice, n: (dice.random(n) < 0.05).astype(np.float64),
        "nothing or log-normal": lambda dice, n: (dice.random(n) < 0.3) * dice.lognormal(0.0, 1.0, n),
    }
    sizes = {"2 x 50": [50] * 2, "4 x 1,000": [1000] * 4, "20 x 30": [30] * 20, "uneven": [300, 30, 10]}
    for law, draw in laws.items():
        shares = []
        for counts in sizes.values():
            cried = 0
            for number in range(logs):
                dice = np.random.default_rng([number, 7])
                totals = [draw(dice, n) for n in counts]
                count, mean = (
                    np.array([float(len(one)) for one in totals]),
                    np.array([one.mean() for one in totals]),
                )
                seen = Means(count, mean, np.array([one.var(ddof=1) for one in totals]))
                cried += differ(seen, totals, Posterior(seen), number).found
            shares.append(f"{100 * cried / logs:.1f} %")
        print(
            f"  {law}: " + ", ".join(f"{size} {share}" for size, share in zip(sizes, shares, strict=True)),
            flush=True,
        )


def fixed_policies(logs: int) -> None:
    """Coverage of the three methods, on logs of uneven propensities of which a third was cut short."""
    print("a fixed policy, share 0.5 of a and 0.5 of c; one decision in three was cut short:")
    for name, chances in {
        "rates of 0.2, 0.35, 0.5": (0.2, 0.35, 0.5),
        "rates of 0.01, 0.02, 0.03": (0.01, 0.02, 0.03),
        "rates of 0.93, 0.95, 0.97": (0.93, 0.95, 0.97),
        "rates of 0.99": (0.99, 0.99, 0.99),
    }.items():
        true = 0.5 * chances[0] + 0.5 * chances[2]
        held: dict[str, int] = {}
        below = 0
        for number in range(5 * logs):
            dice = np.random.default_rng([number, 3])
            n, p = 1500, np.array([0.5, 0.3, 0.2])
            arm = dice.choice(3, size=n, p=p)
            pays = dice.random(n) < np.array(chances)[arm]
            age = dice.uniform(0, 10, n)
            own = np.where(dice.random(n) < 1 / 3, dice.uniform(0, 10, n), 10.0)
            kept = pays & (age < own)
            log = ReplayLog(
                ("a", "b", "c"), np.ones(3), 10.0, 10, 1e9, arm, np.arange(float(n)), p[arm], own,
                np.concatenate([[0], np.cumsum(kept)]), age[kept], np.ones(int(kept.sum())),
            )  # fmt: skip
            policy = fixed({"a": 0.5, "c": 0.5}, log.arms)
            assert policy is not None
            for one in judge(log, policy):
                held[one.method] = held.get(one.method, 0) + (one.reward.low <= true <= one.reward.high)
                below += one.reward.low < 0
        print(
            f"  {name}: "
            + ", ".join(f"{m} {20 * h / logs:.1f} %" for m, h in held.items())
            + f"; below 0: {below}",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--logs", type=int, default=100)
    parser.add_argument("--only", choices=["fixed", "alarms", "losses", "tails"])
    given = parser.parse_args()
    if given.only in (None, "fixed"):
        fixed_policies(given.logs)
    if given.only in (None, "alarms"):
        false_alarms(2 * given.logs)
    if given.only in (None, "losses"):
        losses(given.logs)
    if given.only in (None, "tails"):
        tails(given.logs)
