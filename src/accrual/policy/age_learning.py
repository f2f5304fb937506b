"""What `AgePrior` learns of all arms together, now and then: spread, noise, kappa, and a prior over arms."""

from __future__ import annotations

import math

from accrual.core.jit import njit, njit_noinline
from accrual.policy.age_cells import (
    KAPPA_LEAST,
    KAPPA_MOST,
    PACE,
    SPARE,
    SWEEPS,
    add_to_pool,
    empty_pool,
    pool_spread,
)
from accrual.policy.age_model import (
    BETWEEN,
    KAPPA,
    LEVEL,
    PART,
    REACH,
    READY,
    SCALE,
    SCALED,
    SIGMA2,
    TILT,
    Params,
    Stats,
    estimate,
)
from accrual.policy.base import Floats

_REACHED = 10.0  # decisions that must have finished a bucket before it counts
_NOISE_LEAST, _NOISE_MOST = 0.1, 10.0
# The prior's own prior counts as _ARMS arms: levels differ by _DIFFER of the mean, and by a hundredth of the
# variance of a total at least; tilts have _TILTED of that variance.
_ARMS, _DIFFER, _LEAST, _TILTED = 4.0, 0.3, 0.01, 0.03
_EM = 2


@njit_noinline
def refresh(params: Params, stats: Stats) -> None:
    """Learn what the arms share anew, then estimate every arm."""
    buckets = len(params.spread)
    sh = stats.shared
    made = stats.pulls.sum()
    stats.due[0] = min(max(made // 4, 4), buckets)
    if stats.seen[:, buckets - 1].sum() > buckets:  # until then, new ages are reached all the time
        stats.due[0] = max(made // PACE, buckets)
    reach = int(sh[REACH])
    while reach < buckets and stats.seen[:, reach].sum() >= _REACHED:
        stats.spread[reach] = params.spread[reach] / (sh[PART] + params.spread[reach])
        stats.spread2[reach] = stats.spread[reach]
        for g in range(reach):
            stats.spread[g] *= 1.0 - stats.spread[reach]
            stats.spread2[g] *= 1.0 - stats.spread2[reach]
        sh[PART] += params.spread[reach]
        reach += 1
    sh[REACH] = reach
    if reach == 0:
        return
    _pool(stats, stats.paid, stats.spread, params.spread, reach)
    arrived = 0.0
    for g in range(reach):
        p = stats.spread[g]
        stats.late[g] = 2.0 * arrived + p - 1.0
        # Were every decision's pay in proportion to the spread, the squared cumulative reward would
        # grow like the squared cumulative spread.
        stats.scratch[2, g] = (2.0 * arrived + p) * p
        arrived += p
    _pool(stats, stats.growth, stats.spread2, stats.scratch[2], reach)
    _learn_kappa(stats, reach)
    _learn_prior(params, stats)


@njit
def _level(stats: Stats, paid: Floats, spread: Floats, a: int, reach: int) -> float:
    top = known = 0.0
    for g in range(reach):
        n = stats.seen[a, g]
        inverse = 1.0 / (n + stats.shared[KAPPA] * stats.noise[g])
        top += paid[a, g] * inverse
        known += spread[g] * n * inverse
    return max(top / known, 0.0) if known > 0.0 else 0.0


@njit
def _pool(stats: Stats, paid: Floats, spread: Floats, before: Floats, reach: int) -> None:
    """Learn the spread that arms share: a few sweeps between it and the arms' levels."""
    arms = len(stats.pulls)
    for _ in range(SWEEPS):
        empty_pool(stats)
        average = 0.0
        for a in range(arms):
            if stats.seen[a, 0] > 0.0:
                level = _level(stats, paid, spread, a, reach)
                average += level / arms
                add_to_pool(stats, paid, a, level, reach)
        if average <= 0.0:
            return
        pool_spread(stats, spread, average, before, reach)


@njit
def _learn_kappa(stats: Stats, reach: int) -> None:
    """Learn the buckets' noise, and how many decisions the model is worth, by the method of moments.

    The pay of a bucket has variance `last` times its mean; an arm's own mean strays from the model's with
    variance theta times it. Their ratio is kappa. Pearson's statistic, summed over all cells, says how
    much more the arms stray than the noise alone would make them.
    """
    arms = len(stats.pulls)
    level = stats.mean  # free here: `estimate` makes it anew
    tried = 0
    for a in range(arms):
        level[a] = _level(stats, stats.paid, stats.spread, a, reach)
        tried += stats.seen[a, 0] > 0.0
    statistic = scale = average = mass = last = 0.0
    cells = used = 0
    for g in range(reach):
        spare = paid = misfit = total = weighted = squared = 0.0
        here = 0
        for a in range(arms):
            n = stats.seen[a, g]
            expected = (level[a] + stats.tilt[a] * stats.late[g]) * stats.spread[g]
            if n >= 2.0 and expected > 0.0:
                mean = stats.paid[a, g] / n
                spare += stats.square[a, g] - n * mean * mean
                paid += (n - 1.0) * mean
                misfit += n * (mean - expected) ** 2 / expected
                total += n
                weighted += n * level[a]
                squared += n * n * level[a]
                here += 1
        if total - here >= SPARE and spare > 0.0 and paid > 0.0 and weighted > 0.0:
            last = spare / paid
            used += 1
            cells += here
            statistic += misfit / last
            scale += (total - squared / weighted) / last
            average += stats.spread[g] * last
            mass += stats.spread[g]
        stats.scratch[0, g] = last  # where nothing is known, as in the bucket before
    freedom = cells - 2 * tried - (used - 1)
    if freedom < 1 or average <= 0.0:
        return
    average /= mass
    excess = statistic - freedom - math.sqrt(2.0 * freedom)
    worth = scale / excess * average if excess > 0.0 else KAPPA_MOST
    stats.shared[KAPPA] = min(max(worth, KAPPA_LEAST), KAPPA_MOST)
    for g in range(reach):
        last = stats.scratch[0, g] / average
        stats.noise[g] = min(max(last, _NOISE_LEAST), _NOISE_MOST) if last > 0.0 else 1.0


@njit
def _learn_prior(params: Params, stats: Stats) -> None:
    """Learn the variance of totals, and mean and variance of the arms' levels and tilts."""
    arms = len(stats.pulls)
    sh = stats.shared
    for a in range(arms):
        estimate(params, stats, a)
    heft = first = second = inside = freedom = average = 0.0
    tried = 0
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
    if second <= 0.0:
        return
    first /= heft
    second /= heft
    average /= tried
    inside += 5.0 * max(second - first * first, 0.0)
    sh[SIGMA2] = max(inside / (freedom + 5.0), 1e-4 * first * first + 1e-14)
    level = max(average, first, 1e-9)
    usual = max((_DIFFER * level) ** 2, _LEAST * sh[SIGMA2])
    if sh[SCALED] != sh[REACH]:  # more ages, more pay
        grown = level / sh[SCALE] if sh[READY] > 0.0 else 1.0
        if sh[READY] == 0.0:
            sh[LEVEL], sh[BETWEEN], sh[TILT] = average, usual, _TILTED * usual
        sh[LEVEL] *= grown
        sh[BETWEEN] *= grown * grown
        sh[TILT] *= grown * grown
        for a in range(arms):
            estimate(params, stats, a)
    sh[READY], sh[SCALED], sh[SCALE] = 1.0, sh[REACH], level
    for _ in range(_EM):
        _maximise(params, stats, usual)
        for a in range(arms):
            estimate(params, stats, a)


@njit
def _maximise(params: Params, stats: Stats, usual: float) -> None:
    """Take one step of EM: find the prior that makes levels and tilts, those of older arms too, likeliest."""
    arms = len(stats.pulls)
    sh = stats.shared
    older, part = params.history[3], sh[PART]
    old_level = part * params.history[0]
    mean = older * old_level
    squares = older * (old_level * old_level + part * part * params.history[1])
    tilts = older * part * part * params.history[2]
    for a in range(arms):
        mean += stats.level[a]
        squares += stats.level[a] ** 2 + sh[SIGMA2] * stats.level_error[a]
        tilts += stats.tilt[a] ** 2 + sh[SIGMA2] * stats.tilt_error[a]
    count = arms + older
    mean /= count
    sh[LEVEL] = mean
    sh[BETWEEN] = (max(squares - count * mean * mean, 0.0) + _ARMS * usual) / (count + _ARMS)
    sh[TILT] = (tilts + _ARMS * _TILTED * usual) / (count + _ARMS)
