"""What `AgePrior` learns from what is known about arms: a line, on which a new arm's level is expected.

Over arms a level is Gaussian around LEVEL + (x - middle) . slopes, x what is known about the arm. The slopes
are Gaussian too, around nothing: `SLOPE`, how much of the levels' variance a column of x tells, is learned as
well, and is small at first.
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

# Before arms are seen, a column is taken to tell SLOPE_START of what it leaves of the levels' variance, as if
# so many columns had shown it.
SLOPE_START, _COLUMNS = 0.1, 2.0
_CONSTANT = 1e-24
# How far an arm's prior counts in an index as if the line told nothing. At 1 most of the line's gain is lost;
# at 0.5 regret is 2.8 times as large where the best arm is far off it (benchmarks/arm_features.py --misled).
_OFF_LINE = 0.75
# Kappa until ages tell it: what is known about arms tells their levels, not how they stray at single ages.
KAPPA_KNOWN = 50.0


@njit
def learn_line(params: Params, stats: Stats, mean: float) -> None:
    """Find the line that is likeliest, given how much arms stray from it, with `mean` for its middle."""
    sh, line, covariance = stats.shared, stats.line, stats.line_covariance
    arms, width = params.about.shape
    _look_at_arms(params, line)
    covariance[:] = 0.0
    response = line[SLOPES]
    response[:] = 0.0
    x = line[WORK]
    for a in range(arms):
        if stats.information[a] > 0.0:
            weight = math.sqrt(1.0 / (sh[BETWEEN] + sh[SIGMA2] / stats.information[a]))
            for j in range(width):
                x[j] = weight * (params.about[a, j] - line[MIDDLE, j])
                response[j] += weight * (stats.told[a] - mean) * x[j]
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
def _look_at_arms(params: Params, line: Floats) -> None:
    """Find the middle and the variance of each column over arms."""
    arms, width = params.about.shape
    for j in range(width):
        first = second = 0.0
        for a in range(arms):
            first += params.about[a, j] / arms
        for a in range(arms):
            second += (params.about[a, j] - first) ** 2 / arms
        # A column in which arms do not differ, but for rounding, tells nothing and is not to count.
        line[MIDDLE, j], line[VARIANCE, j] = first, second if second > _CONSTANT * first * first else 0.0


@njit
def learn_slope(stats: Stats, between: float) -> None:
    """Learn how much of the levels' variance a column tells, and all of them."""
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
    """Return by how much the arm's level strays from what is `expected` of it, squared, and what that counts.

    An arm counts by how much of its estimate is its own. By EM, where all count alike, arms that are hardly
    tried, of which there are many where the line is good, would hold the variance where it was.
    """
    sh, line = stats.shared, stats.line
    share = stats.information[a] / (stats.information[a] + sh[SIGMA2] / sh[BETWEEN])
    x, image = line[WORK], line[WORK + 1]
    for j in range(line.shape[1]):
        x[j] = params.about[a, j] - line[MIDDLE, j]
    times(stats.line_covariance, x, image)
    off = stats.told[a] - expected
    return share * share * (off * off + dot(x, image)), share
