"""Sums over decisions of what they paid in groups, by arm and by how many groups they have completed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from accrual.core.jit import kernel, njit

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@njit
def _add(sums: Ints, a: int, b: int, c: int, value: float, second: float) -> None:
    """Add a value that was scaled already, as a whole number and a remainder."""
    whole = np.rint(value)
    sums[0, a, b, c] += np.int64(whole)
    sums[1, a, b, c] += np.int64(np.rint((value - whole) * second))


@kernel
def add_grouped(
    pay: Floats,
    done: Ints,
    arm: Ints,
    count: Ints,
    sums: tuple[Ints, Ints, Ints],
    scales: tuple[Floats, Floats, float],
) -> None:
    """Add decisions to sums.

    Parameters
    ----------
    pay : ndarray
        Decisions x groups, or more columns, which are left out; so is pay in groups from `done` on.
    done, arm : ndarray
        For each decision: how many groups it has completed, and its arm.
    count : ndarray
        Arms x completed.
    sums : tuple of ndarray
        Of pay and of its squares, each 2 x arms x completed x groups; of products, 2 x arms x groups x
        groups, the second group not before the first. The leading 2 are whole numbers and remainders.
    scales : tuple
        What pay of each arm is multiplied by, what products of pay are, and what all remainders are.
    """
    paid, square, product = sums
    first, both, second = scales
    groups = product.shape[2]
    some = np.empty(groups, np.int64)
    for i in range(len(done)):
        a, r = arm[i], done[i]
        count[a, r] += 1
        paying = 0
        for g in range(r):
            x = pay[i, g]
            if x != 0.0:  # most groups of most decisions pay nothing
                some[paying] = g
                paying += 1
                _add(paid, a, r, g, x * first[a], second)
                _add(square, a, r, g, x * x * both[a], second)
        for j in range(paying):
            x = pay[i, some[j]]
            for k in range(j, paying):
                _add(product, a, some[j], some[k], x * pay[i, some[k]] * both[a], second)
