"""What is answered of the worth of contexts."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from accrual.core.interval import Interval
from accrual.live.context_worth import ContextWorth


class IntervalOut(Struct):
    """An estimate with its 95 % interval."""

    value: float
    low: float
    high: float


class WinnerOut(Struct):
    """Decisions for which another arm pays more than the best one for all."""

    part: Annotated[str, Meta(description="Whom they were for, such as country=us.")]
    decisions: int
    arm: Annotated[str, Meta(description="The arm that pays more there.")]
    than: Annotated[str, Meta(description="The one arm that pays best for all.")]
    more: Annotated[
        IntervalOut, Meta(description="How much more, a decision; all such intervals hold together.")
    ]


class ContextWorthOut(Struct):
    """What contexts are worth, judged by closed decisions with the propensities that they were given."""

    more: Annotated[
        IntervalOut | None,
        Meta(
            description="By how much a decision pays more if its arm is chosen by context; null where it "
            "cannot be told. For one look: not for stopping."
        ),
    ]
    with_contexts: Annotated[
        IntervalOut | None, Meta(description="What a decision pays if its arm is chosen by context.")
    ]
    without: Annotated[
        IntervalOut | None, Meta(description="What a decision pays if all get the one arm that pays best.")
    ]
    single: Annotated[str, Meta(description="That arm; several where that changed in the course of time.")]
    winners: Annotated[list[WinnerOut], Meta(description="For whom another arm pays more.")]
    decisions: Annotated[
        int, Meta(description="Closed decisions that it is judged by: the last ones, at most 50,000.")
    ]
    closed: Annotated[int, Meta(description="Decisions that have closed in all.")]
    effective: Annotated[float, Meta(description="Decisions of equal weight that the figures rest on.")]
    reason: Annotated[str, Meta(description="Why it cannot be told; empty where it can.")]
    sentence: Annotated[str, Meta(description="What is known, in words.")]


def context_worth_out(worth: ContextWorth) -> ContextWorthOut:
    """Return the answer that says what contexts are worth."""
    winners = [
        WinnerOut(one.part, one.decisions, one.arm, one.than, _sure(one.more)) for one in worth.winners
    ]
    figures = {name: _interval(getattr(worth, name)) for name in ("more", "with_contexts", "without")}
    return ContextWorthOut(**worth._asdict() | figures | {"winners": winners})


def _interval(found: Interval | None) -> IntervalOut | None:
    return None if found is None else _sure(found)


def _sure(found: Interval) -> IntervalOut:
    return IntervalOut(found.value, found.low, found.high)
