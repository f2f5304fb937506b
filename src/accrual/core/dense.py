"""Small dense matrices in compiled code: inverse, root, products.

Every inner loop goes along a row and adds to separate sums, so that the compiler can use vector
instructions without changing the order of any addition: plain Python gives the same bits. All matrices
are symmetric and positive definite, so that no pivoting is needed.
"""

from __future__ import annotations

import math

from accrual.core.arrays import Floats
from accrual.core.jit import njit, njit_noinline

_LEAST = 1e-300


@njit
def _eliminate(row: Floats, other: Floats, k: int) -> None:
    """Take the pivot `row` of step k from another row."""
    factor = other[k]
    for j in range(len(row)):
        other[j] -= factor * row[j]
    other[k] = 0.0 - factor * row[k]  # at the end: written first, it would delay the loop, which reads it


@njit_noinline
def invert(matrix: Floats) -> None:
    """Replace a positive definite matrix by its inverse (Gauss-Jordan), made symmetric to the bit."""
    width = len(matrix)
    for k in range(width):
        row = matrix[k]
        scale = 1.0 / max(row[k], _LEAST)
        row[k] = 1.0
        for j in range(width):
            row[j] *= scale
        # In two loops, from which the compiler sees that no other row is the pivot row.
        for i in range(k):
            _eliminate(row, matrix[i], k)
        for i in range(k + 1, width):
            _eliminate(row, matrix[i], k)
    for i in range(width):
        for j in range(i):
            mean = 0.5 * (matrix[i, j] + matrix[j, i])
            matrix[i, j] = mean
            matrix[j, i] = mean


@njit_noinline
def take_root(matrix: Floats, root: Floats) -> None:
    """Write the lower Cholesky factor of `matrix` into `root`; `matrix` is overwritten."""
    width = len(matrix)
    for k in range(width):
        row = matrix[k]
        scale = 1.0 / math.sqrt(max(row[k], _LEAST))
        for j in range(k, width):
            row[j] *= scale
        for i in range(k + 1, width):
            other = matrix[i]
            factor = row[i]
            for j in range(i, width):
                other[j] -= factor * row[j]
        for i in range(width):
            root[i, k] = row[i] if i >= k else 0.0


@njit
def length(root: Floats, x: Floats, scratch: Floats) -> float:
    """Return the square root of x' root root' x, for a lower triangular `root`."""
    width = len(x)
    scratch[:] = 0.0
    for i in range(width):
        value = x[i]
        if value != 0.0:
            row = root[i]
            for j in range(i + 1):
                scratch[j] += value * row[j]
    total = 0.0
    for j in range(width):
        total += scratch[j] * scratch[j]
    return math.sqrt(total)


@njit
def dot(a: Floats, b: Floats) -> float:
    """Return the inner product of two vectors."""
    total = 0.0
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


@njit
def add_outer(lower: Floats, x: Floats) -> None:
    """Add x x' to a symmetric matrix of which only the lower triangle is kept."""
    for i in range(len(x)):
        value = x[i]
        if value != 0.0:
            row = lower[i]
            for j in range(i + 1):
                row[j] += value * x[j]


@njit
def times(matrix: Floats, x: Floats, out: Floats) -> None:
    """Write the product of a full symmetric matrix and a vector into `out`."""
    width = len(x)
    out[:] = 0.0
    for i in range(width):
        value = x[i]
        row = matrix[i]
        for j in range(width):
            out[j] += value * row[j]


@njit
def times_lower(lower: Floats, x: Floats, out: Floats) -> None:
    """Write the product of a symmetric matrix, kept as its lower triangle, and a vector into `out`."""
    width = len(x)
    out[:] = 0.0
    for i in range(width):
        value = x[i]
        row = lower[i]
        total = row[i] * value
        for j in range(i):
            out[j] += value * row[j]
            total += row[j] * x[j]
        out[i] += total
