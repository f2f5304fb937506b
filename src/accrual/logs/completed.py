"""What each decision pays, where not all of them were followed to the end of the window."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from accrual.core.groups import group_of

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


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
    """Give what each decision pays; one that was not followed to the end is completed by its arm's mean.

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
