"""What features of arms are worth to new arms: AgePrior with and without them, on one stream of arms.

Arms come and go: 20 are in play, and now and then a new one replaces the oldest. What an arm pays on average
is a level. A share R² of the level's variance follows from three features of the arm, by a line that the
policies do not know; the rest is the arm's own. A decision pays

end      0 or 1, at the end of a window of 100 rounds
once     0 or 1, at a random age within the window, more likely an early one
pieces   eight times 0 or 1/8, each at such an age

Both policies get the same draws. `--runs 4` is quick; `--seed 0` gives the runs on which constants were
chosen. `--misled` plays another kind of problem: fifty arms that stay, all on a line except the best one, for
which the line predicts a middling level.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

import accrual as ac
from accrual.core.features import Features
from accrual.live.contexts.arm_features import AboutArms, about_bytes
from accrual.live.ledger import Ledger
from accrual.policies.age_prior.policy import AgePrior

PLAYING, FEATURES, WINDOW, HORIZON = 20, 3, 100, 20_000
LEVEL, DEVIATION, LEAST, MOST = 0.3, 0.1, 0.02, 0.9
STRENGTHS = (0.0, 0.3, 0.6, 0.9)
EVERY = (100, 400)  # rounds between two new arms
PAYMENTS = {"end": 1, "once": 1, "pieces": 8}  # and how many payments a decision makes at most
DECLARED = Features({f"feature {j}": (-3.0, 3.0) for j in range(FEATURES)})
SEED = 100  # of the first run; those below were used to choose constants


class Stream(NamedTuple):
    """Arms in the order in which they come: the first `PLAYING` are there from the start."""

    about: list[bytes | None]  # what is known about each, as a store keeps it
    mean: np.ndarray
    every: int
    seed: int

    def playing(self, now: int) -> range:
        """The arms in play in a round."""
        first = now // self.every
        return range(first, first + PLAYING)


def stream(strength: float, every: int, seed: int) -> Stream:
    """Draw the arms of one run."""
    dice = np.random.default_rng([seed, 1])
    count = PLAYING + HORIZON // every + 1
    features = np.clip(dice.normal(size=(count, FEATURES)), -3.0, 3.0)
    line = dice.normal(size=FEATURES)
    told, own = features @ (line / np.linalg.norm(line)), dice.normal(size=count)
    level = LEVEL + DEVIATION * (np.sqrt(strength) * told + np.sqrt(1.0 - strength) * own)
    about = [
        about_bytes(DECLARED, dict(zip(DECLARED.kinds, map(float, row), strict=True))) for row in features
    ]
    return Stream(about, np.clip(level, LEAST, MOST), every, seed)


def lost(arms: Stream, chosen: Iterator[tuple[int, int]]) -> float:
    """Add up what is lost to the best arm in play, round by round."""
    best = [arms.mean[list(arms.playing(now))].max() for now in range(0, HORIZON, arms.every)]
    return float(sum(best[now // arms.every] - arms.mean[arm] for now, arm in chosen))


def played(arms: Stream, payment: str, by_features: bool) -> Iterator[tuple[int, int]]:
    """Choose by AgePrior, in a ledger as a live bandit has it."""
    about = AboutArms(DECLARED, tuple(arms.about[:PLAYING])) if by_features else None
    ledger = Ledger(AgePrior(), [1.0] * PLAYING, WINDOW, arms.seed, about=about)
    dice = np.random.default_rng([arms.seed, 2])
    shape = (HORIZON, PAYMENTS[payment])
    coin, age = dice.random(shape), np.floor(WINDOW * dice.random(shape) ** 2)
    if payment == "end":
        age[:] = WINDOW - 1
    due: list[list[tuple[int, float]]] = [[] for _ in range(HORIZON + WINDOW)]
    begun = PLAYING
    for now in range(HORIZON):
        if arms.playing(now).stop > begun:
            ledger.add_arm(1.0, about=arms.about[begun] if by_features else None)
            ledger.retire_arm(begun - PLAYING)
            begun += 1
        for decision, old in due[now]:
            ledger.observe(decision, 1.0 / shape[1], old)
        arm = ledger.decide(now + 1.0)[0].arm
        for old in age[now][coin[now] < arms.mean[arm]]:
            due[now + int(old) + 1].append((now, float(old)))
        yield now, arm


def misled(runs: int, seed: int) -> None:
    """Print the regret of `runs` problems of fifty arms, of which the best is far off the line."""
    found = np.zeros((2, runs))
    for run in range(runs):
        told = np.sort(np.random.default_rng([seed + run, 4]).uniform(0.1, 0.6, 50))
        mean = told.copy()
        mean[25] = 0.8
        problem = ac.Problem([1.0] * 50, 20, 4, [ac.BernoulliLaw(one) for one in mean])
        policies = [AgePrior(), AgePrior(about=told[:, None])]
        found[:, run] = ac.simulate(problem, policies, 5_000, 10, seed + run).final_regret.mean(axis=1)
    error = found.std(axis=1, ddof=1) / np.sqrt(runs)
    for name, mean, one in zip(("AgePrior", "by features"), found.mean(axis=1), error, strict=True):
        print(f"{name:12} {mean:.0f} ± {one:.0f}")


def main() -> None:
    """Print regret, and by features over without, for every payment, pace of new arms and strength."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--runs", type=int, default=20)
    options.add_argument("--seed", type=int, default=SEED)
    options.add_argument("--misled", action="store_true")
    given = options.parse_args()
    if given.misled:
        misled(given.runs, given.seed)
        return
    header = True
    for payment in PAYMENTS:
        for every in EVERY:
            for strength in STRENGTHS:
                found = np.zeros((2, given.runs))
                for run in range(given.runs):
                    arms = stream(strength, every, given.seed + run)
                    found[:, run] = [lost(arms, played(arms, payment, known)) for known in (False, True)]
                error = found.std(axis=1, ddof=1) / np.sqrt(given.runs)
                ratio = (
                    found[1] / found[0].mean()
                    - found[0] / found[0].mean() * found[1].mean() / found[0].mean()
                )
                row = {"paid": payment, "new arm every": every, "R²": strength} | {
                    name: f"{mean:.0f} ± {one:.0f}"
                    for name, mean, one in zip(
                        ("AgePrior", "by features"), found.mean(axis=1), error, strict=True
                    )
                }
                row["by features / without"] = f"{found[1].mean() / found[0].mean():.2f}"
                row["± (runs)"] = f"{ratio.std(ddof=1) / np.sqrt(given.runs):.2f}"
                print(pd.DataFrame([row]).to_string(index=False, header=header), flush=True)
                header = False


if __name__ == "__main__":
    main()
