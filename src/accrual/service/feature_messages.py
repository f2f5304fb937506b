"""What is taken and answered of features: of whom decisions are for, and of arms."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from accrual.core.features import FEATURES_MOST

FeatureIn = Literal["bool"] | list[str | float]
FeaturesIn = Annotated[
    dict[str, FeatureIn],
    Meta(
        max_length=FEATURES_MOST,
        description="What may be known of whom a decision is for, by name: a list of levels, a range of two "
        'numbers, or "bool".',
    ),
]
ArmFeaturesIn = Annotated[
    dict[str, FeatureIn],
    Meta(
        max_length=FEATURES_MOST,
        description="What may be known about an arm, declared like `features`: a course's subject and "
        "length, for example. New arms then start from what similar arms taught. For AgePrior alone.",
    ),
]
ContextIn = dict[str, str | bool | float | None]
AboutIn = Annotated[
    ContextIn,
    Meta(
        description="What is known about the arm, for a bandit with arm_features alone: a value for each. "
        "What is left out is not known; an unknown level, or a number out of range, is refused."
    ),
]


class LevelOut(Struct):
    """What the policy expects of the arms in play at one level of a feature."""

    level: Annotated[str, Meta(description="Of a number, one of the two ends of its range.")]
    expected: Annotated[
        dict[str, float],
        Meta(description="By arm, what a decision pays in all, all else as it is on average: an estimate."),
    ]


class FeatureOut(Struct):
    """What is known of a feature."""

    name: str
    unknown: Annotated[int, Meta(description="Decisions with a level that was not declared.")]
    missing: Annotated[int, Meta(description="Decisions that said nothing of it.")]
    beyond: Annotated[int, Meta(description="Decisions with a number out of range.")]
    levels: Annotated[
        list[LevelOut], Meta(description="Empty while nothing is known, and unless the policy is AgeLinTS.")
    ]
