"""For whom which arm wins: what each arm is expected to pay, level by level of each feature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from accrual.core.features import BEYOND, MISSING, UNKNOWN, Features
from accrual.live.ledger import Ledger
from accrual.policy.age_lin import READY, Stats


class LevelState(NamedTuple):
    """What the policy expects of the arms in play at one level of a feature, all else as it is on average."""

    level: str  # of a number, the two ends of its range
    expected: dict[str, float]  # by arm: what a decision pays in all; an estimate, with no interval


class FeatureState(NamedTuple):
    """What is known of a feature."""

    name: str
    unknown: int  # decisions with a level that was not declared
    missing: int  # decisions that said nothing of it
    beyond: int  # decisions with a number out of range, which counts as the nearest end
    levels: list[LevelState]  # empty while nothing is known, and for other policies than AgeLinTS


def by_level(ledger: Ledger, name_of: Callable[[int], str]) -> list[FeatureState]:
    """Return what is known of each feature of a ledger's decisions."""
    features = ledger.visitors.features
    if features is None:
        return []
    states = []
    for place, (name, kind) in enumerate(features.kinds.items()):
        odd = ledger.visitors.oddities[place]
        levels = []
        if isinstance(ledger.stats, Stats) and ledger.stats.shared[READY]:
            levels = _levels(ledger, features, place, kind, name_of)
        states.append(FeatureState(name, int(odd[UNKNOWN]), int(odd[MISSING]), int(odd[BEYOND]), levels))
    return states


def _levels(
    ledger: Ledger, features: Features, place: int, kind: Any, name_of: Callable[[int], str]
) -> list[LevelState]:
    first = int(features.encoding.first[place])
    if isinstance(kind, list):
        cases = dict(zip(kind, np.eye(len(kind)).tolist(), strict=True))
    elif kind is bool:
        cases = {"False": [0.0], "True": [1.0]}
    else:
        cases = {f"{kind[0]:g}": [0.0], f"{kind[1]:g}": [1.0]}
    states = []
    for level, numbers in cases.items():
        x = ledger.stats.centre.copy()  # what the policy saw on average
        x[0] = 1.0
        x[first : first + len(numbers)] = numbers
        expected = {
            name_of(arm): float(ledger.arms.caps[arm] * (ledger.stats.estimate[arm] @ x))
            for arm in ledger.arms.in_play
        }
        states.append(LevelState(level, expected))
    return states
