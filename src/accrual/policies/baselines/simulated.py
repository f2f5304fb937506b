"""What the baselines share: they learn a total when its window is over, in simulations only."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from accrual.core.arrays import Ints
from accrual.policies.base import Feedback, Policy


class SimulatedPolicy(Policy):
    """A policy that gets totals as the one group of the window.

    It has no function `amended`, so a live bandit refuses it.
    """

    feedback: ClassVar[Feedback] = "groups"

    def edges(self, window: int) -> Ints:
        return np.array([window])
