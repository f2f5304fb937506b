"""Two questions about a log: do arms differ in speed, and do groups depend on each other?"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import special

from accrual.fit.intervals import ArmSums, GroupEstimate
from accrual.fit.schema import Finding

Floats = npt.NDArray[np.float64]

LEVEL = 0.05


def arms_differ_in_speed(estimates: Sequence[GroupEstimate]) -> Finding:
    """Make Welch's test of equal means, on the mean age at which each arm's reward comes.

    That age is a ratio; its variance is by the delta method, with Satterthwaite's degrees of
    freedom. Arms that never paid say nothing of it and are left out.
    """
    ages, variances, freedoms = [], [], []
    for one in estimates:
        if one.total > 0.0:
            middles = np.arange(len(one.seen)) + 0.5
            age = float(middles @ one.group_means) / one.total
            weights = np.asarray((middles - age)[None, :] / one.total, dtype=np.float64)
            ages.append(age)
            variances.append(float(one.variance(weights)[0]))
            freedoms.append(float(one.freedom(weights)[0]))
    statistic, p = _welch(np.array(ages), np.array(variances), np.array(freedoms))
    return Finding(
        "Do arms differ in speed?", "Welch's test of equal mean ages of reward",
        statistic, p, p is not None and p < LEVEL,
    )  # fmt: skip


def _welch(means: Floats, variances: Floats, freedoms: Floats) -> tuple[float | None, float | None]:
    k = len(means)
    if k < 2:
        return None, None
    if not variances.all():  # reward of some arm always comes at the same age
        alike = bool((means == means[0]).all())
        return (0.0, 1.0) if alike else (None, None)
    weights = 1.0 / variances
    centre = weights @ means / weights.sum()
    spare = float((((1.0 - weights / weights.sum()) ** 2) / freedoms).sum())
    between = float(weights @ (means - centre) ** 2) / (k - 1)
    statistic = between / (1.0 + 2.0 * (k - 2) * spare / (k * k - 1))
    second = min((k * k - 1) / (3.0 * spare), 1e9)
    return statistic, float(special.fdtrc(k - 1, second, statistic))


def groups_depend(sums: Sequence[ArmSums]) -> Finding:
    """Make a z test of the average correlation between two groups of a decision, within arms.

    If the groups of a decision are independent, all pairings of what was paid in one group with
    what was paid in another are equally likely. Over them a correlation of n pairs has mean 0 and
    variance 1 / (n - 1) exactly, and different correlations are uncorrelated, whatever the rewards.
    """
    score, pairs = 0.0, 0
    for one in sums:
        score_, pairs_ = _correlations(one)
        score, pairs = score + score_, pairs + pairs_
    statistic = score / math.sqrt(pairs) if pairs else None
    p = math.erfc(abs(statistic) / math.sqrt(2.0)) if statistic is not None else None
    return Finding(
        "Do groups depend on each other?", "z test of the average correlation between groups",
        statistic, p, p is not None and p < LEVEL,
    )  # fmt: skip


def _correlations(sums: ArmSums) -> tuple[float, int]:
    """Give the sum of sqrt(n - 1) r over pairs of groups, and how many pairs."""
    seen, paid, square = sums.seen, sums.paid, sums.square
    with np.errstate(all="ignore"):
        varied = square - paid**2 / seen  # of group g, among those that have completed h
        together = sums.product - paid * (np.diag(paid) / seen)
        correlation = together / np.sqrt(varied * np.diag(varied))
        steady = varied > 1e-9 * square
        usable = np.triu(steady & np.diag(steady) & (seen >= 4) & np.isfinite(correlation), 1)
        scores = np.where(usable, np.sqrt(seen - 1.0) * correlation, 0.0)
    return float(scores.sum()), int(usable.sum())
