"""How `AgePrior` uses features of arms: a linear regression of the arms' levels on their features.

Over arms a level is Gaussian around LEVEL + (x - middle) . slopes, where x has the arm's features. The slopes
are Gaussian around 0. `SLOPE`, the share of the levels' variance that one feature explains, is learned as
well, and is small at first. The fitted line is the level that is expected of a new arm.
"""

from __future__ import annotations

import math

from accrual.core.arrays import Floats
from accrual.core.dense import add_outer, dot, invert, times
from accrual.core.jit import njit
from accrual.policies.age_prior.model import (
    BETWEEN,
    MIDDLE,
    SIGMA2,
    SLOPE,
    SLOPES,
    VARIANCE,
    WIDER,
    WORK,
    Params,
    Stats,
)

# The prior of SLOPE: a feature explains SLOPE_START times the variance that it leaves. This prior has the
# weight of _COLUMNS features.
SLOPE_START, _COLUMNS = 0.1, 2.0
_CONSTANT = 1e-24
# How far an index treats an arm's prior as if the line explained nothing. At 1 most of the line's gain is
# lost; at 0.5 regret is 2.8 times as large where the best arm is far off the line (benchmarks/arm_features.py
# --misled).
_OFF_LINE = 0.75
# Kappa at first, where arms have features: features explain levels, not how arms differ at single ages.
KAPPA_KNOWN = 50.0


@njit
def learn_line(params: Params, stats: Stats, mean: float) -> None:
    """Find the likeliest line through the arms' levels, with the level `mean` at the features' means."""
    sh, line, covariance = stats.shared, stats.line, stats.line_covariance
    arms, width = params.about.shape
    _column_moments(params, line)
    covariance[:] = 0.0
    response = line[SLOPES]
    response[:] = 0.0
    x = line[WORK]
    for a in range(arms):
        if stats.information[a] > 0.0:
            weight = math.sqrt(1.0 / (sh[BETWEEN] + sh[SIGMA2] / stats.information[a]))
            for j in range(width):
                x[j] = weight * (params.about[a, j] - line[MIDDLE, j])
                response[j] += weight * (stats.level[a] - mean) * x[j]
            add_outer(covariance, x)
    for j in range(width):
        scale = line[VARIANCE, j] if line[VARIANCE, j] > 0.0 else 1.0
        covariance[j, j] += scale / (sh[SLOPE] * sh[BETWEEN])
        for i in range(j):
            covariance[i, j] = covariance[j, i]
    invert(covariance)
    for j in range(width):
        x[j] = response[j]
    times(covariance, x, response)


@njit
def _column_moments(params: Params, line: Floats) -> None:
    """Compute the mean and the variance of each feature over arms."""
    arms, width = params.about.shape
    for j in range(width):
        first = second = 0.0
        for a in range(arms):
            first += params.about[a, j] / arms
        for a in range(arms):
            second += (params.about[a, j] - first) ** 2 / arms
        # A feature in which arms differ by rounding alone explains nothing, and does not count.
        line[MIDDLE, j], line[VARIANCE, j] = first, second if second > _CONSTANT * first * first else 0.0


@njit
def learn_slope(stats: Stats, between: float) -> None:
    """Learn how much of the levels' variance one feature explains (SLOPE), and all together (WIDER)."""
    line = stats.line
    found = unsure = 0.0
    columns = _COLUMNS
    for j in range(line.shape[1]):
        if line[VARIANCE, j] > 0.0:
            found += line[VARIANCE, j] * line[SLOPES, j] ** 2 / between
            unsure += line[VARIANCE, j] * stats.line_covariance[j, j] / between
            columns += 1.0
    stats.shared[WIDER] = (1.0 + found) ** _OFF_LINE
    stats.shared[SLOPE] = (_COLUMNS * SLOPE_START + found + unsure) / columns


@njit
def strays(params: Params, stats: Stats, a: int, expected: float) -> tuple[float, float]:
    """Return the squared deviation of the arm's level from the `expected` one, weighted, and its weight.

    An arm's weight is the share of its estimate that is its own. In plain EM all arms have the same weight.
    Where the line is good, many arms are hardly tried, and these would keep the variance where it was.
    """
    sh, line = stats.shared, stats.line
    share = stats.information[a] / (stats.information[a] + sh[SIGMA2] / sh[BETWEEN])
    x, image = line[WORK], line[WORK + 1]
    for j in range(line.shape[1]):
        x[j] = params.about[a, j] - line[MIDDLE, j]
    times(stats.line_covariance, x, image)
    off = stats.level[a] - expected
    return share * share * (off * off + dot(x, image)), share
