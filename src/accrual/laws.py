"""Reward laws: what the groups of one decision pay, as shares of the arm's cap."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from accrual.core.errors import InputError
from accrual.spread import SpreadLike, as_spread

Array = npt.NDArray[np.float64]
PerGroup = float | Sequence[float]


class Law(ABC):
    """What the groups of one decision pay, each as a share of the arm's cap."""

    @abstractmethod
    def means(self, groups: int) -> Array:
        """The expected pay of each group, as shares of the cap."""


class _IndependentLaw(Law):
    """Groups pay independently: group k pays ``spread(k)`` times a variable on [0, 1]."""

    spread: SpreadLike

    @abstractmethod
    def _fractions(self, groups: int) -> Array:
        """The expected variable of each group."""

    def caps(self, groups: int) -> Array:
        """The most each group may pay, as shares of the arm's cap."""
        return as_spread(self.spread).pmf(groups)

    def means(self, groups: int) -> Array:
        return self.caps(groups) * self._fractions(groups)


@dataclass(frozen=True)
class UniformLaw(_IndependentLaw):
    """Each group pays evenly between nothing and its cap.

    Examples
    --------
    >>> UniformLaw().means(4)
    array([0.125, 0.125, 0.125, 0.125])
    """

    spread: SpreadLike = "uniform"

    def _fractions(self, groups: int) -> Array:
        return np.full(groups, 0.5)


@dataclass(frozen=True)
class BetaLaw(_IndependentLaw):
    """Group k pays its cap times a Beta(a_k, b_k) variable.

    Parameters
    ----------
    a, b : float or sequence of float
        One shape for all groups, or one for each.
    spread : SpreadLike
        How the cap is divided over the groups.

    Examples
    --------
    >>> BetaLaw(a=[1, 3], b=1).means(2)
    array([0.25 , 0.375])
    """

    a: PerGroup
    b: PerGroup
    spread: SpreadLike = "uniform"

    def shapes(self, groups: int) -> tuple[Array, Array]:
        """The shapes a and b of each group."""
        return _per_group("a", self.a, groups), _per_group("b", self.b, groups)

    def _fractions(self, groups: int) -> Array:
        a, b = self.shapes(groups)
        for name, shape in (("a", a), ("b", b)):
            if (shape <= 0).any():
                raise InputError(f"a Beta law's {name} must be positive, not {shape.min():g}")
        return a / (a + b)


@dataclass(frozen=True)
class BernoulliLaw(_IndependentLaw):
    """Group k pays its whole cap with probability p_k, otherwise nothing.

    Examples
    --------
    >>> BernoulliLaw(p=0.2, spread=[0.75, 0.25]).means(2)
    array([0.15, 0.05])
    """

    p: PerGroup
    spread: SpreadLike = "uniform"

    def _fractions(self, groups: int) -> Array:
        return _probabilities("p", self.p, groups)


@dataclass(frozen=True)
class EmpiricalLaw(Law):
    """A decision pays what a logged one did: one row, drawn evenly, with all its groups.

    Parameters
    ----------
    rows : array_like
        One row per logged decision, one column per group, as shares of the cap.

    Examples
    --------
    >>> EmpiricalLaw([[0.5, 0.1], [0.0, 0.0]]).means(2)
    array([0.25, 0.05])
    """

    rows: npt.ArrayLike = field(repr=False)

    def __post_init__(self) -> None:
        try:
            rows = np.array(self.rows, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError("an empirical law's rows must be numbers, as many in each row") from None
        if rows.ndim != 2 or rows.size == 0:
            raise InputError("an empirical law needs rows x groups of numbers, at least one row")
        if not np.isfinite(rows).all() or (rows < 0).any() or (rows.sum(axis=1) > 1 + 1e-9).any():
            raise InputError("an empirical law's rows must be shares of the cap: 0 or more, at most 1 a row")
        rows.setflags(write=False)
        object.__setattr__(self, "rows", rows)

    def table(self, groups: int) -> Array:
        """The rows, checked to have `groups` columns."""
        rows = np.asarray(self.rows, dtype=np.float64)
        if rows.shape[1] != groups:
            raise InputError(f"an empirical law of {rows.shape[1]} groups is used with {groups} groups")
        return rows

    def means(self, groups: int) -> Array:
        return np.asarray(self.table(groups).mean(axis=0))


@dataclass(frozen=True)
class LumpLaw(Law):
    """A decision pays once: its whole cap, in one group drawn from the spread, or nothing at all.

    Parameters
    ----------
    p : float
        The probability that the decision pays.
    spread : SpreadLike
        The probability of each group to be the one.

    Examples
    --------
    >>> LumpLaw(p=0.2, spread=[0.75, 0.25]).means(2)
    array([0.15, 0.05])
    """

    p: float
    spread: SpreadLike = "uniform"

    def __post_init__(self) -> None:
        if not 0 <= _number("p", self.p) <= 1:
            raise InputError(f"a lump law's p must be between 0 and 1, not {self.p!r}")

    def means(self, groups: int) -> Array:
        return self.p * as_spread(self.spread).pmf(groups)


@dataclass(frozen=True)
class LeavingLaw(Law):
    """Someone who may leave for good: group k pays its cap with probability p_k while they stay.

    Before every group, the first as well, they stay with probability ``stay_k``; whoever has left
    pays nothing more. So groups depend on each other. With ``stay=1`` this is a `BernoulliLaw`.

    Parameters
    ----------
    stay, p : float or sequence of float
        One probability for all groups, or one for each.
    spread : SpreadLike
        How the cap is divided over the groups.

    Examples
    --------
    >>> LeavingLaw(stay=[1, 0.5, 0.5, 0.5], p=0.8).means(4)
    array([0.2  , 0.1  , 0.05 , 0.025])
    """

    stay: PerGroup
    p: PerGroup = 1.0
    spread: SpreadLike = "uniform"

    def chances(self, groups: int) -> tuple[Array, Array]:
        """The probabilities of staying and of paying, for each group."""
        return _probabilities("stay", self.stay, groups), _probabilities("p", self.p, groups)

    def means(self, groups: int) -> Array:
        stay, p = self.chances(groups)
        return as_spread(self.spread).pmf(groups) * p * np.cumprod(stay)


@dataclass(frozen=True)
class ScaledLaw(Law):
    """A law whose rewards are `scale` times those of another: its cap is never reached.

    Examples
    --------
    >>> ScaledLaw(UniformLaw(), 0.25).means(2)
    array([0.0625, 0.0625])
    """

    law: Law
    scale: float

    def __post_init__(self) -> None:
        if not isinstance(self.law, Law):
            raise InputError(f"a scaled law needs a law to scale, not {self.law!r}")
        if not 0 < _number("scale", self.scale) <= 1:
            raise InputError(f"a scaled law's scale must be above 0 and at most 1, not {self.scale!r}")

    def means(self, groups: int) -> Array:
        return self.scale * self.law.means(groups)


def _number(name: str, value: float) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a number, not {value!r}") from None


def _per_group(name: str, value: PerGroup, groups: int) -> Array:
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be one number or {groups} (one per group), not {value!r}") from None
    if array.ndim == 0:
        array = np.full(groups, float(array))
    if array.shape != (groups,):
        raise InputError(f"{name} must be one number or {groups} (one per group), not {array.size}")
    if not np.isfinite(array).all():
        raise InputError(f"{name} must be finite in every group")
    return array


def _probabilities(name: str, value: PerGroup, groups: int) -> Array:
    array = _per_group(name, value, groups)
    if ((array < 0) | (array > 1)).any():
        raise InputError(f"{name} must be between 0 and 1 in every group")
    return array
