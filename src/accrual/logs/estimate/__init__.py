"""From the tables of a log to its estimates: passes over the log, intervals, the window, the tail."""

from __future__ import annotations

from accrual.logs.estimate.arm_means import FEW_PAYING, PaidDecisions, arm_mean, complete
from accrual.logs.estimate.grids import EvenGrid, FineGrid
from accrual.logs.estimate.intervals import ArmSums, GroupEstimate
from accrual.logs.estimate.passes import (
    ArrivalCurve,
    FinalPass,
    FinalPassPlan,
    count_closed,
    final_pass,
    longest_followed,
    score_pass,
    trace_curve,
)
from accrual.logs.estimate.sample import draw_samples, sample_size
from accrual.logs.estimate.window import course_grid, cut_window, first_guess, recommend, watched

__all__ = [
    "FEW_PAYING",
    "ArmSums",
    "ArrivalCurve",
    "EvenGrid",
    "FinalPass",
    "FinalPassPlan",
    "FineGrid",
    "GroupEstimate",
    "PaidDecisions",
    "arm_mean",
    "complete",
    "count_closed",
    "course_grid",
    "cut_window",
    "draw_samples",
    "final_pass",
    "first_guess",
    "longest_followed",
    "recommend",
    "sample_size",
    "score_pass",
    "trace_curve",
    "watched",
]
