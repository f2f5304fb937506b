"""Working version (knobs in Params)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from accrual.core.jit import njit, seldom
from accrual.policy.base import Floats, Ints

KAPPA_START, KAPPA_LEAST, KAPPA_MOST = 5.0, 0.5, 1e4
READY, REACH, KAPPA, LEVEL, GAMMA, SIGMA, BEST, LOGN, SIZE, TILT, PART, SCALE = range(12)


class Params(NamedTuple):
    cap: Floats
    inverse_cap: Floats
    prior: Floats
    pull: float  # standard errors that the prior may move an estimate
    most: float  # decisions that the prior counts as in an index, at most
    off: float  # omega
    alt: float
    jack: float
    cv: float
    nu: float
    own: float
    e: float
    mix: float
    und: float
    rmin: float
    tv: float
    U: float
    V: float
    sweeps: float


class Stats(NamedTuple):
    pulls: Ints
    seen: Floats
    paid: Floats
    growth: Floats
    square: Floats
    news: Floats
    wait: Floats
    own: Floats  # arms: the estimate without the prior
    second: Floats
    weight: Floats
    mean: Floats
    variance: Floats
    level: Floats
    lvar: Floats
    tilt: Floats
    tvar: Floats
    spread: Floats
    spread2: Floats
    rel: Floats
    place: Floats
    scratch: Floats
    due: Ints
    shared: Floats


@njit
def noted(params, stats, arm, group, before, after):
    unit = params.inverse_cap[arm]
    x = (after - before) * unit
    a, g = np.uint64(arm), np.uint64(group)
    stats.seen[a, g] += 1.0
    if x != 0.0:
        stats.paid[a, g] += x
        stats.growth[a, g] += x * (after + before) * unit
        stats.square[a, g] += x * x
    return (1.0,)


@njit
def finished(params, stats, arm, group, before, after):
    (one,) = noted(params, stats, arm, group, before, after)
    stats.news[np.uint64(arm)] += one


@njit
def amended(params, stats, arm, group, before, after, more_before, more_after):
    unit = params.inverse_cap[arm]
    x = (after - before) * unit
    more = (more_after - more_before) * unit
    stats.growth[arm, group] += (
        more_after * (2.0 * after + more_after) - more_before * (2.0 * before + more_before)
    ) * unit**2
    stats.paid[arm, group] += more
    stats.square[arm, group] += more * (2.0 * x + more)
    stats.news[arm] = stats.wait[arm]


@seldom
def estimate(params, stats, a):
    sh = stats.shared
    reach = int(sh[REACH])
    kappa = sh[KAPPA]
    k = sh[SIGMA] / sh[GAMMA]
    n1 = stats.seen[a, 0]
    stats.news[a] = 0.0
    if n1 <= 0.0 or reach == 0:
        stats.wait[a] = 1.0
        stats.own[a] = stats.mean[a] = sh[LEVEL]
        stats.weight[a] = stats.tilt[a] = 0.0
        stats.tvar[a] = sh[TILT] / sh[SIGMA]
        stats.level[a] = sh[LEVEL]
        stats.lvar[a] = sh[GAMMA] / sh[SIGMA]
        stats.variance[a] = sh[SIGMA]
        stats.second[a] = sh[LEVEL] * sh[LEVEL] + sh[SIGMA]
        return
    stats.wait[a] = n1 * reach / 64.0
    top = top2 = held = held2 = rest2 = left2 = error = 0.0
    q1 = h01 = h11 = raw = r0 = r1 = t0 = t1 = 0.0
    for g in range(reach):
        n = stats.seen[a, g]
        p = stats.spread[g]
        z = stats.place[g]
        kg = kappa * stats.rel[g]
        inv = 1.0 / (n + kg)
        open_ = (n1 - n) * inv
        S = stats.paid[a, g]
        raw += S * (n1 + kg) * inv
        top += S * inv
        q1 += S * inv * z
        top2 += stats.growth[a, g] * (n1 + kg) * inv
        held += p * n * inv
        h01 += p * n * inv * z
        h11 += p * n * inv * z * z
        held2 += stats.growth[a, g] * inv
        rest2 += stats.spread2[g] * n * inv
        t0 += kg * p * inv
        t1 += kg * p * inv * z
        r0 += kg * p * open_
        r1 += kg * p * open_ * z
        left2 += stats.spread2[g] * kg * open_
        error += p * stats.rel[g] * inv * inv * (n * (n1 + kg) ** 2 + kg * (n1 - n) ** 2)
    level2 = held2 / rest2 if rest2 > 0.0 else 0.0
    second = max((top2 + level2 * left2) / n1, 0.0)
    k1 = sh[SIGMA] / sh[TILT]
    A, B, C = kappa * held, kappa * h01, kappa * h11 + k1
    y0, y1 = kappa * top, kappa * q1
    # With the prior
    det = 1.0 / ((A + k) * C - B * B)
    b0 = (C * (y0 + k * sh[LEVEL]) - B * y1) * det
    b1 = ((A + k) * y1 - B * (y0 + k * sh[LEVEL])) * det
    stats.level[a], stats.lvar[a] = b0, C * det
    stats.tilt[a], stats.tvar[a] = b1, (A + k) * det
    stats.mean[a] = top + b0 * t0 + b1 * t1
    # Alone
    det = 1.0 / (A * C - B * B)
    b0 = (C * y0 - B * y1) * det
    b1 = (A * y1 - B * y0) * det
    m = max((raw + b0 * r0 + b1 * r1) / n1, 0.0)
    error = (error + (r0 * r0 * C - 2.0 * r0 * r1 * B + r1 * r1 * A) * det) / (n1 * n1)
    w = 1.0 / error
    stats.own[a] = m
    stats.second[a] = second
    stats.weight[a] = w
    settle(params, stats, a)


@njit
def settle(params, stats, a):
    """With the prior."""
    sh = stats.shared
    w, m, second = stats.weight[a], stats.own[a], stats.second[a]
    paid = second > 0.0
    own = max(second - m * m, 0.0)
    usual = min(sh[SIGMA], second) if paid else sh[SIGMA]
    many = w * m * m / second if paid else 0.0
    extra = 0.25 * sh[PART] ** params.mix * w / ((1.0 + w) * (1.0 + many) ** params.e)
    stats.variance[a] = (w * own + params.own * usual + extra) / (w + params.own)
    most = params.pull * math.sqrt(stats.variance[a] / w)
    stats.mean[a] = min(max(min(max(stats.mean[a], m - most), m + most), 0.0), 1.0)


@njit
def _level(stats, paid, spread, a, kappa, reach):
    top = held = 0.0
    for g in range(reach):
        n = stats.seen[a, g]
        inv = 1.0 / (n + kappa * stats.rel[g])
        top += paid[a, g] * inv
        held += spread[g] * n * inv
    return max(top / held, 0.0) if held > 0.0 else 0.0


@njit
def _pool(stats, paid, spread, prior, kappa, reach):
    arms = len(stats.pulls)
    top, bottom = stats.scratch[0], stats.scratch[1]
    for _ in range(3):
        top[:reach] = 0.0
        bottom[:reach] = 0.0
        average = 0.0
        for a in range(arms):
            if stats.seen[a, 0] > 0.0:
                m = _level(stats, paid, spread, a, kappa, reach)
                average += m / arms
                for g in range(reach):
                    top[g] += paid[a, g]
                    bottom[g] += stats.seen[a, g] * m
        if average <= 0.0:
            return
        mass = 0.0
        for g in range(reach):
            spread[g] = (max(top[g], 0.0) + average * prior[g]) / (bottom[g] + average)
            mass += spread[g]
        for g in range(reach):
            spread[g] /= mass


@njit
def _learn_kappa(params, stats, spread, reach):
    arms = len(stats.pulls)
    sh = stats.shared
    mean = stats.mean
    used_arms = 0
    for a in range(arms):
        mean[a] = _level(stats, stats.paid, spread, a, sh[KAPPA], reach)
        used_arms += stats.seen[a, 0] > 0.0
    statistic = scale = average = mass = last = 0.0
    cells = used = 0
    for g in range(reach):
        spare = level = misfit = total = weighted = squared = 0.0
        here_cells = 0
        for a in range(arms):
            n = stats.seen[a, g]
            expected = (mean[a] + stats.tilt[a] * stats.place[g]) * spread[g]
            if n >= 2.0 and expected > 0.0:
                here = stats.paid[a, g] / n
                spare += stats.square[a, g] - n * here * here
                level += (n - 1.0) * here
                misfit += n * (here - expected) ** 2 / expected
                total += n
                weighted += n * mean[a]
                squared += n * n * mean[a]
                here_cells += 1
        if total - here_cells >= 10.0 and spare > 0.0 and level > 0.0:
            last = spare / level
            used += 1
            cells += here_cells
            statistic += misfit / last
            scale += (total - squared / weighted) / last
            average += spread[g] * last
            mass += spread[g]
        stats.scratch[0, g] = last
    freedom = cells - 2 * used_arms - (used - 1)
    if freedom < 1 or average <= 0.0:
        return
    average /= mass
    excess = statistic - freedom - math.sqrt(2.0 * freedom)
    worth = KAPPA_MOST if excess <= 0.0 else min(max(scale / excess * average, KAPPA_LEAST), KAPPA_MOST)
    sh[KAPPA] = worth
    for g in range(reach):
        stats.rel[g] = min(max(stats.scratch[0, g] / average, params.rmin), 10.0) if stats.scratch[0, g] > 0.0 else 1.0


@seldom
def refresh(params, stats):
    arms, buckets = stats.seen.shape
    sh = stats.shared
    stats.due[0] = min(max(stats.pulls.sum() // 4, 4), buckets)
    if stats.seen[:, buckets - 1].sum() > buckets:
        stats.due[0] = max(stats.pulls.sum() // 32, buckets)
    reach = 0
    while reach < buckets and stats.seen[:, reach].sum() >= 10.0:
        reach += 1
    if reach == 0:
        return
    old = int(sh[REACH])
    sh[REACH] = reach
    sh[PART] = params.prior[:reach].sum()
    if reach > old:  # what the prior says of the new ages, beside the old
        for spread in (stats.spread, stats.spread2):
            mass = 1.0
            for g in range(old, reach):
                spread[g] = params.prior[g] / (params.prior[:reach].sum())
            mass = spread[:reach].sum()
            for g in range(reach):
                spread[g] /= mass
    _pool(stats, stats.paid, stats.spread, params.prior, sh[KAPPA], reach)
    arrived = 0.0
    for g in range(reach):
        stats.place[g] = 2.0 * arrived + stats.spread[g] - 1.0
        stats.scratch[2, g] = (2.0 * arrived + stats.spread[g]) * stats.spread[g]
        arrived += stats.spread[g]
    _pool(stats, stats.growth, stats.spread2, stats.scratch[2], sh[KAPPA], reach)
    _learn_kappa(params, stats, stats.spread, reach)
    _learn_prior(params, stats)


@njit
def _learn_prior(params, stats):
    arms = len(stats.pulls)
    sh = stats.shared
    for a in range(arms):
        estimate(params, stats, a)
    heft = first = second = inside = freedom = average = 0.0
    tried = 0
    for a in range(arms):
        w = stats.weight[a]
        if w > 0.0:
            tried += 1
            heft += w
            average += stats.own[a]
            first += w * stats.own[a]
            second += w * stats.second[a]
            if w > 1.0:
                inside += w * max(stats.second[a] - stats.own[a] ** 2, 0.0)
                freedom += w - 1.0
    if heft <= 0.0 or second <= 0.0:
        return
    first /= heft
    second /= heft
    average /= tried
    sigma = max((inside + 5.0 * max(second - first * first, 0.0)) / (freedom + 5.0), 1e-4 * first * first + 1e-14)
    level = max(average, first, 1e-9)
    g0 = max((params.cv * level) ** 2, sigma / 100.0)
    sh[SIGMA] = sigma
    if sh[READY] == 0.0:
        sh[READY] = 1.0
        sh[LEVEL], sh[GAMMA], sh[TILT] = average, g0, params.tv * g0
        for a in range(arms):
            estimate(params, stats, a)
    elif sh[SCALE] != sh[REACH]:
        f = level / sh[SIZE]
        sh[LEVEL] *= f
        sh[GAMMA] *= f * f
        sh[TILT] *= f * f
        for a in range(arms):
            estimate(params, stats, a)
    sh[SCALE], sh[SIZE] = sh[REACH], level
    for sweep in range(int(params.sweeps)):
        _sweep(params, stats, sigma, g0)


@njit
def _sweep(params, stats, sigma, g0):
    arms = len(stats.pulls)
    sh = stats.shared
    mean = spread = tilts = 0.0
    for a in range(arms):
        mean += stats.level[a]
        spread += stats.level[a] ** 2 + sigma * stats.lvar[a]
        tilts += stats.tilt[a] ** 2 + sigma * stats.tvar[a]
    mean /= arms
    sh[GAMMA] = (max(spread - arms * mean * mean, 0.0) + params.nu * g0) / (arms + params.nu)
    sh[LEVEL] = mean
    sh[TILT] = (tilts + params.nu * params.tv * g0) / (arms + params.nu)
    for a in range(arms):
        estimate(params, stats, a)
