"""What AgePrior and the other Age policies share: buckets of the window, and sums over an arm's cells.

A cell is one bucket of one arm. Everything is in units of the arm's cap.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import numpy as np

from accrual.core.arrays import Floats, Ints
from accrual.core.errors import whole
from accrual.core.jit import njit
from accrual.policies.base import Feedback, Policy
from accrual.problems.spreads import SpreadLike, as_spread

KAPPA_START, KAPPA_LEAST, KAPPA_MOST = 5.0, 0.5, 1e4
SWEEPS = 3  # between the arms' means and the spread that they share
SPARE = 10.0  # degrees of freedom that an estimate of a bucket's noise needs
PACE = 32  # a refresh comes when the decisions have grown by a 32nd, and by one per bucket at least
_BUCKETS_MOST = 10_000  # more would take minutes and gigabytes, and gain nothing


class Cells(Protocol):
    """The fields for every arm and bucket, in the statistics of a `CellPolicy`."""

    seen: Floats  # arms x buckets: decisions that have finished the bucket
    paid: Floats  # arms x buckets: what they paid in it
    growth: Floats  # arms x buckets: by how much it raised their squared cumulative reward


class CellPolicy(Policy):
    """A policy that learns every age of every arm by itself; its statistics have `Cells`."""

    buckets: int
    feedback: ClassVar[Feedback] = "groups"

    def edges(self, window: int) -> Ints:
        return bucket_edges(self.buckets, window)


def checked_buckets(buckets: int) -> int:
    """Return a number of buckets as an int, or raise an `InputError` if there cannot be that many."""
    return whole("buckets", buckets, 1, _BUCKETS_MOST)


def bucket_edges(buckets: int, window: int, power: int = 2) -> Ints:
    """Return the ages at which the buckets end: fine early, coarse late, fewer if the window is short."""
    g = np.arange(1, buckets + 1)
    return np.unique(np.ceil(window * (g / buckets) ** power).astype(np.int64))


def spread_over_buckets(spread: SpreadLike, edges: Ints, window: int) -> Floats:
    """Return the share of the reward that a spread gives to each bucket; no bucket is ruled out."""
    arrived = np.concatenate([[0.0], np.cumsum(as_spread(spread).pmf(window))])
    shares = np.maximum(np.diff(arrived[np.concatenate([[0], edges])]), 1e-9)
    return shares / shares.sum()


@njit
def amend_cell(  # noqa: PLR0913, PLR0917  (what `amended` is given, and the weight)
    params: Any, stats: Any, arm: int, group: int,
    before: float, after: float, more_before: float, more_after: float, weight: float = 1.0,
) -> tuple[float, float]:  # fmt: skip
    """Correct a cell for a piece out of order; return by how much its pay and its growth have changed."""
    unit = params.inverse_cap[arm]
    x = (after - before) * unit
    more = (more_after - more_before) * unit
    # By how much (after^2 - before^2) grows, with no difference of squares.
    growth = (more_after * (2.0 * after + more_after) - more_before * (2.0 * before + more_before)) * unit**2
    stats.paid[arm, group] += weight * more
    stats.growth[arm, group] += weight * growth
    stats.square[arm, group] += weight * (more * (2.0 * x + more))
    return more, growth


@njit
def empty_pool(stats: Any) -> None:
    """Set a sweep's two sums to 0."""
    top, bottom = stats.scratch[0], stats.scratch[1]
    top[:] = 0.0
    bottom[:] = 0.0


@njit
def add_to_pool(stats: Any, paid: Floats, arm: int, mean: float, buckets: int) -> None:
    """Add an arm of this mean to a sweep's two sums: what was paid, and what a full share would have paid."""
    top, bottom = stats.scratch[0], stats.scratch[1]
    a = np.uint64(arm)  # unsigned: numba then drops its tests for indices below 0
    for bucket in range(buckets):
        g = np.uint64(bucket)
        top[g] += paid[a, g]
        bottom[g] += stats.seen[a, g] * mean


@njit
def pool_spread(stats: Any, spread: Floats, average: float, prior: Floats, buckets: int) -> None:
    """Make the pooled spread from a sweep's sums and a prior that is worth one decision of average pay."""
    top, bottom = stats.scratch[0], stats.scratch[1]
    mass = 0.0
    for g in range(buckets):
        # Refunds may outweigh what a bucket paid; a share of the reward is not negative for that.
        spread[g] = (max(top[g], 0.0) + average * prior[g]) / (bottom[g] + average)
        mass += spread[g]
    for g in range(buckets):
        spread[g] /= mass
