"""Choose how far to look, which window to recommend, and into how many groups to cut it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from accrual.core.arrays import Floats, Ints
from accrual.core.durations import UNITS, show_length
from accrual.core.errors import InputError, whole
from accrual.core.interval import Interval
from accrual.logs.estimate.grids import CoarseGrid, FineGrid
from accrual.logs.estimate.intervals import GroupEstimate
from accrual.logs.estimate.passes import ArrivalCurve, count_followed, longest_followed
from accrual.logs.estimate.tail import estimate_tail
from accrual.logs.fitted import AT_ONCE, Recommended
from accrual.logs.log import Log

SHARE = 0.99
_SUMMARY_SHARES = (0.5, 0.9, SHARE)  # of the reward, whose ages the summary says
WATCHED_BY = 0.1  # of the decisions: what a log shows beyond the age they have reached is too little
GROUPS_MOST = 200
_GROUPS = (2, 3, 4, 5, 6, 8, 10, 12, 15, 16, 20, 24, 25, 30, 32, 40, 50, 60)
_OFF = 0.01  # of the reward: what reading the spread evenly within groups may be off by
_STEPS_MOST = 2.0**53  # beyond that, floating-point numbers skip some
_COUNT_MOST = 1e12  # payments behind pay that never varies; more would change nothing
_FINE = 1000  # steps in a group, from which on it does not matter whether they are whole


def watched(log: Log, window: float | None) -> float:
    """Return the age up to which the log shows anything: a tenth of its decisions have reached it.

    Where a window is given, the age is at least that window.
    """
    longest = longest_followed(log)
    age = 0.0
    if longest > 0.0:
        if log.resolution > 0.0 and longest / log.resolution > _STEPS_MOST:
            raise InputError(
                f"the log's times are in steps of {log.resolution:.3g} and go on for {longest:.3g}, "
                f"more than {_STEPS_MOST:.0e} steps; give times in one unit, such as seconds"
            )
        grid = FineGrid(longest, log.resolution)
        counts = count_followed(log, grid)
        reached = np.cumsum(counts[::-1])[::-1]
        cells = int(np.flatnonzero(reached >= WATCHED_BY * reached[0])[-1])
        age = float(grid.edges[cells - 1]) if cells else 0.0
    age = max(age, window or 0.0)
    if age <= 0.0:
        raise InputError("the log ends where it begins: no decision was followed for any time")
    return age


def course_grid(curve: ArrivalCurve) -> tuple[CoarseGrid, Ints]:
    """Cut the course of arrival: evenly in reward, finer towards its end, and evenly in age.

    Return the bins, and the number of the curve's cells that are over at the end of each bin.
    """
    arrived = np.cumsum(curve.means)
    if arrived[-1] <= 0.0:
        raise InputError("the log shows no reward, or more negative than positive: there is no spread to fit")
    wanted = np.concatenate([np.linspace(0.05, 0.9, 14), 1.0 - np.geomspace(0.09, 0.0008, 16)])
    places = np.searchsorted(np.maximum.accumulate(arrived) / arrived[-1], [*wanted, *_SUMMARY_SHARES])
    # The shares of the summary have a bin of their own, a cell wide, so that their ages are exact.
    places = np.concatenate([places, np.maximum(places[-len(_SUMMARY_SHARES) :] - 1, 0)])
    even = np.searchsorted(curve.edges, np.linspace(0.0, curve.edges[-1], 13)[1:] * (1.0 - 1e-9))
    cells = len(curve.edges)
    chosen = np.minimum(np.concatenate([places, even, [cells - 1]]), cells - 1)
    ends = np.unique(chosen) + 1
    return CoarseGrid(curve.grid, ends), ends


def first_guess(curve: ArrivalCurve, log: Log) -> float:
    """Return the window for a user who gives none: the age by which 99 % has come, rounded up."""
    arrived = np.maximum.accumulate(np.cumsum(curve.means))
    age = float(curve.edges[int(np.searchsorted(arrived, SHARE * arrived[-1]))])
    if age < AT_ONCE * curve.edges[-1]:  # any window will do: one that a person can read
        return min(1.0 if log.timestamps else 0.001 * float(curve.edges[-1]), float(curve.edges[-1]))
    if log.timestamps and age >= 10.0:
        step = next(UNITS[unit] for unit in ("d", "h", "min", "s") if age >= 10.0 * UNITS[unit])
    else:
        step = 10.0 ** (math.floor(math.log10(age)) - 1)
    if log.resolution > 0.0:
        step = max(step, log.resolution) if log.timestamps or age >= 100.0 else log.resolution
    return min(math.ceil(age / step - 1e-9) * step, float(curve.edges[-1]))


class WindowCut(NamedTuple):
    """A window and its groups; `recommended` is the number of groups to use where the user gives none."""

    window: float
    groups: int
    recommended: int
    note: str


class Steps(NamedTuple):
    """A window in the whole steps that the log's times are in, and how it can be cut into groups of them."""

    number: int
    size: float
    longest: float

    def cut(self, groups: int) -> tuple[int, float]:
        """Return the number of groups nearest below, each of whole steps, and the window that they cover."""
        each = -(-self.number // groups)
        fitting = -(-self.number // each)
        return fitting, fitting * each * self.size

    def fits(self, groups: int) -> bool:
        """Return whether this many groups of whole steps make the window, within what the log shows."""
        fitting, window = self.cut(groups)
        return fitting == groups and (window <= self.longest or window <= self.number * self.size)


def cut_window(curve: ArrivalCurve, log: Log, window: float, given: int | None, closed: int) -> WindowCut:
    """Settle the groups of a window, and stretch it where groups of whole steps need that.

    Parameters
    ----------
    given : int or None
        The number of groups that the user asks for.
    closed : int
        How many decisions were followed for the whole window.
    """
    count = math.ceil(window / log.resolution - 1e-9) if log.resolution > 0.0 else 0
    steps = Steps(count, log.resolution, longest_followed(log))
    advised = recommended_groups(curve, window, closed, steps)
    groups = advised if given is None else whole("groups", given, 1, GROUPS_MOST)
    if not count or count >= _FINE * groups:
        return WindowCut(window, groups, advised, "")
    if not steps.fits(groups):
        ways = {steps.cut(g)[0] for g in range(1, GROUPS_MOST + 1)}
        near = sorted((g for g in ways if steps.fits(g)), key=lambda g: abs(g - groups))[:3]
        raise InputError(
            f"{groups} groups of a window of {show_length(window, log.timestamps)} are not whole steps of "
            f"the log's times, {show_length(log.resolution, log.timestamps)} each: give "
            f"{' or '.join(map(str, near))} groups, or another window"
        )
    _, stretched = steps.cut(groups)
    note = ""
    if stretched > window * (1.0 + 1e-9):
        before, after = (show_length(x, log.timestamps, like=stretched) for x in (window, stretched))
        each = show_length(stretched / groups, log.timestamps)
        note = f"the window of {before} is stretched to {after}, so that each of its groups is {each}"
    return WindowCut(stretched, groups, advised, note)


def recommended_groups(curve: ArrivalCurve, window: float, closed: int, steps: Steps) -> int:
    """Recommend a number of groups: as few as show where the reward comes to within a hundredth of it.

    No more than the square root of the closed decisions, so that each can be estimated; and where
    time is in whole steps, a number whose groups are whole steps.
    """
    most = max(2, min(_GROUPS[-1], math.isqrt(closed)))
    allowed = [g for g in _GROUPS if g <= most]
    if steps.number and steps.number < _FINE * _GROUPS[-1]:
        cuts = sorted({steps.cut(g)[0] for g in (1, *_GROUPS) if steps.fits(steps.cut(g)[0])})
        allowed = [g for g in cuts if 1 < g <= most] or cuts[:1]
    edges, arrived = _within(curve, window)
    for groups in allowed:
        ends = np.linspace(0.0, window, groups + 1)
        line = np.interp(edges, ends, np.interp(ends, edges, arrived))
        if np.abs(line - arrived).max() <= _OFF:
            return groups
    return allowed[-1]


def _within(curve: ArrivalCurve, window: float) -> tuple[Floats, Floats]:
    """Return edges up to the window, and the share of the window's reward that has come by each edge."""
    inside = curve.edges <= window * (1.0 + 1e-9)
    arrived = np.concatenate([[0.0], np.cumsum(curve.means[inside])])
    return np.concatenate([[0.0], curve.edges[inside]]), arrived / max(arrived[-1], 1e-300)


def recommend(
    estimate: GroupEstimate, bins: Floats, curve: ArrivalCurve, ends: Ints, groups: int
) -> tuple[Recommended, Floats]:
    """Recommend a window with its interval (Woodruff's), and give the shares arrived by `bins`, 3 x bins.

    The interval's ends are the ages at which the interval of the share arrived reaches 99 %, first with
    its upper and last with its lower end. Within a bin the share is taken to rise as the curve does.
    """
    arrived = estimate.shares(np.tril(np.ones((len(bins), len(bins)))))
    value, low, high = (_age_of(row, curve, ends) for row in arrived[[0, 2, 1]])
    means = np.maximum(estimate.group_means, 0.0)
    beyond, faded = Interval(1.0, 0.0, 1.0), False  # one bin says nothing about what comes after it
    if len(bins) > 1:
        counts = means**2 / np.maximum(np.diag(estimate.covariance), means**2 / _COUNT_MOST + 1e-300)
        tail = estimate_tail(means / means.sum(), bins, counts=counts)
        beyond = Interval(tail.share, tail.low, tail.high)
        faded = tail.share <= 1.0 - SHARE and not tail.heavier
    window = Interval(value, min(low, value), max(high, value))
    return Recommended(window, float(bins[-1]), beyond, faded, groups), arrived


def _age_of(arrived: Floats, curve: ArrivalCurve, ends: Ints) -> float:
    """Return the age at which a share arrived reaches 99 %, or the last age where it does not."""
    rising = np.maximum.accumulate(np.concatenate([[0.0], arrived]))
    cells = np.concatenate([[0], ends])
    at = int(np.searchsorted(rising, SHARE))
    if at >= len(cells):
        return float(curve.edges[-1])
    if at == 0:
        return 0.0
    way = (SHARE - rising[at - 1]) / (rising[at] - rising[at - 1])
    first, last = cells[at - 1], cells[at]
    ages = np.concatenate([[0.0], curve.edges])[first : last + 1]
    fine = np.concatenate([[0.0], np.cumsum(np.maximum(curve.means[first:last], 0.0))])
    target = way * fine[-1]
    cell = max(int(np.searchsorted(fine, target)), 1)
    if fine[cell] <= fine[cell - 1]:
        return float(ages[cell])
    part = (target - fine[cell - 1]) / (fine[cell] - fine[cell - 1])
    return float(ages[cell - 1] + part * (ages[cell] - ages[cell - 1]))
