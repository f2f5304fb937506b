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


def checked_by_live(*examples: Any, says: str | None = None, **schema: Any) -> Meta:
    """Return the annotation of a type whose limits `live` checks, for HTTP and Python alike.

    The description of the API has the limits, and what the type says; nothing is checked twice. Errors show
    the examples. A field is described by the docstring below it.
    """
    return Meta(description=says, examples=list(examples) or None, extra_json_schema=schema or None)


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
    checked_by_live(
        {"country": ["de", "us"], "new": "bool", "visits": [0, 50]},
        says="The features of a context, by name. Each is a list of levels, a range of two numbers, or "
        '"bool".',
        maxProperties=FEATURES_MOST,
    ),
]
ArmFeaturesIn = Annotated[
    dict[str, FeatureIn],
    checked_by_live(
        {"subject": ["art", "maths"], "hours": [0, 60]},
        says="The features of an arm, declared like `features`: the subject and the length of a course, for "
        "example. A new arm then starts from what similar arms taught. Only the policy AgePrior takes them.",
        maxProperties=FEATURES_MOST,
    ),
]
ContextIn = dict[str, FeatureValue]
AboutIn = Annotated[
    ContextIn,
    checked_by_live(
        says="The arm's features: a value for each. Only for a bandit with arm_features. A feature "
        "that is left out is not known. An unknown level and a number out of range are refused."
    ),
]


# Bandits.

BanditName = Annotated[
    str,
    checked_by_live(
        "plays", says="Letters, digits, dots and dashes; it is part of addresses.", pattern=BANDIT
    ),
]
Name = Annotated[
    str,
    checked_by_live(
        says="Any text without control characters.",
        minLength=1,
        maxLength=NAME_MOST,
        pattern=r"^[^\x00-\x1f\x7f-\x9f]+$",
    ),
]
Cap = Annotated[
    float,
    checked_by_live(
        says="The most that one decision of the arm can pay in all, in the unit of its pieces. The default, "
        "1, is right only if no decision pays more than 1. A decision that pays more than the cap is counted "
        "and answered with a warning, and the policy then chooses badly.",
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
    | Annotated[str, checked_by_live(says="A time: 90s, 12h, 60d.", pattern=_DURATION)]
)


class GuardrailIn(Struct, forbid_unknown_fields=True, tag_field="kind", tag="guardrail"):
    """A stream of pieces where less is better, such as refunds. It needs a floor."""

    cap: Annotated[float, checked_by_live(minimum=CAP_LEAST, maximum=CAP_MOST)] = 1.0
    """The greatest total of the stream for one decision."""
    margin: Annotated[float, checked_by_live(minimum=0)] = 0.0
    """How much more per decision an arm may have than another arm; below the cap."""
    action: Literal["flag", "retire"] = "flag"
    """What happens to a worse arm. It is shown and logged; `retire` also retires it."""


StreamIn = GuardrailIn  # the kinds of streams beside the reward, with their names in `STREAM_KINDS`
StreamsIn = Annotated[
    dict[Name, StreamIn],
    checked_by_live(
        {"refunds": {"kind": "guardrail", "margin": 0.02}},
        says="Streams of pieces beside the reward, by name. The policy does not learn from them.",
        maxProperties=STREAMS_MOST,
    ),
]
PriorIn = Annotated[
    dict[str, list[list[tuple[float, float]]]],
    checked_by_live(
        {"jazz": [[[3600, 0.2]], []]},
        says="Closed decisions of an old log, by arm. Each decision is a list of (age in seconds, value). "
        "They become the bandit's first decisions, marked as imported. If there are more than 20,000, an "
        "even sample of 20,000 is taken.",
    ),
]


class BanditIn(Struct, forbid_unknown_fields=True):
    """A new bandit. The fields are the arguments of `accrual.Bandit`."""

    name: BanditName
    arms: Annotated[Arms, checked_by_live(["jazz", "rock"], {"jazz": 40, "rock": 40})]
    """The names of the arms, or their names with their caps."""
    window: Annotated[Window, checked_by_live("60d", 80)]
    """The greatest age at which a piece may arrive."""
    groups: Annotated[int, Meta(ge=1, le=GROUPS_MOST)] | None = None
    """How many equal parts the window has. A window in rounds must be a multiple."""
    policy: (
        Annotated[
            str, Meta(max_length=POLICY_MOST, examples=["AgePrior", "TPUCBFRG(alpha=50, spread=begin)"])
        ]
        | None
    ) = None
    """The default is AgePrior, and AgeLinTS for a bandit with features."""
    seed: Annotated[int, checked_by_live(minimum=0, maximum=SEED_MOST)] | None = None
    """The seed of policies that choose at random. By default it is drawn once and kept."""
    allow_negative: bool = False
    """Whether pieces may be negative, as refunds are."""
    unit: Annotated[str, checked_by_live(maxLength=UNIT_MOST)] = ""
    """What one unit of reward is, for people: lectures, or €. Empty for none."""
    floor: Annotated[float, checked_by_live(minimum=0, maximum=1)] = 0.0
    """The share of decisions whose arm is drawn at random, such as 0.05. With a floor, propensities are known
    and verdicts can be given. With 0, they cannot."""
    shares: Annotated[dict[str, tuple[float, float]], checked_by_live({"jazz": [0.1, 0.6]})] = {}
    """By arm, the least and the greatest share of decisions that the arm gets."""
    features: FeaturesIn | None = None
    arm_features: ArmFeaturesIn | None = None
    about: (
        Annotated[dict[str, AboutIn], checked_by_live({"intro": {"subject": "art", "hours": 3}})] | None
    ) = None
    """By arm, its features."""
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
    rounds: bool
    """Whether its clock counts decisions rather than seconds."""
    window: float
    """In rounds or in seconds."""
    groups: int
    policy: str
    seed: int
    allow_negative: bool
    arms: list[str]
    """The arms that are in play now."""
    retired: list[str]
    """The arms that have retired."""
    unit: str = ""
    """What one unit of reward is; empty for none."""
    floor: float = 0.0
    """The share of decisions whose arm is drawn at random."""
    features: FeaturesIn | None = None
    arm_features: ArmFeaturesIn | None = None
    streams: StreamsIn = {}
    imported: int = 0
    """How many decisions come from an old log. Their ids are below this number."""
    archived: float | None = None
    """When the bandit was archived, in seconds since 1970; null if it is not archived."""
    erase_at: float | None = None
    """When the bandit will be erased, in seconds since 1970; null if never."""


class NotServedOut(Struct):
    """A bandit that is in the store and cannot be opened."""

    name: str
    why: str


class BanditsOut(Struct):
    """All bandits: served, archived, and those that cannot be served."""

    bandits: list[BanditInfoOut]
    archived: list[BanditInfoOut]
    """Bandits that are archived or deleted."""
    not_served: list[NotServedOut]
    """Bandits that cannot be opened. The service tries again every 30 seconds."""


class DeleteQuery(Struct):
    """When a deleted bandit is erased."""

    grace: Annotated[str, checked_by_live(pattern=_DURATION)] = "7d"
    """The bandit is permanently erased after this time, at least 1h. Until then it can be restored."""


# Arms.


class NewArmIn(Struct, forbid_unknown_fields=True):
    """An arm to add."""

    name: Name
    cap: Cap = 1.0
    window: Annotated[Window, checked_by_live("12h", 40)] | None = None
    """The arm's own window, if it is shorter than the bandit's; in the same unit."""
    about: AboutIn | None = None


class RetireIn(Struct, forbid_unknown_fields=True):
    """An arm to retire."""

    name: Name


# Decisions.

KeyText = Annotated[
    str,
    checked_by_live(
        says="Printable text. A request that is sent again with the same key is stored once.",
        minLength=1,
        maxLength=NAME_MOST,
        pattern="^[ -~]+$",
    ),
]
Age = Annotated[float, checked_by_live(minimum=0)] | Annotated[str, checked_by_live(pattern=_DURATION)]
Time = Annotated[float, checked_by_live(minimum=0)] | Annotated[str, checked_by_live(format="date-time")]


class DecideIn(Struct, forbid_unknown_fields=True):
    """How many decisions to make, for which contexts and under which key."""

    n: Annotated[int, Meta(ge=1, le=BATCH_MOST)] = 1
    """How many decisions."""
    key: KeyText | None = None
    context: ContextIn | Annotated[list[ContextIn], Meta(max_length=BATCH_MOST)] | None = None
    """The context: a value for each feature. With `n`, a list of n contexts. Only for a bandit with features.
    A feature that is left out counts as missing."""


class DecisionOut(Struct, gc=False):
    """A decision."""

    id: int
    arm: str
    at: float
    """The round, or the time in seconds since 1970."""
    propensity: float | None
    """The probability with which the arm was chosen; null without a floor."""


class DecisionsOut(Struct):
    """Decisions, in order."""

    decisions: list[DecisionOut]
    again: bool
    """Whether the key was used before. Then these are the decisions made at that time."""


class RecentQuery(Struct):
    """How many decisions to list."""

    limit: Annotated[int, Meta(ge=1, le=100)] = 20
    """How many decisions at most."""


class RecentOut(Struct):
    """The last decisions, newest first."""

    decisions: list[DecisionOut]


# Pieces.


class PieceIn(Struct, forbid_unknown_fields=True, gc=False):  # its fields are the arguments of Bandit.piece
    """A piece of a decision's reward, or of another stream."""

    decision: Annotated[int, checked_by_live(minimum=0)]
    """The decision's id."""
    value: float
    age: Annotated[Age | None, checked_by_live(3600, "1h")] = None
    """Rounds, or seconds, since the decision; or a length of time, such as 1h."""
    at: Annotated[Time | None, checked_by_live(1795000000, "2026-11-18T12:30:00Z")] = None
    """When it was paid, instead of `age`: a round, seconds since 1970, or a time with its zone, such as
    2026-11-18T12:30:00Z."""
    key: KeyText | None = None
    stream: str | None = None
    """The stream to which the piece belongs. The default is the reward."""


PiecesIn = PieceIn | Annotated[list[PieceIn], Meta(min_length=1, max_length=BATCH_MOST)]


class PieceResultOut(Struct, omit_defaults=True, gc=False):
    """What became of a piece."""

    status: Literal["stored", "again", "late", "conflict", "unknown", "future", "early", "invalid"]
    age: float | UnsetType = UNSET
    """The age as stored."""
    late: bool | UnsetType = UNSET
    """Whether the piece is stored and counted but not learned from."""
    warning: str | UnsetType = UNSET
    """Present if the decision has now paid more in all than its arm's cap."""
    detail: str | UnsetType = UNSET
    """Why the piece was not stored."""


# The log.


class ExportQuery(Struct):
    """Which part of the log to read."""

    after: Annotated[int, Meta(ge=0, le=WHOLE_MOST)] = 0
    """A position of the log. Events after it are listed."""
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 1_000
    """How many events at most."""


class EventOut(Struct, omit_defaults=True):
    """An event of the log."""

    seq: int
    kind: Literal["decision", "piece", "close", "add_arm", "retire_arm"]
    at: float
    decision: int | UnsetType = UNSET
    arm: str | UnsetType = UNSET
    value: float | UnsetType = UNSET
    age: float | UnsetType = UNSET
    stream: str | UnsetType = UNSET
    """The stream of a piece, if it is not the reward."""
    window: float | UnsetType = UNSET
    propensity: float | UnsetType = UNSET
    cap: float | UnsetType = UNSET
    about: ContextIn | UnsetType = UNSET
    """The features of an added arm."""
    context: ContextIn | UnsetType = UNSET
    """A decision's context, if the bandit has features."""
    imported: bool | UnsetType = UNSET
    """True for a decision or piece of an old log."""


class EventPageOut(Struct):
    """A part of the log, in order."""

    events: list[EventOut]
    next: int
    """The `after` of the request for the next part."""
    end: bool
    """Whether this part is the last."""


class HistoryOut(Struct):
    """How often each arm was chosen in each of several parts of the log, in order."""

    arms: list[str]
    at: list[float]
    """The time, or round, of the last decision of each part."""
    decisions: list[int]
    """How many decisions there were in all by the end of each part."""
    counts: list[list[int]]
    """For each part, the decisions of each arm."""


# The service.


class HealthOut(Struct):
    """The process answers."""

    status: Literal["alive"]
    version: str = VERSION
    """The version of accrual."""


class ReadyOut(Struct):
    """The service can store and decide now."""

    status: Literal["ready"]
    not_served: int
    """How many bandits cannot be opened; `GET /v1/bandits` names them."""
