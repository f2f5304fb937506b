"""A spread from any continuous cdf of the age."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from accrual.core.errors import InputError
from accrual.spread.base import Pmf, Spread, finite

Cdf = Callable[[npt.NDArray[np.float64]], npt.ArrayLike]


@dataclass(frozen=True)
class Continuous(Spread):
    """The share of a group is the cdf's growth over it, given that reward comes by `window`.

    Parameters
    ----------
    cdf : callable
        Cumulative share of the reward by age, for an array of ages in [0, window].
    window : float
        The greatest age, in the cdf's own unit.

    Examples
    --------
    >>> Continuous(lambda age: 1 - np.exp(-age / 10), window=20).pmf(4).round(4)
    array([0.4551, 0.276 , 0.1674, 0.1015])
    """

    cdf: Cdf
    window: float

    def __post_init__(self) -> None:
        if not callable(self.cdf):
            raise InputError(f"a continuous spread's cdf must be a function of the age, not {self.cdf!r}")
        if not (finite(self.window) and self.window > 0):
            raise InputError(f"a continuous spread's window must be a positive number, not {self.window!r}")

    @property
    def label(self) -> str:
        return f"continuous({getattr(self.cdf, '__name__', 'cdf').strip('<>')})"

    @property
    def tail(self) -> float:
        """The share of the reward that the cdf puts beyond the window."""
        return float(1.0 - np.asarray(self.cdf(np.array([self.window])), dtype=np.float64)[0])

    def _weights(self, groups: int) -> Pmf:
        edges = np.linspace(0.0, self.window, groups + 1)
        arrived = np.asarray(self.cdf(edges), dtype=np.float64)
        if arrived.shape != edges.shape or not np.isfinite(arrived).all():
            raise InputError("a continuous spread's cdf must give one finite number for each age")
        shares = np.diff(arrived)
        if (shares < 0).any():
            raise InputError("a continuous spread's cdf must not decrease")
        if shares.sum() <= 0:
            raise InputError(f"a continuous spread's cdf must grow somewhere in [0, {self.window:g}]")
        return np.asarray(shares / shares.sum())
