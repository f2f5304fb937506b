"""Boltzmann spreads: geometric decay, cut off after the last group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accrual.core.errors import InputError
from accrual.spread.base import Pmf, Spread, finite, short


@dataclass(frozen=True)
class Boltzmann(Spread):
    """Group k pays in proportion to ``exp(-decay * (k - 1))``.

    Examples
    --------
    >>> Boltzmann(1.0).pmf(2).round(4)
    array([0.7311, 0.2689])
    """

    decay: float

    def __post_init__(self) -> None:
        if not (finite(self.decay) and self.decay > 0):
            raise InputError(f"a Boltzmann spread's decay must be a positive number, not {self.decay!r}")

    @property
    def label(self) -> str:
        return f"boltzmann({short(self.decay)})"

    def _weights(self, groups: int) -> Pmf:
        weights = np.exp(-self.decay * np.arange(groups))
        return np.asarray(weights / weights.sum())
