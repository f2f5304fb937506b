"""Which group an age is in, and whether a decision was followed to the end of its window.

The fit, the problem that is made from it, `compare`, `replay` and the live ledger all use these functions. An
age that falls short of the start of a group by at most a billionth of itself counts as in the group. So an
age that was computed with floating-point numbers (0.29 of 1 in 100 groups) is in the group that it has on
paper.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from accrual.core.arrays import Floats, Ints

Bools = npt.NDArray[np.bool_]

NUDGE = 1.0 + 1e-9


def group_of(age: npt.ArrayLike, window: float, groups: int) -> Ints:
    """Return the group of each age, from 0; ages at the window's end or later get `groups`.

    The result is also the number of groups that are over at an age.

    Examples
    --------
    >>> group_of([0.0, 0.29, 0.57, 0.58, 1.0, 7.0], window=1.0, groups=100).tolist()
    [0, 29, 57, 58, 100, 100]
    """
    place = np.asarray(age, dtype=np.float64) * (groups / window * NUDGE)
    return np.asarray(np.minimum(place, groups)).astype(np.int64)


def group_ends(ends: npt.ArrayLike, steps: float, window: float) -> Floats:
    """Return the ages at which groups are over, for groups that end at some of the window's equal `steps`.

    A search for an age among them finds its group, as `group_of` does. The last is the window to the bit.

    Examples
    --------
    >>> ends = group_ends([1, 29, 57, 100], steps=100, window=1.0)
    >>> np.searchsorted(ends, [0.0, 0.29, 0.57, 0.99], side="right").tolist()
    [0, 2, 3, 3]
    """
    steps_done = np.asarray(ends, dtype=np.float64)
    return np.where(steps_done == steps, window, steps_done * window / steps / NUDGE)


def is_within(age: npt.ArrayLike, window: npt.ArrayLike) -> Bools:
    """Return which ages lie within a window; ages at its end and after it do not.

    Examples
    --------
    >>> is_within([2.9, 3.0], 3.0).tolist()
    [True, False]
    """
    return np.asarray(np.asarray(age, dtype=np.float64) * NUDGE < np.asarray(window, dtype=np.float64))


def followed_for(at: npt.ArrayLike, end: float, own_window: npt.ArrayLike = np.inf) -> Floats:
    """Return how long each decision was followed: to the log's end, or to the end of its own window.

    A decision's own window says how long it was watched, not that nothing came afterwards. So if its own
    window is shorter than the window in question, the decision counts in the groups that it has completed,
    and its total is unknown.

    Examples
    --------
    >>> followed_for([0.0, 4.0, 9.0], end=10.0, own_window=[3.0, np.inf, 3.0]).tolist()
    [3.0, 6.0, 1.0]
    """
    return np.minimum(end - np.asarray(at, dtype=np.float64), np.asarray(own_window, dtype=np.float64))


def is_closed(followed: npt.ArrayLike, window: npt.ArrayLike) -> Bools:
    """Return which decisions were followed for a whole window, so that their totals are known.

    Examples
    --------
    >>> is_closed([3.0, 6.0, 1.0], window=6.0).tolist()
    [False, True, False]
    """
    return np.asarray(~is_within(followed, window))
