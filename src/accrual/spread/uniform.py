"""The even spread: every group has the same cap (the paper's alpha-smoothness)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accrual.core.errors import whole
from accrual.spread.base import GROUPS_MOST, Pmf, Spread


@dataclass(frozen=True)
class Uniform(Spread):
    """Every group pays the same share.

    `mean` and `coincidence` are given in closed form, so that a learner told this spread and one
    told "alpha-smooth" compute the same floating-point numbers.

    Examples
    --------
    >>> Uniform().pmf(4)
    array([0.25, 0.25, 0.25, 0.25])
    >>> Uniform().coincidence(20)
    0.05
    """

    @property
    def label(self) -> str:
        return "uniform"

    def _weights(self, groups: int) -> Pmf:
        return np.full(groups, 1.0 / groups)

    def mean(self, groups: int) -> float:
        return (whole("groups", groups, 1, GROUPS_MOST) + 1) / 2

    def coincidence(self, groups: int) -> float:
        return 1.0 / whole("groups", groups, 1, GROUPS_MOST)
