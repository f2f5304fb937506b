"""What the Age policies share: a mean for every age, learned from the decisions that reached it.

The window is cut into buckets, fine early and coarse late. Each bucket's mean is estimated from
the decisions that have finished it, and the buckets are added up: no spread is assumed, and an
unfinished decision causes no bias. Arms borrow strength from each other through a pooled spread
that is learned on the way; `kappa` says how many decisions that spread is worth to an arm, and is
learned too. All of this is a heuristic: no regret bound is claimed for it.

Everything is in units of the arm's cap. With p the pooled spread, n the decisions that have
finished a bucket and S what they paid in it,

    mean = sum_g S_g / (n_g + kappa)  /  sum_g p_g n_g / (n_g + kappa).

For kappa to infinity this is "observed over expected share observed"; for kappa to 0 each arm
stands alone. The second moment is estimated in the same way from the growth of the squared
cumulative reward, which adds up to the squared total however the buckets depend on each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from accrual.core.errors import InputError, whole
from accrual.core.jit import njit
from accrual.policy.base import Feedback, Floats, Ints, Moment, Policy
from accrual.policy.estimate import regularised
from accrual.spread import SpreadLike, as_spread

KAPPA_START, KAPPA_LEAST, KAPPA_MOST = 5.0, 0.5, 100.0
_SWEEPS = 3
_PACE = 32  # between two refreshes the decisions grow by a 32nd, or by one per bucket


class Params(NamedTuple):
    cap: Floats
    prior: Floats  # buckets: the spread before anything is known
    k0: float


class Stats(NamedTuple):
    pulls: Ints
    seen: Floats  # arms x buckets: decisions that have finished the bucket (n)
    paid: Floats  # arms x buckets: what they paid in it (S)
    growth: Floats  # arms x buckets: by how much it raised their squared cumulative reward (Q)
    square: Floats  # arms x buckets: the squares of what they paid in it (V)
    spread: Floats  # buckets: the pooled spread (p), and ...
    spread2: Floats  # ... its twin for the second moment
    sum: Floats  # arms: sum over buckets of paid / (seen + kappa)
    sum2: Floats  # arms: the same of growth
    lack: Floats  # arms: sum over buckets of spread / (seen + kappa)
    lack2: Floats  # arms: the same of spread2
    mean: Floats  # arms: estimates, made anew by each survey
    variance: Floats  # arms: regularised
    weight: Floats  # arms: how many finished decisions the mean is worth
    scratch: Floats  # 2 x buckets: for `refresh`, which must not allocate
    shared: Floats  # kappa, decisions so far, decisions at the next refresh, the leader's mean


KAPPA, DECISIONS, REFRESH, LEADER = range(4)


@njit
def finished(params: Params, stats: Stats, arm: int, group: int, before: float, after: float) -> None:
    x = (after - before) / params.cap[arm]
    q = x * (after + before) / params.cap[arm]
    n = stats.seen[arm, group]
    old = 1.0 / (n + stats.shared[KAPPA])
    new = 1.0 / (n + 1.0 + stats.shared[KAPPA])
    paid = stats.paid[arm, group]
    growth = stats.growth[arm, group]
    stats.sum[arm] += (paid + x) * new - paid * old
    stats.sum2[arm] += (growth + q) * new - growth * old
    stats.lack[arm] += stats.spread[group] * (new - old)
    stats.lack2[arm] += stats.spread2[group] * (new - old)
    stats.seen[arm, group] = n + 1.0
    stats.paid[arm, group] = paid + x
    stats.growth[arm, group] = growth + q
    stats.square[arm, group] += x * x


@njit
def survey(params: Params, stats: Stats, moment: Moment) -> None:
    """Every arm's mean, variance and weight, and the leader's mean."""
    kappa = stats.shared[KAPPA]
    leader = 0.0
    for arm in range(len(params.cap)):
        known = 1.0 - kappa * stats.lack[arm]
        if known > 1e-12:
            m = min(max(stats.sum[arm] / known, 0.0), 1.0)
            second = stats.sum2[arm] / (1.0 - kappa * stats.lack2[arm])
            n = known / stats.lack[arm]
            stats.mean[arm] = m
            stats.weight[arm] = n
            _, stats.variance[arm] = regularised(n, m, min(max(second, m * m), m), params.k0)
            leader = max(leader, m * params.cap[arm])
        else:
            stats.weight[arm] = 0.0
    stats.shared[LEADER] = leader


@njit
def decided(params: Params, stats: Stats, arm: int) -> None:
    stats.shared[DECISIONS] += 1.0
    if stats.shared[DECISIONS] >= stats.shared[REFRESH]:
        refresh(params, stats)
        pace = max(stats.shared[DECISIONS] / _PACE, len(params.prior))
        stats.shared[REFRESH] = stats.shared[DECISIONS] + pace


@njit
def refresh(params: Params, stats: Stats) -> None:
    """Learn the pooled spread and kappa anew, and the sums that stand on them."""
    kappa = stats.shared[KAPPA]
    _pool(params, stats, stats.paid, stats.spread)
    _pool(params, stats, stats.growth, stats.spread2)
    kappa = _learn_kappa(stats, kappa)
    stats.shared[KAPPA] = kappa
    arms, buckets = stats.seen.shape
    for arm in range(arms):
        total = total2 = lack = lack2 = 0.0
        for g in range(buckets):
            inverse = 1.0 / (stats.seen[arm, g] + kappa)
            total += stats.paid[arm, g] * inverse
            total2 += stats.growth[arm, g] * inverse
            lack += stats.spread[g] * inverse
            lack2 += stats.spread2[g] * inverse
        stats.sum[arm] = total
        stats.sum2[arm] = total2
        stats.lack[arm] = lack
        stats.lack2[arm] = lack2


@njit
def _arm_mean(seen: Floats, paid: Floats, spread: Floats, kappa: float, arm: int) -> float:
    total = known = 0.0
    for g in range(len(spread)):
        inverse = 1.0 / (seen[arm, g] + kappa)
        total += paid[arm, g] * inverse
        known += spread[g] * seen[arm, g] * inverse
    return max(total / known, 0.0) if known > 1e-12 else 0.0


@njit
def _pool(params: Params, stats: Stats, paid: Floats, spread: Floats) -> None:
    """A few sweeps between the arms' means and the spread they share, from where it was."""
    kappa = stats.shared[KAPPA]
    arms, buckets = paid.shape
    top, bottom = stats.scratch[0], stats.scratch[1]
    for _ in range(_SWEEPS):
        top[:] = 0.0
        bottom[:] = 0.0
        average = 0.0
        for arm in range(arms):
            mean = _arm_mean(stats.seen, paid, spread, kappa, arm)
            average += mean / arms
            for g in range(buckets):
                top[g] += paid[arm, g]
                bottom[g] += stats.seen[arm, g] * mean
        if average <= 0.0:
            return
        mass = 0.0
        for g in range(buckets):
            spread[g] = (top[g] + average * params.prior[g]) / (bottom[g] + average)
            mass += spread[g]
        spread /= mass


@njit
def _learn_kappa(stats: Stats, kappa: float) -> float:
    """How much arms differ in speed, by the method of moments (Pearson's statistic)."""
    arms, buckets = stats.seen.shape
    mean = stats.mean  # free until the next survey
    for arm in range(arms):
        mean[arm] = _arm_mean(stats.seen, stats.paid, stats.spread, kappa, arm)
    statistic = scale = 0.0
    cells = 0
    for g in range(buckets):
        noise = level = misfit = total = weighted = squared = 0.0
        for arm in range(arms):
            n = stats.seen[arm, g]
            expected = mean[arm] * stats.spread[g]
            if n >= 2.0 and expected > 0.0:
                here = stats.paid[arm, g] / n
                noise += stats.square[arm, g] - n * here * here
                level += (n - 1.0) * here
                misfit += n * (here - expected) ** 2 / expected
                total += n
                weighted += n * mean[arm]
                squared += n * n * mean[arm]
                cells += 1
        if noise > 0.0 and level > 0.0:
            statistic += misfit * level / noise
            scale += total - squared / weighted
    freedom = cells - arms - (buckets - 1)
    if freedom < 1:
        return kappa
    excess = statistic - freedom
    if excess <= 0.0:
        return KAPPA_MOST
    return min(max(scale / excess, KAPPA_LEAST), KAPPA_MOST)


@dataclass(frozen=True)
class AgePolicy(Policy):
    """A policy that learns every age's mean from the decisions that have reached it.

    Parameters
    ----------
    buckets : int
        Into how many parts the window is cut, fine early and coarse late (fewer if it is short).
    k0 : float
        Weight of the prior on the variance, in decisions.
    prior : str, Spread or sequence of float
        The pooled spread before anything is known; soon outweighed.
    """

    buckets: int = 32
    k0: float = 1.0
    prior: SpreadLike = "uniform"

    feedback: ClassVar[Feedback] = "groups"

    def __post_init__(self) -> None:
        object.__setattr__(self, "buckets", whole("buckets", self.buckets, 1))
        object.__setattr__(self, "prior", as_spread(self.prior))
        if not (np.isfinite(self.k0) and self.k0 > 0):
            raise InputError(f"k0 must be a positive number, not {self.k0!r}")

    @property
    def label(self) -> str:
        return type(self).__name__

    def edges(self, window: int) -> Ints:
        g = np.arange(1, self.buckets + 1)
        return np.unique(np.ceil(window * (g / self.buckets) ** 2).astype(np.int64))

    def params(self, caps: Floats, window: int) -> Params:
        arrived = np.concatenate([[0.0], np.cumsum(as_spread(self.prior).pmf(window))])
        prior = np.diff(arrived[np.concatenate([[0], self.edges(window)])])
        return Params(caps, np.maximum(prior, 1e-9) / np.maximum(prior, 1e-9).sum(), float(self.k0))

    def stats(self, params: Params) -> Stats:
        arms, buckets = len(params.cap), len(params.prior)
        cells = (arms, buckets)
        return Stats(
            pulls=np.zeros(arms, np.int64),
            seen=np.zeros(cells),
            paid=np.zeros(cells),
            growth=np.zeros(cells),
            square=np.zeros(cells),
            spread=params.prior.copy(),
            spread2=params.prior.copy(),
            sum=np.zeros(arms),
            sum2=np.zeros(arms),
            lack=np.full(arms, 1.0 / KAPPA_START),
            lack2=np.full(arms, 1.0 / KAPPA_START),
            mean=np.zeros(arms),
            variance=np.zeros(arms),
            weight=np.zeros(arms),
            scratch=np.zeros((2, buckets)),
            shared=np.array([KAPPA_START, 0.0, float(buckets), 0.0]),
        )
