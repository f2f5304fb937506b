"""Checks of what a ledger is told."""

from __future__ import annotations

import math
import operator

from accrual.core.errors import InputError


def later(last: float, now: float) -> float:
    """Return the time `now`, if it is not before that of the last event."""
    time = float(now)
    if not last <= time < math.inf:
        raise InputError(f"time must not go back: {now!r} comes after {last:g}")
    return time


def existing_decision(made: int, id: int) -> int:
    """Return the id of one of the decisions made, as a plain number."""
    try:
        number = operator.index(id)
    except TypeError:
        number = -1
    if not 0 <= number < made:
        raise InputError(f"no decision has the id {id!r}; there are {made}, from 0 on")
    return number
