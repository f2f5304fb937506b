"""Do arms differ in what they pay, and how much of the difference is luck?

A log of many arms always shows some that pay more than others. `differ` asks whether they differ by
more than chance would make them, and `Posterior` says what the arms' true means may be: means that are
shrunk towards their common average, more strongly the more uncertain they are.

**The test.** With n decisions of an arm, their mean m and variance s² (steadied by a few decisions of
the pooled variance), the statistic is the sum over arms of n (m - M)² / s², M the arms' weighted
average. Its law under equal means is found by drawing each arm's totals anew, 999 times over: from its
own, moved to the common mean, as far as many of them paid, and else from those of all arms. So no
shape of the rewards is assumed, and arms that only vary more than others are not taken for different.

**The posterior.** The variance is read as a number of equal payments (as in
`accrual.logs.estimate.intervals`), so what an arm has paid is Poisson, and its true mean is Gamma around a
common average with a coefficient of variation c. Before the log is seen, c is 0 with probability 1/4 (arms
are all alike) and otherwise half-Cauchy, with a scale at which the best of so many arms pays a quarter more
than the average: 1/4 / sqrt(2 ln arms). It is integrated out, not estimated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from accrual.core.arrays import Floats
from accrual.core.interval import Interval
from accrual.logs.fitted import Arm

RESAMPLES = 999
LEVEL = 0.05
_STEADY = 10.0  # decisions of the pooled variance that steady an arm's own
_BORROWED = 100.0  # decisions of all arms that the shape of an arm's totals is learned from, beside its own
_DRAWN = 100_000  # totals in one resample, about
_OF_ARM_LEAST, _OF_ARM_MOST = 20, 2000
_DRAWS = 1000  # of the arms' means, for how much they vary
_POOL = 1 << 16  # quantiles that represent the totals of all arms
_ALIKE = 0.25  # the probability that arms are all alike, before the log is seen
_BEST = 0.25  # by how much the best arm may be better than the average, before the log is seen
_GRID = np.geomspace(1e-3, 5.0, 60)  # of c


class Means(NamedTuple):
    """What a log says about each arm's mean total."""

    decisions: Floats  # how many, where one that was not followed to its end counts in part
    # mean, variance: of one decision's total.
    mean: Floats
    variance: Floats


def means(arms: Sequence[Arm], totals: Sequence[Floats]) -> Means:
    """Gather the arms' means from a fit.

    Decisions still open tell something too: they count as far as they made the fit's interval narrower.
    Decisions in clusters tell less: they count for no more than made the fit's interval as wide as it is.

    Parameters
    ----------
    arms : sequence of Arm
        Those whose mean is known.
    totals : sequence of ndarray
        For each arm, the totals of a sample of its decisions.
    """
    mean = np.array([float(one.mean()) for one in totals])
    variance = np.array([float(one.var(ddof=1)) if len(one) > 1 else 0.0 for one in totals])
    width = np.array([arm.mean.high - arm.mean.low if arm.mean is not None else 0.0 for arm in arms])
    closed = np.array([float(arm.closed if arm.clusters is None else 1) for arm in arms])
    made = np.array([float(arm.decisions) for arm in arms])
    with np.errstate(all="ignore"):
        worth = variance / (width / 3.92) ** 2
    worth = np.where(np.isfinite(worth), worth, closed)
    return Means(np.clip(worth, np.maximum(closed, 1.0), np.maximum(made, 1.0)), mean, variance)


def _steadied(count: Floats, variance: Floats) -> Floats:
    """Add to each variance some decisions of the pooled one, so that none is quite 0."""
    spare = np.maximum(count - 1.0, 0.0)
    pooled = float((spare * variance).sum() / max(float(spare.sum()), 1.0))
    return np.asarray((spare * variance + _STEADY * pooled) / (spare + _STEADY))


def _statistic(count: Floats, mean: Floats, variance: Floats) -> float:
    weight = count / np.maximum(_steadied(count, variance), 1e-300)
    centre = float(weight @ mean / weight.sum())
    return float(weight @ (mean - centre) ** 2)


class Signal(NamedTuple):
    """Whether arms differ in what they pay."""

    p: float  # of the test: how often arms that pay alike would look as different as these, or more
    statistic: float
    arms: int
    spread: Interval  # the standard deviation of the arms' true means, as a share of their average

    @property
    def found(self) -> bool:
        """Whether the log shows a difference: p is below 0.05."""
        return self.p < LEVEL


def differ(seen: Means, totals: Sequence[Floats], posterior: Posterior, seed: int = 0) -> Signal:
    """Test whether arms pay alike; see the module's text.

    Examples
    --------
    >>> from accrual.evaluate.compare.arm_differences import Means, Posterior, differ
    >>> totals = [np.tile([0.0, 1.0], 50), np.tile([0.0, 0.0, 0.0, 1.0], 25)]
    >>> seen = Means(np.full(2, 100.0), np.array([0.5, 0.25]), np.array([0.2525, 0.1894]))
    >>> differ(seen, totals, Posterior(seen)).p
    0.001
    """
    dice = np.random.Generator(np.random.Philox(seed))
    arms = len(seen.mean)
    pool = _pool(seen.decisions, totals)
    pool -= pool.mean()
    if float(np.ptp(pool)) <= 1e-12 * max(float(np.abs(seen.mean).max()), 1e-300):
        return Signal(1.0, 0.0, arms, posterior.spread())  # every decision paid the same
    most = int(np.clip(_DRAWN / arms, _OF_ARM_LEAST, _OF_ARM_MOST))
    drawn = np.clip(np.rint(seen.decisions), 2, most).astype(np.int64)
    first = np.concatenate([[0], np.cumsum(drawn)[:-1]])
    # A mean of more totals than were drawn strays from the average by that much less.
    nearer = np.sqrt(np.minimum(drawn / seen.decisions, 1.0))
    own = np.concatenate([one - one.mean() for one in totals])
    length = np.array([len(one) for one in totals])
    start, length = (np.repeat(one, drawn) for one in (np.cumsum(length) - length, length))
    # What says something of an arm's shape are the decisions that paid.
    paid = seen.decisions * np.array([np.count_nonzero(one) / len(one) for one in totals])
    trusted = np.repeat(paid / (paid + _BORROWED), drawn)
    observed = _statistic(seen.decisions, seen.mean, seen.variance)
    reached = 0
    for _ in range(RESAMPLES):
        u = dice.random(len(trusted))
        # One draw says both: whether the arm's own total is taken, and which.
        mine = own[start + (np.minimum(u / np.maximum(trusted, 1e-9), 1.0 - 1e-12) * length).astype(np.int64)]
        some = np.where(u < trusted, mine, pool[dice.integers(len(pool), size=len(u))])
        mean = np.add.reduceat(some, first) / drawn
        square = np.add.reduceat(some * some, first) / drawn
        variance = np.maximum(square - mean**2, 0.0) * drawn / (drawn - 1)
        reached += _statistic(seen.decisions, mean * nearer, variance) >= observed
    return Signal((1 + reached) / (RESAMPLES + 1), observed, arms, posterior.spread())


def _pool(count: Floats, totals: Sequence[Floats]) -> Floats:
    """Return totals at even ranks of those of all arms together, each arm by its number of decisions."""
    values = np.concatenate(list(totals))
    weight = np.concatenate([np.full(len(one), n / len(one)) for n, one in zip(count, totals, strict=True)])
    order = np.argsort(values, kind="stable")
    upto = np.cumsum(weight[order])
    ranks = (np.arange(_POOL) + 0.5) / _POOL * upto[-1]
    return np.asarray(values[order][np.minimum(np.searchsorted(upto, ranks), len(values) - 1)])


class Posterior:
    """What the arms' true means may be, given the log; see the module's text.

    Examples
    --------
    >>> even = Means(np.full(3, 1000.0), np.array([1.0, 1.01, 0.99]), np.ones(3))
    >>> round(Posterior(even).alike, 1)
    0.7
    """

    def __init__(self, seen: Means) -> None:
        count, mean, variance = seen
        average = float(count @ mean / count.sum())
        spare = np.maximum(count - 1.0, 0.0)
        pooled = float((spare * variance).sum() / max(float(spare.sum()), 1.0))
        # The size of a payment is variance over mean; an arm of few decisions has that of all arms.
        size = (spare * variance + _BORROWED * pooled) / (count * mean + _BORROWED * average + 1e-300)
        size = np.maximum(size, 1e-6 * average + 1e-300)
        self._exposure = count / size
        self._paid = mean * self._exposure
        places, sures, logs = [], [], []
        for c in (0.0, *_GRID):
            centre, sure = average, 1.0
            for _ in range(5):
                precision = 1.0 / (centre / self._exposure + (c * centre) ** 2 + 1e-300)
                sure = float(precision.sum())
                centre = max(float(precision @ mean) / sure, 1e-9 * average)
            places.append(centre)
            sures.append(sure)
            logs.append(_likelihood(self._exposure * centre, self._paid, c) - 0.5 * math.log(sure))
        scale = _BEST / math.sqrt(2.0 * math.log(max(len(mean), 2)))
        slab = _GRID / (1.0 + (_GRID / scale) ** 2)  # times c, as the grid is even in log c
        prior = np.concatenate([[_ALIKE], (1.0 - _ALIKE) * slab / slab.sum()])
        chance = prior * np.exp(np.array(logs) - max(logs))
        self._chance = np.maximum(chance / chance.sum(), 1e-300)
        self._centre, self._sure = np.array(places), np.array(sures)

    @property
    def alike(self) -> float:
        """The probability that all arms pay the same."""
        return float(self._chance[0])

    def spread(self) -> Interval:
        """Return the standard deviation of the arms' means over their average, with a 95 % interval."""
        drawn = self.draw(np.random.Generator(np.random.Philox(0)), _DRAWS)
        spread = drawn.std(axis=1) / drawn.mean(axis=1)
        low, high = np.quantile(spread, [0.025, 0.975])
        return Interval(float(spread.mean()), float(low), float(high))

    def draw(self, dice: np.random.Generator, count: int, differing: bool = False) -> Floats:
        """Draw the arms' means, `count` times over: count x arms.

        With `differing`, only from what they may be if they are not all alike.
        """
        chance = self._chance.copy()
        if differing:
            chance[0] = 0.0
        cell = dice.choice(len(chance), size=count, p=chance / chance.sum())
        centre = self._centre[cell] + dice.standard_normal(count) / np.sqrt(self._sure[cell])
        centre = np.maximum(centre, 1e-3 * self._centre[cell] + 1e-300)
        drawn = np.tile(centre[:, None], (1, len(self._paid)))
        for row in np.flatnonzero(cell):
            shape = 1.0 / _GRID[cell[row] - 1] ** 2
            drawn[row] = dice.standard_gamma(shape + self._paid) / (shape / centre[row] + self._exposure)
        return drawn


def _likelihood(expected: Floats, paid: Floats, c: float) -> float:
    """Return the log likelihood of how many payments arms have made, if their means vary by c."""
    if c == 0.0:
        return float((special.xlogy(paid, expected) - expected).sum())
    shape = 1.0 / c**2
    each = special.gammaln(paid + shape) - special.gammaln(shape) - paid * math.log(shape)
    each += special.xlogy(paid, expected) - (paid + shape) * np.log1p(expected / shape)
    return float(each.sum())
