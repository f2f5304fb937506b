"""Turn the tables of a log into estimates: passes, means and shares with intervals, the window, the tail.

`accrual.logs.fit` makes a fit of them. `estimate_tail` and `window_for` also serve users (docs/tails.md).
"""

from __future__ import annotations

from accrual.logs.estimate.clusters import cluster_numbers
from accrual.logs.estimate.cumulative_means import FollowedDecisions, arm_mean, complete
from accrual.logs.estimate.grids import EvenGrid, FineGrid
from accrual.logs.estimate.intervals import GroupEstimate
from accrual.logs.estimate.large_totals import FEW_PAYING
from accrual.logs.estimate.passes import (
    ArrivalCurve,
    FinalPass,
    count_closed,
    final_pass,
    longest_followed,
    survey,
    trace_curve,
)
from accrual.logs.estimate.sample import draw_samples, sample_size
from accrual.logs.estimate.tail import Tail, estimate_tail, payments, window_for
from accrual.logs.estimate.window import course_grid, cut_window, first_guess, recommend, watched

__all__ = [
    "FEW_PAYING",
    "ArrivalCurve",
    "EvenGrid",
    "FinalPass",
    "FineGrid",
    "FollowedDecisions",
    "GroupEstimate",
    "Tail",
    "arm_mean",
    "cluster_numbers",
    "complete",
    "count_closed",
    "course_grid",
    "cut_window",
    "draw_samples",
    "estimate_tail",
    "final_pass",
    "first_guess",
    "longest_followed",
    "payments",
    "recommend",
    "sample_size",
    "survey",
    "trace_curve",
    "watched",
    "window_for",
]
