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

from accrual.core.arrays import Floats, Ints
from accrual.core.groups import group_of
from accrual.core.interval import Interval, ScoreSums, confined, of_bounded, score_interval

FEW_PAYING = 30  # decisions that paid anything, below which the interval of a skewed mean may fail


class WeightSums:
    """What the decisions of each arm weigh and paid, by group, added up.

    Attributes
    ----------
    paying : ndarray
        How many decisions of each arm paid something in a group that they completed.
    """

    def __init__(self, groups: int, arms: int) -> None:
        # Weights and their squares by how many groups a decision has completed: 2 x arms x r.
        self._weight = np.zeros((2, arms, groups + 1))
        self._paid = np.zeros((arms, groups))  # weighted pay by group
        self.paying = np.zeros(arms, np.int64)

    def add(self, pay: Floats, done: Ints, arm: Ints, weight: Floats) -> None:
        """Add decisions that paid `pay` (decisions x groups or more) and have completed `done` groups."""
        for power in (1, 2):
            np.add.at(self._weight[power - 1], (arm, done), weight**power)
        decision, group = np.nonzero(pay[:, : self._paid.shape[1]])
        inside = group < done[decision]
        decision, group = decision[inside], group[inside]
        np.add.at(self._paid, (arm[decision], group), weight[decision] * pay[decision, group])
        self.paying += np.bincount(arm[np.unique(decision)], minlength=len(self.paying))

    def estimate(self) -> GroupMeans:
        """Return the means of the groups and what each decision moves them by."""
        weight, square = np.cumsum(self._weight[:, :, ::-1], axis=2)[:, :, ::-1][:, :, 1:]
        with np.errstate(all="ignore"):
            equal = np.where(square > 0.0, weight**2 / square, 0.0)
            mean = np.where(weight > 0.0, self._paid / weight, 0.0)
            each = np.where(equal > 1.0, 1.0 / weight * np.sqrt(equal / (equal - 1.0)), 0.0)
        return GroupMeans(mean, each, equal)


class GroupMeans(NamedTuple):
    """Means of groups: arms x groups."""

    mean: Floats
    each: Floats  # what a decision of weight 1 moves the mean total by, for each unit that it pays more
    equal: Floats  # how many decisions of equal weight have completed the group


class ScorePowers:
    """Squares, cubes and fourth powers of the scores of each arm, added up.

    Parameters
    ----------
    found : GroupMeans
    largest : array_like
        What no decision of each arm pays more than in all, taking every piece as positive.
    """

    def __init__(self, found: GroupMeans, largest: npt.ArrayLike) -> None:
        arms = len(found.mean)
        self._each, self._equal = found.each, found.equal
        self._sums = np.zeros((3, arms))
        reached = np.cumsum(found.mean * found.each, axis=1)
        self._reached = np.concatenate([np.zeros((arms, 1)), reached], axis=1)
        # Scores are added as shares of what none exceeds, so that their fourth powers are never too small.
        most = found.each.max(axis=1) * np.asarray(largest) + np.abs(self._reached).max(axis=1)
        self._most = np.where(most > 0.0, most, 1.0)

    def add(self, pay: Floats, done: Ints, arm: Ints, weight: Floats) -> None:
        """Add decisions as to `WeightSums`."""
        groups = self._each.shape[1]
        inside = np.where(np.arange(groups) < done[:, None], pay[:, :groups], 0.0)
        moved = (inside * self._each[arm]).sum(axis=1) - self._reached[arm, done]
        score = weight * moved / self._most[arm]
        for power in (2, 3, 4):
            np.add.at(self._sums[power - 2], arm, score**power)

    def of(self, arm: int) -> ScoreSums:
        """Return the sums of one arm."""
        second, third, fourth = (float(x) for x in self._sums[:, arm])
        most = float(self._most[arm])
        return ScoreSums(second * most**2, third * most**3, fourth * most**4, float(self._equal[arm, -1]))


def arm_mean(value: float, scores: ScoreSums, cap: float, signed: bool, plain: bool) -> Interval:
    """Make the interval of an arm's mean.

    Parameters
    ----------
    value : float
    scores : ScoreSums
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


class PaidDecisions(NamedTuple):
    """Decisions and their pieces.

    Attributes
    ----------
    arm, weight, followed : ndarray
        Of each decision; the weight is 1 over its propensity.
    decision, age, value : ndarray
        Of each piece: the number of its decision first.
    """

    arm: Ints
    weight: Floats
    followed: Floats
    decision: Ints
    age: Floats
    value: Floats


def complete(paid: PaidDecisions, arms: int, window: float, groups: int) -> Floats:
    """Return what each decision pays, where the mean of its arm completes one not followed to the end.

    With x its pay in a group of the window, m its arm's mean pay there and G the share of the arm's
    decisions that were followed for the whole group (both weighted), it is the arm's
    mean total and, added up over the groups that it was followed for, (x - m) / G. So the average
    over an arm is its mean as a fit finds it, and a decision that was followed to the end counts with
    its own total where all were. As long as how long a decision is followed does not depend on its context,
    the average over any part of an arm's decisions is right as well.
    """
    done = group_of(paid.followed, window, groups)
    seen = np.zeros((arms, groups + 1))
    np.add.at(seen, (paid.arm, done), paid.weight)
    seen = np.cumsum(seen[:, ::-1], axis=1)[:, ::-1]
    everyone, seen = seen[:, :1], seen[:, 1:]
    group = group_of(paid.age, window, groups)
    inside = group < done[paid.decision]
    decision, group, value = paid.decision[inside], group[inside], paid.value[inside]
    arm = paid.arm[decision]
    sums = np.zeros((arms, groups))
    np.add.at(sums, (arm, group), paid.weight[decision] * value)
    with np.errstate(all="ignore"):
        mean = np.where(seen > 0.0, sums / seen, 0.0)
        share = np.where(seen > 0.0, seen / everyone, 1.0)
    reached = np.cumsum(np.concatenate([np.zeros((arms, 1)), mean / share], axis=1), axis=1)
    own = np.bincount(decision, value / share[arm, group], len(paid.arm))
    return np.asarray(mean.sum(axis=1)[paid.arm] + own - reached[paid.arm, done])
