"""Which group an age is in, and what it means that a decision was followed to the end of its window.

The fit, the problem made of it, `compare`, `replay` and the live ledger all use these functions. An age
counts as having reached the start of a group from a billionth of itself before it, so that an age
computed with floating-point numbers (0.29 of 1 in 100 groups) is where it would be on paper.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from accrual.core.arrays import Floats, Ints

Bools = npt.NDArray[np.bool_]

NUDGE = 1.0 + 1e-9


def group_of(age: npt.ArrayLike, window: float, groups: int) -> Ints:
    """Return the group of each age, from 0; `groups` stands for the window's end and everything after it.

    It also says how many groups are over at an age.

    Examples
    --------
    >>> group_of([0.0, 0.29, 0.57, 0.58, 1.0, 7.0], window=1.0, groups=100).tolist()
    [0, 29, 57, 58, 100, 100]
    """
    place = np.asarray(age, dtype=np.float64) * (groups / window * NUDGE)
    return np.asarray(np.minimum(place, groups)).astype(np.int64)


def group_ends(ends: npt.ArrayLike, steps: float, window: float) -> Floats:
    """Return the ages from which on groups are over, where groups end at some of the window's equal `steps`.

    Searching an age among them gives its group, as `group_of` does; the last is the window to the bit.

    Examples
    --------
    >>> ends = group_ends([1, 29, 57, 100], steps=100, window=1.0)
    >>> np.searchsorted(ends, [0.0, 0.29, 0.57, 0.99], side="right").tolist()
    [0, 2, 3, 3]
    """
    steps_done = np.asarray(ends, dtype=np.float64)
    return np.where(steps_done == steps, window, steps_done * window / steps / NUDGE)


def is_within(age: npt.ArrayLike, window: npt.ArrayLike) -> Bools:
    """Tell which ages lie within a window; at its end and after it they do not.

    Examples
    --------
    >>> is_within([2.9, 3.0], 3.0).tolist()
    [True, False]
    """
    return np.asarray(np.asarray(age, dtype=np.float64) * NUDGE < np.asarray(window, dtype=np.float64))


def followed_for(at: npt.ArrayLike, end: float, own_window: npt.ArrayLike = np.inf) -> Floats:
    """Return how long the log followed each decision: to its end, or to the end of the decision's own window.

    A decision's own window says how long it was watched, and not that nothing came afterwards. So a
    decision whose own window is shorter than the window in question is cut short: it counts in the
    groups that it has completed, and its total is unknown.

    Examples
    --------
    >>> followed_for([0.0, 4.0, 9.0], end=10.0, own_window=[3.0, np.inf, 3.0]).tolist()
    [3.0, 6.0, 1.0]
    """
    return np.minimum(end - np.asarray(at, dtype=np.float64), np.asarray(own_window, dtype=np.float64))


def is_closed(followed: npt.ArrayLike, window: npt.ArrayLike) -> Bools:
    """Tell which decisions were followed for a whole window, so that their totals are known.

    Examples
    --------
    >>> is_closed([3.0, 6.0, 1.0], window=6.0).tolist()
    [False, True, False]
    """
    return np.asarray(~is_within(followed, window))
