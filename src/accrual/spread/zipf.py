"""Zipf spreads: group k in proportion to 1 / k**s."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accrual.core.errors import InputError
from accrual.spread.base import Pmf, Spread, finite, short


@dataclass(frozen=True)
class Zipf(Spread):
    """Group k pays in proportion to ``k ** -s``.

    Examples
    --------
    >>> Zipf(2).pmf(2)
    array([0.8, 0.2])
    """

    s: float

    def __post_init__(self) -> None:
        if not (finite(self.s) and self.s >= 0):
            raise InputError(f"a Zipf spread's s must be a number of at least 0, not {self.s!r}")

    @property
    def label(self) -> str:
        return f"zipf({short(self.s)})"

    def _weights(self, groups: int) -> Pmf:
        weights = np.arange(1, groups + 1, dtype=np.float64) ** -self.s
        return np.asarray(weights / weights.sum())
