"""What decisions pay on average by age, from all that was seen of each: the mean cumulative function.

At every age the same decisions are followed until the follow-up of one of them ends. Such ages cut time into
*risk cells*. With w the weight of a decision and W_c the weights of those that are followed in cell c, added
up, the expected pay in the cell is m_c = sum w x_c / W_c, whatever is still open; an arm's mean is the sum of
the m_c (Nelson and Aalen's estimate; Lawless and Nadeau, 1995, with this variance). So every piece counts
that came while its decision was followed, and the mean does not depend on the groups that are shown, which
only add up cells. Where the follow-up ends at more ages than there are cells, a decision counts in the last
of its cells for the part that it was followed for.

With k_c = W_c² / sum w² the number of decisions of equal weight that are followed, a decision moves the mean
by its score

    w · sum over its cells of (x_c - m_c) / W_c · sqrt(k_c / (k_c - 1)).

Scores by group make the covariance of the group means; the squares, cubes and fourth powers of the scores
added up over the groups so far make the interval of the mean by the end of each group
(`accrual.core.interval.score_interval`). Where decisions come in clusters, the scores of a cluster are added
up first (`accrual.logs.estimate.clusters`).

Weights are 1 over the square root of the propensity where the log's propensities differ within an arm, as
those of a bandit do, and 1 elsewhere. A bandit chooses an arm less often once it has been unlucky, so its
plain mean is too low. With p the propensity at a decision, what the arm adds to the sum of w (x - m) has
variance w² p times that of x, given all that came before. With w = 1 / sqrt(p) that is the same at every
decision, so the sum over its error is nearly normal however the bandit chose (Hadad et al., Confidence
intervals for policy evaluation in adaptive experiments, 2021). With 1 / p the mean has less bias still, but a
few decisions of small propensity decide it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from accrual.core.arrays import Floats, Ints
from accrual.core.groups import NUDGE
from accrual.core.interval import Interval, ScoreSums, confined, of_bounded, score_interval
from accrual.core.jit import kernel
from accrual.logs.estimate.grids import EvenGrid, Grid
from accrual.logs.estimate.intervals import GroupEstimate
from accrual.logs.estimate.large_totals import TOPS, diagnose
from accrual.logs.fitted import LargeTotals

_CELLS_MOST, _CELLS_LEAST, _NUMBERS_MOST = 4096, 64, 1 << 22
_SLOTS = 1 << 16  # equal parts of time, to find the cell of an age


class FollowedDecisions(NamedTuple):
    """Some decisions and all their pieces."""

    arm: Ints
    weight: Floats
    followed: Floats
    own: Floats
    """Of each decision, as the three before; `own` is its own window, after which pieces do not count."""
    first: Ints
    """Where each decision's pieces begin in `age` and `value`, and one more for the end."""
    age: Floats
    value: Floats
    """`age` and `value` are of each piece."""


class RiskCells:
    """Ages cut where the follow-up of a decision ends, and where a group or a bin does.

    Parameters
    ----------
    ends : ndarray
        How long decisions were followed: all of them, or enough to know how many end when.
    arms : int
        With very many arms there are fewer cells.
    *grids : Grid
        Whose cells must each be made of whole risk cells.

    Examples
    --------
    >>> RiskCells(np.array([3.0, 7.0, 20.0, 20.0]), 2, EvenGrid(10.0, 2)).edges.tolist()
    [3.0, 5.0, 7.0, 10.0]
    """

    def __init__(self, ends: Floats, arms: int, *grids: Grid) -> None:
        last = max(float(grid.edges[-1]) for grid in grids)
        different = np.unique(ends[(ends > 0.0) & (ends < last)])
        most = int(np.clip(_NUMBERS_MOST // arms, _CELLS_LEAST, _CELLS_MOST))
        if len(different) > most:
            inside = np.sort(ends[(ends > 0.0) & (ends < last)])
            different = inside[np.linspace(0, len(inside) - 1, most).astype(np.int64)]
        self.edges = np.unique(np.concatenate([different, *(grid.edges for grid in grids)]))
        self._scale = _SLOTS / last
        self._slots = np.searchsorted(
            self.edges, np.arange(_SLOTS + 1) / self._scale * (1.0 - 1e-12), "right"
        )

    def __len__(self) -> int:
        return len(self.edges)

    def parts(self, grid: Grid) -> Ints:
        """Return the cell of `grid` that each risk cell is in; how many it has for those after the last."""
        return grid.place(np.concatenate([[0.0], self.edges[:-1]]))

    def last(self, followed: Floats) -> tuple[Ints, Floats]:
        """Return the last cell in which a decision was followed, and for what part of it."""
        cell = np.minimum(np.searchsorted(self.edges, followed), len(self) - 1)
        start = np.where(cell > 0, self.edges[cell - 1], 0.0)
        part = np.minimum((followed - start) / (self.edges[cell] - start), 1.0)
        return cell, np.maximum(part, 0.0)

    def place(self, some: FollowedDecisions) -> Ints:
        """Return the cell of each piece; one that does not count is after the last."""
        cells = np.empty(len(some.age), np.int64)
        find_cells(some.first, some.age, some.own, self.edges, self._slots, self._scale, cells)
        return cells


@kernel
def find_cells(
    first: Ints, age: Floats, own: Floats, edges: Floats, slots: Ints, scale: float, cells: Ints
) -> None:
    """Find the risk cell of each piece: how many edges are not above its age."""
    for i in range(len(own)):
        for j in range(first[i], first[i + 1]):
            at = age[j] * NUDGE
            if at >= edges[-1] or at >= own[i]:
                cells[j] = len(edges)
                continue
            cell = slots[min(int(at * scale), len(slots) - 1)]
            while cell > 0 and edges[cell - 1] > at:
                cell -= 1
            while edges[cell] <= at:
                cell += 1
            cells[j] = cell


class Ends(NamedTuple):
    """Where the follow-up of each decision ends: its last cell, the part of it, and the groups completed."""

    last: Ints
    part: Floats
    done: Ints


class Steps(NamedTuple):
    """What a unit of pay in a cell moves the mean by, and what was expected."""

    group: Ints  # of each cell
    start: Ints  # the first cell of each group, and one more for the end
    each: Floats  # arms x cells: what a decision of weight 1 moves the mean by, for a unit that it pays more
    expected: Floats  # arms x cells: that, times the mean pay in the cell
    reached: Floats  # arms x cells and one more: that of all cells before, added up
    # What no score of an arm exceeds. Scores are added as shares of it, so that no power is too small.
    most: Floats


class ScoreSumsByGroup(NamedTuple):
    """What decisions moved the means of groups by, added up: x by their pieces, less what was expected."""

    product: Floats  # arms x groups x groups: x in one times x in the other, the second not before the first
    # By the group r in which the follow-up ended, arms x r x groups: weights times x; and x times what was
    # expected of the part of r that was followed.
    moved: Floats
    moved_part: Floats
    parts: Floats  # 3 x arms x r: squared weights, weights times what was expected of that part, its square
    # Arms x groups x 3: squares, cubes and fourth powers of the scores up to the end of each group; or arms x
    # 1 x 3, of all groups together.
    powers: Floats
    most_moved: Floats  # the largest square of a score of all groups together, by arm
    money: Floats  # all that decisions of each arm paid
    tops: Floats  # arms x some: the largest totals of each arm, as a heap whose first is the least of them
    paying: Ints  # how many decisions of each arm paid something


class CumulativeMeans:
    """Means of the groups of a window, by arm, with what their errors are made of.

    Every decision is shown three times: to `follow`, then to `pay`, then to `score`.
    """

    def __init__(self, cells: RiskCells, grid: Grid, arms: int, by_age: bool = True) -> None:
        """Take the cells and the groups that they make; `by_age` for errors of the means up to each group."""
        self._cells, self._grid, groups = cells, grid, len(grid)
        # By the last cell of a decision: weights and their squares, whole, and for the part of it followed.
        self._ending, self._partial = np.zeros((2, 2, arms, len(cells)))
        self._paid = np.zeros((arms, len(cells)))
        self.completed = np.zeros((arms, groups + 1), np.int64)
        """Arms x r: how many decisions have completed exactly r groups, r from 0."""
        self.late = 0
        """Pieces after the last group, or after their decision's own window."""
        moved, moved_part = np.zeros((2, arms, groups + 1, groups))
        self._score_sums = ScoreSumsByGroup(
            np.zeros((arms, groups, groups)), moved, moved_part, np.zeros((3, arms, groups + 1)),
            np.zeros((arms, groups if by_age else 1, 3)), np.zeros(arms), np.zeros(arms),
            np.full((arms, TOPS), -np.inf), np.zeros(arms, np.int64),
        )  # fmt: skip
        self.clusters: Ints | None = None  # how many each arm has, where errors are those of clusters
        self._cluster_products: Floats = np.zeros(0)
        self._cluster_powers: Floats = np.zeros(0)

    def follow(self, arm: Ints, weight: Floats, followed: Floats) -> None:
        """Count decisions among those that are followed."""
        ends = Ends(*self._cells.last(followed), self._grid.place(followed))
        add_ends(arm, weight, ends, self.completed, self._ending, self._partial)

    def pay(self, some: FollowedDecisions, cells: Ints) -> None:
        """Add what decisions paid; `cells` are those of their pieces."""
        add_pay(some, cells, self._cells.last(some.followed)[0], self._paid)

    def settle(self, largest: npt.ArrayLike = 1.0, corrected: bool = True) -> None:
        """Find the means.

        Parameters
        ----------
        largest : array_like
            What no decision of each arm pays more than, taking every piece as positive.
        corrected : bool
            Whether scores are corrected for the means being estimated.
        """
        later = np.cumsum(self._ending[:, :, ::-1], axis=2)[:, :, ::-1] - self._ending
        weight, square = later + self._partial
        with np.errstate(all="ignore"):
            equal = np.where(square > 0.0, weight**2 / square, 0.0)
            self._mean = np.where(weight > 0.0, self._paid / weight, 0.0)
            factor = np.sqrt(equal / (equal - 1.0)) if corrected else 1.0
            each = np.where(equal > (1.0 if corrected else 0.0), factor / weight, 0.0)
        self._equal, expected = equal, self._mean * each
        reached = np.concatenate([np.zeros((len(equal), 1)), np.cumsum(expected, axis=1)], axis=1)
        group = self._cells.parts(self._grid)
        start = np.searchsorted(group, np.arange(len(self._grid) + 1))
        most = each.max(axis=1) * np.asarray(largest) + np.abs(reached).max(axis=1)
        self._steps = Steps(group, start, each, expected, reached, np.where(most > 0.0, most, 1.0))

    def score(self, some: FollowedDecisions, cells: Ints) -> tuple[Floats, Floats]:
        """Add what decisions moved the means by; return that of all groups together, and the totals."""
        ends = Ends(*self._cells.last(some.followed), self._grid.place(some.followed))
        moved, totals = np.zeros((2, len(some.arm)))
        self.late += add_scores(some, cells, ends, self._steps, self._score_sums, moved, totals)
        return moved, totals

    def score_by_group(self, some: FollowedDecisions, cells: Ints, rows: Ints, scores: Floats) -> None:
        """Add what decisions moved the means of the groups by to their rows of `scores`."""
        ends = Ends(*self._cells.last(some.followed), self._grid.place(some.followed))
        add_group_scores(some, cells, ends, self._steps, rows, scores)

    def add_clusters(self, arm: Ints, scores: Floats) -> None:
        """Make errors from clusters: the arm of each, and what it moved the means of groups by."""
        if self.clusters is None:
            self.clusters = np.zeros(len(self.paying), np.int64)
            self._cluster_products = np.zeros_like(self._score_sums.product)
            self._cluster_powers = np.zeros_like(self._score_sums.powers)
        for a in np.unique(arm).tolist():
            mine = scores[arm == a]
            so_far = np.cumsum(mine, axis=1) / self._steps.most[a]
            self.clusters[a] += len(mine)
            self._cluster_products[a] += mine.T @ mine
            powers = np.stack([(so_far**power).sum(axis=0) for power in (2, 3, 4)], axis=1)
            self._cluster_powers[a] += powers[-self._cluster_powers.shape[1] :]

    @property
    def largest(self) -> Floats:
        """The largest total of a decision of each arm, within the groups."""
        return np.asarray(self._score_sums.tops.max(axis=1))

    def large_totals(self, arm: int) -> LargeTotals:
        """Say how much of an arm's mean rests on its largest decisions."""
        sums = self._score_sums
        second = float(sums.powers[arm, -1, 0])
        largest = float(sums.most_moved[arm]) / second if second > 0.0 else 0.0
        return diagnose(np.sort(sums.tops[arm])[::-1], float(sums.money[arm]), largest, int(self.paying[arm]))

    @property
    def paying(self) -> Ints:
        """How many decisions of each arm paid something while they were followed."""
        return self._score_sums.paying

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return len(self._grid)

    @property
    def closed(self) -> Ints:
        """Decisions of each arm that have completed every group."""
        return self.completed[:, -1]

    @property
    def means(self) -> Floats:
        """What an arm pays on average: in the groups, added up."""
        return np.asarray(self._mean[:, : self._steps.start[-1]].sum(axis=1))

    def of(self, arm: int) -> GroupEstimate:
        """Return the means of an arm's groups, with their covariance."""
        groups, start, sums = len(self._grid), self._steps.start, self._score_sums
        means = np.add.reduceat(self._mean[arm, : start[-1]], start[:-1])
        product = sums.product[arm] + np.triu(sums.product[arm], 1).T
        # Of a decision whose follow-up ends in group r, all of the groups before r was expected, and a part
        # of r.
        before = np.tri(groups + 1, groups, -1) * np.diff(self._steps.reached[arm, start])
        own = np.eye(groups + 1, groups)
        number, part, square = sums.parts[:, arm]
        crossed = sums.moved[arm].T @ before + sums.moved_part[arm].T @ own
        both = before.T @ (part[:, None] * own)
        expected = (before.T * number) @ before + both + both.T + (own.T * square) @ own
        covariance, most = product - crossed - crossed.T + expected, np.inf
        if self.clusters is not None:
            most = max(float(self.clusters[arm]), 2.0)
            covariance = self._cluster_products[arm] * (most / (most - 1.0))
        return GroupEstimate(self.completed[arm].astype(np.float64), means, covariance, most)

    def scores(self, arm: int, group: int = -1) -> ScoreSums:
        """Return the powers of an arm's scores up to the end of a group, added up."""
        size = float(self._equal[arm, self._steps.start[1:][group] - 1])
        powers, corrected = self._score_sums.powers[arm, group], 1.0
        if self.clusters is not None:
            size = max(float(self.clusters[arm]), 2.0)
            powers, corrected = self._cluster_powers[arm, group], math.sqrt(size / (size - 1.0))
        second, third, fourth = (powers * (self._steps.most[arm] * corrected) ** np.arange(2, 5)).tolist()
        return ScoreSums(second, third, fourth, size)


@kernel
def add_ends(arm: Ints, weight: Floats, ends: Ends, completed: Ints, ending: Floats, partial: Floats) -> None:
    """Count decisions by where their follow-up ends."""
    for i in range(len(arm)):
        a, c, w = arm[i], ends.last[i], weight[i]
        completed[a, ends.done[i]] += 1
        ending[0, a, c] += w
        ending[1, a, c] += w * w
        partial[0, a, c] += w * ends.part[i]
        partial[1, a, c] += w * w * ends.part[i]


@kernel
def add_pay(some: FollowedDecisions, cells: Ints, last: Ints, paid: Floats) -> None:
    """Add what decisions paid in the cells in which they were followed."""
    for i in range(len(some.arm)):
        for j in range(some.first[i], some.first[i + 1]):
            if cells[j] <= last[i]:
                paid[some.arm[i], cells[j]] += some.weight[i] * some.value[j]


@kernel
def add_scores(
    some: FollowedDecisions, cells: Ints, ends: Ends, steps: Steps, sums: ScoreSumsByGroup, moved: Floats,
    totals: Floats,
) -> int:  # fmt: skip
    """Add decisions to the sums of `CumulativeMeans`; return how many pieces were too late."""
    groups = sums.product.shape[1]
    by_group, touched = np.empty(groups), np.empty(groups, np.int64)
    marked = np.full(groups, -1)
    late = 0
    for i in range(len(some.arm)):
        a, w, last, done = some.arm[i], some.weight[i], ends.last[i], ends.done[i]
        number, pays = 0, False
        for j in range(some.first[i], some.first[i + 1]):
            c, x = cells[j], some.value[j]
            g = steps.group[c] if c < len(steps.group) else groups
            if g == groups:
                late += 1
                continue
            totals[i] += x
            if c > last:
                continue
            if marked[g] != i:
                marked[g], touched[number], by_group[g] = i, g, 0.0
                number += 1
            by_group[g] += w * x * steps.each[a, c]
            pays = pays or x != 0.0
        rest = 0.0  # what was expected of the part of a group in which the follow-up ended
        if done < groups and steps.group[last] >= done:
            whole = steps.reached[a, last] - steps.reached[a, steps.start[done]]
            rest = w * (whole + ends.part[i] * steps.expected[a, last])
        moved[i] = -w * steps.reached[a, steps.start[done]] - rest
        for k in range(number):
            moved[i] += by_group[touched[k]]
        share = moved[i] / steps.most[a]
        sums.most_moved[a] = max(sums.most_moved[a], share * share)
        add_powers(sums.powers[a, -1], share)
        so_far = 0.0
        for g in range(sums.powers.shape[1] - 1):
            if g < done:
                so_far -= w * (steps.reached[a, steps.start[g + 1]] - steps.reached[a, steps.start[g]])
            elif g == done:
                so_far -= rest
            if marked[g] == i:
                so_far += by_group[g]
            add_powers(sums.powers[a, g], so_far / steps.most[a])
        for k in range(number):
            g = touched[k]
            x = by_group[g]
            sums.moved[a, done, g] += w * x
            sums.moved_part[a, done, g] += rest * x
            for m in range(k, number):
                h = touched[m]
                sums.product[a, min(g, h), max(g, h)] += x * by_group[h]
        sums.money[a] += totals[i]
        if totals[i] > sums.tops[a, 0]:
            keep_total(sums.tops[a], totals[i])
        sums.paying[a] += pays
        sums.parts[0, a, done] += w * w
        sums.parts[1, a, done] += w * rest
        sums.parts[2, a, done] += rest * rest
    return late


@kernel
def add_powers(powers: Floats, share: float) -> None:
    """Add the square, the cube and the fourth power of a score."""
    square = share * share
    powers[0] += square
    powers[1] += square * share
    powers[2] += square * square


@kernel
def keep_total(heap: Floats, total: float) -> None:
    """Put a total in the place of the least of a heap."""
    place, child = 0, 1
    while child < len(heap):
        if child + 1 < len(heap) and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= total:
            break
        heap[place] = heap[child]
        place, child = child, 2 * child + 1
    heap[place] = total


@kernel
def add_group_scores(
    some: FollowedDecisions, cells: Ints, ends: Ends, steps: Steps, rows: Ints, scores: Floats
) -> None:
    """Add what decisions moved the means of groups by to their rows; a row below 0 or too large is none."""
    for i in range(len(some.arm)):
        a, w, last, done, row = some.arm[i], some.weight[i], ends.last[i], ends.done[i], rows[i]
        if row < 0 or row >= len(scores):
            continue
        for j in range(some.first[i], some.first[i + 1]):
            c = cells[j]
            if c <= last and c < len(steps.group) and steps.group[c] < scores.shape[1]:
                scores[row, steps.group[c]] += w * some.value[j] * steps.each[a, c]
        for g in range(done):
            scores[row, g] -= w * (steps.reached[a, steps.start[g + 1]] - steps.reached[a, steps.start[g]])
        if done < scores.shape[1] and steps.group[last] >= done:
            whole = steps.reached[a, last] - steps.reached[a, steps.start[done]]
            scores[row, done] -= w * (whole + ends.part[i] * steps.expected[a, last])


def arm_mean(value: float, scores: ScoreSums, cap: float, signed: bool, plain: bool) -> Interval:
    """Make the interval of an arm's mean.

    Parameters
    ----------
    cap : float
        Infinite where the user gave none.
    signed : bool
        Whether some values are negative.
    plain : bool
        Whether it is the plain mean of closed decisions: all are closed and weigh the same. Otherwise it may
        stray by more than a mean of totals within the cap does.
    """
    found = score_interval(value, scores)
    if signed:
        return found
    return (of_bounded if plain else confined)(found, 0.0, cap, scores.size)


def complete(some: FollowedDecisions, arms: int, window: float) -> Floats:
    """Return what each decision pays, where the mean of its arm completes one not followed to the end.

    With x its pay in a risk cell, m its arm's mean pay there and G the share of the arm's decisions that were
    followed then (both weighted), it is the arm's mean total and, added up over the cells in which it was
    followed, (x - m) / G. So the average over an arm is its mean as a fit finds it, and a decision that was
    followed to the end counts with its own total where all were. As long as how long a decision is followed
    does not depend on its context, the average over any part of an arm's decisions is right as well.
    """
    grid = EvenGrid(window, 1)
    cells = RiskCells(some.followed, arms, grid)
    found = CumulativeMeans(cells, grid, arms)
    found.follow(some.arm, some.weight, some.followed)
    places = cells.place(some)
    found.pay(some, places)
    found.settle(corrected=False)
    moved, _ = found.score(some, places)
    everyone = np.bincount(some.arm, some.weight, arms)
    return np.asarray(found.means[some.arm] + everyone[some.arm] * moved / some.weight)
