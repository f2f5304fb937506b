"""The passes that a fit makes over the decisions of a log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from accrual.core.arrays import Floats, Ints
from accrual.core.groups import NUDGE, is_closed, is_within
from accrual.core.jit import kernel
from accrual.logs.estimate.blocks import decision_blocks
from accrual.logs.estimate.clusters import cluster_numbers, score_clusters
from accrual.logs.estimate.cumulative_means import CumulativeMeans, FollowedDecisions, RiskCells
from accrual.logs.estimate.grids import Grid
from accrual.logs.estimate.sample import ClosedTotals
from accrual.logs.log import Log

_ENDS_MOST = 4_000_000  # of follow-ups, to know how many end when


class PieceSurvey(NamedTuple):
    """What `survey` finds of the pieces of a log."""

    identical: int  # pieces that have the age and value of another of the same decision
    payers: int  # decisions that have a piece
    longest: float  # age
    last: float  # the time of the last piece, in ticks


def survey(log: Log) -> PieceSurvey:
    """Go through the pieces of a log once, to know what they are like."""
    identical, payers, longest, last = 0, 0, 0.0, -np.inf
    for some, at, _ in decision_blocks(log):
        identical += count_repeats(some.first, some.age, some.value)
        paid = np.flatnonzero(np.diff(some.first))
        oldest = some.age[some.first[paid + 1] - 1]
        payers += len(paid)
        longest = max(longest, float(oldest.max(initial=0.0)))
        last = max(last, float((at[paid] + oldest * log.unit).max(initial=-np.inf)))
    return PieceSurvey(identical, payers, longest, last)


@kernel
def count_repeats(first: Ints, age: Floats, value: Floats) -> int:
    """Count the pieces that equal the one before, of the same decision."""
    found = 0
    for i in range(len(first) - 1):
        for j in range(first[i] + 1, first[i + 1]):
            found += age[j] == age[j - 1] and value[j] == value[j - 1]
    return found


def longest_followed(log: Log) -> float:
    """Return the longest time for which a decision was followed."""
    return float(log.query("SELECT coalesce(max(followed), 0) FROM decisions")[0][0])


def count_closed(log: Log, window: float) -> int:
    """Count the decisions that were followed for the whole of a window."""
    return int(log.query("SELECT count(*) FROM decisions WHERE followed * $1 >= $2", [NUDGE, window])[0][0])


def count_followed(log: Log, grid: Grid) -> Ints:
    """Count the decisions that were followed through exactly 0, 1, 2, ... cells."""
    counts = np.zeros(len(grid) + 1, np.int64)
    for (followed,) in log.stream("SELECT followed FROM decisions"):
        counts += np.bincount(grid.place(followed), minlength=len(counts))
    return counts


@dataclass
class ArrivalCurve:
    """How reward comes in, all arms together, in fine cells of age and without intervals."""

    grid: Grid
    finished: Ints  # how many decisions were followed through exactly 0, 1, 2, ... cells
    paid: Floats  # what decisions paid in the cells that they were followed through
    largest: Floats  # the most that one decision of each arm paid in all, taking every piece as positive

    @property
    def edges(self) -> Floats:
        """The ages at which cells end."""
        return self.grid.edges

    @property
    def means(self) -> Floats:
        """What a decision pays in each cell on average."""
        followed = np.cumsum(self.finished[::-1])[::-1][1:]
        return np.asarray(self.paid / np.maximum(followed, 1.0))


def trace_curve(log: Log, grid: Grid) -> ArrivalCurve:
    """Return the mean cumulative function of all decisions."""
    cells = len(grid)
    curve = ArrivalCurve(grid, np.zeros(cells + 1, np.int64), np.zeros(cells), np.zeros(len(log.arms)))
    for (arm, _, followed, own, first, age, value), *_ in decision_blocks(log):
        # A decision is followed in the cells that begin before its follow-up ends.
        begun = np.minimum(grid.place(followed * (1.0 - 2.0 * (NUDGE - 1.0))) + 1, cells)
        begun[followed <= 0.0] = 0
        curve.finished += np.bincount(begun, minlength=cells + 1)
        decision = np.repeat(np.arange(len(arm)), np.diff(first))
        np.maximum.at(curve.largest, arm, np.bincount(decision, np.abs(value), len(arm)))
        at = grid.place(age)
        seen = (at < begun[decision]) & is_within(age, own[decision])
        curve.paid += np.bincount(at[seen], value[seen], cells)
    return curve


class FinalPass(NamedTuple):
    """Everything that `final_pass` finds."""

    arms: CumulativeMeans  # of the groups of the window, by arm
    pooled: CumulativeMeans  # of the groups of the window, all arms together and unweighted
    course: CumulativeMeans  # of the bins of the course of arrival, all arms together
    closed: ClosedTotals


def final_pass(log: Log, groups: Grid, bins: Grid, largest: Floats, sample: int) -> FinalPass:
    """Estimate the means of the groups of the window, by arm, and of the bins of the course of arrival.

    Parameters
    ----------
    largest : ndarray
        What no decision of each arm pays more than, taking every piece as positive.
    sample : int
        How many decisions of an arm a sample will have.
    """
    arms = len(log.arms)
    every = -(-log.counts.decisions // _ENDS_MOST)
    ends = np.concatenate([followed[::every] for (followed,) in log.stream("SELECT followed FROM decisions")])
    cells, course_cells = RiskCells(ends, arms, groups), RiskCells(ends, 1, bins)
    found = FinalPass(
        CumulativeMeans(cells, groups, arms),
        CumulativeMeans(cells, groups, 1, by_age=False),
        CumulativeMeans(course_cells, bins, 1, by_age=False),
        ClosedTotals(arms, sample),
    )
    for some, *_ in decision_blocks(log):
        for means, who, places in _shown(found, some, cells, course_cells):
            means.follow(who.arm, who.weight, who.followed)
            means.pay(who, places)
    found.arms.settle(largest)
    found.pooled.settle(largest.max())
    found.course.settle(largest.max())
    for some, at, hashed in decision_blocks(log):
        shown = _shown(found, some, cells, course_cells)
        totals, *_ = (means.score(who, places)[1] for means, who, places in shown)
        closed = np.flatnonzero(is_closed(some.followed, groups.edges[-1]))
        found.closed.add(hashed[closed], some.arm[closed], totals[closed], at[closed])
    if log.cluster:
        numbers = cluster_numbers(log)
        for place, means in enumerate((found.arms, found.pooled, found.course)):

            def shown_to(some: FollowedDecisions, place: int = place) -> tuple[FollowedDecisions, Ints]:
                return _shown(found, some, cells, course_cells)[place][1:]

            score_clusters(log, numbers, means, shown_to)
    return found


def _shown(
    found: FinalPass, some: FollowedDecisions, cells: RiskCells, course_cells: RiskCells
) -> list[tuple[CumulativeMeans, FollowedDecisions, Ints]]:
    """Return what decisions are shown to: by arm, and as if all were of one arm and weighed the same."""
    together = some._replace(arm=np.zeros_like(some.arm), weight=np.ones_like(some.weight))
    places = cells.place(some)
    return [
        (found.arms, some, places), (found.pooled, together, places),
        (found.course, together, course_cells.place(some)),
    ]  # fmt: skip
