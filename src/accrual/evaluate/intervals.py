"""Intervals within what a value can be: a click rate is never below 0, a share never above 1."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from accrual.core.interval import Interval, confined

_LOW, _HIGH = 0.025, 0.975
Z = float(special.ndtri(_HIGH))


def within(
    value: float, error: float, least: float = 0.0, most: float = math.inf, size: float = math.inf
) -> Interval:
    """Make the 95 % interval of an estimate that can only lie between `least` and `most`.

    The standard error is read as a number of equal payments that would be as uncertain; the interval
    is the one that Jeffreys' prior gives for so many: gamma without an upper end, beta with one.
    With many payments that is the normal interval. An estimate that lies beyond what is possible has the
    possible part of its normal interval.

    Parameters
    ----------
    value : float
        The estimate; the interval is made around the nearest value that is possible.
    error : float
        Its standard error; NaN for none, which gives an interval of NaN.
    least, most : float
        Where the value can lie. Without a `least` the interval is normal.
    size : float
        How many decisions the estimate is based on: what there is to go by where nothing varied.

    Examples
    --------
    >>> found = within(0.5, 0.05, most=1.0)
    >>> round(found.low, 3), round(found.high, 3)
    (0.403, 0.597)
    >>> found = within(0.0, 0.0, most=1.0, size=100)
    >>> round(found.low, 3), round(found.high, 3)
    (0.0, 0.025)
    """
    if math.isnan(error):
        return Interval(value, math.nan, math.nan)
    if math.isinf(least):
        return Interval(value, value - Z * error, value + Z * error)
    if math.isinf(most):
        inner = max(value - least, 0.0)
        if inner == 0.0 or error == 0.0:
            return Interval(value, max(value - Z * error, least), value + Z * error)
        payments = (inner / error) ** 2
        low, high = special.gammaincinv(payments + 0.5, [_LOW, _HIGH]) * (inner / payments)
        return Interval(value, least + float(min(low, inner)), least + float(max(high, inner)))
    width = most - least
    share = min(max((value - least) / width, 0.0), 1.0)
    if error > 0.0 and not least < value < most:
        return confined(Interval(value, value - Z * error, value + Z * error), least, most, size)
    payments = min(share * (1.0 - share) / (error / width) ** 2 if error > 0.0 else size, 1e12)
    a, b = payments * share + 0.5, payments * (1.0 - share) + 0.5
    low, high = special.betaincinv(a, b, [_LOW, _HIGH])
    low = 0.0 if share == 0.0 else min(float(low), share)
    high = 1.0 if share == 1.0 else max(float(high), share)
    return Interval(value, float(least + width * low), float(least + width * high))


def difference(one: Interval, other: Interval, correlated: float = 0.0) -> Interval:
    """Make the interval of the difference of two estimates from the interval of each.

    Each end lies as far from the difference as the two ends that make it lie from their estimates, added up
    as errors are (Zou and Donner's method of variance estimates recovery, 2008). So an arm that never paid
    differs from others by no more than its own upper end allows.

    Examples
    --------
    >>> found = difference(Interval(0.0, 0.0, 0.0096), Interval(0.0046, 0.0033, 0.0059))
    >>> found.low < 0.0 < found.high
    True
    """

    def reach(a: float, b: float) -> float:
        return math.sqrt(max(a * a + b * b - 2.0 * correlated * a * b, 0.0))

    value = one.value - other.value
    return Interval(
        value,
        value - reach(one.value - one.low, other.high - other.value),
        value + reach(one.high - one.value, other.value - other.low),
    )


def correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Return the correlation of numbers in pairs; 0 where either never varies.

    Examples
    --------
    >>> correlation(np.array([1.0, 2.0, 4.0]), np.array([2.0, 4.0, 8.0]))
    1.0
    """
    a, b = one - one.mean(), other - other.mean()
    size = math.sqrt(float(a @ a) * float(b @ b))
    return min(float(a @ b) / size, 1.0) if size > 0.0 else 0.0


class BoundedLaw(NamedTuple):
    """A law with a given mean and standard deviation on what a figure can be: normal, gamma or beta."""

    least: float
    most: float
    mean: float
    error: float

    @classmethod
    def of(cls, mean: float, error: float, least: float, most: float) -> BoundedLaw:
        """Make the law; a variance that is not possible becomes the largest that is."""
        if math.isfinite(most):
            error = min(error, 0.999 * math.sqrt(max((mean - least) * (most - mean), 0.0)))
        return cls(least, most, mean, error)

    def below(self, value: float) -> float:
        """Return the probability of less than `value`."""
        if self.error == 0.0:
            return float(self.mean < value)
        if math.isinf(self.least):
            return float(special.ndtr((value - self.mean) / self.error))
        if math.isinf(self.most):
            shape = ((self.mean - self.least) / self.error) ** 2
            return float(
                special.gammainc(shape, max(value - self.least, 0.0) * shape / (self.mean - self.least))
            )
        a, b = self._beta()
        return float(
            special.betainc(a, b, min(max((value - self.least) / (self.most - self.least), 0.0), 1.0))
        )

    def quantile(self, level: float) -> float:
        """Return the value below which that share is."""
        if self.error == 0.0:
            return self.mean
        if math.isinf(self.least):
            return self.mean + self.error * float(special.ndtri(level))
        if math.isinf(self.most):
            shape = ((self.mean - self.least) / self.error) ** 2
            return self.least + float(special.gammaincinv(shape, level)) * (self.mean - self.least) / shape
        return self.least + (self.most - self.least) * float(special.betaincinv(*self._beta(), level))

    def _beta(self) -> tuple[float, float]:
        width = self.most - self.least
        share = (self.mean - self.least) / width
        weight = share * (1.0 - share) / (self.error / width) ** 2 - 1.0
        return weight * share, weight * (1.0 - share)


def t_factor(freedom: int) -> float:
    """Return how many times wider an interval of Student's t is than a normal one; NaN for freedom 0.

    Examples
    --------
    >>> round(t_factor(19), 4)
    1.0679
    """
    return float(special.stdtrit(freedom, _HIGH)) / Z if freedom >= 1 else math.nan


def ratio_interval(numerator: np.ndarray, denominator: np.ndarray) -> Interval | None:
    """Return Fieller's 95 % interval of a ratio of two means that were observed in pairs.

    None where the denominator cannot be told from 0: then a ratio could be anything.

    Examples
    --------
    >>> top, bottom = np.array([1.0, 1.2, 0.8, 1.0]), np.array([2.0, 2.1, 1.9, 2.0])
    >>> found = ratio_interval(top, bottom)
    >>> round(found.value, 2), round(found.low, 2), round(found.high, 2)
    (0.5, 0.4, 0.59)
    """
    count = len(numerator)
    if count < 3:
        return None
    x, y = float(numerator.mean()), float(denominator.mean())
    (vx, cov), (_, vy) = (np.cov(numerator, denominator) / count).tolist()
    t2 = float(special.stdtrit(count - 1, _HIGH)) ** 2
    a, b, c = y * y - t2 * vy, x * y - t2 * cov, x * x - t2 * vx
    if a <= 0.0 or y <= 0.0:
        return None
    root = math.sqrt(max(b * b - a * c, 0.0))
    return Interval(x / y, (b - root) / a, (b + root) / a)
