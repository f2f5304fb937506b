"""A spread given as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from accrual.spread.base import Pmf, Spread, checked, regroup


@dataclass(frozen=True)
class Empirical(Spread):
    """The shares themselves; over another number of groups they are regrouped.

    Examples
    --------
    >>> Empirical([0.8, 0.2]).pmf(2)
    array([0.8, 0.2])
    >>> Empirical([0.8, 0.2]).pmf(4)
    array([0.4, 0.4, 0.1, 0.1])
    """

    shares: Sequence[float] | npt.NDArray[np.float64]

    def __post_init__(self) -> None:
        object.__setattr__(self, "shares", tuple(map(float, checked(self.shares))))

    @property
    def label(self) -> str:
        shown = ", ".join(f"{share:.3g}" for share in self.shares[:4])
        return f"[{shown}{', ...' if len(self.shares) > 4 else ''}]"

    def _weights(self, groups: int) -> Pmf:
        return regroup(self.shares, groups)
