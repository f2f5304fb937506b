"""The first steps of an `AgeLinTS` refresh: what all arms share (see `accrual.policy.age_lin_refresh`)."""

from __future__ import annotations

from accrual.core.dense import dot, invert, times, times_lower
from accrual.core.jit import njit, njit_noinline
from accrual.policy.age_lin import FREEDOM, NOISE, Params, Stats
from accrual.policy.base import Floats

# Rows of `Stats.pooled`: what arms have in a bucket together; and how its news is weighed (`weigh_news`).
SEEN, PAID, GROWTH, SQUARE, CARRIED, SHARE, VARIANCE, WORTH = range(8)
_SPEED = 10.0  # decisions that no effect of contexts on the speed of pay is worth
_OWN_LEAST = 0.1  # the least share of the noise that is taken for each bucket's own
_CONSTANT = 1e-9  # a feature that varies less than this, in its own size, is taken for a constant


@njit
def uncentred(coefficients: Floats, middle: Floats, out: Floats) -> None:
    """Write coefficients for contexts as they are into `out`, from those for centred contexts."""
    for j in range(len(out)):
        out[j] = coefficients[j]
    out[0] -= dot(middle, coefficients)


@njit_noinline
def pool(stats: Stats) -> None:
    """Add the arms' sums up, bucket by bucket."""
    arms, buckets, _ = stats.response.shape
    for g in range(buckets):
        for row in range(4):
            stats.pooled[row, g] = 0.0
        for a in range(arms):
            stats.pooled[SEEN, g] += stats.gram[a, g, 0, 0]
            stats.pooled[PAID, g] += stats.response[a, g, 0]
            stats.pooled[GROWTH, g] += stats.growth[a, g]
            stats.pooled[SQUARE, g] += stats.square[a, g]


@njit_noinline
def centre(stats: Stats) -> None:
    """Learn the features' means and sizes; let what was learned refer to the new means."""
    arms, buckets, width = stats.response.shape
    moved = stats.vectors[0]
    moved[0] = 0.0
    stats.unit[0] = 1.0
    made = 0.0
    for a in range(arms):
        made += stats.asked[a, 0, 0]
    for j in range(1, width):
        total = square = 0.0
        for a in range(arms):
            total += stats.asked[a, j, 0]
            square += stats.asked[a, j, j]
        mean = total / made
        moved[j] = mean - stats.centre[j]
        stats.centre[j] = mean
        count = stats.nonzero[j]
        stats.unit[j] = 1.0
        if count > 0.0:
            size = square / count
            # The mean of (x - mean)^2 over the decisions with x not 0.
            about = size - mean * (2.0 * total / count - mean)
            stats.unit[j] = about if about > _CONSTANT * size else size
    for a in range(arms):
        stats.total[a, 0] += dot(moved, stats.total[a])
    for g in range(buckets):
        stats.speed[g, 0] += dot(moved, stats.speed[g])


@njit_noinline
def pool_spread(params: Params, stats: Stats) -> None:
    """Learn the pooled spread from what was paid, and what the arms' last estimates would have paid."""
    arms, buckets, width = stats.response.shape
    seen, paid = stats.pooled[SEEN], stats.pooled[PAID]
    counted = total = 0.0
    for g in range(buckets):
        counted += stats.spread[g] * seen[g]
        total += paid[g]
    average = total / counted
    if average <= 0.0 or buckets == 1:
        return
    plain = stats.vectors[0]
    mass = 0.0
    for g in range(buckets):
        expected = 0.0
        for a in range(arms):
            uncentred(stats.total[a], stats.centre, plain)
            for j in range(width):
                expected += stats.gram[a, g, j, 0] * plain[j]
        bottom = max(expected, 0.1 * average * seen[g])
        stats.spread[g] = (max(paid[g], 0.0) + average * params.prior[g]) / (bottom + average)
        mass += stats.spread[g]
    for g in range(buckets):
        stats.spread[g] /= mass


@njit_noinline
def learn_noise(stats: Stats) -> None:
    """Learn the variance of a total within an arm and context."""
    arms, buckets, _ = stats.response.shape
    seen, paid, growth = stats.pooled[SEEN], stats.pooled[PAID], stats.pooled[GROWTH]
    first = second = reached = counted = 0.0
    for g in range(buckets):
        if seen[g] > 0.0:
            first += paid[g] / seen[g]
            second += growth[g] / seen[g]
            reached += stats.spread[g]
            counted += stats.spread[g] * seen[g]
    first /= reached
    second /= reached
    if second > 0.0:
        product = stats.vectors[0]
        fit = made = 0.0
        for a in range(arms):
            times_lower(stats.asked[a], stats.estimate[a], product)
            fit += dot(stats.estimate[a], product)
            made += stats.asked[a, 0, 0]
        freedom = min(stats.shared[FREEDOM], 0.5 * counted)
        left = max(second - fit / made, 0.05 * second)
        size = second
        if first > 0.0:
            size = (second / first) * (second / first)
        stats.shared[NOISE] = (size + counted * left) / (1.0 + counted - freedom)


@njit_noinline
def weigh_news(stats: Stats) -> float:
    """Say how much each bucket tells that the buckets before it did not; return the noise within buckets.

    A decision has a pace of its own: one that paid much so far will pay much later. So the noise in buckets g
    and h has the covariance (1 - own) p_g p_h, and own p_g more where g is h, in units of the noise of a
    total. Of a bucket's pay, `CARRIED` times what was paid before it was to be expected. The rest is news:
    `SHARE` times the total on average, with `VARIANCE`, independent of all news before; and the total is the
    sum of the news, each times its `WORTH`. Without a pace (own = 1) these are 0, p, p and 1.

    What is returned is the noise within buckets over that of a total.
    """
    buckets = len(stats.spread)
    seen, paid, square = stats.pooled[SEEN], stats.pooled[PAID], stats.pooled[SQUARE]
    apart = reached = many = squares = 0.0
    for g in range(buckets):
        share = stats.spread[g]
        if seen[g] > 0.0:
            reached += share
        if seen[g] > 10.0:
            mean = paid[g] / seen[g]
            apart += max(square[g] / seen[g] - mean * mean, 0.0)
            many += share
            squares += share * share
    apart /= stats.shared[NOISE]
    own = 1.0
    if squares < 0.9 * many:
        own = min(max((apart - squares) / (many - squares), _OWN_LEAST), 1.0)
    before = 0.0
    for g in range(buckets):
        share = stats.spread[g]
        known = own + (1.0 - own) * before
        before += share
        stats.pooled[CARRIED, g] = (1.0 - own) * share / known
        stats.pooled[SHARE, g] = own * share / known
        stats.pooled[VARIANCE, g] = own * share * (own + (1.0 - own) * before) / known
        stats.pooled[WORTH, g] = 1.0 / (own + (1.0 - own) * before)
    return min(max(apart / reached, 0.02), 1.0)


@njit_noinline
def learn_speed(stats: Stats) -> None:
    """Learn what contexts do to the speed of pay, the same in all arms: in each bucket, a regression."""
    arms, buckets, width = stats.response.shape
    matrix, middle = stats.matrices[0], stats.centre
    plain, product, side = stats.vectors[0], stats.vectors[1], stats.vectors[2]
    for g in range(buckets):
        if stats.pooled[SEEN, g] <= width:
            continue
        carried, share = stats.pooled[CARRIED, g], stats.pooled[SHARE, g]
        for i in range(width):
            side[i] = 0.0
            for j in range(width):
                matrix[i, j] = 0.0
        for a in range(arms):
            gram = stats.gram[a, g]
            uncentred(stats.total[a], middle, plain)
            times_lower(gram, plain, product)
            for i in range(width):
                news = stats.response[a, g, i] - carried * stats.earlier[a, g, i]
                side[i] += news - share * product[i]
                for j in range(i + 1):
                    matrix[i, j] += gram[i, j]
        n, first = matrix[0, 0], side[0]
        for i in range(width - 1, -1, -1):  # from below: the first column is needed until the end
            side[i] -= middle[i] * first
            for j in range(i, -1, -1):
                value = (matrix[i, j] - middle[i] * matrix[j, 0]) - middle[j] * (matrix[i, 0] - n * middle[i])
                matrix[j, i] = value
        for i in range(width):
            for j in range(i):
                matrix[i, j] = matrix[j, i]
            matrix[i, i] += _SPEED * stats.unit[i]
        invert(matrix)
        times(matrix, side, stats.speed[g])
