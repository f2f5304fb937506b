"""More columns for a linear model of contexts: bends of numbers, and pairs of features.

A linear model adds up what each feature says by itself. It cannot say "most in the middle of the range", nor
"paid *and* on a phone". Both are linear in more columns than a context has numbers: the Legendre polynomials
of a number, and the products of the numbers of two features.

`Layout` says what the numbers of a context stand for; a live bandit's features and a simulated problem's
contexts both have one. `Basis` says which columns follow from it, and `expand` computes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import NamedTuple

import numpy as np

from accrual.core.arrays import Floats, Ints
from accrual.core.jit import njit

BENDS = 3  # columns for the bends of a number: the polynomials of degree 2, 3 and 4


class Layout(NamedTuple):
    """What the numbers of a context stand for: arrays with an entry for each number."""

    feature: Ints  # its feature: 0 for the constant, then 1, 2, ...
    middle: Floats  # of its range, and ...
    half: Floats  # ... half the length of it; 0 and 1 for a level, which is 0 or 1
    bends: Ints  # 1 for a number within a range, 0 for the others

    @property
    def width(self) -> int:
        """How many numbers a context has, the constant included."""
        return len(self.feature)


class FeatureNumbers(NamedTuple):
    """The numbers of one feature in a context; unless said otherwise, those of yes or no."""

    numbers: int = 1
    middle: float = 0.5
    half: float = 0.5
    bends: bool = False


def levels(count: int) -> FeatureNumbers:
    """Return the numbers of a feature with levels: one for each level."""
    return FeatureNumbers(count, 0.0, 1.0)


def layout_of(features: Sequence[FeatureNumbers]) -> Layout:
    """Return the layout of contexts with these features, after a constant.

    Examples
    --------
    >>> layout_of([FeatureNumbers(), levels(2)]).feature
    array([0, 1, 2, 2])
    """
    rows = [(0, 0.0, 1.0, 0)]
    for place, (count, middle, half, bends) in enumerate(features, start=1):
        rows += [(place, middle, half, int(bends))] * count
    feature, middles, halves, bending = zip(*rows, strict=True)
    return Layout(np.array(feature), np.array(middles), np.array(halves), np.array(bending))


class Basis(NamedTuple):
    """The columns of a linear model: first the numbers of a context, then what is made from them."""

    group: Ints  # of each column made: columns of one group are bends of one number, or one pair of features
    first: Ints  # of each column made: the number that bends, or the first one of a product
    second: Ints  # of each column made: the other number of a product; minus the degree for a bend
    middle: Floats  # of each number, as in `Layout`
    scale: Floats  # of each number: 1 / half of its range

    @property
    def width(self) -> int:
        """How many columns there are, the constant included."""
        return len(self.middle) + len(self.first)


def basis_of(layout: Layout, most: int) -> Basis:
    """Return the columns for contexts of this layout: with bends if all of them fit, then with pairs too.

    Parameters
    ----------
    most : int
        How many columns there may be. Pairs are left out if all of them do not fit, and so are bends.

    Examples
    --------
    >>> layout = layout_of([FeatureNumbers(), FeatureNumbers(bends=True), levels(2)])
    >>> [basis_of(layout, most).width for most in (0, 8, 13)]
    [5, 8, 13]
    """
    numbers = [np.flatnonzero(layout.feature == f).tolist() for f in range(1, int(layout.feature.max()) + 1)]
    bends = [[(j, -degree) for degree in range(2, 2 + BENDS)] for j in np.flatnonzero(layout.bends).tolist()]
    pairs = [list(product(left, right)) for left, right in combinations(numbers, 2)]
    groups: list[list[tuple[int, int]]] = []
    for more in (bends, pairs):
        if layout.width + sum(map(len, groups + more)) <= most:
            groups += more
    made = [(place, *column) for place, group in enumerate(groups) for column in group]
    group, first, second = np.array(made, np.int64).reshape(len(made), 3).T.copy()
    return Basis(group, first, second, layout.middle, 1.0 / layout.half)


@njit
def expand(basis: Basis, x: Floats, columns: Floats) -> None:
    """Write into `columns` those of the context `x`."""
    width = len(basis.middle)
    for j in range(width):
        columns[j] = x[j]
    for k in range(len(basis.first)):
        i, j = basis.first[k], basis.second[k]
        u = (x[i] - basis.middle[i]) * basis.scale[i]
        if j > 0:
            value = u * (x[j] - basis.middle[j]) * basis.scale[j]
        elif j == -2:
            value = 1.5 * u * u - 0.5
        elif j == -3:
            value = (2.5 * u * u - 1.5) * u
        else:
            value = (4.375 * u * u - 3.75) * u * u + 0.375
        columns[width + k] = value
