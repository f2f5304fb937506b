"""Draws from a continuous law by its inverse cdf, read from a table of polynomials.

The unit interval is cut where floating-point numbers are: octave by octave towards 0, and the
same towards 1, each octave into equal cells. A quantile function varies smoothly over such a
cell even where it has a singular end, so a polynomial of degree 5 per cell holds the error in u
(the distance between F(x) and the u that asked for x) below `U_ERROR`; where the density is
infinite at 1 (a Beta's b below 1) the spacing of floating-point numbers there is coarser than
that. Finding the cell is a shift of u's own bits: no search, no branch on the law.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from accrual.core.jit import njit

U_ERROR = 1e-9

OCTAVES = 31  # below 2**-31 every answer in the last cell is right to within U_ERROR
_CELLS_BITS = 3
_CELLS = 1 << _CELLS_BITS
_DEGREE = 5
SIDE = OCTAVES * _CELLS

_SHIFT = 52 - _CELLS_BITS
_FIRST = (1023 - OCTAVES - 1) << _CELLS_BITS  # float bits of 2**-(OCTAVES + 1), shifted
_LEAST = 2.0 ** -(OCTAVES + 1)

Array = npt.NDArray[np.float64]


def table(quantile: Callable[[Array, bool], Array]) -> Array:
    """Compute coefficients for `quantile`, cells x (degree + 1), lowest power first.

    Parameters
    ----------
    quantile : callable
        ``quantile(p, upper)`` gives x with F(x) = p, or with 1 - F(x) = p where `upper`; both
        tails are asked for separately so that neither loses digits.
    """
    cell = np.arange(SIDE)
    width = 2.0 ** (cell // _CELLS - OCTAVES - 1) / _CELLS
    start = 2.0 ** (cell // _CELLS - OCTAVES - 1) + (cell % _CELLS) * width
    nodes = 0.5 - 0.5 * np.cos(np.pi * (np.arange(_DEGREE + 1) + 0.5) / (_DEGREE + 1))
    powers = np.linalg.inv(np.vander(nodes, increasing=True))
    p = start[:, None] + width[:, None] * nodes[None, :]
    return np.concatenate([quantile(p, upper) @ powers.T for upper in (False, True)])


@njit
def invert(coefficients: Array, u: float) -> float:
    """Give the quantile at `u` from one law's table."""
    upper = u >= 0.5
    p = max(1.0 - u if upper else u, _LEAST)
    # p = 1/2 exactly belongs to the next octave, which the table does not have.
    cell = min(int(np.float64(p).view(np.int64) >> _SHIFT) - _FIRST, SIDE - 1)
    octave = cell >> _CELLS_BITS
    scale = np.int64((OCTAVES + 1 - octave + 1023) << np.int64(52)).view(np.float64)
    x = (p * scale - 1.0) * _CELLS - (cell & (_CELLS - 1))
    row = cell + SIDE if upper else cell
    value: float = coefficients[row, _DEGREE]
    for power in range(_DEGREE - 1, -1, -1):
        value = value * x + coefficients[row, power]
    return value
