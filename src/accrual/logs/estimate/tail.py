"""The reward that comes after the window: how much there may be, and how long a window catches it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from accrual.core.arrays import as_numbers
from accrual.core.errors import InputError, as_number
from accrual.problems.spreads import Cdf, Continuous, Pmf, checked

_DRAWS = 2000
_ENOUGH, _ENOUGH_PAID = 0.01, 40.0  # of the reward, and in payments: to extrapolate from
_AGE_MOST = 1e18
_ROUNDING = 1e-12  # what differences of cumulative shares may be off by, and more
_COUNT_MOST = 1e12  # behind pay that never varies; more would change nothing


@dataclass(frozen=True)
class Tail:
    """What `estimate_tail` found."""

    share: float
    """The share of all reward that comes after the window. 1 if the window does not show the reward fading,
    so that nothing can be said."""
    low: float
    high: float
    """An interval for `share`, for the noise in the shares alone; 0 and 1 without counts."""
    rate: float
    """The hazard: the part of what is still to come that comes in one unit of age."""
    heavier: bool
    """Whether more came in the second half of the window than the first half allows if the hazard never
    falls. Then take `share` for too small."""
    window: float
    """The last edge, beyond which nothing was seen."""
    _edges: Pmf = field(repr=False, compare=False)
    _arrived: Pmf = field(repr=False, compare=False)

    def cdf(self, age: npt.ArrayLike) -> Pmf:
        """Return the share of all reward that has come by an age, before or after the window's end.

        Examples
        --------
        >>> tail = estimate_tail([0.8, 0.2], edges=[10, 20])
        >>> tail.cdf([10, 20, 30]).round(4)
        array([0.75  , 0.9375, 0.9844])
        """
        ages = np.asarray(age, dtype=np.float64)
        within = (1.0 - self.share) * np.interp(ages, self._edges, self._arrived)
        if self.share == 0.0:
            return np.asarray(within)
        after = 1.0 - self.share * np.exp(-self.rate * np.maximum(ages - self.window, 0.0))
        return np.where(ages <= self.window, within, after)


def estimate_tail(
    shares: npt.ArrayLike,
    edges: npt.ArrayLike,
    counts: npt.ArrayLike | None = None,
    last: float = 0.5,
    level: float = 0.95,
) -> Tail:
    """Estimate the share of reward that comes after the window, from the spread inside it.

    The last part of the window is cut in two, and what comes after goes on from there as it faded
    from the first piece to the second. That number has three readings. With h(a) the hazard at age
    a (of what is still to come, the part that comes now), averaged over each of the two pieces:

    - h the same in both, as with an exponential tail: it is the tail.
    - h not smaller in the second (any h that does not fall: exponential, normal, gamma and
      Weibull laws of shape 1 or more): it is an **upper bound**.
    - h smaller in the second (power laws, lognormal): it is a **lower bound**, and there is no
      upper one. Any tail at all goes with the same spread inside the window.

    Proof: with x the reward after the window, x + m2 after the first piece and x + m1 + m2 before
    it, the hazards are ln((x + m1 + m2) / (x + m2)) / u and ln((x + m2) / x) / v for pieces u and v
    long. Their difference changes its sign at one x, the one that is returned; the second is the
    larger below it. For u = v that x is m2**2 / (m1 - m2).

    Parameters
    ----------
    shares : array_like
        The spread over the buckets of the window, summing to one. In an Age policy's statistics an
        arm's is ``paid / seen``, divided by its sum.
    edges : array_like
        The age at which each bucket ends; ``policy.edges(window)``, say. The last is the window.
    counts : array_like, optional
        How many payments each share is based on (see `payments`), for the interval. Buckets are
        taken as independent: where one payment is drawn out over several, it is too narrow.
    last : float
        From which part of the window to extrapolate: 0.5 is its second half, 1 all of it. Where
        that holds less than a hundredth of the reward or fewer than 40 payments, from as much more
        as does. More is less noisy, but asks of a longer part that the hazard does not fall.
    level : float
        Of the interval.

    Examples
    --------
    >>> tail = estimate_tail([0.5, 0.25, 0.15, 0.1], edges=[1, 2, 3, 4])
    >>> round(tail.share, 4)  # 0.1 * (2/3 + 4/9 + ...) = 0.2, beside the 1 in the window
    0.1667
    >>> tail = estimate_tail([0.5, 0.25, 0.15, 0.1], edges=[1, 2, 3, 4], counts=[500, 250, 150, 100])
    >>> round(tail.low, 1), round(tail.high, 1)
    (0.1, 0.4)
    """
    pmf = checked(shares)
    ends = _edges(edges, pmf.size)
    for name, value in (("last", last), ("level", level)):
        if not 0 < as_number(value) <= 1:
            raise InputError(f"{name} must be above 0 and at most 1, not {value!r}")
    side = (1.0 - level) / 2.0
    end = pmf.size
    arrived = np.concatenate([[0.0], np.cumsum(pmf)])[:, None]
    known = np.full(end, _COUNT_MOST) if counts is None else _counts(counts, end)
    first, middle = _pieces(arrived, known, ends, last)
    half = int(np.abs(ends - ends[-1] / 2.0).argmin())
    quarter = int(np.abs(ends - ends[half] / 2.0).argmin())
    after, rate = _beyond(arrived, ends, (first, middle, end))
    low, high = 0.0, 1.0
    drawn = arrived
    if counts is not None:
        drawn = _drawn(pmf, known, sorted({0, first, middle, quarter, half, end}))
        possible, _ = _beyond(drawn, ends, (first, middle, end))
        low, high = (float(q) for q in np.quantile(_of_all(possible, drawn[-1]), [side, 1.0 - side]))
    heavier = False
    if 0 < quarter < half:
        # Where the hazard never falls, no more than this comes in all of the second half and later.
        heavier = all(
            (x[end] - x[half] > _beyond(x, ends, (0, quarter, half))[0] + _ROUNDING).mean() > 1.0 - side
            for x in (arrived, drawn)
        )
    return Tail(
        share=float(_of_all(after, arrived[-1])[0]),
        low=low,
        high=high,
        rate=float(rate[0]),
        heavier=heavier,
        window=float(ends[-1]),
        _edges=ends,
        _arrived=arrived[:, 0],
    )


def payments(seen: npt.ArrayLike, paid: npt.ArrayLike, square: npt.ArrayLike) -> Pmf:
    """Estimate how many payments each bucket is based on, for `estimate_tail`.

    That is the squared sum over its variance: the number of payments where all are alike and
    rare, and as many as would be as certain where they are not.

    Parameters
    ----------
    seen, paid, square : array_like
        Arms x buckets: decisions that have finished the bucket, the sum of what they paid in it,
        and of its squares; the fields of an Age policy's statistics of these names.

    Examples
    --------
    >>> payments([[100, 100]], [[20, 4]], [[20, 4]])  # 20 / 0.8 and 4 / 0.96
    array([25.        ,  4.16666667])
    """
    n, total, squares = (np.atleast_2d(np.asarray(x, dtype=np.float64)) for x in (seen, paid, square))
    if not n.shape == total.shape == squares.shape:
        raise InputError("seen, paid and square must be of one shape, arms x buckets")
    variance = (squares - total**2 / np.maximum(n, 1.0)).sum(axis=0)
    together = total.sum(axis=0)
    counts = together**2 / np.maximum(variance, together**2 / _COUNT_MOST + 1e-300)
    return np.asarray(counts)


def window_for(law: Cdf | Continuous, share: float = 0.99) -> float:
    """Find the shortest window that catches a share of the reward.

    Parameters
    ----------
    law : callable or Continuous
        Cumulative share of the reward by age, on [0, infinity); `Tail.cdf`, say. Of a
        `Continuous` spread its cdf counts, not its window.
    share : float
        Above 0 and below 1.

    Examples
    --------
    >>> round(window_for(lambda age: 1 - np.exp(-age / 10), share=0.99), 2)  # 10 ln(100)
    46.05
    >>> round(window_for(lambda age: 1 - (1 + age) ** -0.5, share=0.99), 2)  # a power law: 100**2 - 1
    9999.0
    """
    cdf = law.cdf if isinstance(law, Continuous) else law
    if not callable(cdf):
        raise InputError(f"a window is found from a cdf or a continuous spread, not {law!r}")
    if not 0 < as_number(share) < 1:
        raise InputError(f"share must be above 0 and below 1, not {share!r}")

    def caught(age: float) -> bool:
        return float(np.asarray(cdf(np.array([age])), dtype=np.float64)[0]) >= share

    long = 1.0
    while not caught(long):
        long *= 2.0
        if long > _AGE_MOST:
            raise InputError(f"the cdf does not reach {share:g} up to an age of {_AGE_MOST:g}")
    short = 0.0
    while not math.isclose(short, long, rel_tol=1e-12, abs_tol=1e-12):
        middle = (short + long) / 2.0
        short, long = (short, middle) if caught(middle) else (middle, long)
    return long


def _edges(edges: npt.ArrayLike, buckets: int) -> Pmf:
    """Check the edges and give the ages between which buckets lie, from 0 on."""
    given = as_numbers(edges)
    if given.ndim != 1:
        raise InputError(f"edges must be a list of ages, not {edges!r}")
    ends = np.concatenate([[0.0], given])
    if ends.size != buckets + 1:
        raise InputError(f"{buckets} shares need {buckets} edges, the age at which each bucket ends")
    if not (np.isfinite(ends).all() and (np.diff(ends) > 0).all()):
        raise InputError("edges must be finite, above 0, and each above the one before")
    if buckets < 2:
        raise InputError("a tail needs at least two buckets to extrapolate from")
    return ends


def _counts(counts: npt.ArrayLike, buckets: int) -> Pmf:
    count = as_numbers(counts)
    if count.shape != (buckets,) or not (np.isfinite(count).all() and (count >= 0).all()):
        raise InputError(f"counts must be {buckets} numbers of 0 or more, one for each share")
    return count


def _pieces(arrived: Pmf, counts: Pmf, ends: Pmf, last: float) -> tuple[int, int]:
    """Find where the last part of the window begins, and where its second piece does."""
    end = len(ends) - 1
    first = int(np.abs(ends[: end - 1] - ends[end] * (1.0 - last)).argmin())
    while first > 0 and (
        arrived[first, 0] > (1.0 - _ENOUGH) * arrived[end, 0] or counts[first:end].sum() < _ENOUGH_PAID
    ):
        first -= 1
    half = (ends[first] + ends[end]) / 2.0
    return first, first + 1 + int(np.abs(ends[first + 1 : end] - half).argmin())


def _beyond(arrived: Pmf, ends: Pmf, at: tuple[int, int, int]) -> tuple[Pmf, Pmf]:
    """Return what comes after the third edge if the hazard between the edges stays, and that hazard."""
    m1, m2 = np.diff(arrived[list(at)], axis=0)
    u, v = np.diff(ends[list(at)])
    with np.errstate(all="ignore"):
        rate = _rate(m2 / m1, v / u) / u
        after = m2 / np.expm1(rate * v)
    fades = m2 * u < m1 * v
    none = m2 <= 0.0
    return (
        np.where(none, 0.0, np.where(fades, after, np.inf)),
        np.where(none, np.inf, np.where(fades, rate, 0.0)),
    )


def _rate(ratio: Pmf, length: float) -> Pmf:
    """Return the hazard at which a piece `length` long gets `ratio` of what the piece before it, 1 long, got.

    That is (1 - exp(-length y)) / (exp(y) - 1), which falls in y: halve an interval around it.
    """
    low, high = np.full(ratio.shape, -30.0), np.full(ratio.shape, math.log(700.0))
    for _ in range(70):
        middle = (low + high) / 2.0
        y = np.exp(middle)
        above = -np.expm1(-length * y) / np.expm1(y) > ratio
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.asarray(np.exp(high))


def _of_all(after: Pmf, within: Pmf) -> Pmf:
    """Return `after` as a share of both; all of it where it is infinite."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(after), 1.0, after / (within + after))


def _drawn(pmf: Pmf, counts: Pmf, marks: list[int]) -> Pmf:
    """Draw what the cumulative reward at the edges in `marks` may truly be; draws are along axis 1.

    Payments of a part are Poisson, so that with Jeffreys' prior their mean is Gamma(count + 1/2).
    """
    dice = np.random.default_rng(0)
    arrived = np.zeros((pmf.size + 1, _DRAWS))
    typical = 1.0 / max(counts.sum(), 1.0)
    for low, high in pairwise(marks):
        share, known = pmf[low:high], counts[low:high]
        variance = (share**2 / np.maximum(known, 1e-300))[(known > 0) & (share > 0)].sum()
        mass = share.sum()
        count = min(mass**2 / variance, _COUNT_MOST) if variance > 0 else 0.0
        each = mass / count if count > 0 else typical
        arrived[high] = arrived[low] + each * dice.gamma(count + 0.5, size=_DRAWS)
    return arrived
