"""What every spread offers: a pmf over any number of groups, and two summaries of it."""

from __future__ import annotations

import math
import numbers
import os
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from accrual.core.errors import InputError, need, whole
from accrual.core.files import replacing

Pmf = npt.NDArray[np.float64]

GROUPS_MOST = 1_000_000


class Spread(ABC):
    """How a decision's cap is divided over the groups of its window.

    A subclass gives `_weights`; everything else follows from the pmf.
    """

    @property
    @abstractmethod
    def label(self) -> str:
        """A short name for tables and legends."""

    @abstractmethod
    def _weights(self, groups: int) -> Pmf:
        """Non-negative weights of groups 1..groups, summing to one up to rounding."""

    def pmf(self, groups: int) -> Pmf:
        """Give the share of the cap that falls to each of `groups` groups.

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
        >>> from accrual.spread import Zipf
        >>> Zipf(1).pmf(3)
        array([0.54545455, 0.27272727, 0.18181818])
        """
        with np.errstate(all="ignore"):
            pmf = self._weights(whole("groups", groups, 1, GROUPS_MOST))
        if not np.isfinite(pmf).all():
            raise InputError(f"{self.label} over {groups} groups is beyond floating-point numbers")
        return pmf

    def mean(self, groups: int) -> float:
        """Give E[Y], the mean group number (from 1) at which reward arrives.

        Examples
        --------
        >>> from accrual.spread import Uniform
        >>> Uniform().mean(20)
        10.5
        """
        pmf = self.pmf(groups)
        return float(np.arange(1, groups + 1) @ pmf)

    def coincidence(self, groups: int) -> float:
        """Give the index of coincidence, the sum of the squared shares.

        Examples
        --------
        >>> from accrual.spread import named
        >>> round(named("extreme_begin").coincidence(50), 2)
        0.51
        """
        pmf = self.pmf(groups)
        return float(pmf @ pmf)

    def plot(self, groups: int, path: str | os.PathLike[str] | None = None, ax: Any = None) -> Any:
        """Draw the pmf over `groups` groups; write it to `path` if one is given.

        Returns
        -------
        matplotlib.axes.Axes
        """
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


def short(number: float) -> str:
    """Give the shortest text that reads back as `number`."""
    text = f"{number:g}"
    return text if float(text) == number else repr(float(number))


def finite(value: Any) -> bool:
    """Tell whether `value` is a number, and neither NaN nor infinite."""
    return isinstance(value, numbers.Real) and math.isfinite(value)


def from_ratios(logs: Pmf) -> Pmf:
    """Give the pmf in which group k + 1 has ``exp(logs[k])`` times the share of group k.

    Built outwards from the largest share, so that rounding adds up only where shares are small;
    differences of log-gamma functions would lose digits as their arguments grow.
    """
    mode = int(np.argmax(np.cumsum(np.concatenate([[0.0], logs]))))
    after = np.cumsum(logs[mode:])
    before = -np.cumsum(logs[:mode][::-1])[::-1]
    weights = np.exp(np.concatenate([before, [0.0], after]))
    return np.asarray(weights / weights.sum())


def checked(weights: npt.ArrayLike, what: str = "a spread") -> Pmf:
    """Give `weights` as a pmf, or raise an `InputError` that says why it is none."""
    try:
        pmf = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{what} must be a list of numbers, not {weights!r}") from None
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
    """Give the same spread over another number of groups.

    Reward is taken to be even within each old group, so the cumulative share is linear between
    the old edges and is read off at the new ones.

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
