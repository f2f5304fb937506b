"""How `AgeLinTS` computes its estimates from the sums of `accrual.policies.age_lin.sums`.

A refresh takes the steps of docs/contexts.md, each once, and starts from the values of the refresh before.
Within a refresh all coefficients refer to centred features: x less the mean of all contexts so far. The sums
are of x as it is; centred sums follow from them exactly, because the first number of x is 1. At the end
`estimate` and `root`, which choices use, are converted back to x as it is.
"""

from __future__ import annotations

import math

from accrual.core.arrays import Floats
from accrual.core.dense import dot, invert, take_root, times, times_lower
from accrual.core.jit import njit, njit_noinline
from accrual.policies.age_lin.sums import FREEDOM, NOISE, READY, Params, Stats

# Rows of `Stats.pooled`, for each bucket: sums over all arms, and what `_weigh_news` computes.
SEEN, PAID, GROWTH, SQUARE, CARRIED, SHARE, VARIANCE, WORTH = range(8)
_SPEED = 10.0  # weight, in decisions, of the prior that contexts do not change the speed of pay
_OWN_LEAST = 0.1  # the least share of the noise that is counted as each bucket's own
_CONSTANT = 1e-9  # a feature that varies less than this, in its own size, counts as a constant
_PACE, _LEAST_PACE = 32, 8  # between two refreshes the decisions grow by a 32nd, and by 8 at least
KAPPA, KAPPA_LEAST = 50.0, 0.5
# How many times the constant's prior weight a feature's prior has, until the data say otherwise: so useless
# features fade. It grows with the decisions per number of a context, because at first all must be tried.
_SHY_MOST, _SHY_AFTER = 200.0, 8.0
WEIGHT_LEAST, MOST = 0.05, 1e5
# Bends and pairs count once they explain this many standard deviations more than chance would. Until then
# their prior has the weight SHUT, which is as good as endless.
_EARNED, SHUT = 5.0, 1e9


@njit_noinline
def refresh(params: Params, stats: Stats) -> None:
    """Learn the spread, the noise, the prior over arms, and every arm's coefficients."""
    made = stats.pulls.sum()
    stats.due[0] = max(made // _PACE, _LEAST_PACE)
    _pool(stats)
    if stats.pooled[0, 0] < 2.0:
        return
    _centre(stats)
    _pool_spread(params, stats)
    _learn_noise(stats)
    ratio = _weigh_news(stats)
    if len(stats.spread) > 1:
        _learn_speed(params, stats)
    _summarise_arms(stats)
    _learn_prior(params, stats)
    _estimate(params, stats, ratio)
    stats.shared[READY] = 1.0


@njit
def _uncentred(coefficients: Floats, middle: Floats, out: Floats) -> None:
    """Write coefficients for contexts as they are into `out`, from those for centred contexts."""
    for j in range(len(out)):
        out[j] = coefficients[j]
    out[0] -= dot(middle, coefficients)


@njit_noinline
def _pool(stats: Stats) -> None:
    """Add up the arms' sums, bucket by bucket."""
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
def _centre(stats: Stats) -> None:
    """Learn the features' means and sizes, and make earlier coefficients refer to the new means."""
    arms, buckets, width = stats.response.shape
    moved = stats.vectors[0]
    moved[0] = 0.0
    stats.unit[0] = 1.0
    made = 0.0
    for a in range(arms):
        made += stats.all_gram[a, 0, 0]
    for j in range(1, width):
        total = square = 0.0
        for a in range(arms):
            total += stats.all_gram[a, j, 0]
            square += stats.all_gram[a, j, j]
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
def _pool_spread(params: Params, stats: Stats) -> None:
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
            _uncentred(stats.total[a], stats.centre, plain)
            for j in range(width):
                expected += stats.gram[a, g, j, 0] * plain[j]
        bottom = max(expected, 0.1 * average * seen[g])
        stats.spread[g] = (max(paid[g], 0.0) + average * params.prior[g]) / (bottom + average)
        mass += stats.spread[g]
    for g in range(buckets):
        stats.spread[g] /= mass


@njit_noinline
def _learn_noise(stats: Stats) -> None:
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
            times_lower(stats.all_gram[a], stats.estimate[a], product)
            fit += dot(stats.estimate[a], product)
            made += stats.all_gram[a, 0, 0]
        freedom = min(stats.shared[FREEDOM], 0.5 * counted)
        left = max(second - fit / made, 0.05 * second)
        size = second
        if first > 0.0:
            size = (second / first) * (second / first)
        stats.shared[NOISE] = (size + counted * left) / (1.0 + counted - freedom)


@njit_noinline
def _weigh_news(stats: Stats) -> float:
    """Compute how much each bucket tells that earlier buckets did not; return the noise within buckets.

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
def _learn_speed(params: Params, stats: Stats) -> None:
    """Learn how contexts change the speed of pay in all arms alike, by a regression in each bucket.

    Bends and pairs change what is paid, and not the speed.
    """
    arms, buckets, width = stats.response.shape
    matrix, middle = stats.matrices[0], stats.centre
    plain, product, side = stats.vectors[0], stats.vectors[1], stats.vectors[2]
    for g in range(buckets):
        if stats.pooled[SEEN, g] <= params.numbers:
            continue
        carried, share = stats.pooled[CARRIED, g], stats.pooled[SHARE, g]
        for i in range(width):
            side[i] = 0.0
            for j in range(width):
                matrix[i, j] = 0.0
        for a in range(arms):
            gram = stats.gram[a, g]
            _uncentred(stats.total[a], middle, plain)
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
            matrix[i, i] += (_SPEED if i < params.numbers else SHUT) * stats.unit[i]
        invert(matrix)
        times(matrix, side, stats.speed[g])


@njit_noinline
def _summarise_arms(stats: Stats) -> None:
    """Summarise what each arm's buckets say about its coefficients: a matrix `within` and a vector `news`."""
    arms, buckets, width = stats.response.shape
    scale, middle = stats.vectors[0], stats.centre
    plain, product = stats.vectors[1], stats.vectors[2]
    for j in range(width):
        scale[j] = stats.kappa[j] * stats.unit[j]
    for a in range(arms):
        within, news = stats.within[a], stats.news[a]
        for i in range(width):
            news[i] = 0.0
            for j in range(width):
                within[i, j] = 0.0
        for g in range(buckets):
            gram, inverse, own = stats.gram[a, g], stats.inverse[a, g], stats.own[a, g]
            n = gram[0, 0]
            if n == 0.0:
                for i in range(width):
                    own[i] = 0.0
                    for j in range(width):
                        inverse[i, j] = 0.0
                    inverse[i, i] = 1.0 / scale[i]
                continue
            for i in range(width):
                for j in range(i + 1):
                    value = (gram[i, j] - middle[i] * gram[j, 0]) - middle[j] * (gram[i, 0] - n * middle[i])
                    inverse[i, j] = value
                    inverse[j, i] = value
                inverse[i, i] += scale[i]
            invert(inverse)
            # What is left to the arm, once the effect of contexts in all arms is subtracted.
            _uncentred(stats.speed[g], middle, plain)
            times_lower(gram, plain, product)
            carried = stats.pooled[CARRIED, g]
            for j in range(width):
                product[j] = stats.response[a, g, j] - carried * stats.earlier[a, g, j] - product[j]
            first = product[0]
            for j in range(width):
                product[j] -= middle[j] * first
            times(inverse, product, own)
            tells = stats.pooled[SHARE, g] / stats.pooled[VARIANCE, g]
            share = tells * stats.pooled[SHARE, g]
            for i in range(width):
                news[i] += tells * scale[i] * own[i]
                within[i, i] += share * scale[i]
                factor = share * scale[i]
                for j in range(width):
                    within[i, j] -= factor * inverse[i, j] * scale[j]


@njit_noinline
def _learn_prior(params: Params, stats: Stats) -> None:
    """Learn what arms have in common: the mean of their coefficients, and how far they differ from it.

    Afterwards `total` has each arm's coefficients, `within` their covariance over the noise.
    """
    arms, _, width = stats.response.shape
    prior, mean, side, apart, freedom = (
        stats.vectors[1],
        stats.vectors[2],
        stats.vectors[3],
        stats.vectors[4],
        stats.vectors[5],
    )
    between = stats.matrices[0]
    start = float(params.numbers)
    for i in range(width):
        prior[i] = max(stats.weight[i] * stats.unit[i], 1e-12)
        apart[i] = freedom[i] = side[i] = 0.0
        for j in range(width):
            between[i, j] = 0.0
        between[i, i] = stats.common[i] * stats.unit[i]
    known = 0.0
    for a in range(arms):
        within = stats.within[a]
        for i in range(width):
            within[i, i] += prior[i]
        invert(within)
        known += 1.0 if stats.gram[a, 0, 0, 0] > 0.0 else 0.0
        for i in range(width):
            side[i] += prior[i] * dot(within[i], stats.news[a])
            between[i, i] += prior[i]
            for j in range(width):
                between[i, j] -= prior[i] * within[i, j] * prior[j]
    invert(between)
    times(between, side, mean)
    for a in range(arms):
        within, total = stats.within[a], stats.total[a]
        for i in range(width):
            side[i] = prior[i] * mean[i] + stats.news[a, i]
        times(within, side, total)
        for i in range(width):
            freedom[i] += max(1.0 - prior[i] * within[i, i], 0.0)
            away = total[i] - mean[i]
            apart[i] += stats.unit[i] * away * away / stats.shared[NOISE]
    # How many decisions the prior is worth (MacKay's rule twice): to the constant, by itself; to all features
    # together, and then to each. The constant is apart because arms often differ in level alone: were
    # their levels counted, features that do nothing would be shrunk far too little.
    less = (known - 1.0) / known
    top = bottom = 0.0
    for i in range(width):
        freedom[i] *= less
        if 0 < i < params.numbers:
            top += freedom[i]
            bottom += apart[i]
    own = (1.0 + freedom[0]) / (1.0 / start + apart[0])
    stats.weight[0] = _within_limits((1.0 + freedom[0]) / (1.0 / own + apart[0]))
    common = _within_limits((1.0 + top) / (1.0 / (_shyness(params, stats) * start) + bottom))
    for i in range(1, params.numbers):
        stats.weight[i] = _within_limits((1.0 + freedom[i]) / (1.0 / common + apart[i]))
    _learn_groups(params, stats, between, prior, mean, less)


@njit_noinline
def _learn_groups(
    params: Params, stats: Stats, between: Floats, prior: Floats, mean: Floats, less: float
) -> None:
    """Learn how many decisions the prior of bends and pairs is worth, in each arm and in the mean of all.

    MacKay's rule would let useless columns fade too slowly. A score is how a model without the column would
    have it (Tipping and Faul, 2003). Each group of columns gets the variance that its scores show, less
    `_EARNED` times the error of that estimate: the prior is endless unless the data clearly want the group.
    """
    arms, numbers = len(stats.within), params.numbers
    i = 0
    while i < len(params.basis.group):
        first, group = i, params.basis.group[i]
        gain = squares = common_gain = common_squares = 0.0
        while i < len(params.basis.group) and params.basis.group[i] == group:
            j = numbers + i
            unit = stats.unit[j]
            noise = stats.shared[NOISE] * unit
            for a in range(arms):
                known = 1.0 / stats.within[a, j, j]
                told = max(known - prior[j], 0.0) / unit  # by the data, in decisions
                score = known * (stats.total[a, j] - mean[j])
                gain += score * score / noise - less * told
                squares += told * told
            known = 1.0 / between[j, j]
            told = max(known / unit - stats.common[j], 0.0)
            score = known * mean[j]
            common_gain += score * score / noise - told
            common_squares += told * told
            i += 1
        for j in range(numbers + first, numbers + i):
            stats.weight[j] = _earned(gain, squares)
            stats.common[j] = _earned(common_gain, common_squares)


@njit
def _earned(gain: float, squares: float) -> float:
    clear = gain - _EARNED * math.sqrt(2.0 * squares)
    return min(max(squares / clear, WEIGHT_LEAST), SHUT) if clear > 0.0 else SHUT


@njit
def _shyness(params: Params, stats: Stats) -> float:
    return min(max(stats.pulls.sum() / (_SHY_AFTER * params.numbers), 1.0), _SHY_MOST)


@njit
def _within_limits(weight: float) -> float:
    return min(max(weight, WEIGHT_LEAST), MOST)


@njit_noinline
def _estimate(params: Params, stats: Stats, ratio: float) -> None:
    """Make each arm's estimate and its covariance; learn how much arms have a speed of their own.

    `ratio` is the noise within buckets over that of a total.
    """
    arms, buckets, width = stats.response.shape
    scale = stats.vectors[0]
    side, turned, top, bottom = stats.vectors[6], stats.vectors[7], stats.vectors[8], stats.vectors[9]
    for j in range(width):
        top[j] = bottom[j] = 0.0
    settled = 0.0
    for a in range(arms):
        estimate, total = stats.estimate[a], stats.total[a]
        average, covariance = stats.matrices[0], stats.matrices[1]
        for i in range(width):
            estimate[i] = total[i]
            side[i] = scale[i] * total[i]
            for j in range(width):
                average[i, j] = covariance[i, j] = 0.0
        for g in range(buckets):
            inverse, own = stats.inverse[a, g], stats.own[a, g]
            share, variance, worth = stats.pooled[SHARE, g], stats.pooled[VARIANCE, g], stats.pooled[WORTH, g]
            for i in range(width):
                estimate[i] += worth * stats.speed[g, i]
                for j in range(width):
                    average[i, j] += worth * share * inverse[i, j]
                    covariance[i, j] += worth * worth * variance * inverse[i, j]
            if stats.gram[a, g, 0, 0] > 0.0:
                times(inverse, side, turned)
                noise = ratio * stats.shared[NOISE] * variance
                for j in range(width):
                    value = own[j] - share * (total[j] - turned[j])
                    estimate[j] += worth * value
                    top[j] += max(1.0 - scale[j] * inverse[j, j], 0.0)
                    bottom[j] += stats.unit[j] * value * value / noise
        _combine(stats, a, average, covariance)
        for i in range(width):
            if stats.weight[i] < SHUT:
                settled += 1.0 - stats.weight[i] * stats.unit[i] * covariance[i, i]
        _turn_back(stats, a, covariance)
    stats.shared[FREEDOM] = max(settled, 0.0)
    if buckets > 1:
        for j in range(params.numbers):
            first = KAPPA if j == 0 else _shyness(params, stats) * KAPPA
            stats.kappa[j] = min(max((1.0 + top[j]) / (1.0 / first + bottom[j]), KAPPA_LEAST), MOST)


@njit
def _combine(stats: Stats, a: int, average: Floats, covariance: Floats) -> None:
    """Add D within D' to `covariance`, D the average with its columns scaled."""
    width = len(average)
    scale = stats.vectors[0]
    scaled, product = stats.matrices[2], stats.matrices[3]
    for i in range(width):
        for j in range(width):
            scaled[i, j] = average[i, j] * scale[j]
            product[i, j] = 0.0
    within = stats.within[a]
    for i in range(width):
        row = product[i]
        for k in range(width):
            factor = scaled[i, k]
            for j in range(width):
                row[j] += factor * within[k, j]
    # D' by rows is D by columns, which is `average`, symmetric, with its rows scaled.
    for i in range(width):
        row = covariance[i]
        for k in range(width):
            factor = product[i, k] * scale[k]
            for j in range(width):
                row[j] += factor * average[k, j]


@njit
def _turn_back(stats: Stats, a: int, covariance: Floats) -> None:
    """Make an arm's estimate and covariance refer to contexts as they are, not centred."""
    width = len(covariance)
    middle, side = stats.centre, stats.vectors[6]
    estimate = stats.estimate[a]
    estimate[0] -= dot(middle, estimate)  # the centre of the constant is 0
    times(covariance, middle, side)
    corner = dot(middle, side)
    covariance[0, 0] += corner - 2.0 * side[0]
    for j in range(1, width):
        covariance[0, j] -= side[j]
        covariance[j, 0] = covariance[0, j]
    take_root(covariance, stats.root[a])
