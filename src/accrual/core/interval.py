"""An estimate with its 95 % interval, and the interval of a mean."""

from __future__ import annotations

import math
from dataclasses import dataclass

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
        between = "" if math.isnan(self.low) else f" (95 % {self.between()})"
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


def mean_interval(each: Floats, level: float = 0.975) -> Interval:
    """Return the mean of scores with its Student interval, with degrees of freedom from the scores' kurtosis.

    Most scores are alike, and a few are large because a rare choice was made. Their variance is then known
    less well than their number suggests.
    """
    count, value = len(each), float(each.mean())
    away = each - value
    square = float((away**2).mean())
    if square == 0.0:
        return Interval(value, value, value)
    tails = float((away**4).mean()) / square**2
    freedom = max(2.0 * count / max(tails - 1.0, 1e-9), 1.0)
    error = math.sqrt(square / (count - 1)) * float(special.stdtrit(min(freedom, 1e9), level))
    return Interval(value, value - error, value + error)
