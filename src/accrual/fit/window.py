"""How far to look, which window to recommend, and into how many groups to cut it."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from accrual.core.errors import InputError
from accrual.fit.gather import Curve
from accrual.fit.intervals import ArmSums, Estimate
from accrual.fit.schema import Interval, Recommended
from accrual.fit.tables import Log
from accrual.fit.walk import Grid
from accrual.spread import estimate_tail, payments

Floats = npt.NDArray[np.float64]

SHARE = 0.99
WATCHED_BY = 0.1  # of the decisions: what a log shows beyond the age they have reached is too little
_GROUPS = (2, 3, 4, 5, 6, 8, 10, 12, 15, 16, 20, 24, 25, 30, 32, 40, 50)
_OFF = 0.01  # of the reward: what reading the spread evenly within groups may be off by
_STEPS_MOST = 2.0**53  # beyond that, floating-point numbers skip some
_UNITS = (86_400.0, 3_600.0, 60.0, 1.0)


def watched(log: Log, window: float | None) -> float:
    """The age up to which the log shows anything: a tenth of its decisions have reached it.

    With a window that is given, at least that.
    """
    age = float(log.query(f"SELECT quantile_disc(followed, {1.0 - WATCHED_BY}) FROM decisions")[0][0])
    if log.resolution > 0.0:
        if age / log.resolution > _STEPS_MOST:
            raise InputError(
                f"the log's times are in steps of {log.resolution:.3g} and go on for {age:.3g}, "
                f"more than {_STEPS_MOST:.0e} steps; give times in one unit, such as seconds"
            )
        age = math.floor(age / log.resolution) * log.resolution
    age = max(age, window or 0.0)
    if age <= 0.0:
        raise InputError("the log ends where it begins: no decision was followed for any time")
    return age


def course_grid(curve: Curve) -> Grid:
    """Where to cut the course of arrival: evenly in reward, finer towards its end, and evenly in age."""
    arrived = np.cumsum(curve.means)
    if arrived[-1] <= 0.0:
        raise InputError("the log shows no reward, or more negative than positive: there is no spread to fit")
    wanted = np.concatenate([np.linspace(0.05, 0.9, 14), 1.0 - np.geomspace(0.09, 0.0008, 16)])
    places = np.searchsorted(np.maximum.accumulate(arrived) / arrived[-1], wanted)
    even = np.searchsorted(curve.edges, np.linspace(0.0, curve.edges[-1], 13)[1:] * (1.0 - 1e-9))
    chosen = np.unique(np.concatenate([places, even, [len(curve.edges) - 1]]))
    cells = len(curve.edges)
    return Grid(float(curve.edges[-1]), cells, np.minimum(chosen, cells - 1) + 1)


def first_guess(curve: Curve, log: Log) -> float:
    """A window where none is given: the age by which 99 % has come, rounded up."""
    arrived = np.maximum.accumulate(np.cumsum(curve.means))
    age = float(curve.edges[int(np.searchsorted(arrived, SHARE * arrived[-1]))])
    if log.timestamps and age >= 10.0:
        step = next(unit for unit in _UNITS if age >= 10.0 * unit or unit == 1.0)
    else:
        step = 10.0 ** (math.floor(math.log10(age)) - 1)
    if log.resolution > 0.0:
        step = max(step, log.resolution) if log.timestamps or age >= 100.0 else log.resolution
    return min(math.ceil(age / step - 1e-9) * step, float(curve.edges[-1]))


def recommended_groups(curve: Curve, window: float, closed: int, resolution: float) -> int:
    """A heuristic: as few groups as show where the reward comes to within a hundredth of it.

    No more than the square root of the closed decisions, so that each can be estimated; and where
    time is in whole steps, a number that divides the window if one nearby does.
    """
    edges, arrived = _within(curve, window)
    most = max(2, min(_GROUPS[-1], math.isqrt(closed)))
    steps = round(window / resolution) if resolution > 0.0 else 0
    allowed = [g for g in _GROUPS if g <= most and (not steps or g <= steps)] or [1]
    dividing = [g for g in allowed if steps and steps % g == 0]
    if dividing and dividing[-1] * 3 >= allowed[-1]:
        allowed = dividing
    for groups in allowed:
        ends = np.linspace(0.0, window, groups + 1)
        line = np.interp(edges, ends, np.interp(ends, edges, arrived))
        if np.abs(line - arrived).max() <= _OFF:
            return groups
    return allowed[-1]


def _within(curve: Curve, window: float) -> tuple[Floats, Floats]:
    """Edges up to the window, and the share of what comes within it that has come by each."""
    inside = curve.edges <= window * (1.0 + 1e-9)
    arrived = np.concatenate([[0.0], np.cumsum(curve.means[inside])])
    return np.concatenate([[0.0], curve.edges[inside]]), arrived / max(arrived[-1], 1e-300)


def recommend(course: ArmSums, bins: Floats, groups: int) -> tuple[Recommended, Floats]:
    """The window with its interval (Woodruff's), and the course: shares arrived by `bins`, 3 x bins.

    The ages at which the interval of the share arrived reaches 99 %, first with its upper and last
    with its lower end.
    """
    estimate = Estimate(course)
    arrived = estimate.shares(np.tril(np.ones((len(bins), len(bins)))))
    value, low, high = (_age_of(row, bins) for row in arrived[[0, 2, 1]])
    means = np.maximum(estimate.group_means, 0.0)
    seen = estimate.seen[None, :]
    paid, square = (np.diag(x)[None, :] for x in (course.paid, course.square))
    beyond, faded = Interval(1.0, 0.0, 1.0), False  # one bin says nothing of what is after it
    if len(bins) > 1:
        tail = estimate_tail(means / means.sum(), bins, counts=payments(seen, paid, square))
        beyond = Interval(tail.share, tail.low, tail.high)
        faded = tail.share <= 1.0 - SHARE and not tail.heavier
    window = Interval(value, min(low, value), max(high, value))
    return Recommended(window, float(bins[-1]), beyond, faded, groups), arrived


def _age_of(arrived: Floats, bins: Floats) -> float:
    """The age at which a share arrived reaches 99 %, linear between bins; the last if it does not."""
    rising = np.maximum.accumulate(np.concatenate([[0.0], arrived]))
    ages = np.concatenate([[0.0], bins])
    at = int(np.searchsorted(rising, SHARE))
    if at >= len(ages):
        return float(ages[-1])
    if at == 0:
        return 0.0
    low, high = rising[at - 1], rising[at]
    return float(ages[at - 1] + (ages[at] - ages[at - 1]) * (SHARE - low) / (high - low))
