"""Hypergeometric spreads, as the paper shapes them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from accrual.core.errors import InputError, whole
from accrual.spread.base import Pmf, Spread


@dataclass(frozen=True)
class Hypergeometric(Spread):
    """Group k of n has the probability of k - 1 successes in n - 1 draws.

    The population holds `population` items, n - 1 of them successes; the larger it is, the
    earlier the reward.

    Examples
    --------
    >>> Hypergeometric(100).pmf(20).argmax() + 1
    4
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
        k = np.arange(groups)
        log = _log_choose(n, k) + _log_choose(self.population - n, n - k) - _log_choose(self.population, n)
        pmf = np.exp(log)
        return np.asarray(pmf / pmf.sum())


def _log_choose(n: int, k: np.ndarray | int) -> np.ndarray:
    return np.asarray(gammaln(n + 1) - gammaln(np.add(k, 1)) - gammaln(np.subtract(n, k) + 1))
