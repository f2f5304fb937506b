"""What is answered of verdicts, guardrails and the alarm, as part of a bandit's state."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct


class PairOut(Struct):
    """How much more the first arm pays for a decision than the second, on average."""

    first: str
    second: str
    difference: Annotated[float, Meta(description="Estimated from closed decisions.")]
    interval: Annotated[
        tuple[float, float],
        Meta(description="Holds at all times together, however often one looks."),
    ]
    sequence: Annotated[
        list[tuple[int, float, float]],
        Meta(description="The interval earlier: after how many closed decisions, from, to."),
    ]


class VerdictOut(Struct):
    """What may be said of the arms in play, however often one looks."""

    winner: Annotated[str | None, Meta(description="The arm that pays more than every other one in play.")]
    error: Annotated[float, Meta(description="The chance that a winner that is named is ever a false one.")]
    contenders: Annotated[list[str], Meta(description="Arms in play that may still be the best.")]
    retirable: Annotated[
        list[str], Meta(description="Arms of which it is known that another in play pays at least as much.")
    ]
    loss_if_stopped: Annotated[
        float | None,
        Meta(description="What a decision would lose on average, were the leader taken for good now; about."),
    ]
    decisions_to_go: Annotated[
        int | None, Meta(description="About how many decisions more it takes; null where it cannot be told.")
    ]
    time_to_go: Annotated[float | None, Meta(description="The same in rounds or seconds, at this pace.")]
    reason: Annotated[str, Meta(description="Why no verdict can be given; empty where one can.")]
    sentence: Annotated[str, Meta(description='The answer to "may I stop?" in words.')]
    leader: Annotated[str | None, Meta(description="The arm with the largest estimate: not for stopping.")]
    scored: Annotated[int, Meta(description="Closed decisions that count.")]
    skipped: Annotated[int, Meta(description="Closed decisions without a recorded propensity.")]
    cut: Annotated[int, Meta(description="Totals above the cap, which count as the cap here.")]
    intervals: Annotated[
        dict[str, tuple[float, float]],
        Meta(description="What a decision of each arm pays on average: holds at all times together."),
    ]
    pairs: Annotated[list[PairOut], Meta(description="The leader beside every other arm in play.")]
    warnings: Annotated[
        list[str], Meta(description="Arms not chosen as often as they should be, or whose pay has stopped.")
    ]


class GuardedArmOut(Struct):
    """How an arm does on a guardrail."""

    name: str
    decisions: Annotated[int, Meta(description="Closed decisions that count.")]
    mean: Annotated[float | None, Meta(description="Of the stream, for a decision.")]
    excess: Annotated[
        float | None, Meta(description="Estimated: how much more than the best other arm in play.")
    ]
    excess_least: Annotated[
        float | None, Meta(description="The same at the least: holds for all arms, however often one looks.")
    ]
    worse: Annotated[bool, Meta(description="Whether it was shown to have more by more than the margin.")]
    retired: bool


class GuardrailOut(Struct):
    """What is known of the arms on a guardrail, however often one looks."""

    name: str
    cap: float
    margin: float
    action: Literal["flag", "retire"]
    error: Annotated[float, Meta(description="The chance of ever finding an arm worse that is not.")]
    scored: Annotated[int, Meta(description="Closed decisions that count.")]
    cut: Annotated[int, Meta(description="Totals of the stream above its cap, which count as the cap.")]
    reason: Annotated[str, Meta(description="Why nothing can be said; empty where something can.")]
    sentence: Annotated[str, Meta(description="What is known, in words.")]
    arms: list[GuardedArmOut]


class ChangedArmOut(Struct):
    """An arm that no longer pays as it did."""

    name: str
    decision: Annotated[int, Meta(description="The closed decision that raised the alarm.")]
    lately: Annotated[
        float, Meta(description="What a decision paid on average then: the last 64, or half of fewer.")
    ]
    before: Annotated[float, Meta(description="The mean of those before.")]


class AlarmOut(Struct):
    """Whether arms still pay as they did, however often one looks."""

    error: Annotated[float, Meta(description="The chance of ever raising a false alarm, for all arms.")]
    closed: Annotated[int, Meta(description="Closed decisions that were looked at.")]
    reason: Annotated[str, Meta(description="Why nothing can be said; empty where something can.")]
    sentence: Annotated[str, Meta(description="What is known, in words.")]
    arms: Annotated[list[ChangedArmOut], Meta(description="Those that no longer pay as they did.")]
