"""How `AgePrior` forgets: a decision counts half after `half_life` later ones, in every bucket alike.

The weight of a decision depends on when the decision was made, never on when its pieces arrive: otherwise
early buckets would weigh more than late ones, and the spread would be biased. All weights are relative to the
last refresh, so a later decision counts a little more than 1, by at most a 32nd of a doubling. The next
refresh scales all of them down together.
"""

from __future__ import annotations

import math
from collections import namedtuple
from typing import Any, NamedTuple

import numpy as np

from accrual.core.arrays import Floats, Ints
from accrual.core.jit import njit
from accrual.policies.age_cells import amend_cell
from accrual.policies.age_prior.learning import refresh as learn
from accrual.policies.age_prior.model import Params, Stats

PARTS = 32.0  # of a half-life: the most decisions between two refreshes
_NOTHING = 1e-9  # of a decision: what is left of a cell below this is forgotten

MADE, REFRESHED = range(2)


class Times(NamedTuple):
    """The statistics of a policy that forgets, beyond `Stats`."""

    clock: Floats  # decisions made; those of them before the last refresh
    finishing: Ints  # buckets: the number of the decision that finishes it


_make: Any = namedtuple  # the type checker takes no fields that are not written out
ForgettingStats = _make("ForgettingStats", (*Stats._fields, *Times._fields), module=__name__)


@njit
def weight_of(params: Params, stats: Any, number: float) -> float:
    """Return the weight of the decision of this number, relative to the last refresh."""
    return math.exp(params.decay * (number - stats.clock[REFRESHED]))


@njit
def decided(params: Params, stats: Any, arm: int) -> None:
    stats.counted[arm] += weight_of(params, stats, stats.clock[MADE])
    stats.clock[MADE] += 1.0


@njit
def cell_update(
    params: Params, stats: Any, arm: int, group: int, before: float, after: float
) -> tuple[float]:
    unit = params.inverse_cap[arm]
    x = (after - before) * unit
    a, g = np.uint64(arm), np.uint64(group)
    weight = weight_of(params, stats, float(stats.finishing[g]))
    stats.seen[a, g] += weight
    stats.paid[a, g] += weight * x
    stats.growth[a, g] += weight * (x * (after + before) * unit)
    stats.square[a, g] += weight * (x * x)
    return (weight,)


@njit
def finished(params: Params, stats: Any, arm: int, group: int, before: float, after: float) -> None:
    (more,) = cell_update(params, stats, arm, group, before, after)
    stats.news[np.uint64(arm)] += more


@njit
def amended(
    params: Params, stats: Any, arm: int, group: int,
    before: float, after: float, more_before: float, more_after: float,
) -> None:  # fmt: skip
    weight = weight_of(params, stats, float(stats.finishing[group]))
    amend_cell(params, stats, arm, group, before, after, more_before, more_after, weight)
    stats.news[arm] = max(stats.news[arm], stats.wait[arm])


@njit
def refresh(params: Params, stats: Any) -> None:
    """Scale all weights down to this moment, then learn again what the arms share."""
    fade = math.exp(params.decay * (stats.clock[REFRESHED] - stats.clock[MADE]))
    stats.clock[REFRESHED] = stats.clock[MADE]
    arms, buckets = stats.seen.shape
    for a in range(arms):
        stats.counted[a] *= fade
        for g in range(buckets):
            left = fade if stats.seen[a, g] * fade > _NOTHING else 0.0
            stats.seen[a, g] *= left
            stats.paid[a, g] *= left
            stats.growth[a, g] *= left
            stats.square[a, g] *= left
    learn(params, stats)
    most = math.log(2.0) / (params.decay * PARTS)
    stats.due[0] = max(min(stats.due[0], int(min(most, 1e15))), 1)
