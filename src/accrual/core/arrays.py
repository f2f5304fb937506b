"""Array types that every room uses, and numbers that a user gives as an array."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def as_numbers(given: Any) -> Floats:
    """Return numbers, or rows of numbers, as an array; one NaN for all else, such as text, True or False.

    Examples
    --------
    >>> as_numbers([1, 2.5]), as_numbers([True, False]), as_numbers("3")
    (array([1. , 2.5]), array(nan), array(nan))
    """
    try:
        array = np.asarray(given)
        return array.astype(np.float64) if array.dtype.kind in "iufO" else np.array(np.nan)
    except (TypeError, ValueError, OverflowError):
        return np.array(np.nan)
