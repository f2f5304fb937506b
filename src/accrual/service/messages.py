"""What the routes take and answer, by subject: bandit, arm, decision, piece, log.

`...In` is the body of a request, `...Query` its query parameters, `...Out` an answer. What `live` returns
(states, explanations, the worth of contexts) is sent as it is.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from accrual.core.durations import DURATION
from accrual.core.features import FEATURES_MOST, FeatureValue
from accrual.core.random import SEED_MOST
from accrual.core.version import VERSION
from accrual.live.config import CAP_LEAST, CAP_MOST, NAME_MOST, UNIT_MOST
from accrual.live.watch import STREAMS_MOST

BANDIT = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
WHOLE_MOST = 2**53  # JSON can write every whole number up to this one
# Limits of the service alone: what one request may cost it.
ARMS_MOST = 1_000
BATCH_MOST = 1_000  # decisions or pieces
ROUNDS_MOST = 100_000
GROUPS_MOST = 10_000
POLICY_MOST = 10_000  # characters
_DURATION = f"^{DURATION}$"
OTHER_WORDS = {"reward": "value", "id": "decision", "timestamp": "at"}
"""Words that other programs use for a field, and its name here."""


def says(description: str) -> Meta:
    """Return the annotation of a field that has a description and no limits."""
    return Meta(description=description)


def described(description: str, *examples: Any, **schema: Any) -> Meta:
    """Return the annotation of a field that `live` checks, for HTTP and Python alike.

    The description of the API has what is said here; nothing is checked twice. Errors show the examples.
    """
    return Meta(description=description, examples=list(examples) or None, extra_json_schema=schema or None)


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
    described(
        'The features of a context, by name. Each is a list of levels, a range of two numbers, or "bool".',
        {"country": ["de", "us"], "new": "bool", "visits": [0, 50]},
        maxProperties=FEATURES_MOST,
    ),
]
ArmFeaturesIn = Annotated[
    dict[str, FeatureIn],
    described(
        "The features of an arm, declared like `features`: the subject and the length of a course, for "
        "example. A new arm then starts from what similar arms taught. Only the policy AgePrior takes them.",
        {"subject": ["art", "maths"], "hours": [0, 60]},
        maxProperties=FEATURES_MOST,
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
    str, described("Letters, digits, dots and dashes; it is part of addresses.", "plays", pattern=BANDIT)
]
Name = Annotated[
    str,
    described(
        "Any text without control characters.",
        minLength=1,
        maxLength=NAME_MOST,
        pattern=r"^[^\x00-\x1f\x7f-\x9f]+$",
    ),
]
Cap = Annotated[
    float,
    described(
        "The most that one decision of the arm can pay in all, in the unit of its pieces. The default, 1, is "
        "right only if no decision pays more than 1. A decision that pays more than the cap is counted and "
        "answered with a warning, and the policy then chooses badly.",
        minimum=CAP_LEAST,
        maximum=CAP_MOST,
    ),
]
Arms = (
    Annotated[list[Name], Meta(max_length=ARMS_MOST, extra_json_schema={"minItems": 1})]
    | Annotated[dict[Name, Cap], Meta(max_length=ARMS_MOST, extra_json_schema={"minProperties": 1})]
)
Window = (
    Annotated[int, Meta(ge=1, le=ROUNDS_MOST, description="Rounds: the clock counts decisions.")]
    | Annotated[str, described("A time: 90s, 12h, 60d.", pattern=_DURATION)]
)


class GuardrailIn(Struct, forbid_unknown_fields=True, tag_field="kind", tag="guardrail"):
    """A stream of pieces where less is better, such as refunds. It needs a floor."""

    cap: Annotated[
        float,
        described("The greatest total of the stream for one decision.", minimum=CAP_LEAST, maximum=CAP_MOST),
    ] = 1.0
    margin: Annotated[
        float,
        described("How much more per decision an arm may have than another arm; below the cap.", minimum=0),
    ] = 0.0
    action: Annotated[
        Literal["flag", "retire"],
        says("What happens to a worse arm. It is shown and logged; `retire` also retires it."),
    ] = "flag"


StreamIn = GuardrailIn  # the kinds of streams beside the reward, with their names in `STREAM_KINDS`
StreamsIn = Annotated[
    dict[Name, StreamIn],
    described(
        "Streams of pieces beside the reward, by name. The policy does not learn from them.",
        {"refunds": {"kind": "guardrail", "margin": 0.02}},
        maxProperties=STREAMS_MOST,
    ),
]
PriorIn = Annotated[
    dict[str, list[list[tuple[float, float]]]],
    described(
        "Closed decisions of an old log, by arm. Each decision is a list of (age in seconds, "
        "value). They become the bandit's first decisions, marked as imported. If there are more than "
        "20,000, an even sample of 20,000 is taken.",
        {"jazz": [[[3600, 0.2]], []]},
    ),
]


class BanditIn(Struct, forbid_unknown_fields=True):
    """A new bandit. The fields are the arguments of `accrual.Bandit`."""

    name: BanditName
    arms: Annotated[
        Arms,
        described(
            "The names of the arms, or their names with their caps.",
            ["jazz", "rock"],
            {"jazz": 40, "rock": 40},
        ),
    ]
    window: Annotated[Window, described("The greatest age at which a piece may arrive.", "60d", 80)]
    groups: (
        Annotated[
            int,
            Meta(
                ge=1,
                le=GROUPS_MOST,
                description="How many equal parts the window has. A window in rounds must be a multiple.",
            ),
        ]
        | None
    ) = None
    policy: (
        Annotated[
            str,
            Meta(
                max_length=POLICY_MOST,
                description="The default is AgePrior, and AgeLinTS for a bandit with features.",
                examples=["AgePrior", "TPUCBFRG(alpha=50, spread=begin)"],
            ),
        ]
        | None
    ) = None
    seed: (
        Annotated[
            int,
            described(
                "The seed of policies that choose at random. By default it is drawn once and kept.",
                minimum=0,
                maximum=SEED_MOST,
            ),
        ]
        | None
    ) = None
    allow_negative: Annotated[bool, says("Whether pieces may be negative, as refunds are.")] = False
    unit: Annotated[
        str,
        described(
            "What one unit of reward is, for people: lectures, or €. Empty for none.", maxLength=UNIT_MOST
        ),
    ] = ""
    floor: Annotated[
        float,
        described(
            "The share of decisions whose arm is drawn at random, such as 0.05. With a floor, "
            "propensities are known and verdicts can be given. With 0, they cannot.",
            minimum=0,
            maximum=1,
        ),
    ] = 0.0
    shares: Annotated[
        dict[str, tuple[float, float]],
        described(
            "By arm, the least and the greatest share of decisions that the arm gets.", {"jazz": [0.1, 0.6]}
        ),
    ] = {}
    features: FeaturesIn | None = None
    arm_features: ArmFeaturesIn | None = None
    about: (
        Annotated[
            dict[str, AboutIn], described("By arm, its features.", {"intro": {"subject": "art", "hours": 3}})
        ]
        | None
    ) = None
    streams: StreamsIn = {}
    prior: PriorIn | None = None

    def __post_init__(self) -> None:
        if not re.fullmatch(BANDIT, self.name):  # it is part of addresses, so this is a rule of HTTP alone
            raise ValueError(
                "the name of a bandit must be up to 100 letters, digits, dots and dashes, such as 'plays', "
                f"not {self.name[:100]!r}"
            )


class BanditInfoOut(Struct):
    """How a bandit was made, and the arms that it has now."""

    name: str
    rounds: Annotated[bool, says("Whether its clock counts decisions rather than seconds.")]
    window: Annotated[float, says("In rounds or in seconds.")]
    groups: int
    policy: str
    seed: int
    allow_negative: bool
    arms: Annotated[list[str], says("The arms that are in play now.")]
    retired: Annotated[list[str], says("The arms that have retired.")]
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

    name: Name
    cap: Cap = 1.0
    window: (
        Annotated[
            Window,
            described(
                "The arm's own window, if it is shorter than the bandit's; in the same unit.", "12h", 40
            ),
        ]
        | None
    ) = None
    about: AboutIn | None = None


class RetireIn(Struct, forbid_unknown_fields=True):
    """An arm to retire."""

    name: Name


# Decisions.

KeyText = Annotated[
    str,
    described(
        "Printable text. A request that is sent again with the same key is stored once.",
        minLength=1,
        maxLength=NAME_MOST,
        pattern="^[ -~]+$",
    ),
]
Age = (
    Annotated[float, Meta(extra_json_schema={"minimum": 0})]
    | Annotated[str, Meta(extra_json_schema={"pattern": _DURATION})]
)
Time = (
    Annotated[float, Meta(extra_json_schema={"minimum": 0})]
    | Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
)
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

    decision: Annotated[int, described("The decision's id.", minimum=0)]
    value: float
    age: Annotated[
        Age | None,
        described("Rounds, or seconds, since the decision; or a length of time, such as 1h.", 3600, "1h"),
    ] = None
    at: Annotated[
        Time | None,
        described(
            "When it was paid, instead of `age`: a round, seconds since 1970, or a time with its zone, such "
            "as 2026-11-18T12:30:00Z.",
            1795000000,
            "2026-11-18T12:30:00Z",
        ),
    ] = None
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
    version: Annotated[str, says("The version of accrual.")] = VERSION


class ReadyOut(Struct):
    """The service can store and decide now."""

    status: Literal["ready"]
    not_served: Annotated[int, says("How many bandits cannot be opened; `GET /v1/bandits` names them.")]
