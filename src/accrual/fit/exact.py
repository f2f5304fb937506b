"""Sums that are the same to the bit, whatever the order of what is added.

Numbers are added as whole multiples of a power of two, in two integers: one for what is large, one
for the remainder. Adding integers is exact, so a log that is cut into parts and added up part by
part gives the very same sums.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_BITS = 61  # of an integer that a sum may take


class ExactScale(NamedTuple):
    """By what a number is multiplied before it is rounded, and then its remainder."""

    first: float
    second: float

    @classmethod
    def of(cls, largest: float, count: int) -> ExactScale:
        """Choose the scale for at most `count` numbers, none beyond `largest` in size.

        Examples
        --------
        >>> ExactScale.of(1.0, 1 << 20)
        ExactScale(first=2199023255552.0, second=2199023255552.0)
        """
        many = math.ceil(math.log2(max(count, 1)))
        size = math.ceil(math.log2(largest)) if largest > 0.0 else 0
        # Powers of two that floating-point numbers have, for values at their very limits.
        return cls(2.0 ** max(min(_BITS - many - size, 1000), -1000), 2.0 ** (_BITS - many))

    def split(self, values: Floats) -> tuple[Ints, Ints]:
        """Split values into whole multiples, and their remainders."""
        scaled = values * self.first
        whole = np.rint(scaled)
        return whole.astype(np.int64), np.rint((scaled - whole) * self.second).astype(np.int64)

    def joined(self, sums: Ints) -> Floats:
        """Give the sums as numbers again: `sums` has both integers along its first axis."""
        return np.asarray((sums[0] + sums[1] / self.second) / self.first, dtype=np.float64)
