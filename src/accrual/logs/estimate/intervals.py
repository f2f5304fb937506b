"""Shares of the reward with 95 % intervals, from the means of groups and their covariance.

Added up, the means of groups are the expected total; divided by that, they are the spread. Decisions are
independent, the groups of one decision are not, so the covariance of the means is added up over decisions
(`accrual.logs.estimate.cumulative_means`). Satterthwaite's degrees of freedom allow for decisions that were
followed for longer and weigh more. Normal (or t) intervals of shares fail where few decisions pay at all. The
variance is therefore read as a number of equal payments that would be as uncertain, reduced by the square of
z / t; and the interval is the beta one that Jeffreys' prior gives for so many payments. With many payments
that is the t interval; with none in a group it is still one.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy import special

from accrual.core.arrays import Floats

_LOW, _HIGH = 0.025, 0.975
_Z = float(special.ndtri(_HIGH))
_ROUNDING, _NO_ERROR = 1e-9, 1e-6  # of a share, and of what its interval reaches
_MANY = 1e7  # payments, from which on everything is normal
_FREEDOM_LEAST, _FREEDOM_MOST = 1.0, 1e6


class GroupEstimate:
    """Means of groups and how sure they are; needs two decisions that have completed every group.

    Attributes
    ----------
    seen : ndarray
        Decisions that have completed each group.
    covariance : ndarray
        Of the group means.
    """

    def __init__(
        self, completed: Floats, group_means: Floats, covariance: Floats, clusters: float = np.inf
    ) -> None:
        """Take the number of decisions that completed exactly 0, 1, 2, ... groups, and means of groups.

        `clusters` is how many clusters of decisions the covariance is made of, where there are such.
        """
        self._freedom_most = min(clusters - 1.0, _FREEDOM_MOST)
        self._completed, self.group_means, self.covariance = completed, group_means, covariance
        self.seen = np.cumsum(completed[::-1])[::-1][1:]
        # Between the groups of one decision.
        each = np.maximum(self.seen * (self.seen - 1.0), 1.0)
        pairs = np.maximum(np.minimum.outer(self.seen, self.seen) - 1.0, 1.0)
        self._within = covariance * np.sqrt(np.outer(each, each)) / pairs

    @cached_property
    def total(self) -> float:
        return float(self.group_means.sum())

    def variance(self, weights: Floats) -> Floats:
        """Return the variances of sums of the group means with `weights`, rows x groups."""
        variance = np.einsum("rg,gh,rh->r", weights, self.covariance, weights)
        return np.asarray(np.maximum(variance, 0.0))

    def freedom(self, weights: Floats) -> Floats:
        """Return Satterthwaite's degrees of freedom of `variance`."""
        w = weights / np.maximum(self.seen, 1.0)
        parts = np.einsum("rg,gh,rh->rgh", w, self._within, w)
        blocks = np.cumsum(np.cumsum(parts, axis=1), axis=2)
        each = np.maximum(np.diagonal(blocks, axis1=1, axis2=2), 0.0)  # of a decision, by what it completed
        counts = self._completed[1:]
        first, second = each @ counts, each**2 @ counts
        with np.errstate(all="ignore"):
            freedom = np.where(second > 0.0, first**2 / second - 1.0, self.seen[-1] - 1.0)
        return np.asarray(np.clip(freedom, _FREEDOM_LEAST, self._freedom_most))

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
        # What is not 0 or 1, or not without error, only by rounding would look certain.
        share = np.where(share < _ROUNDING, 0.0, np.where(share > 1.0 - _ROUNDING, 1.0, share))
        reach = np.where(reach < _NO_ERROR, 0.0, reach)
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
