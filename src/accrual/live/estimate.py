"""Estimate what a decision of an arm pays, from the pieces that have arrived: a mean and its interval.

At each age the mean is over the decisions that have reached that age; the means of all ages are added up.
Once all decisions of an arm have closed, this is the plain mean of their totals. It holds for any policy.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from accrual.core.arrays import Floats
from accrual.policies.age_cells import Cells

_SWEEPS = 3  # between the arms' totals and the spread that they share
_WORTH = 20.0  # decisions of an arm that the spread of all arms counts as
_Z = 2.3  # standard errors, not 1.96: a policy leaves arms that look bad, so means are too low


class Estimate(NamedTuple):
    """What is known about an arm, in units of its cap."""

    mean: float  # of what a decision has paid by the greatest age that one has reached
    interval: tuple[float, float]  # aims at 95 %, pointwise: a heuristic
    reached: int  # the number of buckets up to that age
    spread: Floats  # buckets: how the total divides over them; even pay for buckets that are not reached


class SharedSpread(NamedTuple):
    """What all arms together say about how pay is spread over the buckets."""

    paid: Floats  # arms x buckets: what decisions paid, where that is above 0
    totals: Floats  # arms: what a decision pays in all, by the pooled spread
    pooled: Floats  # buckets: the spread of all arms


def estimate(cells: Cells, shared: SharedSpread, arm: int) -> Estimate | None:
    """Estimate what a decision of an arm pays; None before any of them has finished a bucket.

    `shared` is `shared_spread` of the same cells, computed once for all arms.

    With n, S and Q a bucket's decisions, their pay and the growth of their squared cumulative pay, the
    mean is the sum of S / n. Its variance adds up, bucket by bucket, by how much the variance of the
    cumulative pay grows, each part over the decisions that reached the bucket. The interval is then that
    of Agresti and Coull: z**2 decisions more, half of them 0 and half of them large, so that an arm that
    happened to pay nothing, or always the same, is not taken for certain.
    """
    seen = cells.seen[arm]
    reached = int(np.count_nonzero(seen))  # a bucket is finished after those before it
    if not reached:
        return None
    n = seen[:reached]
    means = cells.paid[arm, :reached] / n
    mean = float(means.sum())
    second = np.cumsum(cells.growth[arm, :reached] / n)
    variances = np.maximum(second - np.cumsum(means) ** 2, 0.0)
    variance = float(variances[-1])
    growth = np.diff(variances, prepend=0.0)
    squared_error = max(float((growth / n).sum()), variance / float(n[0]))
    count = variance / squared_error if squared_error > 0.0 else float(n[-1])
    return Estimate(mean, _interval(count, mean, float(second[-1])), reached, _spread(cells, shared, arm))


def _interval(n: float, mean: float, second: float) -> tuple[float, float]:
    """Return the interval for `n` decisions of this mean and second moment."""
    # The size of a typical total: the cap, where totals are 0 or the cap.
    size = second / abs(mean) if mean != 0.0 else 1.0
    large = math.copysign(min(2.0 * size, max(size, 1.0)), mean)
    more = _Z * _Z
    middle = (n * mean + 0.5 * more * large) / (n + more)
    square = (n * second + 0.5 * more * large * large) / (n + more)
    width = _Z * math.sqrt(max(square - middle * middle, 0.0) / (n + more))
    return min(middle - width, mean), max(middle + width, mean)


def shared_spread(cells: Cells, edges: Floats) -> SharedSpread:
    """Return what the arms' spreads have in common; `edges` are the ages at which the buckets end.

    Ages that no decision has reached are taken to pay as much, on average, as those that were reached.
    """
    seen, paid = cells.seen, np.maximum(cells.paid, 0.0)
    reached = seen > 0.0
    means = np.divide(paid, seen, out=np.zeros_like(paid), where=reached).sum(axis=1)
    even = np.diff(edges, prepend=0.0) / edges[-1]
    any_reached = reached.any(axis=0)
    pooled = even
    for _ in range(_SWEEPS):
        known = reached @ pooled
        totals = np.divide(means, known, out=np.zeros_like(means), where=known > 0.0)
        expected = totals @ seen
        share = np.divide(paid.sum(axis=0), expected, out=np.zeros_like(even), where=expected > 0.0)
        if share.sum() > 0.0:
            pooled = np.where(any_reached, share * even[any_reached].sum() / share.sum(), even)
    return SharedSpread(paid, totals, pooled)


def _spread(cells: Cells, shared: SharedSpread, arm: int) -> Floats:
    """Return how an arm's pay divides over the buckets, with the help of the spread that arms share."""
    shares = (shared.paid[arm] + _WORTH * shared.totals[arm] * shared.pooled) / (cells.seen[arm] + _WORTH)
    if shares.sum() <= 0.0:
        shares = shared.pooled
    return np.asarray(shares / shares.sum())
