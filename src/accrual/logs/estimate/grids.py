"""Ages cut into cells: the groups of a window, fine cells of any age, and bins made of those."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from accrual.core.arrays import Floats, Ints
from accrual.core.groups import NUDGE, group_of, is_within

_BITS = 11  # of an age that tell its fine cell: 2,048 cells to each doubling
_SHIFT = 52 - _BITS
_FIRST = int(np.float64(1 << _BITS).view(np.int64)) >> _SHIFT
_OCTAVES = 45  # below the last age, of which the first `_BITS` are cells of one length


class Grid(Protocol):
    """Cells of ages, one after the other from 0; `edges` are the ages at which they end."""

    edges: Floats

    def __len__(self) -> int: ...

    def place(self, age: Floats) -> Ints:
        """Return the cell that an age is in; also how many cells are over at that age."""


class EvenGrid:
    """The equal groups of a window."""

    def __init__(self, window: float, groups: int) -> None:
        self._window, self._groups = window, groups
        self.edges = np.asarray(np.arange(1, groups + 1) * (window / groups), dtype=np.float64)

    def __len__(self) -> int:
        return self._groups

    def place(self, age: Floats) -> Ints:
        return group_of(age, self._window, self._groups)


class FineGrid:
    """Cells that are a thousandth of their age or finer, whatever the age, and never shorter than a step.

    An age in steps, and 2,048 more, is a floating-point number whose first bits are its cell: the
    first 2,048 cells are a step each, the next 2,048 two steps each, and so on.

    Parameters
    ----------
    last : float
        The age at which the last cell ends.
    step : float
        What all ages are multiples of; 0 where there is no such thing, and then cells begin far below
        anything that a log of this length can tell apart.

    Examples
    --------
    >>> grid = FineGrid(3.15e7)
    >>> cell = int(grid.place(np.array([46.0]))[0])
    >>> bool(np.diff(grid.edges[cell - 1 : cell + 1])[0] < 0.001 * 46.0)
    True
    """

    def __init__(self, last: float, step: float = 0.0) -> None:
        self._last, self._step = last, step if step > 0.0 else last / (2.0**_OCTAVES - (1 << _BITS))
        self._cells = int(self._index(np.array([last * (1.0 - 2e-9)]))[0]) + 1
        cell = np.arange(1, self._cells + 1)
        starts = ((cell + _FIRST) << _SHIFT).view(np.float64) - (1 << _BITS)
        self.edges = np.asarray(starts * self._step, dtype=np.float64)
        self._cut_short = bool(self.edges[-1] > last * (1.0 + 1e-12))  # the last of the cells
        self.edges[-1] = last

    def __len__(self) -> int:
        return self._cells

    def place(self, age: Floats) -> Ints:
        cell = np.minimum(self._index(age), self._cells)
        if self._cut_short:
            cell[~is_within(age, self._last)] = self._cells
        return cell

    def _index(self, age: Floats) -> Ints:
        steps = age * (NUDGE / self._step)
        steps += 1 << _BITS
        cell = steps.view(np.int64)  # an infinite age's is the largest of all
        cell >>= _SHIFT
        cell -= _FIRST
        return cell


class CoarseGrid:
    """Bins made of whole cells of another grid.

    Parameters
    ----------
    ends : array_like
        The number of cells that are over at the end of each bin, rising.
    """

    def __init__(self, cells: Grid, ends: npt.ArrayLike) -> None:
        wanted = np.asarray(ends, dtype=np.int64)
        self._cells = cells
        # Looked up for every piece of a log, so it should stay near the core.
        self._bin = np.searchsorted(wanted, np.arange(len(cells) + 1), side="right").astype(np.int32)
        self.edges = np.asarray(cells.edges[wanted - 1], dtype=np.float64)

    def __len__(self) -> int:
        return len(self.edges)

    def place(self, age: Floats) -> Ints:
        return np.asarray(self._bin[self._cells.place(age)], dtype=np.int64)
