"""A listening service, and older arms that tell about new ones.

Arms are shows, and a decision recommends one. The listener is then active on some of the days of the window,
until they leave for good. `AgePrior` and `GaussianFilter` can learn their priors from the older arms.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from accrual.core.arrays import Floats
from accrual.engine.batches import Batches
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


def old_listeners(seed: int, differ: float) -> list[Floats]:
    """Return what the decisions of old arms paid on each day: for each arm, decisions x days, in caps.

    The seed must not be that of a service.
    """
    dice = np.random.default_rng(seed)
    return [_activity(law, OLD_DECISIONS, dice) for law in listeners(OLD_ARMS, seed, DAYS, differ)]


def _activity(law: Any, decisions: int, dice: np.random.Generator) -> Floats:
    assert isinstance(law, LeavingLaw)
    stay, p = law.chances(DAYS)
    u = dice.random((decisions, DAYS))
    there = np.logical_and.accumulate(u < stay, axis=1)
    return (there & (u < stay * p)) / DAYS


class ListeningService(NamedTuple):
    """A service, its old arms, and the seed of the runs."""

    service: Batches
    old: list[Floats]
    seed: int


def listening(seed: int = 1, differ: float = 0.4) -> ListeningService:
    """Make a service of 200 shows, 50 decisions a day for 180 days."""
    return ListeningService(
        service(200, 180, 50, 100 + seed, 0, differ), old_listeners(200 + seed, differ), seed
    )


def listening_new(seed: int = 1, differ: float = 0.4) -> ListeningService:
    """Make a service of 60 shows, of which a new one replaces the oldest every day.

    It makes 50 decisions a day for 180 days.
    """
    return ListeningService(
        service(60, 180, 50, 300 + seed, 1, differ), old_listeners(400 + seed, differ), seed
    )
