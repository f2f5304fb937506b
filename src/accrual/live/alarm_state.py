"""What the alarms say, in words: which arms no longer pay as they did."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from accrual.core.figures import figure
from accrual.live.alarms import FALSE_ALARM, Alarms


class ChangedArm(NamedTuple):
    """An arm that no longer pays as it did, and by which decision that was known."""

    name: str
    decision: int  # the closed decision that raised the alarm
    lately: float  # what a decision paid on average then: the last 64 of the arm, or half of fewer
    before: float  # the mean of those before


class AlarmState(NamedTuple):
    """Whether arms still pay as they did.

    Attributes
    ----------
    error : float
        The chance of ever raising a false alarm, for all arms together and however often one looks.
    closed : int
        Closed decisions that count.
    reason : str
        Why nothing can be said; empty where something can, now or later.
    sentence : str
        What is known, in words.
    arms : list of ChangedArm
        Those that no longer pay as they did.
    """

    error: float
    closed: int
    reason: str
    sentence: str
    arms: list[ChangedArm]


def alarm_state(alarms: Alarms, contextual: bool, name_of: Callable[[int], str]) -> AlarmState:
    """Return what is known; `contextual` says whether the policy chooses by contexts."""
    arms = [
        ChangedArm(name_of(arm), int(raised) - 1, *alarms.found[arm].tolist())
        for arm, raised in enumerate(alarms.raised)
        if raised
    ]
    closed = int(alarms.counts.sum())
    reason = ""
    if contextual:
        reason = "the policy chooses by contexts, so whom an arm is for changes with what is learned"
    return AlarmState(FALSE_ALARM, closed, reason, _sentence(arms, reason), arms)


def _sentence(arms: list[ChangedArm], reason: str) -> str:
    if arms:
        said = [
            f"{arm.name} ({figure(arm.before)} for a decision before, {figure(arm.lately)} lately)"
            for arm in arms
        ]
        names = said[0] if len(said) == 1 else ", ".join(said[:-1]) + " and " + said[-1]
        verb = "pays" if len(said) == 1 else "pay"
        return (
            f"No longer {verb} as before: {names}. The chance that this is ever said wrongly is at most "
            f"{100 * FALSE_ALARM:g} %, for all arms together and however often one looks."
        )
    if reason:
        return f"Whether arms pay as they did cannot be said: {reason}."
    return "No arm is known to pay otherwise than before."
