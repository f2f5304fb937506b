"""Replay a log: judge what a policy would have earned on it."""

from accrual.evaluate.replay.judging import ReplayResult as ReplayResult
from accrual.evaluate.replay.judging import check_propensities as check_propensities
from accrual.evaluate.replay.judging import judge_all as judge_all
from accrual.evaluate.replay.judging import named as named
from accrual.evaluate.replay.judging import replay as replay
from accrual.evaluate.replay.log import ReplayLog as ReplayLog
from accrual.evaluate.replay.log import from_log as from_log
from accrual.evaluate.replay.log import resampled as resampled
