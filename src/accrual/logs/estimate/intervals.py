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

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import special

from accrual.core.arrays import Floats, Ints
from accrual.core.jit import kernel

_LOW, _HIGH = 0.025, 0.975
_Z = float(special.ndtri(_HIGH))
_MANY = 1e7  # payments, from which on everything is normal
_FREEDOM_LEAST, _FREEDOM_MOST = 1.0, 1e6


class Sums:
    """What decisions paid in the groups that they have completed, added up by arm.

    Attributes
    ----------
    count : ndarray
        arms x r: how many decisions have completed exactly r groups, r from 0.
    """

    def __init__(self, groups: int, arms: int) -> None:
        self.count = np.zeros((arms, groups + 1), np.int64)
        # What they paid in each group, and the squares of it: arms x r x groups. Pay in one group times pay
        # in another, the second not before the first: arms x groups x groups.
        self._paid, self._square = np.zeros((2, arms, groups + 1, groups))
        self._product = np.zeros((arms, groups, groups))

    def add(self, pay: Floats, done: Ints, arm: Ints) -> None:
        """Add decisions that paid `pay` (decisions x groups) and have completed `done` groups."""
        add_grouped(pay, done, arm, self.count, self._paid, self._square, self._product)

    @property
    def closed(self) -> Ints:
        """Decisions of each arm that have completed every group."""
        return self.count[:, -1]

    def of(self, arm: int) -> ArmSums:
        """Return the sums of one arm."""
        count = self.count[arm].astype(np.float64)
        return ArmSums.made(count, self._paid[arm], self._square[arm], self._product[arm])

    def together(self) -> ArmSums:
        """Return the sums of all arms."""
        count = self.count.sum(axis=0).astype(np.float64)
        return ArmSums.made(count, *(x.sum(axis=0) for x in (self._paid, self._square, self._product)))


@kernel
def add_grouped(
    pay: Floats, done: Ints, arm: Ints, count: Ints, paid: Floats, square: Floats, product: Floats
) -> None:
    """Add decisions to the arrays of `Sums`.

    Parameters
    ----------
    pay : ndarray
        Decisions x groups, or more columns, which are left out; so is pay in groups from `done` on.
    done, arm : ndarray
        For each decision: how many groups it has completed, and its arm.
    count : ndarray
        Arms x completed.
    paid, square : ndarray
        Of pay and of its squares: arms x completed x groups.
    product : ndarray
        Arms x groups x groups, the second group not before the first.
    """
    paying = np.empty(product.shape[1], np.int64)
    for i in range(len(done)):
        a, r = arm[i], done[i]
        count[a, r] += 1
        number = 0
        for g in range(r):
            x = pay[i, g]
            if x != 0.0:  # most groups of most decisions pay nothing
                paying[number] = g
                number += 1
                paid[a, r, g] += x
                square[a, r, g] += x * x
        for j in range(number):
            x = pay[i, paying[j]]
            for k in range(j, number):
                product[a, paying[j], paying[k]] += x * pay[i, paying[k]]


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
        """Return the variances of sums of the group means with `weights`, rows x groups."""
        variance = np.einsum("rg,gh,rh->r", weights, self.covariance, weights)
        return np.asarray(np.maximum(variance, 0.0))

    def freedom(self, weights: Floats) -> Floats:
        """Return Satterthwaite's degrees of freedom of `variance`."""
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
        """Return shares of the total, and their intervals: 3 x rows.

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
