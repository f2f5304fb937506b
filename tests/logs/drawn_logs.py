"""Draw logs of known problems, and count how often a fit's 95 % intervals hold the truth.

30 % of the decisions of a log are still open at its end. Beside the fit stands a control, which counts what
open decisions have not paid yet as zero. `benchmarks/fit_coverage.py` does the same with many more logs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from accrual.core.interval import Interval
from accrual.logs.estimate.cumulative_means import CumulativeMeans, FollowedDecisions, RiskCells, arm_mean
from accrual.logs.estimate.grids import EvenGrid
from accrual.logs.estimate.large_totals import FEW_PAYING
from accrual.logs.fit import arms_differ_in_speed, groups_depend
from accrual.problems.spreads import as_spread

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

GROUPS = 10
OPEN = 0.3
CASES = {
    "early": ("begin", "begin"),
    "even": ("uniform", "uniform"),
    "late": ("end", "end"),
    "differing": ("begin", "end"),
}
CAPS = (1.0, 1.5)
LAWS = ("uniform", "beta", "bernoulli", "leaving", "lump")


@dataclass(frozen=True)
class Draw:
    """A log: arms, how many groups each decision has completed, and what it pays in every group."""

    arm: Ints
    done: Ints
    pay: Floats


def draw(dice: np.random.Generator, size: int, law: str, spreads: tuple[str, ...]) -> Draw:
    """Draw a log of a problem: arms at random, times even over 1 / 0.3 windows."""
    arm = dice.integers(len(spreads), size=size)
    done = np.minimum((dice.random(size) / OPEN * GROUPS).astype(np.int64), GROUPS)
    share = np.array([as_spread(s).pmf(GROUPS) for s in spreads])[arm]
    cap = np.array(CAPS)[arm][:, None]
    shape = (size, GROUPS)
    if law == "lump":
        group = (np.cumsum(share, axis=1) < dice.random((size, 1))).sum(axis=1).clip(max=GROUPS - 1)
        return Draw(arm, done, cap * (np.arange(GROUPS) == group[:, None]) * (dice.random((size, 1)) < 0.3))
    if law == "uniform":
        part = dice.random(shape)
    elif law == "beta":
        part = dice.beta(0.5, 2.0, shape)
    elif law == "bernoulli":
        part = (dice.random(shape) < 0.3).astype(np.float64)
    else:
        stays = np.cumprod(dice.random(shape) < 0.9, axis=1)
        part = np.asarray(stays * (dice.random(shape) < 0.8), dtype=np.float64)
    return Draw(arm, done, cap * share * part)


def truth(law: str, spreads: tuple[str, ...]) -> Floats:
    """Return the expected pay, arms x groups."""
    share = np.array([as_spread(s).pmf(GROUPS) for s in spreads]) * np.array(CAPS)[:, None]
    if law == "leaving":
        return np.asarray(share * 0.8 * 0.9 ** np.arange(1, GROUPS + 1))
    return np.asarray(share * {"uniform": 0.5, "beta": 0.2, "bernoulli": 0.3, "lump": 0.3}[law])


def estimated(
    pay: Floats, done: Ints, arm: Ints, largest: npt.ArrayLike = 1.0, cluster: Ints | None = None
) -> CumulativeMeans:
    """Return what the fit finds for decisions that paid `pay` (decisions x groups) and completed `done`."""
    groups, arms = pay.shape[1], int(arm.max()) + 1
    decision, group = np.nonzero(np.arange(groups) < done[:, None])
    some = FollowedDecisions(
        arm, np.ones(len(arm)), done.astype(np.float64), np.full(len(arm), np.inf),
        np.searchsorted(decision, np.arange(len(arm) + 1)),
        np.asarray(group, np.float64) + 0.5, pay[decision, group],
    )  # fmt: skip
    return estimated_of(some, EvenGrid(float(groups), groups), arms, largest, cluster)


def estimated_of(
    some: FollowedDecisions,
    grid: EvenGrid,
    arms: int = 1,
    largest: npt.ArrayLike = 1.0,
    cluster: Ints | None = None,
) -> CumulativeMeans:
    """Return what the fit finds for decisions that were followed for any time, in clusters or not."""
    cells = RiskCells(some.followed, arms, grid)
    means, places = CumulativeMeans(cells, grid, arms), cells.place(some)
    means.follow(some.arm, some.weight, some.followed)
    means.pay(some, places)
    means.settle(largest)
    means.score(some, places)
    if cluster is not None:
        pairs, unit = np.unique(np.stack([some.arm, cluster]), axis=1, return_inverse=True)
        scores = np.zeros((pairs.shape[1], len(grid)))
        means.score_by_group(some, places, unit, scores)
        means.add_clusters(pairs[0], scores)
    return means


def means_of(found: CumulativeMeans) -> dict[int, Interval]:
    """Return the fit's mean and interval of each arm that has two closed decisions."""
    return {
        a: arm_mean(float(found.means[a]), found.scores(a), np.inf, signed=False, plain=False)
        for a in np.flatnonzero(found.closed >= 2).tolist()
    }


@dataclass
class Coverage:
    """Hits of the intervals of one case."""

    mean: list[bool] = field(default_factory=list)
    pooled: list[npt.NDArray[np.bool_]] = field(default_factory=list)
    arm: list[npt.NDArray[np.bool_]] = field(default_factory=list)
    skipped: int = 0
    speed: list[bool] = field(default_factory=list)
    dependence: list[bool] = field(default_factory=list)

    def judge(self, log: Draw, true: Floats, control: bool = False) -> None:
        """Count the intervals of one log; the control counts open decisions as if nothing more came."""
        if control:
            arrived = np.where(np.arange(GROUPS) < log.done[:, None], log.pay, 0.0)
            log = Draw(log.arm, np.full(len(log.arm), GROUPS), arrived)
        sums = estimated(log.pay, log.done, log.arm, np.array(CAPS)[: log.arm.max() + 1])
        intervals = means_of(sums)
        pooled = true.sum(axis=0) / true.sum()
        closed = np.flatnonzero(sums.closed >= 2).tolist()
        known = [(sums.of(a), true[a]) for a in closed]
        self.skipped += len(true) - len(known)
        for a, (estimate, means) in zip(closed, known, strict=True):
            if estimate.total <= 0.0:
                self.skipped += 1
                continue
            self.mean.append(intervals[a].low <= means.sum() <= intervals[a].high)
            self.arm.append(_hit(estimate.shares(), means / means.sum()))
        everything = estimated(log.pay, log.done, np.zeros_like(log.arm), max(CAPS)).of(0)
        if everything.seen[-1] >= 2 and everything.total > 0.0:
            self.pooled.append(_hit(everything.shares(), pooled))
        self.speed.append(arms_differ_in_speed([estimate for estimate, _ in known]).yes)
        self.dependence.append(groups_depend([estimate for estimate, _ in known]).yes)

    def figures(self) -> dict[str, float]:
        """Return the coverage of the means, of the pooled spread and of the arms' spreads."""
        return {
            "mean": float(np.mean(self.mean)),
            "pooled": float(np.mean(self.pooled)),
            "arm": float(np.mean(self.arm)),
        }

    def worst(self) -> tuple[float, float]:
        """Return the coverage of the least and of the most covered group of a spread."""
        each = np.concatenate([np.mean(self.pooled, axis=0), np.mean(self.arm, axis=0)])
        return float(each.min()), float(each.max())


def _hit(shares: Floats, true: Floats) -> npt.NDArray[np.bool_]:
    return np.asarray((shares[1] <= true) & (true <= shares[2]))


def study(size: int, law: str, case: str, repetitions: int, seed: int = 0) -> tuple[Coverage, Coverage]:
    """Return the coverage of the fit's intervals and of the control's, on the same logs."""
    dice = np.random.default_rng([seed, size, LAWS.index(law), list(CASES).index(case)])
    true = truth(law, CASES[case])
    fitted, control = Coverage(), Coverage()
    for _ in range(repetitions):
        log = draw(dice, size, law, CASES[case])
        fitted.judge(log, true)
        control.judge(log, true, control=True)
    return fitted, control


Law = Callable[[np.random.Generator, tuple[int, int]], Floats]
# Totals of closed decisions: how they are drawn, their mean, and their cap where one is told.
TOTALS: dict[str, tuple[Law, float, float]] = {
    "5 % x lognormal(1.5)": (
        lambda dice, shape: (dice.random(shape) < 0.05) * dice.lognormal(0.0, 1.5, shape),
        0.05 * np.exp(1.125), np.inf,
    ),
    "5 % x lognormal(1)": (
        lambda dice, shape: (dice.random(shape) < 0.05) * dice.lognormal(0.0, 1.0, shape),
        0.05 * np.exp(0.5), np.inf,
    ),
    "lognormal(1.5)": (lambda dice, shape: dice.lognormal(0.0, 1.5, shape), np.exp(1.125), np.inf),
    "lognormal(1.2)": (lambda dice, shape: dice.lognormal(0.0, 1.2, shape), np.exp(0.72), np.inf),
    "30 % x exponential": (
        lambda dice, shape: (dice.random(shape) < 0.3) * dice.exponential(1.0, shape), 0.3, np.inf
    ),
    "3 % pay 1": (lambda dice, shape: (dice.random(shape) < 0.03).astype(np.float64), 0.03, np.inf),
    "90 % pay the cap": (lambda dice, shape: (dice.random(shape) < 0.9).astype(np.float64), 0.9, 1.0),
    "97 % pay the cap": (lambda dice, shape: (dice.random(shape) < 0.97).astype(np.float64), 0.97, 1.0),
    "beta(20, 1) of the cap": (lambda dice, shape: dice.beta(20.0, 1.0, shape), 20 / 21, 1.0),
    "beta(9, 0.3) of the cap": (lambda dice, shape: dice.beta(9.0, 0.3, shape), 9 / 9.3, 1.0),
}  # fmt: skip


def totals(name: str, size: int, repetitions: int) -> tuple[float, float]:
    """Return how often an arm's interval holds its mean, where totals are skewed or near the cap.

    All decisions are closed. The second figure is the share of the arms that the fit warns of. Arms that
    never paid are left out.
    """
    law, true, cap = TOTALS[name]
    pay = law(np.random.default_rng([13, size, list(TOTALS).index(name)]), (repetitions, size))
    hits, few = [], []
    one, done = np.zeros(size, np.int64), np.ones(size, np.int64)
    for row in pay:
        if not row.any():
            continue
        found = estimated(row[:, None], done, one, row.max())
        interval = arm_mean(float(found.means[0]), found.scores(0), cap, signed=False, plain=True)
        hits.append(interval.low <= true <= interval.high)
        few.append(found.paying[0] < FEW_PAYING)
    return float(np.mean(hits)), float(np.mean(few))
