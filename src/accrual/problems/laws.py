"""Reward laws: what the groups of one decision pay, as shares of the arm's cap.

A law names a compiled function that draws what decisions pay, and the arrays that this function reads. The
CPU engine, the CUDA engine and the demo call the same function, for the laws below and for your own
(docs/own_law.md).
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accrual.core.arrays import Floats, Ints, as_numbers
from accrual.core.errors import InputError, as_number
from accrual.core.jit import njit
from accrual.problems.spreads import SpreadLike, as_spread

PerGroup = float | Sequence[float]
Draw = Callable[[Any, Floats, Floats], None]


class Law(ABC):
    """What the groups of one decision pay, each as a share of the arm's cap."""

    @property
    @abstractmethod
    def draw(self) -> Draw:
        """The function that draws what decisions pay, compiled by `accrual.core.jit.njit`.

        It is called as ``draw(params, u, pay)`` with the tuple that `params` returns. ``u[i, g]`` is a
        random number in [0, 1) for group g of decision i. The function writes what the group pays
        into ``pay[i, g]``. The two arrays may be the same one, so it reads ``u[i, g]`` before it
        writes ``pay[i, g]``. A class has it as ``draw = staticmethod(function)``.
        """

    @abstractmethod
    def params(self, groups: int, scale: float) -> Any:
        """Return what `draw` reads: a named tuple of arrays, each with at least one axis.

        The arrays of two laws with the same `draw` may differ in the length of the first axis, and in
        nothing else but their numbers. With these arrays, `draw` pays `scale` times what the law says.
        """

    @abstractmethod
    def means(self, groups: int) -> Floats:
        """Return the expected pay of each group, as shares of the cap.

        The law checks its settings here and raises an `InputError` that says what is wrong.
        """


class _IndependentLaw(Law):
    """Groups pay independently: group k pays ``spread(k)`` times a variable on [0, 1]."""

    spread: SpreadLike

    @abstractmethod
    def _fractions(self, groups: int) -> Floats:
        """Return the expected variable of each group."""

    def _caps(self, groups: int) -> Floats:
        """Return the most that each group may pay, as shares of the arm's cap."""
        return as_spread(self.spread).pmf(groups)

    def means(self, groups: int) -> Floats:
        return self._caps(groups) * self._fractions(groups)


class UniformParams(NamedTuple):
    """What `draw_uniform` reads."""

    caps: Floats  # groups


@njit
def draw_uniform(params: UniformParams, u: Floats, pay: Floats) -> None:
    """Draw for a `UniformLaw`."""
    decisions, groups = pay.shape
    for i in range(decisions):
        for g in range(groups):
            k = np.uint64(g)  # numba then drops its tests for indices below 0
            pay[i, k] = params.caps[k] * u[i, k]


@dataclass(frozen=True)
class UniformLaw(_IndependentLaw):
    """Each group pays evenly between nothing and its cap.

    Examples
    --------
    >>> UniformLaw().means(4)
    array([0.125, 0.125, 0.125, 0.125])
    """

    spread: SpreadLike = "uniform"

    draw = staticmethod(draw_uniform)

    def params(self, groups: int, scale: float) -> UniformParams:
        return UniformParams(scale * self._caps(groups))

    def _fractions(self, groups: int) -> Floats:
        return np.full(groups, 0.5)


# Continuous laws are drawn by their inverse cdf, which is read from a table of polynomials. The unit interval
# is cut where floating-point numbers are: octave by octave towards 0, and the same towards 1, each octave
# into equal cells. A quantile function varies smoothly over such a cell even where it has a singular end. So
# a polynomial of degree 5 per cell keeps the error in u (the distance between F(x) and the u that x was drawn
# for) below `U_ERROR`. Where the density is infinite at 1 (a Beta's b below 1) the spacing of floating-point
# numbers there is coarser than that. To find the cell takes a shift of u's own bits: no search, no branch on
# the law.
U_ERROR = 1e-9

OCTAVES = 31  # below 2**-31 every answer in the last cell is right to within U_ERROR
_CELLS_BITS = 3
_CELLS = 1 << _CELLS_BITS
_DEGREE = 5
SIDE = OCTAVES * _CELLS

_SHIFT = 52 - _CELLS_BITS
_FIRST = (1023 - OCTAVES - 1) << _CELLS_BITS  # float bits of 2**-(OCTAVES + 1), shifted
_LEAST = 2.0 ** -(OCTAVES + 1)


def table(quantile: Callable[[Floats, bool], Floats]) -> Floats:
    """Compute coefficients for `quantile`, cells x (degree + 1), lowest power first.

    Parameters
    ----------
    quantile : callable
        ``quantile(p, upper)`` returns x with F(x) = p, or with 1 - F(x) = p if `upper`. It is called for
        each tail by itself, so that neither loses digits.
    """
    cell = np.arange(SIDE)
    width = 2.0 ** (cell // _CELLS - OCTAVES - 1) / _CELLS
    start = 2.0 ** (cell // _CELLS - OCTAVES - 1) + (cell % _CELLS) * width
    nodes = 0.5 - 0.5 * np.cos(np.pi * (np.arange(_DEGREE + 1) + 0.5) / (_DEGREE + 1))
    powers = np.linalg.inv(np.vander(nodes, increasing=True))
    p = start[:, None] + width[:, None] * nodes[None, :]
    return np.concatenate([quantile(p, upper) @ powers.T for upper in (False, True)])


@njit
def invert(coefficients: Floats, u: float) -> float:
    """Return the quantile at `u`, from the table of one law."""
    upper = u >= 0.5
    p = max(1.0 - u if upper else u, _LEAST)
    # p = 1/2 exactly belongs to the next octave, which the table does not have.
    cell = min(int(np.float64(p).view(np.int64) >> _SHIFT) - _FIRST, SIDE - 1)
    octave = cell >> _CELLS_BITS
    scale = np.int64((OCTAVES + 1 - octave + 1023) << np.int64(52)).view(np.float64)
    x = (p * scale - 1.0) * _CELLS - (cell & (_CELLS - 1))
    row = cell + SIDE if upper else cell
    value: float = coefficients[row, _DEGREE]
    for power in range(_DEGREE - 1, -1, -1):
        value = value * x + coefficients[row, power]
    return value


class BetaParams(NamedTuple):
    """What `draw_beta` reads."""

    caps: Floats  # groups
    shape: Ints  # groups: which of the tables
    tables: Floats  # tables of Beta quantiles, shapes x cells x coefficients


@njit
def draw_beta(params: BetaParams, u: Floats, pay: Floats) -> None:
    """Draw for a `BetaLaw`."""
    decisions, groups = pay.shape
    for g in range(groups):
        k = np.uint64(g)
        quantiles = params.tables[params.shape[k]]
        for i in range(decisions):
            pay[i, k] = params.caps[k] * invert(quantiles, u[i, k])


@functools.lru_cache(maxsize=1024)  # 24 kB each, and a millisecond or more to make
def _beta_table(a: float, b: float) -> Floats:
    from scipy.special import betainccinv, betaincinv

    return table(lambda p, upper: (betainccinv if upper else betaincinv)(a, b, p))


@functools.lru_cache(maxsize=64)  # laws of the same shapes share one array, and kernels get it once
def _beta_tables(shapes: tuple[tuple[float, float], ...]) -> Floats:
    return np.array([_beta_table(a, b) for a, b in shapes])


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

    draw = staticmethod(draw_beta)

    def shapes(self, groups: int) -> tuple[Floats, Floats]:
        """Return the shapes a and b of each group."""
        return _per_group("a", self.a, groups), _per_group("b", self.b, groups)

    def params(self, groups: int, scale: float) -> BetaParams:
        pairs = list(zip(*(shape.tolist() for shape in self.shapes(groups)), strict=True))
        distinct = {pair: number for number, pair in enumerate(dict.fromkeys(pairs))}
        shape = np.array([distinct[pair] for pair in pairs], np.int64)
        return BetaParams(scale * self._caps(groups), shape, _beta_tables(tuple(distinct)))

    def _fractions(self, groups: int) -> Floats:
        a, b = self.shapes(groups)
        for name, shape in (("a", a), ("b", b)):
            if (shape <= 0).any():
                raise InputError(f"a Beta law's {name} must be positive, not {shape.min():g}")
        return a / (a + b)


class BernoulliParams(NamedTuple):
    """What `draw_bernoulli` reads."""

    caps: Floats  # groups
    chance: Floats  # groups: the number below which a group pays


@njit
def draw_bernoulli(params: BernoulliParams, u: Floats, pay: Floats) -> None:
    """Draw for a `BernoulliLaw`."""
    decisions, groups = pay.shape
    for i in range(decisions):
        for g in range(groups):
            k = np.uint64(g)
            pay[i, k] = params.caps[k] if u[i, k] < params.chance[k] else 0.0


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

    draw = staticmethod(draw_bernoulli)

    def params(self, groups: int, scale: float) -> BernoulliParams:
        return BernoulliParams(scale * self._caps(groups), self._fractions(groups))

    def _fractions(self, groups: int) -> Floats:
        return _probabilities("p", self.p, groups)


class EmpiricalParams(NamedTuple):
    """What `draw_empirical` reads."""

    rows: Floats  # logged decisions x groups


@njit
def draw_empirical(params: EmpiricalParams, u: Floats, pay: Floats) -> None:
    """Draw for an `EmpiricalLaw`."""
    decisions, groups = pay.shape
    for i in range(decisions):
        row = np.uint64(u[i, 0] * params.rows.shape[0])
        for g in range(groups):
            k = np.uint64(g)
            pay[i, k] = params.rows[row, k]


@dataclass(frozen=True)
class EmpiricalLaw(Law):
    """A decision pays what a logged decision paid: one row, drawn evenly, with all its groups.

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

    draw = staticmethod(draw_empirical)

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

    def params(self, groups: int, scale: float) -> EmpiricalParams:
        return EmpiricalParams(scale * self._table(groups))

    def _table(self, groups: int) -> Floats:
        """Return the rows, checked to have `groups` columns."""
        rows = np.asarray(self.rows, dtype=np.float64)
        if rows.shape[1] != groups:
            raise InputError(f"an empirical law of {rows.shape[1]} groups is used with {groups} groups")
        return rows

    def means(self, groups: int) -> Floats:
        return np.asarray(self._table(groups).mean(axis=0))


class LumpParams(NamedTuple):
    """What `draw_lump` reads."""

    caps: Floats  # one number: what the one group pays
    chance: Floats  # groups, rising: a group pays from the number of the group before it to below its own


@njit
def draw_lump(params: LumpParams, u: Floats, pay: Floats) -> None:
    """Draw for a `LumpLaw`."""
    decisions, groups = pay.shape
    for i in range(decisions):
        below, when = 0.0, u[i, 0]
        for g in range(groups):
            k = np.uint64(g)
            pay[i, k] = params.caps[0] if below <= when < params.chance[k] else 0.0
            below = params.chance[k]


@dataclass(frozen=True)
class LumpLaw(Law):
    """A decision pays once: its whole cap, in one group drawn from the spread, or nothing at all.

    Parameters
    ----------
    p : float
        The probability that the decision pays.
    spread : SpreadLike
        The probability that it pays in this group, for each group.

    Examples
    --------
    >>> LumpLaw(p=0.2, spread=[0.75, 0.25]).means(2)
    array([0.15, 0.05])
    """

    p: float
    spread: SpreadLike = "uniform"

    draw = staticmethod(draw_lump)

    def __post_init__(self) -> None:
        if not 0 <= _number("p", self.p) <= 1:
            raise InputError(f"a lump law's p must be between 0 and 1, not {self.p!r}")

    def params(self, groups: int, scale: float) -> LumpParams:
        return LumpParams(np.array([scale]), self.p * np.cumsum(as_spread(self.spread).pmf(groups)))

    def means(self, groups: int) -> Floats:
        return self.p * as_spread(self.spread).pmf(groups)


class LeavingParams(NamedTuple):
    """What `draw_leaving` reads."""

    caps: Floats  # groups
    stay: Floats  # groups: the user leaves before the group if the random number is not below this one
    chance: Floats  # groups: the number below which the group pays; never above `stay`


@njit
def draw_leaving(params: LeavingParams, u: Floats, pay: Floats) -> None:
    """Draw for a `LeavingLaw`; one number says whether the user stays and whether the group pays."""
    decisions, groups = pay.shape
    for i in range(decisions):
        there = True
        for g in range(groups):
            k = np.uint64(g)
            there = there and u[i, k] < params.stay[k]
            pay[i, k] = params.caps[k] if there and u[i, k] < params.chance[k] else 0.0


@dataclass(frozen=True)
class LeavingLaw(Law):
    """A decision's user may leave for good; while they stay, group k pays its cap with probability p_k.

    Before every group, also the first, they stay with probability ``stay_k``. After they have left, no
    group pays. So groups depend on each other. With ``stay=1`` this is a `BernoulliLaw`.

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

    draw = staticmethod(draw_leaving)

    def params(self, groups: int, scale: float) -> LeavingParams:
        stay, p = self.chances(groups)
        return LeavingParams(scale * as_spread(self.spread).pmf(groups), stay, stay * p)

    def chances(self, groups: int) -> tuple[Floats, Floats]:
        """Return the probabilities of staying and of paying, for each group."""
        return _probabilities("stay", self.stay, groups), _probabilities("p", self.p, groups)

    def means(self, groups: int) -> Floats:
        stay, p = self.chances(groups)
        return as_spread(self.spread).pmf(groups) * p * np.cumprod(stay)


@dataclass(frozen=True)
class ScaledLaw(Law):
    """A law whose rewards are `scale` times those of another law.

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

    @property
    def draw(self) -> Draw:
        return self.law.draw

    def params(self, groups: int, scale: float) -> Any:
        return self.law.params(groups, scale * self.scale)

    def means(self, groups: int) -> Floats:
        return self.scale * self.law.means(groups)


LAWS: dict[str, type[Law]] = {
    "uniform": UniformLaw,
    "beta": BetaLaw,
    "bernoulli": BernoulliLaw,
    "lump": LumpLaw,
    "leaving": LeavingLaw,
    "empirical": EmpiricalLaw,
}
"""Laws by the names that they have in TOML files."""


def _number(name: str, value: float) -> float:
    if math.isnan(as_number(value)):
        raise InputError(f"{name} must be a number, not {value!r}")
    return float(value)


def _per_group(name: str, value: PerGroup, groups: int) -> Floats:
    array = as_numbers(value)
    if array.ndim == 0 and np.isnan(array):
        raise InputError(f"{name} must be one number or {groups} (one per group), not {value!r}")
    if array.ndim == 0:
        array = np.full(groups, float(array))
    if array.shape != (groups,):
        raise InputError(f"{name} must be one number or {groups} (one per group), not {array.size}")
    if not np.isfinite(array).all():
        raise InputError(f"{name} must be finite in every group")
    return array


def _probabilities(name: str, value: PerGroup, groups: int) -> Floats:
    array = _per_group(name, value, groups)
    if ((array < 0) | (array > 1)).any():
        raise InputError(f"{name} must be between 0 and 1 in every group")
    return array
