"""What the arms pay on average, with 95 % intervals.

With w the weight of a decision, an arm's expected pay in group g is m_g = sum w x_g / sum w, over its
decisions that have completed g; the mean is the sum of the m_g. Weights are 1 over the square root of the
propensity where the log's propensities differ within an arm, as those of a bandit do, and 1 elsewhere. With
W_g the sum of the weights and k_g = W_g² / sum w² the number of decisions of equal weight that they count
as, a decision that has completed r groups moves the mean by its score

    w · sum over g up to r of (x_g - m_g) / W_g · sqrt(k_g / (k_g - 1)).

The scores' squares, cubes and fourth powers make the interval (`accrual.core.interval.score_interval`).
They need the m_g, and so a pass of their own.

Why the square root: a bandit chooses an arm less often once it has been unlucky, so its plain mean is too
low. With p the propensity at a decision, what the arm adds to the sum of w (x - m) has variance w² p times
that of x, given all that came before. With w = 1 / sqrt(p) that is the same at every decision, so the sum
over its error is nearly normal however the bandit chose (Hadad et al., Confidence intervals for policy
evaluation in adaptive experiments, 2021). With 1 / p the mean has less bias still, but a few decisions of
small propensity decide it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from accrual.core.interval import Interval, ScoreSums, confined, of_bounded, score_interval
from accrual.logs.estimate.intervals import ExactScale

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FEW_PAYING = 30  # decisions that paid anything, below which the interval of a skewed mean may fail


class WeightSums:
    """What the decisions of each arm weigh and paid, by group, added up in no order.

    Parameters
    ----------
    groups : int
    largest : array_like
        What no decision of each arm pays more than, in size, in one group.
    decisions : int
        How many there will be at most.
    """

    def __init__(self, groups: int, largest: npt.ArrayLike, decisions: int) -> None:
        sizes = np.asarray(largest, dtype=np.float64)
        self._one = ExactScale.of(1.0, decisions)
        self._pay = [ExactScale.of(float(size), decisions) for size in sizes]
        self._first = np.array([scale.first for scale in self._pay])
        # Weights and their squares by how many groups a decision has completed: 2 x 2 x arms x r. Weighted
        # pay by group: 2 x arms x groups. The leading 2 are whole numbers and remainders.
        self._weight = np.zeros((2, 2, len(sizes), groups + 1), np.int64)
        self._paid = np.zeros((2, len(sizes), groups), np.int64)
        self.paying = np.zeros(
            len(sizes), np.int64
        )  # decisions that paid something in a group they completed

    def add(self, pay: Floats, done: Ints, arm: Ints, weight: Floats) -> None:
        """Add decisions that paid `pay` (decisions x groups or more) and have completed `done` groups."""
        for power in (1, 2):
            for part, some in enumerate(self._one.split(weight**power)):
                np.add.at(self._weight[part, power - 1], (arm, done), some)
        decision, group = np.nonzero(pay[:, : self._paid.shape[2]])
        inside = group < done[decision]
        decision, group = decision[inside], group[inside]
        owner = arm[decision]
        scaled = weight[decision] * pay[decision, group] * self._first[owner]
        whole = np.rint(scaled)
        np.add.at(self._paid[0], (owner, group), whole.astype(np.int64))
        rest = np.rint((scaled - whole) * self._one.second).astype(np.int64)
        np.add.at(self._paid[1], (owner, group), rest)
        self.paying = self.paying + np.bincount(arm[np.unique(decision)], minlength=len(self.paying))

    def merge(self, other: WeightSums) -> None:
        """Add the decisions of another part of the log."""
        self._weight, self._paid = self._weight + other._weight, self._paid + other._paid
        self.paying = self.paying + other.paying

    def estimate(self) -> GroupMeans:
        """Give the groups' means and what each decision moves them by."""
        weight, square = (
            np.cumsum(self._one.joined(self._weight[:, power])[:, ::-1], axis=1)[:, ::-1][:, 1:]
            for power in (0, 1)
        )
        paid = np.stack([scale.joined(self._paid[:, a]) for a, scale in enumerate(self._pay)])
        with np.errstate(all="ignore"):
            equal = np.where(square > 0.0, weight**2 / square, 0.0)
            mean = np.where(weight > 0.0, paid / weight, 0.0)
            each = np.where(equal > 1.0, 1.0 / weight * np.sqrt(equal / (equal - 1.0)), 0.0)
        return GroupMeans(mean, each, equal)


class GroupMeans(NamedTuple):
    """Means of groups: arms x groups."""

    mean: Floats
    each: Floats  # what a decision of weight 1 moves the mean total by, for each unit that it pays more
    equal: Floats  # how many decisions of equal weight have completed the group


class ScorePowers:
    """Squares, cubes and fourth powers of the scores of each arm, added up in no order.

    Parameters
    ----------
    found : GroupMeans
    largest : array_like
        What no decision of each arm pays more than in all, taking every piece as positive.
    decisions : int
        How many there will be at most.
    """

    def __init__(self, found: GroupMeans, largest: npt.ArrayLike, decisions: int) -> None:
        arms = len(found.mean)
        self._each, self._equal = found.each, found.equal
        self._scale = ExactScale.of(1.0, decisions)
        self._sums = np.zeros((2, 3, arms), np.int64)
        reached = np.cumsum(found.mean * found.each, axis=1)
        self._reached = np.concatenate([np.zeros((arms, 1)), reached], axis=1)
        most = found.each.max(axis=1) * np.asarray(largest) + np.abs(self._reached).max(axis=1)
        self._most = np.where(most > 0.0, most, 1.0)  # what no score exceeds: as shares of it they add up

    def add(self, pay: Floats, done: Ints, arm: Ints, weight: Floats) -> None:
        """Add decisions as to `WeightSums`."""
        groups = self._each.shape[1]
        inside = np.where(np.arange(groups) < done[:, None], pay[:, :groups], 0.0)
        moved = (inside * self._each[arm]).sum(axis=1) - self._reached[arm, done]
        score = weight * moved / self._most[arm]
        for power in (2, 3, 4):
            for part, some in enumerate(self._scale.split(score**power)):
                np.add.at(self._sums[part, power - 2], arm, some)

    def merge(self, other: ScorePowers) -> None:
        """Add the decisions of another part of the log."""
        self._sums = self._sums + other._sums

    def of(self, arm: int) -> ScoreSums:
        """Give the sums of one arm."""
        second, third, fourth = self._scale.joined(self._sums[:, :, arm])
        most = float(self._most[arm])
        return ScoreSums(second * most**2, third * most**3, fourth * most**4, float(self._equal[arm, -1]))


def arm_mean(value: float, scores: ScoreSums, cap: float, signed: bool, plain: bool) -> Interval:
    """Make the interval of an arm's mean.

    Parameters
    ----------
    value : float
    scores : ScoreSums
    cap : float
        Infinite where it was not told.
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
