"""GaussianFilter: the method of Impatient Bandits (McDonald et al., KDD 2023), with a prior from older arms.

The mean pay of an arm's groups is one Gaussian vector with mean `mean` and covariance `between`, and what a
decision pays in its groups varies around it with covariance `within`. Let n_g decisions have finished group
g. The averages of the groups then have the noise covariance within[g, h] / max(n_g, n_h), because the later
of two groups has been finished by some of the decisions that have finished the earlier one. The posterior of
the mean total is conditioned on the averages of all groups before the first that no decision has finished.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from accrual.core.arrays import Floats, Ints, as_numbers
from accrual.core.errors import InputError
from accrual.core.jit import njit
from accrual.core.random import normal
from accrual.policies.base import Feedback, Functions, Moment, Policy, equal_edges
from accrual.policies.scalars import in_turn

_LEAST = 1e-12  # of a group's variance: below, its average says nothing beyond the groups before it


class Params(NamedTuple):
    cap: Floats
    inverse_cap: Floats
    mean: Floats  # groups; this and all that follows in caps
    between: Floats  # groups x groups
    within: Floats  # groups x groups
    with_total: Floats  # groups: the prior covariance of the group with the total
    total: float  # the prior mean of the total, and ...
    variance: float  # ... its variance


class Stats(NamedTuple):
    pulls: Ints
    seen: Floats  # arms x groups: decisions that have finished the group
    paid: Floats  # arms x groups: what they paid in it, in caps
    mean: Floats  # arms: the posterior mean of the total, in caps, ...
    variance: Floats  # ... and its variance
    stale: Ints  # arms: 1 where something was learned since
    begun: Ints  # one number: 1 once something is known about any arm
    root: Floats  # groups x groups: Cholesky factor of the averages' covariance
    solved: Floats  # 2 x groups: root^-1 of what was seen beyond the prior, and of `with_total`


@njit
def finished(params: Params, stats: Stats, arm: int, group: int, before: float, after: float) -> None:
    stats.seen[arm, group] += 1.0
    stats.paid[arm, group] += (after - before) * params.inverse_cap[arm]
    stats.stale[arm] = 1
    stats.begun[0] = 1


@njit
def amended(
    params: Params, stats: Stats, arm: int, group: int,
    before: float, after: float, more_before: float, more_after: float,
) -> None:  # fmt: skip
    stats.paid[arm, group] += (more_after - more_before) * params.inverse_cap[arm]
    stats.stale[arm] = 1


@njit
def _condition(params: Params, stats: Stats, arm: int) -> None:
    """Compute an arm's posterior, by a Cholesky factor of its averages' covariance."""
    root, surprise, reach = stats.root, stats.solved[0], stats.solved[1]
    seen = stats.seen[arm]
    mean, variance = params.total, params.variance
    for i in range(len(seen)):
        if seen[i] <= 0.0:
            break
        for j in range(i + 1):
            value = params.between[i, j] + params.within[i, j] / max(seen[i], seen[j])
            for k in range(j):
                value -= root[i, k] * root[j, k]
            if j < i:
                root[i, j] = value * root[j, j]
            else:  # the diagonal holds reciprocals
                known = value > _LEAST * (params.between[i, i] + params.within[i, i] / seen[i])
                root[i, i] = 1.0 / math.sqrt(value) if known else 0.0
        surprise[i] = stats.paid[arm, i] / seen[i] - params.mean[i]
        reach[i] = params.with_total[i]
        for k in range(i):
            surprise[i] -= root[i, k] * surprise[k]
            reach[i] -= root[i, k] * reach[k]
        surprise[i] *= root[i, i]
        reach[i] *= root[i, i]
        mean += reach[i] * surprise[i]
        variance -= reach[i] * reach[i]
    stats.mean[arm] = mean
    stats.variance[arm] = max(variance, 0.0)
    stats.stale[arm] = 0


@njit
def survey(params: Params, stats: Stats, moment: Moment) -> None:
    for arm in range(len(params.cap)):
        if stats.stale[arm]:
            _condition(params, stats, arm)


@njit
def index(params: Params, stats: Stats, arm: int, moment: Moment) -> float:
    """cap * a draw from the posterior of the mean total; the arm's turn until anything is known"""
    if stats.begun[0] == 0:
        return in_turn(stats.pulls[arm])
    draw = normal((moment.seed, moment.run), moment.round, arm)
    return float(params.cap[arm] * (stats.mean[arm] + math.sqrt(stats.variance[arm]) * draw))


@dataclass(frozen=True)
class GaussianFilter(Policy):
    """Thompson sampling from a Gaussian posterior of an arm's mean total, with a given prior.

    The prior must come from somewhere: `filter_from` learns it from older arms.

    Parameters
    ----------
    mean : sequence of float
        What a decision pays in each group on average over arms, in caps. Their number must divide the
        window.
    between : sequence of sequence of float
        The covariance over arms of the mean pay of two groups, in squared caps.
    within : sequence of sequence of float
        The covariance over decisions of one arm of the pay of two groups.

    Examples
    --------
    >>> between, within = [[0.02, 0.01], [0.01, 0.01]], [[0.1, 0.0], [0.0, 0.1]]
    >>> GaussianFilter(mean=[0.3, 0.2], between=between, within=within).label
    'GaussianFilter(2)'
    """

    mean: Sequence[float] | Floats
    between: Sequence[Sequence[float]] | Floats
    within: Sequence[Sequence[float]] | Floats

    feedback: ClassVar[Feedback] = "groups"
    functions: ClassVar[Functions] = Functions(index=index, survey=survey, finished=finished, amended=amended)

    def __post_init__(self) -> None:
        mean = _numbers("mean", self.mean)
        if mean.ndim != 1 or not len(mean):
            raise InputError("mean must be a row of numbers, one for each group")
        object.__setattr__(self, "mean", tuple(mean.tolist()))
        for name in ("between", "within"):
            matrix = _numbers(name, getattr(self, name))
            if matrix.shape != (len(mean), len(mean)):
                raise InputError(f"{name} must have a row and a column for each of the {len(mean)} groups")
            least = np.linalg.eigvalsh(matrix).min()
            if not np.allclose(matrix, matrix.T) or least < -1e-6 * np.abs(matrix).max():
                raise InputError(f"{name} must be a covariance: symmetric, with no negative eigenvalue")
            object.__setattr__(self, name, tuple(map(tuple, matrix.tolist())))

    @classmethod
    def example(cls, groups: int = 4) -> GaussianFilter:
        """Return a filter whose arms have mean totals as uniform draws from 0 to the cap have them."""
        shared, own = np.ones((groups, groups)) / groups**2, np.eye(groups) / groups
        return cls(np.full(groups, 0.5 / groups), (shared + 0.1 * own) / 12, 0.1 * (shared + own))

    @property
    def label(self) -> str:
        return f"GaussianFilter({len(self.mean)})"

    def edges(self, window: int) -> Ints:
        return equal_edges(len(self.mean), window)

    def params(self, caps: Floats, window: int) -> Params:
        mean, between, within = (np.array(given) for given in (self.mean, self.between, self.within))
        total, variance = float(mean.sum()), float(between.sum())
        return Params(caps, 1.0 / caps, mean, between, within, between.sum(axis=1), total, variance)

    def stats(self, params: Params) -> Stats:
        arms, groups = len(params.cap), len(params.mean)
        return Stats(
            pulls=np.zeros(arms, np.int64),
            seen=np.zeros((arms, groups)),
            paid=np.zeros((arms, groups)),
            mean=np.full(arms, params.total),
            variance=np.full(arms, params.variance),
            stale=np.zeros(arms, np.int64),
            begun=np.zeros(1, np.int64),
            root=np.zeros((groups, groups)),
            solved=np.zeros((2, groups)),
        )

    def terms(self, params: Params, stats: Stats, arm: int, moment: Moment) -> dict[str, float]:
        cap = float(params.cap[arm])
        return {
            "expected total": cap * float(stats.mean[arm]),
            "its uncertainty": cap * math.sqrt(float(stats.variance[arm])),
        }


def _numbers(name: str, given: Any) -> Floats:
    array = as_numbers(given)
    if not np.isfinite(array).all():
        raise InputError(f"{name} must be finite numbers, all rows of one length")
    return array


def filter_from(old: Sequence[Floats]) -> GaussianFilter:
    """Return the filter whose prior is learned from older arms.

    Parameters
    ----------
    old : sequence of array
        For each older arm, what its closed decisions paid, in units of its cap: decisions x groups. There
        are at least two arms, and each has at least two decisions.

    Examples
    --------
    >>> dice = np.random.default_rng(1)
    >>> old = [dice.random((50, 10)) * 2 * mean / 10 for mean in (0.2, 0.3, 0.4)]
    >>> round(sum(filter_from(old).mean), 1)
    0.3
    """
    if len(old) < 2 or min(len(pay) for pay in old) < 2:
        raise InputError("the prior needs at least two older arms, with two decisions or more each")
    means = np.array([pay.mean(axis=0) for pay in old])
    each = np.array([np.atleast_2d(np.cov(pay.T)) for pay in old])
    noise = (each / np.array([len(pay) for pay in old])[:, None, None]).mean(axis=0)
    # What arms differ by is what their averages differ by, less the noise of these. It may not be negative.
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(means.T)) - noise)
    between = (vectors * np.maximum(values, 1e-6 * max(values.max(), 0.0))) @ vectors.T
    return GaussianFilter(means.mean(axis=0), 0.5 * (between + between.T), each.mean(axis=0))
