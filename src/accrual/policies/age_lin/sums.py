"""The statistics of `AgeLinTS`, and how decisions enter them: docs/contexts.md has the model.

A context is a vector x, the first number of which is 1. The columns of the model are its numbers, then bends
and pairs of them (`accrual.core.basis`). Everything is in units of the arm's cap.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from accrual.core.arrays import Floats, Ints
from accrual.core.basis import Basis, expand
from accrual.core.dense import add_outer, dot, length
from accrual.core.jit import njit
from accrual.policies.base import Moment

READY, NOISE, FREEDOM = range(3)
# READY: 1 once an estimate has been made. NOISE: the variance of a total within an arm and context.
# FREEDOM: how many coefficients the data have settled, for the next estimate of the noise.


class Params(NamedTuple):
    cap: Floats
    inverse_cap: Floats
    prior: Floats  # buckets: the spread before anything is known
    alpha: float  # standard deviations of a draw
    width: int  # columns, the constant included
    numbers: int  # the first of them are the numbers of a context, the constant included
    basis: Basis


class Stats(NamedTuple):
    pulls: Ints
    due: Ints  # one number: decisions until the next refresh
    estimate: Floats  # arms x width: the coefficients of the mean total
    root: Floats  # arms x width x width: Cholesky factor of their covariance, over the noise
    guess: Floats  # arms: the mean total in the context of the last survey, and ...
    deviation: Floats  # ... how uncertain it is
    scratch: Floats  # 2 x width: for `survey`, which must not allocate
    shared: Floats  # what follows is in the constants above
    # Only `decided`, `finished`, `amended` and `refresh` touch the fields below (`LEARNING_FIELDS`). Here x
    # are the columns.
    gram: Floats  # arms x buckets x width x width: sum of x x' over decisions that have finished the bucket
    response: Floats  # arms x buckets x width: sum of x times what they paid in it
    earlier: Floats  # arms x buckets x width: sum of x times what they had paid before it
    growth: Floats  # arms x buckets: by how much it raised their squared cumulative reward
    square: Floats  # arms x buckets: the squares of what they paid in it
    all_gram: Floats  # arms x width x width: sum of x x' over all decisions
    nonzero: Floats  # width: decisions in which the feature was not 0
    spread: Floats  # buckets: the pooled spread
    kappa: Floats  # width: how many decisions the pooled spread is worth, by feature
    weight: Floats  # width: how many decisions the prior over arms is worth, by feature
    common: Floats  # width: how many decisions the prior of the arms' mean is worth, by column
    total: Floats  # arms x width: the arm's coefficients before what contexts do to the speed of pay
    speed: Floats  # buckets x width: what contexts do to the speed of pay, the same in all arms
    centre: Floats  # width: the features' means, 0 for the constant
    unit: Floats  # width: the features' own size, squared
    # Scratch memory for `refresh`, which must not allocate.
    inverse: Floats  # arms x buckets x width x width
    own: Floats  # arms x buckets x width
    within: Floats  # arms x width x width
    news: Floats  # arms x width
    matrices: Floats  # 4 x width x width
    vectors: Floats  # 10 x width
    pooled: Floats  # 8 x buckets


# In a gram matrix of contexts whose first number is 1 the first column is the sum of x, and its first
# entry the number of decisions; only the lower triangle is kept. So there is no separate count or sum.

LEARNING_FIELDS = (
    "gram", "response", "earlier", "growth", "square", "all_gram", "nonzero", "spread", "kappa", "weight",
    "common", "total", "speed", "centre", "unit", "inverse", "own", "within", "news", "matrices", "vectors",
    "pooled",
)  # fmt: skip


@njit
def decided(params: Params, stats: Stats, arm: int, x: Floats) -> None:
    columns = stats.vectors[0]
    expand(params.basis, x, columns)
    add_outer(stats.all_gram[arm], columns)
    for j in range(params.width):
        if columns[j] != 0.0:
            stats.nonzero[j] += 1.0


@njit
def finished(
    params: Params, stats: Stats, arm: int, group: int, before: float, after: float, x: Floats
) -> None:
    unit = params.inverse_cap[arm]
    paid = (after - before) * unit
    stats.growth[arm, group] += paid * (after + before) * unit
    stats.square[arm, group] += paid * paid
    columns = stats.vectors[0]
    expand(params.basis, x, columns)
    add_outer(stats.gram[arm, group], columns)
    if before != 0.0:
        had, earlier = before * unit, stats.earlier[arm, group]
        for j in range(params.width):
            earlier[j] += had * columns[j]
    if paid != 0.0:
        response = stats.response[arm, group]
        for j in range(params.width):
            response[j] += paid * columns[j]


@njit
def amended(  # noqa: PLR0913, PLR0917  (as every policy's, and the context)
    params: Params, stats: Stats, arm: int, group: int,
    before: float, after: float, more_before: float, more_after: float, x: Floats,
) -> None:  # fmt: skip
    unit = params.inverse_cap[arm]
    paid = (after - before) * unit
    more = (more_after - more_before) * unit
    # By how much (after^2 - before^2) grows, with no difference of squares.
    growth = more_after * (2.0 * after + more_after) - more_before * (2.0 * before + more_before)
    stats.growth[arm, group] += growth * unit * unit
    stats.square[arm, group] += more * (2.0 * paid + more)
    columns = stats.vectors[0]
    expand(params.basis, x, columns)
    for j in range(params.width):
        stats.response[arm, group, j] += more * columns[j]
        stats.earlier[arm, group, j] += more_before * unit * columns[j]


@njit
def survey(params: Params, stats: Stats, moment: Moment, x: Floats) -> None:
    if stats.shared[READY] == 0.0:
        return
    noise = math.sqrt(stats.shared[NOISE])
    columns = stats.scratch[0]
    expand(params.basis, x, columns)
    for arm in range(len(params.cap)):
        stats.guess[arm] = dot(stats.estimate[arm], columns)
        stats.deviation[arm] = noise * length(stats.root[arm], columns, stats.scratch[1])
