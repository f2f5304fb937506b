"""How much of a mean rests on its largest decisions, and whether its interval can be trusted then.

An interval is made from what a log has seen. Where a few rare totals make the mean, a log that has missed
them has a mean and an error that are both too small, and no interval made of them holds. Two figures of the
log tell such totals (their limits were chosen on simulated logs; docs/measured/large_totals.md says how often
they are right):

- the share of the estimate's variance that the single largest decision makes. It vanishes in long logs where
  totals have a variance, and does not where they have none (the ratio of the maximum to the sum of squares);
- the tail index: of large totals about x**-index exceed x (Hill's estimate). At 2 and below they have no
  variance, at 1 no mean.
"""

from __future__ import annotations

import numpy as np

from accrual.core.arrays import Floats
from accrual.logs.fitted import LargeTotals

TOPS = 64  # of the largest totals of an arm, which are kept
FEW_PAYING = 30  # decisions that paid anything, below which the interval of a skewed mean may fail anyway
_TAIL = 0.1  # of the totals above 0: those that tell the tail's index
_TAIL_LEAST = 20  # fewer look heavy by chance in some of many arms
_INDEX_MOST, _SHARE_LEAST = 2.1, 0.08  # a heavy tail, in a log where single decisions matter
_ALONE = 0.4  # of the variance: one decision alone makes this much


def diagnose(tops: Floats, money: float, variance: float, paying: int) -> LargeTotals:
    """Say how much rests on the largest totals.

    Parameters
    ----------
    tops : ndarray
        The largest totals, falling; fewer than `TOPS` where there are fewer decisions.
    money : float
        All that was paid.
    variance : float
        The share of the variance that one decision makes.
    paying : int
        How many decisions paid anything.

    Examples
    --------
    >>> even = diagnose(np.ones(64), 100.0, 0.01, 100)
    >>> round(even.ten, 2), even.heavy
    (0.1, False)
    >>> whales = diagnose(np.array([200.0, *np.linspace(4.0, 1.0, 63)]), 500.0, 0.9, 300)
    >>> whales.largest, whales.heavy
    (0.4, True)
    """
    tops = tops[tops > 0.0]
    largest, ten = (float(tops[:count].sum()) / money if money > 0.0 else 0.0 for count in (1, 10))
    tail = min(int(_TAIL * paying), len(tops) - 1)
    index = None
    if tail >= _TAIL_LEAST:
        excess = float(np.log(tops[:tail] / tops[tail]).mean())
        index = 1.0 / max(excess, 1e-3)
    alone = variance > _ALONE and paying >= FEW_PAYING
    heavy = alone or (variance > _SHARE_LEAST and index is not None and index < _INDEX_MOST)
    return LargeTotals(min(largest, 1.0), min(ten, 1.0), variance, index, heavy)
