"""Checks of what a bandit is asked to store."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

from accrual.core.errors import InputError
from accrual.core.events import Decision
from accrual.live.commit import Ask, Decide
from accrual.store.base import AddArm, RetireArm

UNKNOWN_DECISION = "no decision has the id {id!r}; nothing was stored"


def decision_number(id: Any) -> int:
    """Return a decision's id as a plain number."""
    if isinstance(id, Decision):
        raise InputError(f"give the id of a decision, not the decision: {id.id}, not {id!r}")
    try:
        return operator.index(id)
    except TypeError:
        raise InputError(UNKNOWN_DECISION.format(id=id)) from None


def arm_number(arm: Any) -> int:
    """Return an arm's number as a plain number."""
    try:
        number = operator.index(arm)
    except TypeError:
        raise InputError(f"an arm is retired by its number, from 0 on, not {arm!r}") from None
    return number if number < 2**31 else -1  # no bandit has so many: the store answers that it is unknown


def refuse_decisions_after_arms(asks: Sequence[Ask]) -> None:
    """Complain of a decision behind an arm that is added or retired: arms are chosen before either."""
    changed = False
    for ask in asks:
        if isinstance(ask, AddArm | RetireArm):
            changed = True
        elif changed and isinstance(ask, Decide):
            raise InputError(
                "a decision cannot follow an arm that is added or retired in the same submit: it would be "
                "made as if that arm had not changed; submit the decision first, or in a call of its own"
            )


def is_finite(value: Any) -> bool:
    """Whether this is a number, and neither infinite nor a NaN."""
    try:
        return math.isfinite(value)
    except (TypeError, OverflowError):
        return False
