"""Spreads: how the cap of a decision is divided over the groups of its window."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accrual.core.arrays import Floats, as_numbers
from accrual.core.errors import InputError, need, not_negative, positive, unknown, whole
from accrual.core.files import replacing

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

Cdf = Callable[[Floats], npt.ArrayLike]  # the share of the reward that has come by each age
Pmf = Floats  # the shares of the groups, which sum to one

GROUPS_MOST = 1_000_000


class Spread(ABC):
    """How a decision's cap is divided over the groups of its window.

    A subclass defines `_weights`; everything else follows from the pmf.
    """

    @property
    @abstractmethod
    def label(self) -> str:
        """A short name for tables and legends."""

    @abstractmethod
    def _weights(self, groups: int) -> Pmf:
        """Return non-negative weights of groups 1 to `groups`, which sum to one up to rounding."""

    def pmf(self, groups: int) -> Pmf:
        """Return the share of the cap that each of `groups` groups pays at most.

        Parameters
        ----------
        groups : int
            Number of equal parts of the window.

        Returns
        -------
        ndarray
            `groups` non-negative numbers that sum to one.

        Examples
        --------
        >>> Zipf(1).pmf(3)
        array([0.54545455, 0.27272727, 0.18181818])
        """
        with np.errstate(all="ignore"):
            pmf = self._weights(whole("groups", groups, 1, GROUPS_MOST))
        if not np.isfinite(pmf).all():
            raise InputError(f"{self.label} over {groups} groups is beyond floating-point numbers")
        return pmf

    def mean(self, groups: int) -> float:
        """Return E[Y], the mean group number (from 1) at which reward arrives.

        Examples
        --------
        >>> Uniform().mean(20)
        10.5
        """
        pmf = self.pmf(groups)
        return float(np.arange(1, groups + 1) @ pmf)

    def coincidence(self, groups: int) -> float:
        """Return the index of coincidence, the sum of the squared shares.

        Examples
        --------
        >>> round(named("extreme_begin").coincidence(50), 2)
        0.51
        """
        pmf = self.pmf(groups)
        return float(pmf @ pmf)

    def plot(self, groups: int, path: str | os.PathLike[str] | None = None, ax: Any = None) -> Any:
        """Draw the pmf over `groups` groups; write it to `path` if one is given."""
        if ax is None:
            ax = need("matplotlib.figure", "plot").Figure(figsize=(6, 3.5), layout="tight").subplots()
        pmf = self.pmf(groups)
        ax.plot(np.arange(1, groups + 1), pmf, marker="o", markersize=3, label=self.label)
        # The highest share of all spreads drawn here so far decides how high the picture is.
        ax.set(xlabel="group", ylabel="share of the cap", ylim=(0, 1.05 * ax.dataLim.y1))
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False)
        if path is not None:
            with replacing(path) as partial:
                ax.figure.savefig(partial, dpi=150)
        return ax

    def __str__(self) -> str:
        return self.label


SpreadLike = Spread | str | Sequence[float] | Floats
"""What stands for a spread: a `Spread`, text that `parse` reads, or the shares."""


def short(number: float) -> str:
    """Return the shortest text from which `number` can be read back."""
    text = f"{number:g}"
    return text if float(text) == number else repr(float(number))


def from_ratios(logs: Pmf) -> Pmf:
    """Return the pmf in which group k + 1 has ``exp(logs[k])`` times the share of group k.

    The shares are computed outwards from the largest one, so that rounding adds up only where shares are
    small. Differences of log-gamma functions would lose digits as their arguments grow.
    """
    mode = int(np.argmax(np.cumsum(np.concatenate([[0.0], logs]))))
    after = np.cumsum(logs[mode:])
    before = -np.cumsum(logs[:mode][::-1])[::-1]
    weights = np.exp(np.concatenate([before, [0.0], after]))
    return np.asarray(weights / weights.sum())


def checked(weights: npt.ArrayLike, what: str = "a spread") -> Pmf:
    """Return `weights` as a pmf, or raise an `InputError` that says what is wrong with them."""
    pmf = as_numbers(weights)
    if pmf.ndim == 0 and np.isnan(pmf):
        raise InputError(f"{what} must be a list of numbers, not {weights!r}")
    if pmf.ndim != 1 or pmf.size == 0:
        raise InputError(f"{what} must be a flat, non-empty list of numbers, one per group")
    if not np.isfinite(pmf).all():
        bad = int(np.flatnonzero(~np.isfinite(pmf))[0])
        raise InputError(f"{what} must be finite; group {bad + 1} is {pmf[bad]}")
    if (pmf < 0).any():
        bad = int(np.flatnonzero(pmf < 0)[0])
        raise InputError(f"{what} must not be negative; group {bad + 1} is {pmf[bad]:g}")
    with np.errstate(over="ignore"):
        total = pmf.sum()
    if abs(total - 1.0) > 1e-6:
        raise InputError(f"{what} must sum to 1; it sums to {total:g} (divide by that)")
    return pmf


def regroup(pmf: npt.ArrayLike, groups: int) -> Pmf:
    """Return the same spread over another number of groups.

    Reward is taken to be even within each old group. So the cumulative share is linear between the old
    edges, and its values at the new edges give the new shares.

    Parameters
    ----------
    pmf : array_like
        Shares of the old groups, summing to one.
    groups : int
        The new number of groups.

    Examples
    --------
    >>> regroup([0.5, 0.3, 0.1, 0.1], 2)
    array([0.8, 0.2])
    >>> regroup([0.8, 0.2], 4)
    array([0.4, 0.4, 0.1, 0.1])
    """
    old = checked(pmf)
    new = whole("groups", groups, 1, GROUPS_MOST)
    if new == old.size:
        return old.copy()
    edges = np.arange(old.size + 1) / old.size
    arrived = np.concatenate([[0.0], np.cumsum(old)])
    return np.diff(np.interp(np.arange(new + 1) / new, edges, arrived))


@dataclass(frozen=True)
class Uniform(Spread):
    """Every group pays the same share (the paper's alpha-smoothness).

    `mean` and `coincidence` have closed forms, so that a policy with this spread and one for alpha-smooth
    rewards compute the same floating-point numbers.

    Examples
    --------
    >>> Uniform().pmf(4)
    array([0.25, 0.25, 0.25, 0.25])
    >>> Uniform().coincidence(20)
    0.05
    """

    @property
    def label(self) -> str:
        return "uniform"

    def _weights(self, groups: int) -> Pmf:
        return np.full(groups, 1.0 / groups)

    def mean(self, groups: int) -> float:
        return (whole("groups", groups, 1, GROUPS_MOST) + 1) / 2

    def coincidence(self, groups: int) -> float:
        return 1.0 / whole("groups", groups, 1, GROUPS_MOST)


# The paper's eight spreads: beta-binomials with these a and b.
NAMES: dict[str, tuple[float, float]] = {
    "extreme_begin": (1, 100),
    "very_begin": (1, 16),
    "begin": (2, 8),
    "begin_middle": (2, 4),
    "middle": (5, 5),
    "middle_end": (4, 2),
    "end": (8, 2),
    "very_end": (16, 1),
}
_NAME_OF = {shape: name for name, shape in NAMES.items()}


@dataclass(frozen=True)
class BetaBinomial(Spread):
    """Group k of n has the probability of k - 1 under BetaBinom(n - 1, a, b).

    Examples
    --------
    >>> BetaBinomial(2, 8).label
    'begin'
    >>> BetaBinomial(1, 1).pmf(4)
    array([0.25, 0.25, 0.25, 0.25])
    """

    a: float
    b: float

    def __post_init__(self) -> None:
        for name, value in (("a", self.a), ("b", self.b)):
            positive(f"a beta-binomial's {name}", value)

    @property
    def label(self) -> str:
        return _NAME_OF.get((self.a, self.b), f"betabinom({short(self.a)}, {short(self.b)})")

    def _weights(self, groups: int) -> Pmf:
        n = groups - 1
        k = np.arange(n, dtype=np.float64)
        return from_ratios(np.log((n - k) * (k + self.a)) - np.log((k + 1) * (n - k - 1 + self.b)))


@dataclass(frozen=True)
class Boltzmann(Spread):
    """Group k pays in proportion to ``exp(-decay * (k - 1))``, cut off after the last group.

    Examples
    --------
    >>> Boltzmann(1.0).pmf(2).round(4)
    array([0.7311, 0.2689])
    """

    decay: float

    def __post_init__(self) -> None:
        positive("a Boltzmann spread's decay", self.decay)

    @property
    def label(self) -> str:
        return f"boltzmann({short(self.decay)})"

    def _weights(self, groups: int) -> Pmf:
        weights = np.exp(-self.decay * np.arange(groups))
        return np.asarray(weights / weights.sum())


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
        positive("a continuous spread's window", self.window)

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

    shares: Sequence[float] | Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "shares", tuple(map(float, checked(self.shares))))

    @property
    def label(self) -> str:
        shown = ", ".join(f"{share:.3g}" for share in self.shares[:4])
        return f"[{shown}{', ...' if len(self.shares) > 4 else ''}]"

    def _weights(self, groups: int) -> Pmf:
        return regroup(self.shares, groups)


@dataclass(frozen=True)
class Hypergeometric(Spread):
    """Group k of n has the probability of k - 1 successes in n - 1 draws, as in the paper.

    The population holds `population` items, n - 1 of them successes. The larger the population, the
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


@dataclass(frozen=True)
class Zipf(Spread):
    """Group k pays in proportion to ``k ** -s``.

    Examples
    --------
    >>> Zipf(2).pmf(2)
    array([0.8, 0.2])
    """

    s: float

    def __post_init__(self) -> None:
        not_negative("a Zipf spread's s", self.s)

    @property
    def label(self) -> str:
        return f"zipf({short(self.s)})"

    def _weights(self, groups: int) -> Pmf:
        weights = np.arange(1, groups + 1, dtype=np.float64) ** -self.s
        return np.asarray(weights / weights.sum())


FAMILIES: dict[str, tuple[Callable[..., Spread], str]] = {
    "betabinom": (BetaBinomial, "betabinom(2, 8)"),
    "boltzmann": (Boltzmann, "boltzmann(0.5)"),
    "hypergeom": (Hypergeometric, "hypergeom(100)"),
    "zipf": (Zipf, "zipf(2)"),
}


def named(name: str) -> Spread:
    """Return the spread that has this name: ``"uniform"`` or one of the paper's eight.

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

    The label of a spread can be read back, unless the spread was made of shares or of a cdf.

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
