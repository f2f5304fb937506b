"""What the routes take and answer, by subject: bandit, arm, decision, piece, log.

`...In` is the body of a request, `...Query` its query parameters, `...Out` an answer. What `live` returns
(states, explanations, the worth of contexts) is sent as it is.
"""

from __future__ import annotations

import unicodedata
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from accrual.core.features import FEATURES_MOST, FeatureValue
from accrual.live.watch import STREAMS_MOST

BANDIT = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
NAME_MOST = 200
ARMS_MOST = 1_000
BATCH_MOST = 1_000  # decisions or pieces in one request
WHOLE_MOST = 2**53  # JSON can write every whole number up to this one
_DURATION = r"^[1-9][0-9]{0,4}[smhdwy]$"


def says(description: str) -> Meta:
    """Return the annotation of a field that has a description and no limits."""
    return Meta(description=description)


def _check_name(name: str, what: str = "an arm") -> None:
    if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in name):
        raise ValueError(f"the name of {what} must not contain control characters")


class NoQuery(Struct):
    """The query parameters of a route that takes none."""


class NoBody(Struct, forbid_unknown_fields=True):
    """An empty object. The body may be left out."""


class DoneOut(Struct):
    """What became of a request: `again` if the same request was stored before."""

    status: Literal["stored", "again"]


# Features: of contexts and of arms.

FeatureIn = Literal["bool"] | list[str | float]
FeaturesIn = Annotated[
    dict[str, FeatureIn],
    Meta(
        max_length=FEATURES_MOST,
        description="The features of a context, by name. Each is a list of levels, a range of two numbers, "
        'or "bool".',
    ),
]
ArmFeaturesIn = Annotated[
    dict[str, FeatureIn],
    Meta(
        max_length=FEATURES_MOST,
        description="The features of an arm, declared like `features`: the subject and the length of a "
        "course, for example. A new arm then starts from what similar arms taught. Only the policy AgePrior "
        "takes them.",
    ),
]
ContextIn = dict[str, FeatureValue]
AboutIn = Annotated[
    ContextIn,
    says(
        "The arm's features: a value for each. Only for a bandit with arm_features. A feature "
        "that is left out is not known. An unknown level and a number out of range are refused."
    ),
]


# Bandits.

BanditName = Annotated[
    str, Meta(pattern=BANDIT, description="Letters, digits, dots and dashes; it is part of addresses.")
]
ArmName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=NAME_MOST,
        description="Any text without control characters.",
        extra_json_schema={"pattern": r"^[^\x00-\x1f\x7f-\x9f]+$"},
    ),
]
Cap = Annotated[
    float,
    Meta(
        ge=1e-12,
        le=1e12,
        description="The most that one decision of the arm can pay in all, in the unit of its pieces. The "
        "default, 1, is right only if no decision pays more than 1. A decision that pays more than the cap "
        "is counted and answered with a warning, and the policy then chooses badly.",
    ),
]
Window = (
    Annotated[int, Meta(ge=1, le=100_000, description="Rounds: the clock counts decisions.")]
    | Annotated[str, Meta(pattern=_DURATION, description="A time: 90s, 12h, 60d.")]
)


class ArmIn(Struct, forbid_unknown_fields=True):
    """An arm of a new bandit."""

    name: ArmName
    cap: Cap = 1.0
    about: AboutIn | None = None

    def __post_init__(self) -> None:
        _check_name(self.name)


class GuardrailIn(Struct, forbid_unknown_fields=True, tag_field="kind", tag="guardrail"):
    """A stream of pieces where less is better, such as refunds. It needs a floor."""

    cap: Annotated[
        float, Meta(ge=1e-12, le=1e12, description="The greatest total of the stream for one decision.")
    ] = 1.0
    margin: Annotated[
        float,
        Meta(ge=0, description="How much more per decision an arm may have than another arm; below the cap."),
    ] = 0.0
    action: Annotated[
        Literal["flag", "retire"],
        says("What happens to a worse arm. It is shown and logged; `retire` also retires it."),
    ] = "flag"


StreamIn = GuardrailIn  # the kinds of streams beside the reward, with their names in `STREAM_KINDS`
StreamsIn = Annotated[
    dict[Annotated[str, Meta(min_length=1, max_length=NAME_MOST)], StreamIn],
    Meta(
        max_length=STREAMS_MOST,
        description="Streams of pieces beside the reward, by name. The policy does not learn from them.",
    ),
]
PriorIn = Annotated[
    dict[str, list[list[tuple[float, float]]]],
    says(
        "Closed decisions of an old log, by arm. Each decision is a list of (age in seconds, "
        "value). They become the bandit's first decisions, marked as imported. If there are more than "
        "20,000, an even sample of 20,000 is taken."
    ),
]


class BanditIn(Struct, forbid_unknown_fields=True):
    """A new bandit."""

    name: BanditName
    arms: Annotated[list[ArmIn], Meta(min_length=1, max_length=ARMS_MOST)]
    window: Annotated[Window, says("The greatest age at which a piece may arrive.")]
    groups: (
        Annotated[
            int,
            Meta(
                ge=1,
                le=10_000,
                description="How many equal parts the window has. A window in rounds must be a multiple.",
            ),
        ]
        | None
    ) = None
    policy: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=500,
                description="For example TPUCBFRG(alpha=50, spread=begin). The default is AgePrior, and "
                "AgeLinTS for a bandit with features.",
            ),
        ]
        | None
    ) = None
    seed: (
        Annotated[
            int,
            Meta(
                ge=0,
                le=2**31 - 1,
                description="The seed of policies that choose at random. By default it is drawn once and "
                "kept.",
            ),
        ]
        | None
    ) = None
    allow_negative: Annotated[bool, says("Whether pieces may be negative, as refunds are.")] = False
    unit: Annotated[
        str,
        Meta(
            max_length=40,
            description="What one unit of reward is, for people: lectures, or €. Empty for none.",
        ),
    ] = ""
    floor: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="The share of decisions whose arm is drawn at random, such as 0.05. With a floor, "
            "propensities are known and verdicts can be given. With 0, they cannot.",
        ),
    ] = 0.0
    shares: Annotated[
        dict[str, tuple[float, float]],
        says("By arm, the least and the greatest share of decisions that the arm gets."),
    ] = {}
    features: FeaturesIn | None = None
    arm_features: ArmFeaturesIn | None = None
    streams: StreamsIn = {}
    prior: PriorIn | None = None

    def __post_init__(self) -> None:
        if self.name.endswith("\n"):  # the $ of the pattern lets it pass
            raise ValueError("the name of a bandit must not end in a newline")
        if len({arm.name for arm in self.arms}) < len(self.arms):
            raise ValueError("arms must have different names")
        for name in self.streams:
            _check_name(name, "a stream")


class BanditInfoOut(Struct):
    """A bandit as it was made."""

    name: str
    rounds: Annotated[bool, says("Whether its clock counts decisions rather than seconds.")]
    window: Annotated[float, says("In rounds or in seconds.")]
    groups: int
    policy: str
    seed: int
    allow_negative: bool
    arms: Annotated[list[str], says("The arms that it was made with.")]
    unit: Annotated[str, says("What one unit of reward is; empty for none.")] = ""
    floor: Annotated[float, says("The share of decisions whose arm is drawn at random.")] = 0.0
    features: FeaturesIn | None = None
    arm_features: ArmFeaturesIn | None = None
    streams: StreamsIn = {}
    imported: Annotated[
        int, says("How many decisions come from an old log. Their ids are below this number.")
    ] = 0
    archived: Annotated[
        float | None, says("When the bandit was archived, in seconds since 1970; null if it is not archived.")
    ] = None
    erase_at: Annotated[
        float | None, says("When the bandit will be erased, in seconds since 1970; null if never.")
    ] = None


class NotServedOut(Struct):
    """A bandit that is in the store and cannot be opened."""

    name: str
    why: str


class BanditsOut(Struct):
    """All bandits: served, archived, and those that cannot be served."""

    bandits: list[BanditInfoOut]
    archived: Annotated[list[BanditInfoOut], says("Bandits that are archived or deleted.")]
    not_served: Annotated[
        list[NotServedOut], says("Bandits that cannot be opened. The service tries again every 30 seconds.")
    ]


class DeleteQuery(Struct):
    """When a deleted bandit is erased."""

    grace: Annotated[
        str,
        Meta(
            description="The bandit is permanently erased after this time, at least 1h. Until then it can be "
            "restored.",
            extra_json_schema={"pattern": _DURATION},
        ),
    ] = "7d"


# Arms.


class NewArmIn(Struct, forbid_unknown_fields=True):
    """An arm to add."""

    name: ArmName
    cap: Cap = 1.0
    window: (
        Annotated[Window, says("The arm's own window, if it is shorter than the bandit's; in the same unit.")]
        | None
    ) = None
    about: AboutIn | None = None

    def __post_init__(self) -> None:
        _check_name(self.name)


class RetireIn(Struct, forbid_unknown_fields=True):
    """An arm to retire."""

    name: ArmName


# Decisions.

# What `live` checks is described here and not checked again.
KeyText = Annotated[
    str,
    Meta(
        description="Printable text. A request that is sent again with the same key is stored once.",
        extra_json_schema={"minLength": 1, "maxLength": NAME_MOST, "pattern": "^[ -~]+$"},
    ),
]
Age = Annotated[
    float, Meta(description="Rounds, or seconds, since the decision.", extra_json_schema={"minimum": 0})
]
Propensity = Annotated[
    float | None, says("The probability with which the arm was chosen; null without a floor.")
]


class DecideIn(Struct, forbid_unknown_fields=True):
    """How many decisions to make, for which contexts and under which key."""

    n: Annotated[int, Meta(ge=1, le=BATCH_MOST, description="How many decisions.")] = 1
    key: KeyText | None = None
    context: Annotated[
        ContextIn | Annotated[list[ContextIn], Meta(max_length=BATCH_MOST)] | None,
        says(
            "The context: a value for each feature. With `n`, a list of n contexts. Only for a "
            "bandit with features. A feature that is left out counts as missing."
        ),
    ] = None


class DecisionOut(Struct, gc=False):
    """A decision."""

    id: int
    arm: str
    at: Annotated[float, says("The round, or the time in seconds since 1970.")]
    propensity: Propensity


class DecisionsOut(Struct):
    """Decisions, in order."""

    decisions: list[DecisionOut]
    again: Annotated[
        bool, says("Whether the key was used before. Then these are the decisions made at that time.")
    ]


class RecentQuery(Struct):
    """How many decisions to list."""

    limit: Annotated[int, Meta(ge=1, le=100, description="How many decisions at most.")] = 20


class RecentOut(Struct):
    """The last decisions, newest first."""

    decisions: list[DecisionOut]


# Pieces.


class PieceIn(Struct, forbid_unknown_fields=True, gc=False):  # its fields are the arguments of Bandit.piece
    """A piece of a decision's reward, or of another stream."""

    decision: Annotated[int, Meta(description="The decision's id.", extra_json_schema={"minimum": 0})]
    value: float
    age: Age | None = None
    at: Annotated[float, says("When it was paid, instead of `age`.")] | None = None
    key: KeyText | None = None
    stream: (
        Annotated[str, says("The stream to which the piece belongs. The default is the reward.")] | None
    ) = None


PiecesIn = PieceIn | Annotated[list[PieceIn], Meta(min_length=1, max_length=BATCH_MOST)]


class PieceResultOut(Struct, omit_defaults=True, gc=False):
    """What became of a piece."""

    status: Literal["stored", "again", "late", "conflict", "unknown", "future", "early", "invalid"]
    age: Annotated[float, says("The age as stored.")] | UnsetType = UNSET
    late: (
        Annotated[bool, says("Whether the piece is stored and counted but not learned from.")] | UnsetType
    ) = UNSET
    warning: (
        Annotated[str, says("Present if the decision has now paid more in all than its arm's cap.")]
        | UnsetType
    ) = UNSET
    detail: Annotated[str, says("Why the piece was not stored.")] | UnsetType = UNSET


# The log.


class ExportQuery(Struct):
    """Which part of the log to read."""

    after: Annotated[
        int, Meta(ge=0, le=WHOLE_MOST, description="A position of the log. Events after it are listed.")
    ] = 0
    limit: Annotated[int, Meta(ge=1, le=10_000, description="How many events at most.")] = 1_000


class EventOut(Struct, omit_defaults=True):
    """An event of the log."""

    seq: int
    kind: Literal["decision", "piece", "close", "add_arm", "retire_arm"]
    at: float
    decision: int | UnsetType = UNSET
    arm: str | UnsetType = UNSET
    value: float | UnsetType = UNSET
    age: float | UnsetType = UNSET
    stream: Annotated[str, says("The stream of a piece, if it is not the reward.")] | UnsetType = UNSET
    window: float | UnsetType = UNSET
    propensity: float | UnsetType = UNSET
    cap: float | UnsetType = UNSET
    about: Annotated[ContextIn, says("The features of an added arm.")] | UnsetType = UNSET
    context: Annotated[ContextIn, says("A decision's context, if the bandit has features.")] | UnsetType = (
        UNSET
    )
    imported: Annotated[bool, says("True for a decision or piece of an old log.")] | UnsetType = UNSET


class EventPageOut(Struct):
    """A part of the log, in order."""

    events: list[EventOut]
    next: Annotated[int, says("The `after` of the request for the next part.")]
    end: Annotated[bool, says("Whether this part is the last.")]


class HistoryOut(Struct):
    """How often each arm was chosen in each of several parts of the log, in order."""

    arms: list[str]
    at: Annotated[list[float], says("The time, or round, of the last decision of each part.")]
    decisions: Annotated[list[int], says("How many decisions there were in all by the end of each part.")]
    counts: Annotated[list[list[int]], says("For each part, the decisions of each arm.")]


# The service.


class HealthOut(Struct):
    """The process answers."""

    status: Literal["alive"]


class ReadyOut(Struct):
    """The service can store and decide now."""

    status: Literal["ready"]
    not_served: Annotated[int, says("How many bandits cannot be opened; `GET /v1/bandits` names them.")]
