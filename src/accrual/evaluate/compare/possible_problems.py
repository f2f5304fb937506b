"""Problems that a log may have come from: the fitted one with redrawn means of the arms.

How well an arm's mean is known differs from log to log. So a comparison is not played on one problem but on
several, each with means drawn from what the log leaves possible
(`accrual.evaluate.compare.arm_differences.Posterior`). What policies lose varies between them by as much as
the log is uncertain. Where arms are all alike nothing can be lost, which needs no simulation: the problems
drawn here are those in which arms differ.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from accrual.core.arrays import Floats, Ints
from accrual.evaluate.compare.arm_differences import Means, Posterior, Signal, differ, means
from accrual.logs.fitted import Arm, Sample
from accrual.problems.laws import EmpiricalLaw
from accrual.problems.problem import Problem

_NUMBERS = 1_000_000  # in the rows of one drawn problem, about
_ROWS_LEAST, _ROWS_MOST = 20, 2000  # of an arm
_POOL = 500  # rows of all arms together that others borrow from
_BORROWED = 20.0  # rows that an arm borrows, beside its own
_STEPS = 60


class ProblemPair(NamedTuple):
    """A problem that the log may have come from."""

    problem: Problem
    at_once: Problem  # the same decisions, each of which pays all it pays in its own round


class PossibleProblems:
    """What a log says about its arms, and problems drawn from that.

    Parameters
    ----------
    arms : sequence of Arm
        Those whose mean is known.
    fitted : Problem
        Whose decisions pay what logged ones did.
    seed : int
        For the test and the draws.
    """

    def __init__(self, arms: tuple[Arm, ...], fitted: Problem, seed: int) -> None:
        self._fitted, self._seed = fitted, seed
        self._rows = [
            np.asarray(law.rows) * cap
            for law, cap in zip(fitted.arm_laws, fitted.caps, strict=True)
            if isinstance(law, EmpiricalLaw)
        ]
        totals = [rows.sum(axis=1) for rows in self._rows]
        self.means: Means = means(arms, totals)
        self.posterior = Posterior(self.means)
        self.signal: Signal = _tested(arms, totals, self.posterior, seed)
        """Whether arms differ in what they pay."""
        self._pool = _pooled(self._rows, self.means.decisions)

    def drawn_means(self, count: int) -> Floats:
        """Return the arms' means in the first `count` problems: count x arms."""
        return np.array([self._draw(number) for number in range(count)])

    def draw(self, number: int) -> ProblemPair:
        """Draw problem `number`: always the same for the same fit, seed and number."""
        fitted, wanted = self._fitted, self._draw(number)
        numbers = len(self._rows) * fitted.groups
        count = int(np.clip(_NUMBERS // numbers, _ROWS_LEAST, _ROWS_MOST))
        drawn = [
            _with_mean(rows, self._pool, float(mean), min(max(len(rows), _POOL), count))
            for rows, mean in zip(self._rows, wanted, strict=True)
        ]
        caps = [max(cap, float(rows.sum(axis=1).max())) for cap, rows in zip(fitted.caps, drawn, strict=True)]
        laws = [EmpiricalLaw(rows / cap) for rows, cap in zip(drawn, caps, strict=True)]
        at_once = [EmpiricalLaw(np.asarray(law.rows).sum(axis=1, keepdims=True)) for law in laws]
        return ProblemPair(
            Problem(caps, fitted.window, fitted.groups, laws, arms=fitted.arms),
            Problem(caps, 1, 1, at_once, arms=fitted.arms),
        )

    def _draw(self, number: int) -> Floats:
        dice = np.random.Generator(np.random.Philox(key=[self._seed, number]))
        return np.asarray(self.posterior.draw(dice, 1, differing=True)[0])


def _tested(arms: tuple[Arm, ...], totals: list[Floats], posterior: Posterior, seed: int) -> Signal:
    """Test whether arms differ in what they paid; unlike a problem's, logged pay may be negative."""
    if any((arm.sample.values < 0.0).any() for arm in arms):
        totals = [_paid(arm.sample) for arm in arms]
    return differ(means(arms, totals), totals, posterior, seed)


def _paid(sample: Sample) -> Floats:
    """Return the total of each decision of a sample."""
    decision = np.repeat(np.arange(len(sample.lengths)), sample.lengths)
    return np.asarray(sample.scale * np.bincount(decision, sample.values, len(sample.lengths)), np.float64)


def _pooled(rows: list[Floats], count: Floats) -> Floats:
    """Choose rows of all arms at even ranks of their totals, each arm by its number of decisions."""
    weight = np.concatenate([np.full(len(one), n / len(one)) for one, n in zip(rows, count, strict=True)])
    totals = np.concatenate([one.sum(axis=1) for one in rows])
    chosen = _even(totals, weight / weight.sum(), min(_POOL, len(totals)))
    first = np.concatenate([[0], np.cumsum([len(one) for one in rows])])
    arm = np.searchsorted(first, chosen, side="right") - 1
    return np.array([rows[a][i - first[a]] for a, i in zip(arm, chosen, strict=True)])


def _even(totals: Floats, weight: Floats, count: int) -> Ints:
    """Choose the rows at `count` even ranks of their totals."""
    # Rounded, so that totals which only differ in their last bits (as a file keeps them) stay in order.
    order = np.argsort(np.round(totals / max(float(totals.max()), 1e-300), 7), kind="stable")
    upto = np.cumsum(weight[order])
    ranks = (np.arange(count) + 0.5) / count * upto[-1]
    return np.asarray(order[np.minimum(np.searchsorted(upto, ranks), len(order) - 1)])


def _with_mean(rows: Floats, pool: Floats, mean: float, count: int) -> Floats:
    """Make rows like an arm's own, with another mean total.

    Rows of larger totals become more or less frequent (by exponential tilting), so that an arm whose
    decisions pay 1 or nothing goes on doing so. An arm of few rows borrows some of the pool's.
    """
    own = len(rows) / (len(rows) + _BORROWED)
    every = np.concatenate([rows, pool])
    base = np.concatenate([np.full(len(rows), own / len(rows)), np.full(len(pool), (1 - own) / len(pool))])
    totals = every.sum(axis=1)
    top = float(totals.max())
    if top <= 0.0:
        return rows
    weight = _tilted(base, totals / top, mean / top)
    chosen = _even(totals, weight, count)
    if totals[chosen[-1]] <= 0.0:  # decisions pay so seldom that none of the chosen rows does
        chosen[-1] = int(np.argmax(np.where(totals > 0.0, weight, -1.0)))
    # What rounding to whole rows has left of the difference is made up by the size of the payments.
    return np.asarray(every[chosen] * (mean / float(totals[chosen].mean())))


def _tilted(base: Floats, x: Floats, mean: float) -> Floats:
    """Return weights proportional to base * exp(k x) whose mean of x is `mean`, or as near as they come."""
    low, high, k = -1e5, 1e5, 0.0
    for _ in range(_STEPS):
        power = k * x
        weight = base * np.exp(power - power.max())
        weight = weight / weight.sum()
        here = float(weight @ x)
        if abs(here - mean) <= 1e-9 * mean:
            break
        low, high = (k, high) if here < mean else (low, k)
        slope = float(weight @ (x - here) ** 2)
        k += (mean - here) / slope if slope > 0.0 else np.inf
        if not low < k < high:
            k = 0.5 * (low + high)
    return np.asarray(weight)
