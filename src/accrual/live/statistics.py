"""A policy's statistics, and a copy of them to try decisions on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accrual.live.memory import together
from accrual.policy.base import Policy

Bytes = npt.NDArray[np.uint8]


class Statistics(NamedTuple):
    """A policy's statistics twice over, each in one piece of memory, so that copying all is one copy."""

    stats: Any
    memory: Bytes  # of all arrays of `stats`
    trial_stats: Any  # for decisions that are only tried
    trial_memory: Bytes  # of all arrays of `trial_stats`
    choosing_bytes: int  # how many bytes, from the start, a choice between two refreshes depends on
    values: npt.NDArray[np.float64]  # arms: their indices when an arm was last chosen


def statistics_of(policy: Policy, stats: Any, arms: int) -> Statistics:
    """Return statistics that start from a copy of `stats`, which are the policy's for so many arms."""
    own, memory = together(stats)
    choosing_bytes = len(memory)
    if policy.kept:
        choosing_bytes = int(getattr(own, policy.kept[0]).ctypes.data - memory.ctypes.data)
    return Statistics(own, memory, *together(stats), choosing_bytes, np.full(arms, np.nan))
