"""Replay a log: judge what a policy would have earned on it."""

from __future__ import annotations

from accrual.evaluate.replay.judging import ReplayResult, check_propensities, judge_all, named, replay
from accrual.evaluate.replay.log import ReplayLog, from_log, resampled

__all__ = [
    "ReplayLog",
    "ReplayResult",
    "check_propensities",
    "from_log",
    "judge_all",
    "named",
    "replay",
    "resampled",
]
