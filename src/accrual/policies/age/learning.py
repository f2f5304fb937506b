"""What the Age policies share: a mean for every age, learned from the decisions that reached it.

The window is cut into buckets, fine early and coarse late. Each bucket's mean is estimated from
the decisions that have finished it, and the buckets are added up: no spread is assumed, and an
unfinished decision causes no bias. Arms borrow strength from each other through a pooled spread
that is learned from all of them; `kappa` is the number of decisions that this spread is worth to an
arm, and is learned too. Arms that pay at different speeds may be put into clusters, each with a
pooled spread and a kappa of its own; otherwise all arms are in one cluster. All of this is a
heuristic: no regret bound is claimed for it.

Everything is in units of the arm's cap. With p the pooled spread, n the decisions that have
finished a bucket and S what they paid in it,

    mean = sum_g S_g / (n_g + kappa)  /  sum_g p_g n_g / (n_g + kappa).

For kappa to infinity this is "observed over expected share observed"; for kappa to 0 each arm
stands alone. The second moment is estimated in the same way from the growth of the squared
cumulative reward, which adds up to the squared total however the buckets depend on each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from accrual.core.arrays import Floats, Ints
from accrual.core.errors import InputError, positive, whole
from accrual.core.jit import njit, njit_noinline, python_function
from accrual.policies.age_cells import (
    KAPPA_LEAST,
    KAPPA_MOST,
    KAPPA_START,
    PACE,
    SPARE,
    SWEEPS,
    CellPolicy,
    add_to_pool,
    amend_cell,
    checked_buckets,
    empty_pool,
    pool_spread,
    spread_over_buckets,
)
from accrual.policies.base import Function, Functions, Moment
from accrual.policies.engine_hooks import EngineHooks
from accrual.policies.scalars import bernoulli_count, regularised
from accrual.problems.spreads import SpreadLike, as_spread

_KAPPA_CLOSED = 100.0  # the most that a kappa may be once every decision has closed


class Params(NamedTuple):
    cap: Floats
    inverse_cap: Floats
    prior: Floats  # buckets: the spread before anything is known
    k0: float
    cell: Ints  # arms: where the arm's cluster begins in `spread`, `spread2` and `kappa`


class Stats(NamedTuple):
    pulls: Ints
    seen: Floats  # arms x buckets: decisions that have finished the bucket (n)
    paid: Floats  # arms x buckets: what they paid in it (S)
    growth: Floats  # arms x buckets: by how much it raised their squared cumulative reward (Q)
    square: Floats  # arms x buckets: the squares of what they paid in it (V)
    inverse: Floats  # arms x buckets: 1 / (seen + kappa)
    spread: Floats  # clusters * buckets: the pooled spread (p) of each cluster after the other, and ...
    spread2: Floats  # ... its twin for the second moment
    kappa: Floats  # clusters * buckets: how many decisions the pooled spread is worth
    sum: Floats  # arms: sum over buckets of paid / (seen + kappa)
    sum2: Floats  # arms: the same of growth
    known: Floats  # arms: sum over buckets of spread * seen / (seen + kappa)
    known2: Floats  # arms: the same of spread2
    counted: Floats  # arms: the same of spread * seen
    raw: Floats  # arms: the mean before scaling, and ...
    raw2: Floats  # ... the second moment
    mean: Floats  # arms: estimates, brought up to date by each survey
    variance: Floats  # arms: regularised
    weight: Floats  # arms: decisions per bucket, averaged as the mean weighs the buckets
    stale: npt.NDArray[np.bool_]  # arms: to be estimated by the next survey
    scratch: Floats  # 3 x buckets: for `refresh`, which must not allocate
    leader: Ints  # one number: the arm with the largest mean
    due: Ints  # one number: decisions until the next refresh
    shared: Floats  # the leader's score; the scale and the range of totals


SCORE, SCALE, RANGE = range(3)


@njit
def cell_update(
    params: Params, stats: Stats, arm: int, group: int, before: float, after: float
) -> tuple[float, float, float, float, float]:
    unit = params.inverse_cap[arm]
    x = (after - before) * unit
    q = x * (after + before) * unit
    # Unsigned: numba then drops its tests for indices below 0.
    a, g = np.uint64(arm), np.uint64(group)
    cell = np.uint64(params.cell[a] + group)
    n = stats.seen[a, g]
    old = stats.inverse[a, g]
    new = 1.0 / (n + 1.0 + stats.kappa[cell])
    more = (n + 1.0) * new - n * old
    counted = (n + 1.0) * (n + 1.0) * new - n * n * old
    paid = stats.paid[a, g]
    growth = stats.growth[a, g]
    stats.seen[a, g] = n + 1.0
    stats.paid[a, g] = paid + x
    stats.growth[a, g] = growth + q
    stats.square[a, g] += x * x
    stats.inverse[a, g] = new
    stats.stale[a] = True
    return (
        (paid + x) * new - paid * old,
        (growth + q) * new - growth * old,
        stats.spread[cell] * more,
        stats.spread2[cell] * more,
        stats.spread[cell] * counted,
    )


SUMMED_FIELDS = ("sum", "sum2", "known", "known2", "counted")


@njit
def finished(params: Params, stats: Stats, arm: int, group: int, before: float, after: float) -> None:
    total, total2, known, known2, counted = cell_update(params, stats, arm, group, before, after)
    a = np.uint64(arm)
    stats.sum[a] += total
    stats.sum2[a] += total2
    stats.known[a] += known
    stats.known2[a] += known2
    stats.counted[a] += counted


@njit
def amended(
    params: Params, stats: Stats, arm: int, group: int,
    before: float, after: float, more_before: float, more_after: float,
) -> None:  # fmt: skip
    more, growth = amend_cell(params, stats, arm, group, before, after, more_before, more_after)
    stats.sum[arm] += more * stats.inverse[arm, group]
    stats.sum2[arm] += growth * stats.inverse[arm, group]
    stats.stale[arm] = True


@njit
def top_of(stats: Stats, arm: int) -> float:
    """Return how large the large totals of the prior are: for an arm that has paid nothing, the cap."""
    return stats.shared[RANGE] if stats.raw2[np.uint64(arm)] > 0.0 else 1.0


@njit
def nothing_more(params: Params, stats: Stats, arm: int, mean: float) -> None:
    """Do nothing: for a policy that stores nothing derived from an arm's estimate."""


def surveying(estimated: Function) -> Function:
    """Make a survey that calls ``estimated(params, stats, arm, mean)`` for each arm that it estimates.

    `mean` is the arm's mean, regularised as its variance is.
    """

    @njit
    def survey(params: Params, stats: Stats, moment: Moment) -> None:
        """Estimate every arm that has news, and find the leader.

        Until a window has closed, it is unknown how much is still to come, and an estimate may exceed
        the cap. Then all arms are scaled down together: the highest to as far below the cap as it was
        above, but to no less than half the cap. This preserves their order, whereas cutting each off at
        its cap would make them tie. And it keeps the leader below the cap; at the cap, no other arm
        would ever be tried.
        """
        highest = 1.0
        for arm in range(len(params.cap)):
            k = np.uint64(arm)
            if stats.stale[k] and stats.known[k] > 0.0:
                stats.weight[k] = stats.counted[k] / stats.known[k]
                stats.raw[k] = max(stats.sum[k] / stats.known[k], 0.0)
                stats.raw2[k] = max(stats.sum2[k] / stats.known2[k], 0.0)
            highest = max(highest, stats.raw[k])
        highest *= 1.0 + min(highest - 1.0, 1.0)  # continuous: a rounding above the cap changes nothing
        rescaled = highest != stats.shared[SCALE]
        stats.shared[SCALE] = highest
        best = 0.0
        stats.leader[0] = 0
        for arm in range(len(params.cap)):
            k = np.uint64(arm)
            if rescaled or stats.stale[k]:
                stats.stale[k] = False
                m = stats.raw[k] / highest
                second = min(max(stats.raw2[k] / (highest * highest), m * m), m)
                stats.mean[k] = m
                top = top_of(stats, arm)
                mean, stats.variance[k] = regularised(stats.weight[k], m, second, params.k0, top)
                estimated(params, stats, arm, mean)
            reward = stats.mean[k] * params.cap[k]
            if reward > best:
                best = reward
                stats.leader[0] = arm

    return survey


survey = surveying(nothing_more)


@njit_noinline
def refresh(params: Params, stats: Stats) -> None:
    """Learn again what the arms share (spreads, kappa, range), then recompute every cached sum."""
    buckets = len(params.prior)
    for first in range(0, len(stats.spread), buckets):
        spread = stats.spread[first : first + buckets]
        _pool(params, stats, first, stats.paid, spread, params.prior)
        # Were every decision's pay in proportion to the spread, the squared cumulative reward
        # would grow like the squared cumulative spread.
        arrived = 0.0
        for g in range(buckets):
            stats.scratch[2, g] = (2.0 * arrived + spread[g]) * spread[g]
            arrived += spread[g]
        spread2 = stats.spread2[first : first + buckets]
        _pool(params, stats, first, stats.growth, spread2, stats.scratch[2])
        _learn_kappa(params, stats, first, spread)
    for arm in range(len(params.cell)):
        _add_up(params, stats, arm)
    stats.shared[RANGE] = _learn_range(stats)
    # While the oldest decisions still reach new ages, what is learned there comes fast.
    stats.due[0] = buckets
    if stats.seen[:, buckets - 1].sum() > buckets:
        stats.due[0] = max(stats.pulls.sum() // PACE, buckets)


@njit
def _add_up(params: Params, stats: Stats, arm: int) -> None:
    """Recompute an arm's sums from its cells."""
    total = total2 = known = known2 = counted = 0.0
    for g in range(len(params.prior)):
        cell = params.cell[arm] + g
        n = stats.seen[arm, g]
        inverse = 1.0 / (n + stats.kappa[cell])
        stats.inverse[arm, g] = inverse
        total += stats.paid[arm, g] * inverse
        total2 += stats.growth[arm, g] * inverse
        known += stats.spread[cell] * n * inverse
        known2 += stats.spread2[cell] * n * inverse
        counted += stats.spread[cell] * n * n * inverse
    stats.sum[arm] = total
    stats.sum2[arm] = total2
    stats.known[arm] = known
    stats.known2[arm] = known2
    stats.counted[arm] = counted
    stats.stale[arm] = True


@njit
def _learn_range(stats: Stats) -> float:
    """Return twice the size of a typical total, at most the cap: what the prior is made of.

    The size is E[x^2] / E[x] over all arms: the cap itself where totals are nothing or the cap,
    however rare, and a fraction of it where the cap was set too high.
    """
    first = second = 0.0
    for arm in range(len(stats.sum)):
        if stats.known[arm] > 0.0:
            first += max(stats.sum[arm] / stats.known[arm], 0.0)
            second += max(stats.sum2[arm] / stats.known2[arm], 0.0)
    return min(2.0 * second / first, 1.0) if second > 0.0 else 1.0


@njit
def _arm_mean(stats: Stats, paid: Floats, spread: Floats, arm: int) -> float:
    total = known = 0.0
    for g in range(len(spread)):
        inverse = stats.inverse[arm, g]
        total += paid[arm, g] * inverse
        known += spread[g] * stats.seen[arm, g] * inverse
    return max(total / known, 0.0) if known > 0.0 else 0.0


@njit
def _pool(params: Params, stats: Stats, first: int, paid: Floats, spread: Floats, prior: Floats) -> None:
    """Learn the spread that a cluster's arms share: a few sweeps between it and the arms' means."""
    arms, buckets = paid.shape
    members = 0
    for arm in range(arms):
        members += params.cell[arm] == first
    for _ in range(SWEEPS):
        empty_pool(stats)
        average = 0.0
        for arm in range(arms):
            if params.cell[arm] == first:
                mean = _arm_mean(stats, paid, spread, arm)
                average += mean / members
                add_to_pool(stats, paid, arm, mean, buckets)
        if average <= 0.0:
            return
        pool_spread(stats, spread, average, prior, buckets)


@njit
def _learn_kappa(params: Params, stats: Stats, first: int, spread: Floats) -> None:
    """Learn how many decisions the pooled spread is worth in each bucket, by the method of moments.

    The pay of a bucket has variance `noise` times its mean; an arm's own mean differs from the
    pooled one with variance theta times it. Their ratio is kappa. Pearson's statistic, summed
    over all cells, says how much more the arms differ than by the noise alone.

    A bucket with a small noise estimate would outweigh the others, and often the estimate is small only
    because an arm happened to pay nothing there. As decisions close, all ages of an arm are known equally
    well, and the buckets' kappas come together: an arm whose decisions have all closed has its plain mean.
    """
    arms, buckets = stats.seen.shape
    mean = stats.mean  # free to use here: the next survey recomputes it
    noise = stats.scratch[0]
    members = 0
    for arm in range(arms):
        if params.cell[arm] == first:
            mean[arm] = _arm_mean(stats, stats.paid, spread, arm)
            members += 1
    statistic = scale = average = mass = last = 0.0
    cells = used = 0
    for g in range(buckets):
        spare = level = misfit = total = weighted = squared = 0.0
        cells_here = 0
        for arm in range(arms):
            n = stats.seen[arm, g]
            expected = mean[arm] * spread[g]
            if params.cell[arm] == first and n >= 2.0 and expected > 0.0:
                here = stats.paid[arm, g] / n
                spare += stats.square[arm, g] - n * here * here
                level += (n - 1.0) * here
                misfit += n * (here - expected) ** 2 / expected
                total += n
                weighted += n * mean[arm]
                squared += n * n * mean[arm]
                cells_here += 1
        if total - cells_here >= SPARE and spare > 0.0 and level > 0.0:
            last = spare / level
            used += 1
            cells += cells_here
            statistic += misfit / last
            scale += (total - squared / weighted) / last
            average += spread[g] * last
            mass += spread[g]
        noise[g] = last  # where nothing is known, as in the bucket before
    freedom = cells - members - (used - 1)
    if freedom < 1 or average <= 0.0:
        return
    average /= mass
    excess = statistic - freedom - math.sqrt(2.0 * freedom)
    worth = KAPPA_MOST if excess <= 0.0 else min(max(scale / excess * average, KAPPA_LEAST), KAPPA_MOST)
    begun = ended = 0.0
    for arm in range(arms):
        if params.cell[arm] == first:
            begun += stats.seen[arm, 0]
            ended += stats.seen[arm, buckets - 1]
    open_share = 1.0 - ended / begun
    squared = open_share * open_share  # a power would not be the same to the bit in plain Python
    most = _KAPPA_CLOSED + (KAPPA_MOST - _KAPPA_CLOSED) * squared * squared
    for g in range(buckets):
        relative = 1.0
        if noise[g] > 0.0:
            relative = math.exp(open_share * math.log(max(noise[g] / average, 1e-6)))
        stats.kappa[first + g] = min(worth * relative, most)


def learning(index: Function, survey: Function = survey) -> Functions:
    """Return the functions of a policy that learns as the Age policies do, with an index of its own."""
    return Functions(
        index=index,
        survey=survey,
        finished=finished,
        amended=amended,
        refresh=refresh,
        hooks=EngineHooks(cell_update=cell_update, summed_fields=SUMMED_FIELDS),
    )


@dataclass(frozen=True)
class AgePolicy(CellPolicy):
    """A policy that learns every age's mean from the decisions that have reached it.

    Parameters
    ----------
    buckets : int
        Into how many parts the window is cut, fine early and coarse late (fewer if it is short).
    k0 : float
        Weight of the prior on the variance, in decisions.
    prior : str, Spread or sequence of float
        The pooled spread before anything is known; soon outweighed.
    clusters : sequence of int, optional
        The cluster of each arm, numbered from 0 on. Only arms of one cluster share a spread; all
        do unless this is given. Numbers beyond the arms there are wait for arms to be added; an
        arm beyond the numbers is a cluster of its own.
    """

    buckets: int = 32
    k0: float = 1.0
    prior: SpreadLike = "uniform"
    clusters: Sequence[int] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "buckets", checked_buckets(self.buckets))
        object.__setattr__(self, "prior", as_spread(self.prior))
        positive("k0", self.k0)
        if self.clusters is not None:
            object.__setattr__(self, "clusters", _numbered(self.clusters))

    @property
    def label(self) -> str:
        return type(self).__name__

    def terms(self, params: Params, stats: Stats, arm: int, moment: Moment) -> dict[str, float]:
        if stats.weight[arm] <= 0.0:
            return {"decisions": float(stats.pulls[arm])}
        mean, variance = float(stats.mean[arm]), float(stats.variance[arm])
        cap, n = float(params.cap[arm]), float(stats.pulls[arm])
        return {
            "expected total": cap * float(stats.raw[arm]),
            "best expected total": float(stats.raw[stats.leader[0]] * params.cap[stats.leader[0]]),
            "full decisions that it stands on": float(stats.weight[arm]),
            "decisions": n,
            "decisions that pay 0 or the cap and tell as much": python_function(bernoulli_count)(
                n, mean, variance
            ),
        }

    def params(self, caps: Floats, window: int) -> Params:
        prior = spread_over_buckets(self.prior, self.edges(window), window)
        cell = len(prior) * self._cluster(len(caps))
        return Params(caps, 1.0 / caps, prior, float(self.k0), cell)

    def _cluster(self, arms: int) -> Ints:
        """Return the cluster of each of this many arms."""
        if self.clusters is None:
            return np.zeros(arms, np.int64)
        given = np.array(self.clusters, np.int64)
        alone = 1 + given.max() + np.arange(max(arms - len(given), 0))
        return np.concatenate([given[:arms], alone])

    def stats(self, params: Params) -> Stats:
        arms, buckets = len(params.cap), len(params.prior)
        cells = (arms, buckets)
        clusters = 1 + int(params.cell.max()) // buckets
        spread2 = np.diff(np.concatenate([[0.0], np.cumsum(params.prior)]) ** 2)
        return Stats(
            pulls=np.zeros(arms, np.int64),
            seen=np.zeros(cells),
            paid=np.zeros(cells),
            growth=np.zeros(cells),
            square=np.zeros(cells),
            inverse=np.full(cells, 1.0 / KAPPA_START),
            spread=np.tile(params.prior, clusters),
            spread2=np.tile(spread2, clusters),
            kappa=np.full(clusters * buckets, KAPPA_START),
            sum=np.zeros(arms),
            sum2=np.zeros(arms),
            known=np.zeros(arms),
            known2=np.zeros(arms),
            counted=np.zeros(arms),
            raw=np.zeros(arms),
            raw2=np.zeros(arms),
            mean=np.zeros(arms),
            variance=np.zeros(arms),
            weight=np.zeros(arms),
            stale=np.zeros(arms, np.bool_),
            scratch=np.zeros((3, buckets)),
            leader=np.zeros(1, np.int64),
            due=np.array([buckets], np.int64),
            shared=np.array([0.0, 1.0, 1.0]),
        )

    def grow(self, stats: Stats, params: Params) -> Stats:
        grown: Stats = super().grow(stats, params)
        old = len(stats.pulls)  # what a new arm starts from has been learned since
        grown.inverse[old:] = 1.0 / grown.kappa[params.cell[old:, None] + np.arange(len(params.prior))]
        return grown


def _numbered(clusters: Sequence[int]) -> tuple[int, ...]:
    """Return checked cluster numbers."""
    if isinstance(clusters, str) or not np.iterable(clusters) or not len(clusters):
        raise InputError(f"clusters must be one number for each arm, such as (0, 0, 1), not {clusters!r}")
    numbers = tuple(whole("a cluster's number", number, 0) for number in clusters)
    gap = next(number for number in range(len(numbers) + 1) if number not in numbers)
    if max(numbers) > gap:
        raise InputError(f"clusters must be numbered 0, 1, 2, ...: {max(numbers)} is used but not {gap}")
    return numbers
