"""Replay a log: what a policy would have earned on it."""

from __future__ import annotations

from accrual.evaluate.replay.fixed_shares import Fixed, fixed
from accrual.evaluate.replay.log import Floats, Ints, ReplayLog, from_log, resampled
from accrual.evaluate.replay.replay import Method, check_propensities, judge_all
from accrual.evaluate.replay.result import ReplayResult

__all__ = [
    "Fixed",
    "Floats",
    "Ints",
    "Method",
    "ReplayLog",
    "ReplayResult",
    "check_propensities",
    "fixed",
    "from_log",
    "judge_all",
    "resampled",
]
