"""A listening service, and the Gaussian filter with history that it is compared with.

Arms are shows, and a decision recommends one. The listener is then active on some of the days of the window,
until they leave for good. The filter is the method of McDonald et al. ("Impatient bandits", 2023) in this
library's words. The means of an arm's days are one Gaussian vector, whose prior mean and covariance come from
200 older arms. Thompson sampling draws an arm's total from the posterior given the days observed so far.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from accrual.core.arrays import Floats, Ints
from accrual.engine.batches import Batches
from accrual.engine.general_loop import Flags
from accrual.problems.families import listeners
from accrual.problems.gallery import LISTENING_DAYS
from accrual.problems.laws import LeavingLaw
from accrual.problems.problem import Problem

DAYS = LISTENING_DAYS
OLD_ARMS, OLD_DECISIONS = 200, 200


def service(arms: int, days: int, batch: int, seed: int, daily: int = 0, differ: float = 1.0) -> Batches:
    """Make a service with `arms` arms at a time, of which `daily` are replaced by new ones every morning."""
    total = arms + daily * (days - 1)
    laws = listeners(total, seed, DAYS, differ)
    comes = [0] * arms + [day for day in range(1, days) for _ in range(daily)]
    goes = [1 + arm // daily if daily else days for arm in range(total)]
    return Batches(Problem([float(DAYS)] * total, DAYS, DAYS, laws), days, batch, comes, goes)


class ListeningHistory:
    """What old arms say about new ones: the mean of each day, how arms differ and how decisions differ.

    Parameters
    ----------
    seed : int
        The seed of the old arms and their decisions, which must not be those of the service.
    """

    def __init__(self, seed: int, differ: float = 1.0) -> None:
        means = np.zeros((OLD_ARMS, DAYS))
        within = np.zeros((DAYS, DAYS))
        self.pay = old_listeners(seed, differ)
        for arm, pay in enumerate(self.pay):
            means[arm] = pay.mean(axis=0)
            within += np.cov(pay.T)
        within /= OLD_ARMS
        between = np.cov(means.T) - within / OLD_DECISIONS
        values, vectors = np.linalg.eigh(between)
        self.mean = means.mean(axis=0)
        self.between = (vectors * np.maximum(values, 1e-6 * values.max())) @ vectors.T
        self.within = within + 1e-9 * np.trace(within) * np.eye(DAYS)


def old_listeners(seed: int, differ: float) -> list[Floats]:
    """Return what the decisions of old arms paid on each day: for each arm, decisions x days."""
    dice = np.random.default_rng(seed)
    return [_activity(law, OLD_DECISIONS, dice) for law in listeners(OLD_ARMS, seed, DAYS, differ)]


def _activity(law: Any, decisions: int, dice: np.random.Generator) -> Floats:
    assert isinstance(law, LeavingLaw)
    stay, p = law.chances(DAYS)
    u = dice.random((decisions, DAYS))
    there = np.logical_and.accumulate(u < stay, axis=1)
    return (there & (u < stay * p)).astype(np.float64)


class GaussianFilter:
    """Thompson sampling from a Gaussian filter of an arm's days (a `Player` of batches).

    Let L D L' be the noise covariance of a decision's days. Then day j of a decision brings one innovation,
    which does not depend on earlier days. So it is enough to keep counts and sums of innovations, arms x
    days.
    """

    def __init__(self, history: ListeningHistory, service: Batches, key: tuple[int, int]) -> None:
        arms = len(service.problem.caps)
        lower = np.linalg.cholesky(history.within)
        scale = np.diag(lower)
        self._innovations = np.linalg.inv(lower / scale)  # rows: what day j adds to the days before
        self._variance = scale**2
        self._precision = np.linalg.inv(history.between)
        self._start = self._precision @ history.mean
        self._counts = np.zeros((arms, DAYS))
        self._sum = np.zeros((arms, DAYS))
        self._dice = np.random.default_rng([*key, 1])

    def totals(self, arms: Ints) -> tuple[Floats, Floats]:
        """Return the posterior mean and variance of each arm's mean total."""
        rows = self._innovations
        precision = self._precision + (rows.T * (self._counts[arms] / self._variance)[:, None, :]) @ rows
        known = self._start + (self._sum[arms] / self._variance) @ rows
        solved = np.linalg.solve(precision, np.stack([known, np.ones_like(known)], axis=2)).sum(axis=1)
        return solved[:, 0], solved[:, 1]

    def choose(self, day: int, playing: Flags, batch: int) -> Ints:
        arms = np.flatnonzero(playing)
        mean, variance = self.totals(arms)
        draws = mean + np.sqrt(variance) * self._dice.standard_normal((batch, len(arms)))
        return np.asarray(arms[draws.argmax(axis=1)], np.int64)

    def learn(self, arms: Ints, age: int, paid: Floats) -> None:
        pay = np.diff(paid[:, : age + 1], axis=1)
        count = len(self._counts)
        self._counts[:, age - 1] += np.bincount(arms, minlength=count)
        self._sum[:, age - 1] += np.bincount(arms, pay @ self._innovations[age - 1, :age], count)


def gaussian_filter(history: ListeningHistory) -> Any:
    """Return a function that makes players for `accrual.engine.batches.play_batches`."""
    return lambda service, key: GaussianFilter(history, service, key)


class ListeningService(NamedTuple):
    """A service, its old arms, and the seed of the runs."""

    service: Batches
    history: ListeningHistory
    seed: int


def listening(seed: int = 1, differ: float = 0.4) -> ListeningService:
    """Make a service of 200 shows, 50 decisions a day for 180 days."""
    return ListeningService(
        service(200, 180, 50, 100 + seed, 0, differ), ListeningHistory(200 + seed, differ), seed
    )


def listening_new(seed: int = 1, differ: float = 0.4) -> ListeningService:
    """Make a service of 60 shows, of which a new one replaces the oldest every day.

    It makes 50 decisions a day for 180 days.
    """
    return ListeningService(
        service(60, 180, 50, 300 + seed, 1, differ), ListeningHistory(400 + seed, differ), seed
    )
