"""What `AgePrior` learns from all arms together in a refresh: spread, noise, kappa and a prior over arms."""

from __future__ import annotations

import math

import numpy as np

from accrual.core.arrays import Floats
from accrual.core.jit import njit, njit_noinline
from accrual.policies.age_cells import (
    KAPPA_LEAST,
    KAPPA_MOST,
    PACE,
    SPARE,
    SWEEPS,
    add_to_pool,
    empty_pool,
    pool_spread,
)
from accrual.policies.age_prior.arm_features import learn_line, learn_slope, strays
from accrual.policies.age_prior.model import (
    BETWEEN,
    GROWN,
    KAPPA,
    LEAST,
    LEVEL,
    PART,
    REACH,
    REACHED,
    READY,
    SCALE,
    SCALED,
    SIGMA2,
    SIZE,
    SLOPE,
    SLOPES,
    STAGE,
    TILT,
    USUAL,
    WORTH,
    Params,
    Stats,
    estimate,
    expected_level,
)

_NOISE_LEAST, _NOISE_MOST = 0.1, 10.0
# The prior's own prior counts as _ARMS arms: levels differ by _DIFFER of the mean, and by a hundredth of the
# variance of a total at least; tilts have _TILTED of that variance.
_ARMS, _DIFFER, _DIFFER_LEAST, _TILTED = 4.0, 0.3, 0.01, 0.03
_ARMS_AROUND = 1.0  # ... where levels are around a line: it may tell most of how they differ
_EM = 2
_STEPS = 3  # to theta
_ROUNDING = 1e-12  # what a sum of squares may be off by, relative to it
_QUIET_LEAST = 1e-4  # of an arm's noise, relative to what is usual
_SURE = 1e-4  # the least variance of a total, over the squared mean
_NOTHING = 1e-200  # squares of totals that are as good as nothing


@njit_noinline
def refresh(params: Params, stats: Stats) -> None:
    """Learn again what the arms share, and estimate every arm."""
    while refresh_stage(params, stats):
        for a in range(len(stats.pulls)):
            estimate(params, stats, a)


@njit
def refresh_stage(params: Params, stats: Stats) -> bool:
    """Do the next part of a refresh; return whether another follows, after every arm has been estimated."""
    sh = stats.shared
    stage = sh[STAGE]
    sh[STAGE] = 0.0
    if stage == 0.0:
        _set_pace(params, stats)
        reach = _extend_reach(params, stats)
        if reach == 0:
            return False
        for twin in range(2):
            _pool(params, stats, twin == 1, reach)
        _learn_kappa(stats, reach)
    elif stage == 1.0:
        if not _learn_noise(params, stats):
            return False
        if sh[SCALED] != sh[REACH]:  # more ages, more pay
            _rescale(stats)
        else:
            stage = 2.0
    if stage > _EM + 1.0:
        return False
    if stage > 1.0:
        _maximise(params, stats, sh[USUAL])
    for a in range(len(stats.pulls)):
        stats.news[a] = stats.wait[a]
    sh[STAGE] = stage + 1.0
    return True


@njit
def _set_pace(params: Params, stats: Stats) -> None:
    """Set how many decisions there are until the next refresh, and how many each arm must have."""
    buckets = len(params.spread)
    made = stats.pulls.sum()
    stats.due[0] = min(max(made // 4, 4), buckets)
    log = math.log(max(made / (params.forced * len(stats.pulls)), 1.0))
    stats.shared[LEAST] = log * math.log(math.e + log)
    if stats.seen[:, buckets - 1].sum() > buckets:  # until then, new ages are reached all the time
        stats.due[0] = max(made // PACE, buckets)


@njit
def _extend_reach(params: Params, stats: Stats) -> int:
    """Extend the spread to the buckets that enough decisions have finished; return how many there are."""
    sh = stats.shared
    reach = int(sh[REACH])
    while reach < len(params.spread) and stats.seen[:, reach].sum() >= REACHED:
        stats.spread[reach] = params.spread[reach] / (sh[PART] + params.spread[reach])
        stats.spread2[reach] = stats.spread[reach]
        for g in range(reach):
            stats.spread[g] *= 1.0 - stats.spread[reach]
            stats.spread2[g] *= 1.0 - stats.spread2[reach]
        sh[PART] += params.spread[reach]
        reach += 1
    sh[REACH] = reach
    return reach


@njit
def _level(stats: Stats, paid: Floats, spread: Floats, arm: int, reach: int) -> float:
    a = np.uint64(arm)
    top = known = 0.0
    for bucket in range(reach):
        g = np.uint64(bucket)
        n = stats.seen[a, g]
        inverse = 1.0 / (n + stats.shared[KAPPA] * stats.noise[g])
        top += paid[a, g] * inverse
        known += spread[g] * n * inverse
    return max(top / known, 0.0) if known > 0.0 else 0.0


@njit
def _pool(params: Params, stats: Stats, second: bool, reach: int) -> None:
    """Learn the spread that arms share, or its twin for the second moment.

    It takes a few sweeps between the spread and the arms' levels.
    """
    arms = len(stats.pulls)
    paid, spread, before = stats.paid, stats.spread, params.spread
    if second:
        paid, spread, before = stats.growth, stats.spread2, stats.scratch[2]
    for _ in range(SWEEPS):
        empty_pool(stats)
        average = 0.0
        for a in range(arms):
            if stats.seen[a, 0] > 0.0:
                level = _level(stats, paid, spread, a, reach)
                average += level / arms
                add_to_pool(stats, paid, a, level, reach)
        if average <= 0.0:
            break
        pool_spread(stats, spread, average, before, reach)
    if not second:
        arrived = 0.0
        for g in range(reach):
            p = stats.spread[g]
            stats.late[g] = 2.0 * arrived + p - 1.0
            # Were every decision's pay in proportion to the spread, the squared cumulative reward would
            # grow like the squared cumulative spread.
            stats.scratch[2, g] = (2.0 * arrived + p) * p
            arrived += p


@njit
def _learn_kappa(stats: Stats, reach: int) -> None:
    """Learn the noise of buckets and of arms, and how many decisions the model is worth (method of moments).

    The pay of a bucket varies by its noise times its mean, and by its arm's own. An arm's own mean differs
    from the model's with variance theta times it. The ratio of the two is kappa. Theta is where Pearson's
    statistic, with both variances, equals its degrees of freedom (Paule and Mandel). So a noisy arm that
    pays in its own way counts beside quiet arms that follow the model.
    """
    arms = len(stats.pulls)
    level = stats.mean  # free to use here: `estimate` recomputes it
    noises, known = stats.scratch[0], stats.scratch[1]
    for arm in range(arms):
        level[arm] = _level(stats, stats.paid, stats.spread, arm, reach)
    average = mass = last = 0.0
    used = 0
    for bucket in range(reach):
        g = np.uint64(bucket)
        spare = paid = squares = free = 0.0
        for arm in range(arms):
            a = np.uint64(arm)
            n = stats.seen[a, g]
            if n >= 2.0:
                mean = stats.paid[a, g] / n
                spare += stats.square[a, g] - n * mean * mean
                squares += stats.square[a, g]
                paid += (n - 1.0) * mean
                free += n - 1.0
        known[g] = 0.0
        if free >= SPARE and paid > 0.0:
            known[g] = 1.0
            last = max(spare, _ROUNDING * squares) / paid
            used += 1
            average += stats.spread[g] * last
            mass += stats.spread[g]
        noises[g] = last  # where nothing is known, as in the bucket before
    if average <= 0.0:
        return
    average /= mass
    # No bucket is taken to be much quieter than others: where arms always pay the same at an age, what is
    # left of the squares is rounding.
    for bucket in range(reach):
        last = noises[bucket] / average
        stats.noise[bucket] = min(max(last, _NOISE_LEAST), _NOISE_MOST) if last > 0.0 else 1.0
        noises[bucket] = average * stats.noise[bucket]
    for arm in range(arms):
        _learn_quiet(stats, arm, reach)
    theta = average / stats.shared[KAPPA]
    for _ in range(_STEPS):
        statistic = slope = 0.0
        freedom = 1.0 - used  # the spread is learned from all arms, ...
        for arm in range(arms):
            a = np.uint64(arm)
            cells = 0.0
            for bucket in range(reach):
                g = np.uint64(bucket)
                n = stats.seen[a, g]
                expected = (level[a] + stats.tilt[a] * stats.late[g]) * stats.spread[g]
                if known[g] > 0.0 and n >= 2.0 and expected > 0.0:
                    cells += 1.0
                    weight = 1.0 / (stats.quiet[a] * noises[g] / n + theta)
                    off = (stats.paid[a, g] / n - expected) ** 2 / expected * weight
                    statistic += off
                    slope += off * weight
            freedom += max(cells - 2.0, 0.0)  # ... and an arm's level and tilt from its own cells
        if freedom < 1.0:
            return
        # Newton's step for 1 / statistic, which is nearly linear in theta.
        theta += statistic * (statistic / freedom - 1.0) / slope if slope > 0.0 else -theta
        theta = min(max(theta, average / KAPPA_MOST), average / KAPPA_LEAST)
    stats.shared[KAPPA] = average / theta


@njit
def _learn_quiet(stats: Stats, arm: int, reach: int) -> None:
    """Learn how much an arm's pay varies, relative to the noise of the buckets (`scratch[0]`)."""
    a = np.uint64(arm)
    own = usual = 0.0
    for bucket in range(reach):
        g = np.uint64(bucket)
        n = stats.seen[a, g]
        if n >= 2.0:
            mean = stats.paid[a, g] / n
            noise = stats.scratch[0, g] * max(mean, 0.0)
            own += max(stats.square[a, g] - n * mean * mean, 0.0) + WORTH * noise
            usual += (n - 1.0 + WORTH) * noise
    stats.quiet[a] = min(max(own / usual, _QUIET_LEAST), _NOISE_MOST) if usual > 0.0 else 1.0


@njit
def _learn_noise(params: Params, stats: Stats) -> bool:
    """Learn the variance of totals, and how far levels usually differ; return whether arms paid anything."""
    arms = len(stats.pulls)
    sh = stats.shared
    heft = first = second = inside = freedom = average = sizes = 0.0
    tried = paying = 0
    for a in range(arms):
        weight = stats.weight[a]
        if weight > 0.0:
            tried += 1
            heft += weight
            average += stats.own[a]
            first += weight * stats.own[a]
            second += weight * stats.second[a]
            if weight > 1.0:
                inside += weight * max(stats.second[a] - stats.own[a] ** 2, 0.0)
                freedom += weight - 1.0
            if stats.own[a] > 0.0 and stats.second[a] > 0.0:
                sizes += min(stats.second[a] / stats.own[a], 1.0) * params.cap[a]
                paying += 1
    if second <= _NOTHING or first <= 0.0:  # nothing was paid, or refunds outweigh what was
        return False
    if paying > 0:
        sh[SIZE] = sizes / paying
    first /= heft
    second /= heft
    average /= tried
    inside += WORTH * max(second - first * first, 0.0)
    sh[SIGMA2] = max(inside / (freedom + WORTH), _SURE * first * first)
    level = max(average, first)
    sh[USUAL] = max((_DIFFER * level) ** 2, _DIFFER_LEAST * sh[SIGMA2])
    if sh[READY] == 0.0:
        sh[LEVEL], sh[BETWEEN], sh[TILT] = average, sh[USUAL], _TILTED * sh[USUAL]
        sh[SCALE] = level
    sh[READY] = 1.0
    sh[GROWN], sh[SCALE] = level / sh[SCALE], level
    return True


@njit
def _rescale(stats: Stats) -> None:
    """Scale the prior over arms by how much the pay of the reached ages has grown."""
    sh = stats.shared
    grown = sh[GROWN]
    sh[LEVEL] *= grown
    sh[BETWEEN] *= grown * grown
    sh[TILT] *= grown * grown
    for j in range(stats.line.shape[1]):
        stats.line[SLOPES, j] *= grown
    sh[SCALED] = sh[REACH]


@njit
def _maximise(params: Params, stats: Stats, usual: float) -> None:
    """Take one step of EM: find the likeliest prior for the levels and tilts of all arms, old and new."""
    arms = len(stats.pulls)
    sh = stats.shared
    older, part = params.history[3], sh[PART]
    old_level = part * params.history[0]
    mean = older * old_level
    squares = older * (old_level * old_level + part * part * params.history[1])
    tilts = older * part * part * params.history[2]
    for a in range(arms):
        # What the prior expects, and what the arm's pieces show; the rest of the variance is left.
        expected = expected_level(params, stats, a)
        share = stats.information[a] / (stats.information[a] + sh[SIGMA2] / sh[BETWEEN])
        level = expected + share * (stats.level[a] - expected)
        mean += level
        squares += level * level + (1.0 - share) * sh[BETWEEN]
        tilts += stats.tilt[a] ** 2 + sh[SIGMA2] * stats.tilt_error[a]
    count = arms + older
    mean /= count
    apart = max(squares - count * mean * mean, 0.0)
    before = _ARMS
    if sh[SLOPE] > 0.0:
        learn_line(params, stats, mean)
        sh[LEVEL] = mean
        apart = older * ((old_level - mean) ** 2 + part * part * params.history[1])
        count, before = older, _ARMS_AROUND
        for a in range(arms):
            square, share = strays(params, stats, a, expected_level(params, stats, a))
            apart += square
            count += share
    sh[LEVEL] = mean
    sh[BETWEEN] = (apart + before * usual) / (count + before)
    if sh[SLOPE] > 0.0:
        learn_slope(stats, sh[BETWEEN])
    sh[TILT] = (tilts + _ARMS * _TILTED * usual) / (arms + older + _ARMS)
