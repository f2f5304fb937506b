"""An estimate with its 95 % interval, and the intervals of means."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special

from accrual.core.arrays import Floats
from accrual.core.number_text import figure


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval; the ends are NaN if they are not known.

    Examples
    --------
    >>> str(Interval(2.5, 2.0, 3.25)), Interval(1000.4, 900.0, 1100.0).between()
    ('2.5 (95 % 2 to 3.25)', '900 to 1,100')
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return self.written("95 %")

    def written(self, how_sure: str) -> str:
        """Write the estimate and its interval, with `how_sure` before the interval."""
        between = "" if math.isnan(self.low) else f" ({how_sure} {self.between()})"
        return figure(self.value) + between

    def between(self) -> str:
        """Write the interval, or a dash if it is not known."""
        return "-" if math.isnan(self.low) else f"{figure(self.low)} to {figure(self.high)}"

    def more_or_less(self) -> str:
        """Write a difference.

        Examples
        --------
        >>> Interval(0.5, 0.2, 0.8).more_or_less(), Interval(-0.1, -0.4, 0.2).more_or_less()
        ('0.5 (95 % 0.2 to 0.8) more', '0.1 (95 % -0.2 to 0.4) less')
        """
        if self.value < 0.0:
            return f"{Interval(-self.value, -self.high, -self.low)} less"
        return f"{self} more"


class ScoreSums(NamedTuple):
    """Sums of powers of the scores behind an estimate.

    A score is what one decision moves the estimate by. For a plain mean of n totals it is the total's
    distance from the mean, divided by n. Scores add up to 0, and their squares to the square of the
    estimate's error.
    """

    second: float
    third: float
    fourth: float
    size: float  # how many decisions of equal weight made the scores


def score_interval(value: float, scores: ScoreSums, level: float = 0.975) -> Interval:
    """Return the interval of an estimate from its scores: Hall's, with Student's quantiles.

    If totals are skewed, the estimate and its error are correlated: a log without one of the rare large
    totals has a small mean and a small error. Hall's cubic transformation of Student's t corrects this (P.
    Hall, On the removal of skewness by transformation, 1992). The degrees of freedom are those of the error:
    rare large scores make the error less certain than the number of decisions suggests. Without skewness, and
    with scores that vary like normal ones, this is Student's interval.

    Examples
    --------
    >>> each = np.array([0.0, 0.0, 1.0, 0.0, 5.0, 0.0, 1.0, 0.0])
    >>> found = mean_interval(each)
    >>> found.high - found.value > found.value - found.low
    True
    """
    if scores.second <= 0.0:
        return Interval(value, value, value)
    error = math.sqrt(scores.second)
    skew = scores.third / error**3
    uneven = scores.fourth / scores.second**2 - 1.0 / scores.size
    freedom = min(2.0 / max(uneven, 1e-9), max(scores.size - 1.0, 1.0))
    reach = float(special.stdtrit(max(freedom, 1.0), level))
    return Interval(value, value - error * _hall(reach, skew), value - error * _hall(-reach, skew))


def _hall(x: float, skew: float) -> float:
    """Return the t that Hall's transformation t + skew t²/3 + skew² t³/27 + skew/6 maps to `x`."""
    if abs(skew) < 1e-6:
        return x
    return 3.0 / skew * (float(np.cbrt(1.0 + skew * (x - skew / 6.0))) - 1.0)


def mean_interval(each: Floats, level: float = 0.975, count: float | None = None) -> Interval:
    """Return the mean of numbers with its interval; they count as `count` numbers of equal weight."""
    size, value = len(each), float(each.mean())
    count = float(size) if count is None else count
    away = (each - value) / math.sqrt(size * max(size - 1.0, 1.0))
    second, third, fourth = (float((away**power).sum()) for power in (2, 3, 4))
    return score_interval(value, ScoreSums(second, third, fourth, count), level)


def confined(interval: Interval, least: float, most: float, size: float) -> Interval:
    """Confine an interval to the values that are possible.

    The estimate itself may lie outside, as with inverse propensity scores. If all of `size` decisions paid
    the same, or if the whole interval lies outside, Jeffreys' prior says how many other decisions may pay the
    least or the most that is possible.

    Examples
    --------
    >>> confined(Interval(0.97, 0.91, 1.03), 0.0, 1.0, size=100)
    Interval(value=0.97, low=0.91, high=1.0)
    >>> found = confined(Interval(1.2, 1.1, 1.3), 0.0, 1.0, size=100)
    >>> round(found.low, 3), found.high
    (0.975, 1.0)
    """
    low, high = min(max(interval.low, least), most), max(min(interval.high, most), least)
    if low == high:
        others = float(special.betaincinv(0.5, min(size, 1e12) + 0.5, 0.975))
        low -= others * (low - least) if math.isfinite(least) else 0.0
        high += others * (most - high) if math.isfinite(most) else 0.0
    return Interval(interval.value, float(low), float(high))


def of_bounded(interval: Interval, least: float, most: float, size: float) -> Interval:
    """Narrow the interval of a mean of about `size` totals that all lie between `least` and `most`.

    Of all such totals with a given mean, those that are either the least or the most vary most. So the
    interval need not be wider than the one that Jeffreys' prior gives for them.

    Examples
    --------
    >>> found = of_bounded(Interval(0.96, 0.7, 1.2), 0.0, 1.0, size=50)
    >>> round(found.low, 3), round(found.high, 3)
    (0.878, 0.992)
    """
    inside = confined(interval, least, most, size)
    if not (least < interval.value < most and math.isfinite(most - least)):
        return inside
    share = (interval.value - least) / (most - least)
    ends = special.betaincinv(size * share + 0.5, size * (1.0 - share) + 0.5, [0.025, 0.975])
    low, high = (least + (most - least) * float(end) for end in ends)
    value = interval.value
    return Interval(value, max(inside.low, min(low, value)), min(inside.high, max(high, value)))
