"""Spreads: how the cap of a decision is divided over the groups of its window."""

from __future__ import annotations

from collections.abc import Sequence

from accrual.core.errors import unknown
from accrual.spread.base import Spread, regroup
from accrual.spread.beta_binomial import NAMES, BetaBinomial
from accrual.spread.boltzmann import Boltzmann
from accrual.spread.continuous import Continuous
from accrual.spread.empirical import Empirical
from accrual.spread.hypergeometric import Hypergeometric
from accrual.spread.uniform import Uniform
from accrual.spread.zipf import Zipf

__all__ = [
    "NAMES",
    "BetaBinomial",
    "Boltzmann",
    "Continuous",
    "Empirical",
    "Hypergeometric",
    "Spread",
    "SpreadLike",
    "Uniform",
    "Zipf",
    "as_spread",
    "named",
    "regroup",
]

SpreadLike = Spread | str | Sequence[float]


def named(name: str) -> Spread:
    """The spread of that name: ``"uniform"`` or one of the paper's eight.

    Examples
    --------
    >>> named("begin")
    BetaBinomial(a=2, b=8)
    """
    if name == "uniform":
        return Uniform()
    if name not in NAMES:
        raise unknown("spread", name, ["uniform", *NAMES])
    return BetaBinomial(*NAMES[name])


def as_spread(spread: SpreadLike) -> Spread:
    """A `Spread` from a name, a list of shares, or a `Spread`.

    Examples
    --------
    >>> as_spread("begin") == named("begin")
    True
    >>> as_spread([0.8, 0.2])
    Empirical(shares=(0.8, 0.2))
    """
    if isinstance(spread, Spread):
        return spread
    return named(spread) if isinstance(spread, str) else Empirical(spread)
