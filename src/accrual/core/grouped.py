"""Sums over decisions of what they paid in groups, by arm and by how many groups they have completed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from accrual.core.jit import kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@kernel
def add_grouped(
    pay: Floats, done: Ints, arm: Ints, count: Floats, paid: Floats, square: Floats, product: Floats
) -> None:
    """Add decisions to sums.

    Parameters
    ----------
    pay : ndarray
        Decisions x groups, or more columns, which are left out; so is pay in groups from `done` on.
    done, arm : ndarray
        For each decision: how many groups it has completed, and its arm.
    count, paid, square, product : ndarray
        The sums: arms x completed; the same x groups, of pay and of its squares; arms x groups x
        groups, the second not before the first.
    """
    groups = product.shape[1]
    some = np.empty(groups, np.int64)
    for i in range(len(done)):
        a, r = arm[i], done[i]
        count[a, r] += 1.0
        found = 0
        for g in range(r):
            x = pay[i, g]
            if x != 0.0:  # most groups of most decisions pay nothing
                some[found] = g
                found += 1
                paid[a, r, g] += x
                square[a, r, g] += x * x
        for j in range(found):
            x = pay[i, some[j]]
            for k in range(j, found):
                product[a, some[j], some[k]] += x * pay[i, some[k]]
