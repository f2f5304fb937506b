"""A problem: arms with caps, what each group of a decision pays, and the window.

Everything is checked here, once, on the host; environments and engines take a `Problem` as it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from accrual.core.errors import InputError, divides, unknown, whole
from accrual.spread import SpreadLike, as_spread

Array = npt.NDArray[np.float64]
PerGroup = float | Sequence[float]
Division = Literal["even", "first"]
DIVISIONS: tuple[Division, ...] = ("even", "first")

WINDOW_MOST = 10_000_000
ARMS_MOST = 65_535


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
        p = _per_group("p", self.p, groups)
        if ((p < 0) | (p > 1)).any():
            raise InputError("a Bernoulli law's p must be between 0 and 1")
        return p


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
        rows = np.array(self.rows, dtype=np.float64)
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
class Problem:
    """Arms whose decisions pay in pieces over a window.

    Parameters
    ----------
    caps : sequence of float
        The greatest total reward of one decision, for each arm.
    window : int
        The number of rounds over which a decision pays, its own round included.
    groups : int
        Number of equal parts of the window; must divide it.
    laws : Law or sequence of Law
        What the groups pay: one law for all arms, or one for each.
    division : {"even", "first"}
        Within a group: the same in each of its rounds, or all in its first.
    arms : sequence of str, optional
        Names of the arms.

    Examples
    --------
    >>> problem = Problem(caps=[10, 20], window=6, groups=3)
    >>> problem.means
    array([ 5., 10.])
    >>> problem.regret([30, 70])
    150.0
    """

    caps: Sequence[float]
    window: int
    groups: int
    laws: Law | Sequence[Law] = field(default_factory=UniformLaw)
    division: Division = "even"
    arms: Sequence[str] = ()

    def __post_init__(self) -> None:
        caps = tuple(map(float, self.caps))
        if not 1 <= len(caps) <= ARMS_MOST:
            raise InputError(f"a problem needs 1 to {ARMS_MOST} arms, not {len(caps)}")
        for arm, cap in enumerate(caps):
            if not (np.isfinite(cap) and cap > 0):
                raise InputError(f"caps must be positive numbers; arm {arm} has {cap:g}")
        window = whole("window", self.window, 1, WINDOW_MOST)
        groups = whole("groups", self.groups, 1, WINDOW_MOST)
        divides("groups", groups, window)
        if self.division not in DIVISIONS:
            raise unknown("division", self.division, DIVISIONS)
        laws = (self.laws,) * len(caps) if isinstance(self.laws, Law) else tuple(self.laws)
        if len(laws) != len(caps):
            raise InputError(f"{len(caps)} arms need {len(caps)} laws (or one for all), not {len(laws)}")
        arms = tuple(self.arms) or tuple(str(arm) for arm in range(len(caps)))
        if len(arms) != len(caps) or len(set(arms)) != len(arms):
            raise InputError(f"{len(caps)} arms need {len(caps)} different names, not {list(arms)}")
        for name, value in (("caps", caps), ("window", window), ("laws", laws), ("arms", arms)):
            object.__setattr__(self, name, value)
        self.group_means  # noqa: B018  (the laws check themselves against the groups here)

    @property
    def arm_laws(self) -> tuple[Law, ...]:
        """The law of each arm."""
        assert not isinstance(self.laws, Law)
        return tuple(self.laws)

    @cached_property
    def group_means(self) -> Array:
        """Expected pay, arms x groups."""
        shares = {id(law): law.means(self.groups) for law in self.arm_laws}
        return np.array([cap * shares[id(law)] for cap, law in zip(self.caps, self.arm_laws, strict=True)])

    @cached_property
    def means(self) -> Array:
        """The true mean total of each arm."""
        return np.asarray(self.group_means.sum(axis=1))

    @cached_property
    def gaps(self) -> Array:
        """How much each arm's mean falls short of the best arm's."""
        return np.asarray(self.means.max() - self.means)

    def regret(self, pulls: npt.ArrayLike) -> float:
        """The regret of having made `pulls[i]` decisions of arm i, in true means."""
        return float(np.asarray(pulls, dtype=np.float64) @ self.gaps)


def _per_group(name: str, value: PerGroup, groups: int) -> Array:
    array = np.asarray(value, dtype=np.float64)
    if array.ndim == 0:
        array = np.full(groups, float(array))
    if array.shape != (groups,):
        raise InputError(f"{name} must be one number or {groups} (one per group), not {array.size}")
    if not np.isfinite(array).all():
        raise InputError(f"{name} must be finite in every group")
    return array
