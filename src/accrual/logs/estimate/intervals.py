"""Means of groups, and shares with 95 % intervals, from what decisions paid in groups they completed.

With n_g decisions that have completed group g and S_g what they paid in it, m_g = S_g / n_g is the
expected pay of the group, whatever is still open: the mean cumulative function. Added up, m is the
expected total; divided by that, the spread.

Decisions are independent, the groups of one decision are not. So the covariance of the m is the sum
over decisions of products of what each contributes, corrected for the means being estimated:

    V_gh = sum_i (x_ig - m_g) (x_ih - m_h) / sqrt(n_g (n_g - 1) n_h (n_h - 1)),  i completed both,

with Satterthwaite's degrees of freedom, as the decisions that have completed more weigh more. Normal
(or t) intervals of shares fail where few decisions pay at all. The variance is therefore read as a number
of equal payments that would be as uncertain, reduced by the square of z / t; and the interval is the beta
one that Jeffreys' prior gives for so many payments. With many payments that is the t interval; with none
in a group it is still one. (`accrual.logs.estimate.arm_means` makes the intervals of means.)
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from accrual.core.jit import kernel, njit

# Sums that are the same to the bit, whatever the order of what is added.
#
# Numbers are added as whole multiples of a power of two, in two integers: one for what is large, one
# for the remainder. Adding integers is exact, so a log that is cut into parts and added up part by
# part gives the very same sums.

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_BITS = 61  # of an integer that a sum may take


class ExactScale(NamedTuple):
    """By what a number is multiplied before it is rounded, and then its remainder."""

    first: float
    second: float

    @classmethod
    def of(cls, largest: float, count: int) -> ExactScale:
        """Choose the scale for at most `count` numbers, none beyond `largest` in size.

        Examples
        --------
        >>> ExactScale.of(1.0, 1 << 20)
        ExactScale(first=2199023255552.0, second=2199023255552.0)
        """
        many = math.ceil(math.log2(max(count, 1)))
        size = math.ceil(math.log2(largest)) if largest > 0.0 else 0
        # Powers of two that floating-point numbers have, for values at their very limits.
        return cls(2.0 ** max(min(_BITS - many - size, 1000), -1000), 2.0 ** (_BITS - many))

    def split(self, values: Floats) -> tuple[Ints, Ints]:
        """Split values into whole multiples, and their remainders."""
        scaled = values * self.first
        whole = np.rint(scaled)
        return whole.astype(np.int64), np.rint((scaled - whole) * self.second).astype(np.int64)

    def joined(self, sums: Ints) -> Floats:
        """Give the sums as numbers again: `sums` has both integers along its first axis."""
        return np.asarray((sums[0] + sums[1] / self.second) / self.first, dtype=np.float64)


# Sums over decisions of what they paid in groups, by arm and by how many groups they have completed.


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


_LOW, _HIGH = 0.025, 0.975
_Z = float(special.ndtri(_HIGH))
_MANY = 1e7  # payments, from which on everything is normal
_FREEDOM_LEAST, _FREEDOM_MOST = 1.0, 1e6


class Sums:
    """What decisions paid in the groups they have completed, added up arm by arm, in no order.

    Parameters
    ----------
    groups : int
    largest : array_like
        What no decision of each arm pays more than, in size, in one group.
    decisions : int
        How many there will be at most.

    Attributes
    ----------
    count : ndarray
        arms x r: how many decisions have completed exactly r groups, r from 0.
    """

    def __init__(self, groups: int, largest: npt.ArrayLike, decisions: int) -> None:
        sizes = np.asarray(largest, dtype=np.float64)
        arms = len(sizes)
        # A scale for each arm: one payment that is wrong by far spoils no other arm.
        self._pay = [ExactScale.of(float(size), decisions) for size in sizes]
        self._both = [ExactScale.of(float(size * size), decisions) for size in sizes]
        self.count = np.zeros((arms, groups + 1), np.int64)
        # What they paid in each group, and the squares of it: 2 x arms x r x groups. Pay in one group
        # times pay in another, the second not before the first: 2 x arms x groups x groups.
        paid, square = np.zeros((2, 2, arms, groups + 1, groups), np.int64)
        self._sums = (paid, square, np.zeros((2, arms, groups, groups), np.int64))

    def add(self, pay: Floats, done: Ints, arm: Ints) -> None:
        """Add decisions that paid `pay` (decisions x groups) and have completed `done` groups."""
        first, both = (np.array([scale.first for scale in scales]) for scales in (self._pay, self._both))
        add_grouped(pay, done, arm, self.count, self._sums, (first, both, self._pay[0].second))

    def merge(self, other: Sums) -> None:
        """Add the decisions of another part of the log."""
        self.count = self.count + other.count
        paid, square, product = (own + added for own, added in zip(self._sums, other._sums, strict=True))
        self._sums = (paid, square, product)

    @property
    def closed(self) -> Ints:
        """Decisions of each arm that have completed every group."""
        return self.count[:, -1]

    def of(self, arm: int) -> ArmSums:
        """Give the sums of one arm."""
        return ArmSums.made(*self._numbers(arm))

    def together(self) -> ArmSums:
        """Give the sums of all arms."""
        total = self._numbers(0)
        for arm in range(1, len(self.count)):
            total = tuple(x + y for x, y in zip(total, self._numbers(arm), strict=True))
        return ArmSums.made(*total)

    def _numbers(self, arm: int) -> tuple[Floats, ...]:
        paid, square, product = (sums[:, arm] for sums in self._sums)
        both = self._both[arm]
        count = self.count[arm].astype(np.float64)
        return count, self._pay[arm].joined(paid), both.joined(square), both.joined(product)


class ArmSums(NamedTuple):
    """The sums of one arm, or of all."""

    completed: Floats  # how many decisions have completed exactly r groups, r from 0
    seen: Floats  # how many have completed each group
    # paid, square: groups x groups: what those that have completed the second group (and so all before it)
    # paid in the first, and the squares of it.
    paid: Floats
    square: Floats
    product: Floats  # groups x groups: pay in one times pay in the other, for the second not before the first

    @classmethod
    def made(cls, completed: Floats, paid: Floats, square: Floats, product: Floats) -> ArmSums:
        def among(by_completed: Floats) -> Floats:
            return np.asarray(np.cumsum(by_completed[::-1], axis=0)[::-1][1:].T)

        return cls(completed, among(completed), among(paid), among(square), product)


class GroupEstimate:
    """Means of groups and how sure they are; needs two decisions that have completed every group.

    Attributes
    ----------
    seen : ndarray
        Decisions that have completed each group.
    group_means : ndarray
    covariance : ndarray
        Of the group means.
    """

    def __init__(self, sums: ArmSums) -> None:
        self._completed = sums.completed
        self.seen = sums.seen
        self.group_means = np.diag(sums.paid) / self.seen
        # For g before h, over those that have completed h: sum of (x_g - m_g) (x_h - m_h).
        upper = np.triu(sums.product - sums.paid * self.group_means)
        scatter = upper + np.triu(upper, 1).T
        each = self.seen * (self.seen - 1.0)
        self.covariance = scatter / np.sqrt(np.outer(each, each))
        # Between the groups of one decision.
        self._within = scatter / (np.minimum.outer(self.seen, self.seen) - 1.0)

    @cached_property
    def total(self) -> float:
        return float(self.group_means.sum())

    def variance(self, weights: Floats) -> Floats:
        """Give the variances of sums of the group means with `weights`, rows x groups."""
        variance = np.einsum("rg,gh,rh->r", weights, self.covariance, weights)
        return np.asarray(np.maximum(variance, 0.0))

    def freedom(self, weights: Floats) -> Floats:
        """Give Satterthwaite's degrees of freedom of `variance`."""
        w = weights / self.seen
        parts = np.einsum("rg,gh,rh->rgh", w, self._within, w)
        blocks = np.cumsum(np.cumsum(parts, axis=1), axis=2)
        each = np.maximum(np.diagonal(blocks, axis1=1, axis2=2), 0.0)  # of a decision, by what it completed
        counts = self._completed[1:]
        first, second = each @ counts, each**2 @ counts
        with np.errstate(all="ignore"):
            freedom = np.where(second > 0.0, first**2 / second - 1.0, self.seen[-1] - 1.0)
        return np.asarray(np.clip(freedom, _FREEDOM_LEAST, _FREEDOM_MOST))

    def shares(self, weights: Floats | None = None, signed: bool = False) -> Floats:
        """Give shares of the total, and their intervals: 3 x rows.

        Each row of `weights` is 1 for the groups it counts; one row for each group unless given.
        """
        weights = np.eye(len(self.seen)) if weights is None else weights
        share = weights @ self.group_means / self.total
        contrast = weights - share[:, None]
        error = np.sqrt(self.variance(contrast)) / self.total
        reach = special.stdtrit(self.freedom(contrast), _HIGH) * error
        if signed:
            return np.stack([share, share - reach, share + reach])
        share = np.clip(share, 0.0, 1.0)
        with np.errstate(all="ignore"):
            payments = share * (1.0 - share) / (reach / _Z) ** 2
        # Where nothing varies, all there is to go by is how many there are.
        alike = min(self._payments(), float(self.seen[-1]))
        payments = np.where((share > 0.0) & (share < 1.0) & (reach > 0.0), payments, alike)
        a, b = payments * share + 0.5, payments * (1.0 - share) + 0.5
        low = np.where(payments > _MANY, share - reach, special.betaincinv(a, b, _LOW))
        high = np.where(payments > _MANY, share + reach, special.betaincinv(a, b, _HIGH))
        low, high = np.where(share <= 0.0, 0.0, low), np.where(share >= 1.0, 1.0, high)
        return np.stack(
            [share, np.clip(np.minimum(low, share), 0, 1), np.clip(np.maximum(high, share), 0, 1)]
        )

    def _payments(self) -> float:
        variance = float(self.variance(np.ones((1, len(self.seen))))[0])
        return self.total**2 / variance if variance > 0.0 else np.inf
