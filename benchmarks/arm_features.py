"""Would features of arms help new arms? A measurement; nothing of this is in the library.

Arms come and go: 20 are in play, now and then a new one takes the place of the oldest. What an arm pays on
average is a level, of which a share R² follows from three features of the arm, by a line that nobody knows.
The rest is its own. Every decision pays 0 or 1, at the end of a window of 100 rounds, for every policy alike.
Compared are:

AgePrior      the library's: it learns what arms have in common, and knows no features
common level  a plain Thompson sampler whose prior over arms has one mean, learned from all arms
by features   the same sampler, but the prior's mean is a line in the arm's features; the line, and how much
              of the arms' differences it tells (none, if so), are learned from all arms

The last two differ in the features alone, so their ratio says what features are worth. `--runs 4` is quick.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from accrual.live.ledger import Ledger
from accrual.policy.age_prior import AgePrior

PLAYING, FEATURES, WINDOW, HORIZON = 20, 3, 100, 20_000
LEVEL, DEVIATION, LEAST, MOST = 0.3, 0.1, 0.02, 0.9
STRENGTHS = (0.0, 0.3, 0.6, 0.9)
EVERY = (100, 400)  # rounds between two new arms
SCALE = 0.5  # of the draws' deviation, as AgeLinTS has it
REFRESH = 20  # rounds between two looks at the prior
VARY = np.geomspace(0.01, 0.3, 12) ** 2  # how much arms may vary, ...
SHARES = np.array([0.0, 0.3, 0.6, 0.9])  # ... and how much of that may follow from features, ...
CHANCES = np.array([0.7, 0.1, 0.1, 0.1])  # ... with the chance of each before arms are seen
SEED = 100  # of the first run; those below were used to choose CHANCES


class Stream(NamedTuple):
    """Arms in the order in which they come: the first `PLAYING` are there from the start."""

    features: np.ndarray
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
    features = dice.normal(size=(count, FEATURES))
    line = dice.normal(size=FEATURES)
    told, own = features @ (line / np.linalg.norm(line)), dice.normal(size=count)
    level = LEVEL + DEVIATION * (np.sqrt(strength) * told + np.sqrt(1.0 - strength) * own)
    return Stream(features, np.clip(level, LEAST, MOST), every, seed)


def lost(arms: Stream, chosen: Iterator[tuple[int, int]]) -> float:
    """Add up what is lost to the best arm in play, round by round."""
    best = [arms.mean[list(arms.playing(now))].max() for now in range(0, HORIZON, arms.every)]
    return float(sum(best[now // arms.every] - arms.mean[arm] for now, arm in chosen))


def pays(arms: Stream) -> np.ndarray:
    """One number for each round: a decision pays if its arm's mean is above it, whoever makes it."""
    return np.random.default_rng([arms.seed, 2]).random(HORIZON)


def age_prior(arms: Stream) -> Iterator[tuple[int, int]]:
    """Choose by AgePrior, in a ledger as a live bandit has it."""
    ledger = Ledger(AgePrior(), [1.0] * PLAYING, WINDOW, arms.seed)
    coin, begun = pays(arms), PLAYING
    made: list[int] = []
    for now in range(HORIZON):
        if arms.playing(now).stop > begun:
            ledger.add_arm(1.0)
            ledger.retire_arm(begun - PLAYING)
            begun += 1
        due = now - WINDOW + 1
        if due >= 0 and coin[due] < arms.mean[made[due]]:
            ledger.observe(due, 1.0, WINDOW - 1)
        made.append(ledger.decide(now + 1.0)[0].arm)
        yield now, made[-1]


class Prior(NamedTuple):
    """What is thought of an arm before its first decision: a line in x, and how far arms are from it."""

    line: np.ndarray
    root: np.ndarray  # of the covariance of the line's coefficients
    tau: float  # the variance around the line


def learned_prior(x: np.ndarray, count: np.ndarray, total: np.ndarray, dice: np.random.Generator) -> Prior:
    """Learn the prior from all arms: how much they vary, and how much of that the line tells, are drawn."""
    pooled = (total.sum() + 1.0) / (count.sum() + 2.0)
    noise, seen, width = pooled * (1.0 - pooled), count > 0, x.shape[1]
    x, each = x[seen], total[seen] / count[seen]
    vary, share = (one.ravel() for one in np.meshgrid(VARY, SHARES if width > 1 else SHARES[:1]))
    tau = vary * (1.0 - share)
    before = np.ones((len(tau), width))  # the precision of the line's coefficients, before arms are seen
    before[:, 1:] = (FEATURES / np.maximum(vary * share, 1e-9))[:, None]
    weight = 1.0 / (noise / count[seen] + tau[:, None])
    gram = np.einsum("ta,ai,aj->tij", weight, x, x)
    gram[:, range(width), range(width)] += before
    response = np.einsum("ta,ai,a->ti", weight, x, each - pooled)
    line = np.linalg.solve(gram, response[..., None])[..., 0]
    error = each - pooled - line @ x.T
    likely = (np.log(weight) - weight * error**2).sum(axis=1) + (np.log(before) - before * line**2).sum(
        axis=1
    )
    likely = 0.5 * (likely - np.linalg.slogdet(gram)[1])
    chance = np.exp(likely - likely.max()) * np.repeat(CHANCES, len(VARY))[: len(tau)]
    place = int(dice.choice(len(tau), p=chance / chance.sum()))
    line[place, 0] += pooled
    return Prior(line[place], np.linalg.cholesky(np.linalg.inv(gram[place])), float(tau[place]))


def sampler(arms: Stream, by_features: bool) -> Iterator[tuple[int, int]]:
    """Choose by draws from a posterior whose prior over arms is learned, with or without features."""
    dice = np.random.default_rng([arms.seed, 3])
    ones = np.ones((len(arms.mean), 1))
    x = np.concatenate([ones, arms.features], axis=1) if by_features else ones
    count, total, coin = np.zeros(len(x)), np.zeros(len(x)), pays(arms)
    made: list[int] = []
    prior = Prior(np.r_[0.5, np.zeros(x.shape[1] - 1)], np.eye(x.shape[1]) * 0.1, 0.01)
    for now in range(HORIZON):
        due = now - WINDOW
        if due >= 0:
            count[made[due]] += 1.0
            total[made[due]] += coin[due] < arms.mean[made[due]]
        if due >= 0 and now % REFRESH == 0:
            prior = learned_prior(x, count, total, dice)
        own = slice(arms.playing(now).start, arms.playing(now).stop)
        pooled = (total.sum() + 1.0) / (count.sum() + 2.0)
        noise, n = pooled * (1.0 - pooled), count[own]
        line = prior.line + SCALE * prior.root @ dice.normal(size=x.shape[1])
        variance = 1.0 / (1.0 / prior.tau + n / noise)
        mean = variance * (x[own] @ line / prior.tau + total[own] / noise)
        made.append(own.start + int((mean + SCALE * np.sqrt(variance) * dice.normal(size=PLAYING)).argmax()))
        yield now, made[-1]


def main() -> None:
    """Print regret, and by features over without, for every strength and pace of new arms."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--runs", type=int, default=20)
    runs = options.parse_args().runs
    for every in EVERY:
        for strength in STRENGTHS:
            found = np.zeros((3, runs))
            for seed in range(runs):
                arms = stream(strength, every, SEED + seed)
                chosen = (age_prior(arms), sampler(arms, False), sampler(arms, True))
                found[:, seed] = [lost(arms, one) for one in chosen]
            error = found.std(axis=1, ddof=1) / np.sqrt(runs)
            ratio = found[2] / found[1]
            row = {"new arm every": every, "R²": strength} | {
                name: f"{mean:.0f} ± {one:.0f}"
                for name, mean, one in zip(
                    ("AgePrior", "common level", "by features"), found.mean(axis=1), error, strict=True
                )
            }
            row["features / without"] = f"{found[2].mean() / found[1].mean():.2f}"
            row["± (runs)"] = f"{ratio.std(ddof=1) / np.sqrt(runs):.2f}"
            print(pd.DataFrame([row]).to_string(index=False, header=strength == STRENGTHS[0]), flush=True)


if __name__ == "__main__":
    main()
