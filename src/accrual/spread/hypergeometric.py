"""Hypergeometric spreads, as the paper shapes them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accrual.core.errors import InputError, whole
from accrual.spread.base import Pmf, Spread, from_ratios


@dataclass(frozen=True)
class Hypergeometric(Spread):
    """Group k of n has the probability of k - 1 successes in n - 1 draws.

    The population holds `population` items, n - 1 of them successes; the larger it is, the
    earlier the reward.

    Examples
    --------
    >>> Hypergeometric(10).pmf(4).round(4)
    array([0.2917, 0.525 , 0.175 , 0.0083])
    """

    population: int

    def __post_init__(self) -> None:
        whole("a hypergeometric spread's population", self.population, 1)

    @property
    def label(self) -> str:
        return f"hypergeom({self.population})"

    def _weights(self, groups: int) -> Pmf:
        n = groups - 1
        if self.population < 2 * n:
            raise InputError(
                f"a hypergeometric spread over {groups} groups needs a population of at least "
                f"{2 * n}, not {self.population}"
            )
        k = np.arange(n, dtype=np.float64)
        return from_ratios(2 * np.log(n - k) - np.log(k + 1) - np.log(self.population - 2 * n + k + 1))
