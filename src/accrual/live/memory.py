"""A tuple of arrays in one piece of memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

_LINE = 64  # bytes: where an array may begin


def together(arrays: Any) -> tuple[Any, npt.NDArray[np.uint8]]:
    """Return a copy of a named tuple of arrays, and the memory that all of them lie in.

    Examples
    --------
    >>> from accrual.policy.tpucbfrg import no_stats
    >>> stats, memory = together(no_stats(arms=3))
    >>> memory[:] = 0
    >>> stats.observed
    array([0., 0., 0.])
    """
    starts = [0]
    for array in arrays:
        starts.append(starts[-1] + -(-array.nbytes // _LINE) * _LINE)
    memory = np.zeros(starts[-1], np.uint8)
    copies = []
    for start, array in zip(starts, arrays, strict=False):
        copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
        copy[...] = array
        copies.append(copy)
    return type(arrays)(*copies), memory
