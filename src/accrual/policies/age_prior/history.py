"""Start `AgePrior` from older arms: learn from their decisions, and take over the prior over arms."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from accrual.core.arrays import Floats, Ints
from accrual.core.jit import kernel
from accrual.policies.age_prior.learning import refresh
from accrual.policies.age_prior.model import BETWEEN, LEVEL, READY, TILT, Params, Stats
from accrual.policies.age_prior.policy import AgePrior

STEPS = 100  # equal parts of the window, in which the pay of a log's older arms is given
ARMS_MOST = 20  # the most that older arms count as, so that new arms that differ soon outweigh them
_REFRESHES = 20  # of two steps of EM each
_PARTS = 10_000  # a share of the spread is a whole number of these, so that it can be written shortly


@kernel
def _learn(params: Params, stats: Stats) -> None:
    for _ in range(_REFRESHES):
        refresh(params, stats)


def with_history(policy: AgePrior, old: Sequence[Floats]) -> AgePrior | None:
    """Return the policy as it starts where older arms are known; None where these say nothing.

    Parameters
    ----------
    policy : AgePrior
    old : sequence of array
        For each older arm, what its closed decisions paid, in units of its cap: decisions x equal parts of
        the window. All arms have the same number of parts, such as `STEPS`.

    Examples
    --------
    >>> dice = np.random.default_rng(1)
    >>> old = [dice.random((50, STEPS)) * 2 * mean / STEPS for mean in (0.2, 0.3, 0.4)]
    >>> mean, between, tilts, arms = with_history(AgePrior(), old).history
    >>> round(mean, 1), arms
    (0.3, 3.0)
    """
    if len(old) < 2:
        return None
    learner = AgePrior()
    steps = old[0].shape[1]
    edges = learner.edges(steps)
    params = learner.params(np.ones(len(old)), steps)
    stats = learner.stats(params)
    for a, rows in enumerate(old):
        at = np.concatenate([np.zeros((len(rows), 1)), rows.cumsum(axis=1)[:, edges - 1]], axis=1)
        pay = np.diff(at, axis=1)
        stats.pulls[a] = stats.counted[a] = stats.seen[a] = len(rows)
        stats.paid[a], stats.square[a] = pay.sum(axis=0), (pay * pay).sum(axis=0)
        stats.growth[a] = (pay * (at[:, 1:] + at[:, :-1])).sum(axis=0)
    _learn(params, stats)
    if stats.shared[READY] == 0.0 or not stats.shared[LEVEL] > 0.0:
        return None
    learned = [float(f"{stats.shared[place]:.6g}") for place in (LEVEL, BETWEEN, TILT)]
    history = (*learned, float(min(len(old), ARMS_MOST)))
    return dataclasses.replace(policy, history=history, spread=_shares(stats.spread, edges))


def _shares(spread: Floats, edges: Ints) -> list[float]:
    """Return the share of every step, even within a bucket, from the buckets' shares."""
    arrived = np.interp(np.arange(edges[-1] + 1), [0, *edges], [0.0, *spread.cumsum()])
    parts = np.diff(np.rint(arrived / arrived[-1] * _PARTS))
    return [float(part / _PARTS) for part in parts]
