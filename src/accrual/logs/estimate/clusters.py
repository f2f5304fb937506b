"""Errors of means where decisions come in clusters, such as those of one user.

Decisions of one cluster may share what they pay: a user who pays well does so each time. What they move a
mean by (their scores, `accrual.logs.estimate.cumulative_means`) is then added up over the cluster, and the
clusters take the place of decisions: the sum of the squares of their scores, times G / (G - 1) for G
clusters, is the variance (Liang and Zeger, 1986).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from accrual.core.arrays import Ints
from accrual.logs.estimate.blocks import decision_blocks
from accrual.logs.estimate.cumulative_means import CumulativeMeans, FollowedDecisions
from accrual.logs.log import Log

_NUMBERS_MOST = 20_000_000  # scores of clusters in memory; of more, several passes are made


def cluster_numbers(log: Log) -> Ints:
    """Return the number of the cluster of each decision; one without a cluster is a cluster of its own."""
    query = "SELECT cluster IS NULL, dense_rank() OVER (ORDER BY cluster) FROM decided ORDER BY rowid"
    columns = zip(*log.stream(query), strict=True)
    alone, number = (np.concatenate(column) for column in columns)
    number[alone] = number.max() + 1 + np.arange(alone.sum())
    return np.asarray(number, np.int64)


def score_clusters(
    log: Log,
    numbers: Ints,
    means: CumulativeMeans,
    shown: Callable[[FollowedDecisions], tuple[FollowedDecisions, Ints]],
) -> None:
    """Make the errors of `means` from clusters; `shown` gives decisions and cells as `means` saw them."""
    arm = np.concatenate([shown(some)[0].arm for some, *_ in decision_blocks(log)])
    different = int(numbers.max()) + 1
    pairs, unit = np.unique(arm * different + numbers, return_inverse=True)
    rows = max(_NUMBERS_MOST // means.groups, 1)
    for low in range(0, len(pairs), rows):
        owner = pairs[low : low + rows] // different
        scores, place = np.zeros((len(owner), means.groups)), 0
        for some, *_ in decision_blocks(log):
            who, cells = shown(some)
            means.score_by_group(who, cells, unit[place : place + len(who.arm)] - low, scores)
            place += len(who.arm)
        means.add_clusters(owner, scores)
