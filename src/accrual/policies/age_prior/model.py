"""The model behind `AgePrior`: what an arm pays at every age, and how arms are alike (docs/age_prior.md).

Everything is in units of the arm's cap, and of the ages that decisions have reached so far. The pay of arm a
in bucket g of the window has the mean

    p_g (level_a + tilt_a z_g) + own_ag.

p is the pooled spread and z_g, from -1 to 1, says how late the bucket is, so that a tilt moves pay from
early ages to late ones and leaves the total alone. Over arms, level, tilt and own deviations are Gaussian.
The noise of one decision in bucket g is p_g r_g q_a sigma^2, r_g and q_a the bucket's and the arm's relative
to the average. An own deviation has the variance p_g sigma^2 / kappa. So the model counts as kappa r_g q_a
decisions of the bucket.
Where arms have features, the mean of their levels is linear in these: see the module `arm_features`.
A few arms are like no other: their levels vary more, by the square of what is expected.

An arm has two estimates of its mean total. `own` uses other arms only for the ages that the arm's open
decisions have not reached, to fill in what these will pay there; when all decisions are closed it is the
plain mean. `mean` is the model's, and is held within a few standard errors of `own`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from accrual.core.arrays import Floats, Ints
from accrual.core.jit import njit, njit_noinline
from accrual.policies.age_cells import amend_cell

REACHED = 10.0  # decisions that must have finished a bucket before it counts
_NEWS = 1.0 / 64.0  # an arm is estimated again once its finished buckets have grown by this part
WORTH = 2.0  # decisions that the usual variance of a total is worth to an arm
_LUMPS = 5.0  # decisions of one of few arms that are held to have paid what totals are in size, or the cap


class Params(NamedTuple):
    cap: Floats
    inverse_cap: Floats
    spread: Floats  # buckets: the spread before anything is known
    about: Floats  # arms x columns: what is known about each; one column of zeros where that is nothing
    history: Floats  # of older arms: mean level, variances of levels and of tilts, and their number
    slope: float  # what SLOPE is at first; 0 where nothing is known about arms
    pull: float  # standard errors by which the model may move an arm's estimate
    most: float  # decisions that the prior counts as in an index, at most
    share: float  # a sixth for two arms, near 1 for very many: how far an arm is treated as one of very many
    outlier: float  # beforehand, the logarithm of how much rarer arms like no other are
    surprise: float  # the chance of totals b times as large as an arm's size is b to the power of -surprise
    forced: float  # decisions an arm, from which on a slowly growing number of each is forced
    decay: float  # by how much the logarithm of a decision's weight falls with each later one; 0 for none


class Stats(NamedTuple):
    pulls: Ints
    counted: Floats  # arms: decisions, those in flight as well; where they are forgotten, their weights
    seen: Floats  # arms x buckets: decisions that have finished the bucket
    paid: Floats  # arms x buckets: what they paid in it
    growth: Floats  # arms x buckets: by how much it raised their squared cumulative reward
    square: Floats  # arms x buckets: the squares of what they paid in it
    news: Floats  # arms: buckets finished since the arm was last estimated, and ...
    wait: Floats  # ... how many are waited for
    own: Floats  # arms: the estimate from the arm's own decisions
    second: Floats  # arms: the second moment of totals
    weight: Floats  # arms: full decisions that `own` is based on
    mean: Floats  # arms: the model's estimate, held near `own`
    variance: Floats  # arms: of a total
    price: Floats  # arms: what it takes to hold that the arm is like no other, in nats
    share: Floats  # arms: how far the arm is then treated as one of very many
    cost: Floats  # arms: what it costs to hold that the arm is as good as the leader: the model is off, ...
    cost_alone: Floats  # ... or the arm is like no other
    log_count: Floats  # arms: the logarithm of its count with the prior, and ...
    log_alone: Floats  # ... without
    costed: Floats  # arms: the decisions for which these four were computed; -1 for none
    level: Floats  # arms: the level that the arm's pieces show, and ...
    information: Floats  # ... how well they show it: the noise over the variance of its error
    tilt: Floats  # arms: the tilt, and ...
    tilt_error: Floats  # ... its variance over the noise
    quiet: Floats  # arms: q, how much the arm's pay varies, relative to what is usual
    line: Floats  # 5 x features of arms: the regression on these, whose rows are named below
    line_covariance: Floats  # features x features: of the line's slopes
    spread: Floats  # buckets: the pooled spread (p), over the ages reached
    spread2: Floats  # buckets: its twin for the second moment
    late: Floats  # buckets: z
    noise: Floats  # buckets: r
    scratch: Floats  # 3 x buckets: for `refresh`, which must not allocate
    due: Ints  # one number: decisions until the next refresh
    shared: Floats  # 21 numbers, which are named below


READY, REACH, PART, KAPPA, LEVEL, BETWEEN, TILT, SIGMA2, SCALE, SCALED, TARGET, LEAD = range(12)
STAGE, USUAL, GROWN, SLOPE, WIDER, LEAST, LEAD_NOISE, ROOM, SIZE = range(12, 21)
# READY: 1 once something has been paid. REACH: buckets that ten decisions have finished; PART: their part of
# the spread before anything is known. LEVEL, BETWEEN: mean and variance of the arms' levels. TILT: variance
# of their tilts. SIGMA2: variance of a total within an arm. SCALE: the level when REACH was SCALED. TARGET:
# the leader's mean, in rewards. LEAD: the leader. While a refresh is under way, STAGE: which part of it
# is next; USUAL: the variance that levels usually have; GROWN: the level over SCALE before. SLOPE: the
# variance of levels that one column of what is known about arms tells, over BETWEEN; 0 if nothing is known.
# WIDER: as how many times BETWEEN it counts in an index, for an arm may be far off a good line. LEAST: an arm
# with fewer decisions is tried first. LEAD_NOISE: how much the leader's totals vary (`_log_noise`). ROOM: by
# how much the logarithm of the leader's decisions may be raised. SIZE: of an arm's totals, E[x^2] / E[x], in
# rewards, the mean over arms that have paid.

SLOPES, MIDDLE, VARIANCE, WORK = range(4)
# The rows of `line`. MIDDLE, VARIANCE: mean and variance of each column over arms. WORK: two rows of scratch.


@njit
def decided(params: Params, stats: Stats, arm: int) -> None:
    stats.counted[arm] += 1.0


@njit
def cell_update(
    params: Params, stats: Stats, arm: int, group: int, before: float, after: float
) -> tuple[float]:
    unit = params.inverse_cap[arm]
    x = (after - before) * unit
    a, g = np.uint64(arm), np.uint64(group)  # unsigned: numba then drops its tests for indices below 0
    stats.seen[a, g] += 1.0
    stats.paid[a, g] += x
    stats.growth[a, g] += x * (after + before) * unit
    stats.square[a, g] += x * x
    return (1.0,)


@njit
def finished(params: Params, stats: Stats, arm: int, group: int, before: float, after: float) -> None:
    (more,) = cell_update(params, stats, arm, group, before, after)
    stats.news[np.uint64(arm)] += more


@njit
def amended(
    params: Params, stats: Stats, arm: int, group: int,
    before: float, after: float, more_before: float, more_after: float,
) -> None:  # fmt: skip
    amend_cell(params, stats, arm, group, before, after, more_before, more_after)
    stats.news[arm] = max(stats.news[arm], stats.wait[arm])


@njit
def expected_level(params: Params, stats: Stats, a: int) -> float:
    """Return the level that the prior expects of an arm: the mean level, moved by the arm's features."""
    line = stats.line
    level = stats.shared[LEVEL]
    for j in range(line.shape[1]):
        level += (params.about[a, j] - line[MIDDLE, j]) * line[SLOPES, j]
    return max(level, 0.0)


@njit
def _price(params: Params, stats: Stats, arm: int, log_odds: float) -> None:
    """Set what follows from the logarithm of the odds that the arm is like no other."""
    like = math.exp(-log_odds)
    stats.price[arm] = math.log(1.0 + like)
    stats.share[arm] = params.share * like / (1.0 + like)


@njit
def untried(params: Params, stats: Stats, a: int) -> None:
    """Set the estimates of an arm to the prior's, while none of its decisions has finished a bucket."""
    sh = stats.shared
    expected = expected_level(params, stats, a)
    stats.wait[a] = 1.0
    stats.weight[a] = stats.tilt[a] = stats.information[a] = 0.0
    stats.own[a] = stats.mean[a] = stats.level[a] = expected
    stats.variance[a] = sh[SIGMA2]
    stats.second[a] = expected**2 + sh[SIGMA2]
    stats.tilt_error[a] = sh[TILT] / sh[SIGMA2]
    stats.quiet[a] = 1.0
    _price(params, stats, a, -params.outlier)


@njit
def top(stats: Stats) -> float:
    """Return the part of the cap that totals may come near, 1 once all ages are reached.

    Before that it is small: otherwise new arms, whose decisions are all young, would be tried by the batch.
    """
    part = stats.shared[PART] * stats.shared[PART]  # no power: it is not the same to the bit in plain Python
    return float(part * part)


@njit
def size(params: Params, stats: Stats, arm: int) -> float:
    """Return how large the arm's totals are: E[x^2] / E[x] of its own, or what it is over arms if larger.

    Like the cap, it counts only in part until all ages are reached.
    """
    a = np.uint64(arm)
    found = 0.0
    if params.cap[a] > 0.0:  # a retired arm has the cap 0
        found = stats.shared[SIZE] * params.inverse_cap[a]
    if stats.own[a] > 0.0:
        found = max(found, stats.second[a] / stats.own[a])
    return float(min(found, 1.0) * top(stats))


@njit
def lumps(params: Params, stats: Stats, arm: int, share: float) -> float:
    """Return how much larger an arm's variance may be, for few decisions may have had no large total yet.

    It is as if some of them had paid what totals are in size in place of the arm's mean, or the cap where the
    arm has paid nothing: fewer, the more the arm is treated as one of very many (`share`).
    """
    a = np.uint64(arm)
    larger = top(stats)
    if stats.second[a] > 0.0:
        large = size(params, stats, arm)
        larger = max(large * large - stats.own[a] * stats.own[a], 0.0)
    weight, few = stats.weight[a], 1.0 - share
    return float(_LUMPS * few * few * larger * weight / ((1.0 + weight) * (WORTH + weight)))


@njit_noinline
def estimate(params: Params, stats: Stats, arm: int) -> None:
    """Estimate one arm from its cells."""
    sh = stats.shared
    a = np.uint64(arm)
    begun = stats.seen[a, 0]  # decisions that have finished the first bucket
    stats.news[a] = 0.0
    stats.costed[a] = -1.0
    if begun <= 0.0:
        untried(params, stats, arm)
        return
    reach, kappa, quiet = int(sh[REACH]), sh[KAPPA], stats.quiet[a]
    stats.wait[a] = begun * reach * _NEWS
    # Sums for the level and the tilt (h, y), for what is filled in (f), and for how that goes with what was
    # paid (c).
    h00 = h01 = h11 = y0 = y1 = f0 = f1 = c0 = c1 = 0.0
    total = total2 = filled2 = level2 = known2 = error = 0.0
    for bucket in range(reach):
        g = np.uint64(bucket)
        n = stats.seen[a, g]
        p = stats.spread[g]
        z = stats.late[g]
        k = kappa * stats.noise[g] * quiet
        inverse = 1.0 / (n + k)
        known = kappa * p * n * inverse
        h00 += known
        h01 += known * z
        h11 += known * z * z
        paid = stats.paid[a, g] * inverse
        y0 += kappa * paid
        y1 += kappa * paid * z
        model = k * p * inverse
        f0 += (begun - n) * model
        f1 += (begun - n) * model * z
        c0 += n * model
        c1 += n * model * z
        total += paid * (begun + k)
        growth = stats.growth[a, g] * inverse
        total2 += growth * (begun + k)
        level2 += growth
        known2 += stats.spread2[g] * n * inverse
        filled2 += (begun - n) * k * stats.spread2[g] * inverse
        error += p * stats.noise[g] * inverse * inverse * (n * (begun + k) ** 2 + k * (begun - n) ** 2)
    # The level and the tilt, with a prior for the tilt alone; by these, what open decisions are still to pay.
    a11 = h11 + sh[SIGMA2] / sh[TILT]
    over = 1.0 / (h00 * a11 - h01 * h01)
    level = (a11 * y0 - h01 * y1) * over
    tilt = (h00 * y1 - h01 * y0) * over
    stats.level[a], stats.information[a] = level, h00 - h01 * h01 / a11
    stats.tilt[a], stats.tilt_error[a] = tilt, h00 * over
    own = max((total + level * f0 + tilt * f1) / begun, 0.0)
    second = max((total2 + level2 / known2 * filled2) / begun, 0.0)
    # The level and the tilt are off by what the pay that they are learned from is off, and by how the arm
    # deviates from the model: much for an arm whose own noise is small.
    u0, u1 = f0 + 2.0 * c0, f1 + 2.0 * c1
    error += (f0 * u0 * a11 - (f0 * u1 + f1 * u0) * h01 + f1 * u1 * h00) * over / quiet
    weight = begun * begun / error
    stats.own[a], stats.second[a], stats.weight[a] = own, second, weight
    # Its variance is at least that of its own totals: arms may be noisier than others. With few arms it is
    # also as if some of its decisions had paid what totals are in size and not its mean, for a few may have
    # no large total yet; with many, as if one that has paid nothing had paid the usual size once.
    spare = max(second - own * own, 0.0)
    usual = max(min(sh[SIGMA2], second), spare)
    more = 0.0
    if second <= 0.0:
        large = size(params, stats, arm)
        usual, more = sh[SIGMA2], params.share * large * large * weight / (1.0 + weight)
    variance = (weight * spare + WORTH * usual + more) / (weight + WORTH)
    variance += lumps(params, stats, arm, params.share)
    # The model's mean: between the arm's own, by its error, and what is expected, by how arms differ.
    error = variance / weight
    differ = sh[BETWEEN] + sh[SIGMA2] / kappa
    most = params.pull * math.sqrt(error)
    expected = expected_level(params, stats, arm)
    off = expected - own
    pull = off * error / (error + differ)
    # The level of an arm like no other differs from what is expected by as much as that is, beyond what
    # those of the others do.
    narrow = error + sh[BETWEEN]
    wide = narrow + expected * expected
    log_ratio = 0.5 * (off * off * (1.0 / narrow - 1.0 / wide) - math.log(wide / narrow))
    _price(params, stats, arm, log_ratio - params.outlier)
    mean = min(max(own + min(max(pull, -most), most), 0.0), 1.0)
    if mean > own > 0.0:  # an arm that pays more than it did also varies more
        variance = max(variance, min(variance * mean / own, mean * (1.0 - mean)))
    stats.mean[a], stats.variance[a] = mean, variance


@njit
def payments(stats: Stats, arm: int) -> float:
    """Return how many equal payments the arm's totals are worth: its full decisions where all pay alike."""
    a = np.uint64(arm)
    if stats.second[a] <= 0.0:
        return 0.0
    return float(stats.weight[a] * stats.own[a] ** 2 / stats.second[a])
