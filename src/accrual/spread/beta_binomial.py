"""Beta-binomial spreads, and the paper's eight of them by name."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accrual.core.errors import InputError
from accrual.spread.base import Pmf, Spread, finite, from_ratios, short

NAMES: dict[str, tuple[float, float]] = {
    "extreme_begin": (1, 100),
    "very_begin": (1, 16),
    "begin": (2, 8),
    "begin_middle": (2, 4),
    "middle": (5, 5),
    "middle_end": (4, 2),
    "end": (8, 2),
    "very_end": (16, 1),
}
_NAME_OF = {shape: name for name, shape in NAMES.items()}


@dataclass(frozen=True)
class BetaBinomial(Spread):
    """Group k of n has the probability of k - 1 under BetaBinom(n - 1, a, b).

    Examples
    --------
    >>> BetaBinomial(2, 8).label
    'begin'
    >>> BetaBinomial(1, 1).pmf(4)
    array([0.25, 0.25, 0.25, 0.25])
    """

    a: float
    b: float

    def __post_init__(self) -> None:
        for name, value in (("a", self.a), ("b", self.b)):
            if not (finite(value) and value > 0):
                raise InputError(f"a beta-binomial's {name} must be a positive number, not {value!r}")

    @property
    def label(self) -> str:
        return _NAME_OF.get((self.a, self.b), f"betabinom({short(self.a)}, {short(self.b)})")

    def _weights(self, groups: int) -> Pmf:
        n = groups - 1
        k = np.arange(n, dtype=np.float64)
        return from_ratios(np.log((n - k) * (k + self.a)) - np.log((k + 1) * (n - k - 1 + self.b)))
