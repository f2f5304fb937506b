"""Spreads: how the cap of a decision is divided over the groups of its window."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from accrual.core.errors import InputError, unknown
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
    "parse",
    "regroup",
]

SpreadLike = Spread | str | Sequence[float] | npt.NDArray[np.float64]

FAMILIES: dict[str, tuple[Callable[..., Spread], str]] = {
    "betabinom": (BetaBinomial, "betabinom(2, 8)"),
    "boltzmann": (Boltzmann, "boltzmann(0.5)"),
    "hypergeom": (Hypergeometric, "hypergeom(100)"),
    "zipf": (Zipf, "zipf(2)"),
}


def named(name: str) -> Spread:
    """Give the spread of that name: ``"uniform"`` or one of the paper's eight.

    Examples
    --------
    >>> named("begin")
    BetaBinomial(a=2, b=8)
    """
    if name == "uniform":
        return Uniform()
    if name not in NAMES:
        examples = (example for _, example in FAMILIES.values())
        raise unknown("spread", name, ["uniform", *NAMES, *examples])
    return BetaBinomial(*NAMES[name])


def parse(text: str) -> Spread:
    """Read a spread from text: a name, a law with its numbers, or the shares themselves.

    The label of every spread that is not given as shares or as a cdf reads back as that spread.

    Examples
    --------
    >>> parse("begin")
    BetaBinomial(a=2, b=8)
    >>> parse("zipf(2)")
    Zipf(s=2)
    >>> parse("0.5, 0.3, 0.2")
    Empirical(shares=(0.5, 0.3, 0.2))
    """
    text = text.strip()
    call = re.fullmatch(r"(\w+)\s*\((.*)\)", text)
    if call:
        family = call[1]
        if family not in FAMILIES:
            raise unknown("spread", family, FAMILIES)
        law, example = FAMILIES[family]
        numbers = _numbers(call[2])
        if numbers is None or len(numbers) != example.count(",") + 1:
            raise InputError(f"cannot read the spread {text!r}; write for example {example!r}")
        return law(*numbers)
    shares = _numbers(re.sub(r"^\[(.*)\]$", r"\1", text))
    return named(text) if shares is None else Empirical(shares)


def _numbers(text: str) -> list[Any] | None:
    """Read the numbers in a list with commas; None if there is anything else in it."""
    try:
        return [int(part) if re.fullmatch(r"\s*\d+\s*", part) else float(part) for part in text.split(",")]
    except ValueError:
        return None


def as_spread(spread: SpreadLike) -> Spread:
    """Make a `Spread` from text (see `parse`), a list of shares, or a `Spread`.

    Examples
    --------
    >>> as_spread("begin") == named("begin")
    True
    >>> as_spread([0.8, 0.2])
    Empirical(shares=(0.8, 0.2))
    """
    if isinstance(spread, Spread):
        return spread
    return parse(spread) if isinstance(spread, str) else Empirical(spread)
