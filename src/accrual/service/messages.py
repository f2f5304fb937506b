"""What the routes take and answer, by subject: bandit, arm, decision, piece, log, state, verdict, contexts.

`...In` is the body of a request, `...Query` its query parameters, `...Out` an answer.
"""

from __future__ import annotations

import unicodedata
from typing import Annotated, Any, Literal, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType

from accrual.core.features import FEATURES_MOST
from accrual.live.watch import GUARDRAILS_MOST

BANDIT = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
NAME_MOST = 200
ARMS_MOST = 1_000
BATCH_MOST = 1_000  # decisions or pieces in one request
WHOLE_MOST = 2**53  # JSON can write every whole number up to this one
_DURATION = r"^[1-9][0-9]{0,4}[smhdwy]$"

_T = TypeVar("_T", bound=Struct)


def says(description: str) -> Meta:
    """Return the annotation of a field that has a description and no limits."""
    return Meta(description=description)


def message_of(kind: type[_T], found: Any, **parts: Any) -> _T:
    """Make a message from the attributes of `found` with the names of its fields, except those in `parts`."""
    names = [name for name in kind.__struct_fields__ if name not in parts]
    return kind(**{name: getattr(found, name) for name in names}, **parts)


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
ContextIn = dict[str, str | bool | float | None]
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


class GuardrailIn(Struct, forbid_unknown_fields=True):
    """A second stream of pieces where less is better, such as refunds."""

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


GuardrailsIn = Annotated[
    dict[Annotated[str, Meta(min_length=1, max_length=NAME_MOST)], GuardrailIn],
    Meta(
        max_length=GUARDRAILS_MOST,
        description="Other streams of pieces, by name, in which no arm may have much more than another. "
        "Guardrails need a floor.",
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
    guardrails: GuardrailsIn = {}
    prior: PriorIn | None = None

    def __post_init__(self) -> None:
        if self.name.endswith("\n"):  # the $ of the pattern lets it pass
            raise ValueError("the name of a bandit must not end in a newline")
        if len({arm.name for arm in self.arms}) < len(self.arms):
            raise ValueError("arms must have different names")
        for name in self.guardrails:
            _check_name(name, "a guardrail")


class BanditOut(Struct):
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
    guardrails: GuardrailsIn = {}
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

    bandits: list[BanditOut]
    archived: Annotated[list[BanditOut], says("Bandits that are archived or deleted.")]
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


class DecisionsIn(Struct, forbid_unknown_fields=True):
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


class ReasonOut(Struct):
    """What the policy knew of an arm when it made a decision."""

    arm: str
    index: Annotated[
        float | None, says("The policy chooses the arm with the largest index. Null before all were tried.")
    ]
    terms: Annotated[dict[str, float | None], says("What the index is made of.")]
    estimate: Annotated[
        float | None, says("As in the state, at that moment; null unless the policy's name begins with Age.")
    ]


class ExplanationOut(Struct):
    """Why a decision chose its arm."""

    id: int
    arm: str
    at: float
    propensity: Propensity
    first: Annotated[bool, says("Whether the arm was chosen because nothing was known about it yet.")]
    exact: Annotated[bool, says("Whether the state, computed again from the log, gives the same choice.")]
    reasons: list[ReasonOut]
    context: Annotated[ContextIn, says("The decision's context; empty for a bandit without features.")] = {}


# Pieces.


class PieceIn(Struct, forbid_unknown_fields=True, gc=False):
    """A piece of a decision's reward, or of a guardrail."""

    decision: Annotated[int, Meta(description="The decision's id.", extra_json_schema={"minimum": 0})]
    value: float
    age: Age | None = None
    at: Annotated[float, says("When it was paid, instead of `age`.")] | None = None
    key: KeyText | None = None
    stream: (
        Annotated[str, says("The guardrail to which the piece belongs. The default is the reward.")] | None
    ) = None


PiecesIn = PieceIn | Annotated[list[PieceIn], Meta(min_length=1, max_length=BATCH_MOST)]


class PieceOut(Struct, omit_defaults=True, gc=False):
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
    stream: Annotated[str, says("The guardrail to which a piece belongs.")] | UnsetType = UNSET
    window: float | UnsetType = UNSET
    propensity: float | UnsetType = UNSET
    cap: float | UnsetType = UNSET
    about: Annotated[ContextIn, says("The features of an added arm.")] | UnsetType = UNSET
    context: Annotated[ContextIn, says("A decision's context, if the bandit has features.")] | UnsetType = (
        UNSET
    )
    imported: Annotated[bool, says("True for a decision or piece of an old log.")] | UnsetType = UNSET


class EventsOut(Struct):
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


# State.


class ArmStateOut(Struct):
    """What is known about an arm."""

    name: str
    cap: float
    retired: bool
    decisions: int
    pending: Annotated[int, says("Decisions whose window has not closed.")]
    observed: Annotated[float, says("Reward that arrived in time.")]
    expected: Annotated[
        float | None,
        says(
            "Reward still to come from pending decisions, at all ages up to the window. For ages "
            "beyond `reached` it is a guess: the arm is assumed to pay as other arms do. At ages that no arm "
            "has reached, it is assumed to pay evenly, or as the policy's prior says."
        ),
    ]
    estimate: Annotated[
        float | None, says("An estimate of what one decision pays on average, up to the age `reached`.")
    ]
    interval: Annotated[
        tuple[float, float] | None,
        says(
            "An interval for the estimate. It holds for one look at one arm. Do not stop a test "
            "because of it."
        ),
    ]
    reached: Annotated[
        float, says("The greatest age that a decision of the arm has reached, up to its window.")
    ]
    above_cap: Annotated[int, says("Decisions that have paid more in all than the cap.")]
    share: Annotated[float, says("The arm's share of the last 1,000 decisions.")]
    spread: Annotated[list[float], says("The shares of the arm's reward at the ages up to each of `ages`.")]
    about: Annotated[
        ContextIn | None, says("The arm's features; null for a bandit without arm_features.")
    ] = None


class LevelOut(Struct):
    """What the policy expects of the arms in play at one level of a feature."""

    level: Annotated[str, says("For a number, one of the two ends of its range.")]
    expected: Annotated[
        dict[str, float],
        says(
            "By arm, an estimate of what a decision pays in all, if the other features are as "
            "they are on average."
        ),
    ]


class FeatureOut(Struct):
    """What is known about a feature."""

    name: str
    unknown: Annotated[int, says("Decisions with a level that was not declared.")]
    missing: Annotated[int, says("Decisions without a value.")]
    beyond: Annotated[int, says("Decisions with a number out of range.")]
    levels: Annotated[
        list[LevelOut], says("Empty while nothing is known, and for every policy but AgeLinTS.")
    ]


class StateOut(Struct):
    """What is known about a bandit at one position of its log."""

    name: str
    position: int
    at: float
    decisions: int
    pending: Annotated[int, says("Decisions whose window has not closed.")]
    late: Annotated[int, says("Pieces that came too late, since the first decision.")]
    duplicates: Annotated[int, says("Requests sent again and counted once, since this process started.")]
    behind: Annotated[int, says("Events that other processes stored and that this state does not have yet.")]
    ages: Annotated[list[float], says("The ages at which the parts of a `spread` end.")]
    arms: list[ArmStateOut]
    verdict: VerdictOut
    features: Annotated[list[FeatureOut], says("Empty for a bandit without features.")]
    guardrails: Annotated[list[GuardrailOut], says("Empty for a bandit without guardrails.")]
    alarm: Annotated[AlarmOut, says("Whether arms still pay as they did.")]


# Verdict, guardrails and alarm.


class PairOut(Struct):
    """How much more one arm pays for a decision than another, on average."""

    first: str
    second: str
    difference: Annotated[float, says("First minus second, estimated from closed decisions.")]
    interval: Annotated[
        tuple[float, float],
        says("An interval for the difference. It holds at all times, however often one looks."),
    ]
    sequence: Annotated[
        list[tuple[int, float, float]], says("Earlier intervals: after how many closed decisions, from, to.")
    ]
    ahead: Annotated[
        tuple[int, int] | None,
        says(
            "The first and the last decision of the range over which the first arm was shown to "
            "pay more on average; null if it was not."
        ),
    ]
    behind: Annotated[
        tuple[int, int] | None,
        says(
            "The first and the last decision of the range over which the second arm was shown to "
            "pay more on average; null if it was not."
        ),
    ]


class VerdictOut(Struct):
    """What may be said about the arms in play, however often one looks."""

    outcome: Annotated[
        Literal["winner", "none_yet", "cannot_tell"],
        says(
            "`winner`: `winner` names an arm. `none_yet`: no arm has won so far. `cannot_tell`: "
            "no verdict can be given, for the reason in `reason`."
        ),
    ]
    may_stop: Annotated[
        bool,
        says("Whether there is a winner, and no arm in play has been found to pay differently than before."),
    ]
    winner: Annotated[str | None, says("The arm shown to pay more than every other arm in play.")]
    error: Annotated[
        float, says("The chance that a false winner is ever named, in the whole life of the bandit.")
    ]
    contenders: Annotated[list[str], says("Arms in play that may still be the best.")]
    retirable: Annotated[list[str], says("Arms for which another arm in play was shown to pay more.")]
    changed: Annotated[
        list[str],
        says(
            "Arms that have changed places: shown to pay more than another arm over some "
            "decisions, and less over others."
        ),
    ]
    loss_if_stopped: Annotated[
        float | None,
        says("About how much a decision would lose on average if the leader were chosen from now on."),
    ]
    decisions_to_go: Annotated[
        tuple[int, int | None] | None,
        says(
            "A guess of how many more decisions must close: from, to. `to` is null if it may "
            "never be enough. Null if there is no guess."
        ),
    ]
    time_to_go: Annotated[
        tuple[float, float | None] | None,
        says("`decisions_to_go` in rounds or seconds, at the present pace."),
    ]
    reason: Annotated[str, says("Why no verdict can be given; empty if one can.")]
    sentence: Annotated[str, says('The answer to "may I stop?" in words.')]
    leader: Annotated[str | None, says("The arm with the largest estimate. Do not stop because of it.")]
    scored: Annotated[int, says("Closed decisions that count.")]
    skipped: Annotated[
        int,
        says(
            "Closed decisions that do not count, because no propensity was recorded or because "
            "their worker did not know the newest arm yet."
        ),
    ]
    cut: Annotated[int, says("Totals above the cap, which count as the cap here.")]
    intervals: Annotated[
        dict[str, tuple[float, float]],
        says(
            "By arm, an interval for what a decision pays on average. The intervals hold at all "
            "times, however often one looks."
        ),
    ]
    pairs: Annotated[list[PairOut], says("The leader compared with every other arm in play.")]
    warnings: Annotated[
        list[str], says("Arms that are not chosen as often as they should be, or that no longer pay.")
    ]


class GuardedArmOut(Struct):
    """What is known about an arm on a guardrail."""

    name: str
    decisions: Annotated[int, says("Closed decisions that count.")]
    mean: Annotated[float | None, says("The mean total of the stream for a decision.")]
    excess: Annotated[
        float | None, says("An estimate of how much more the arm has than the best other arm in play.")
    ]
    excess_least: Annotated[
        float | None,
        says("A lower bound of the excess. It holds for all arms together, however often one looks."),
    ]
    worse: Annotated[bool, says("Whether its excess was shown to be above the margin.")]
    span: Annotated[
        tuple[int, int] | None,
        says("The first and the last decision of the range over which that was shown."),
    ]
    retired: bool


class GuardrailOut(Struct):
    """What is known about the arms on a guardrail, however often one looks."""

    name: str
    cap: float
    margin: float
    action: Literal["flag", "retire"]
    error: Annotated[float, says("The chance that an arm is ever called worse although it is not.")]
    scored: Annotated[int, says("Closed decisions that count.")]
    cut: Annotated[int, says("Totals of the stream above its cap, which count as the cap.")]
    reason: Annotated[str, says("Why nothing can be said; empty if something can.")]
    sentence: Annotated[str, says("What is known, in words.")]
    arms: list[GuardedArmOut]


class ChangedArmOut(Struct):
    """An arm that no longer pays as it did."""

    name: str
    decision: Annotated[int, says("The closed decision that raised the alarm.")]
    lately: Annotated[
        float,
        says(
            "The mean that a decision paid when the alarm was raised: of the last 64 decisions, "
            "or of half of them if there were fewer."
        ),
    ]
    before: Annotated[float, says("The mean of the decisions before those.")]


class AlarmOut(Struct):
    """Whether arms still pay as they did, however often one looks."""

    error: Annotated[float, says("The chance that a false alarm is ever raised, for all arms together.")]
    closed: Annotated[int, says("How many closed decisions were checked.")]
    reason: Annotated[str, says("Why nothing can be said; empty if something can.")]
    sentence: Annotated[str, says("What is known, in words.")]
    arms: Annotated[list[ChangedArmOut], says("The arms that no longer pay as they did.")]


# What contexts are worth.


class IntervalOut(Struct):
    """An estimate with its 95 % interval."""

    value: float
    low: float
    high: float


class WinnerOut(Struct):
    """Decisions for which another arm pays more than the arm that is best for all."""

    part: Annotated[str, says("The contexts of these decisions, such as country=us.")]
    decisions: int
    arm: Annotated[str, says("The arm that pays more for these contexts.")]
    than: Annotated[str, says("The arm that pays best for all contexts.")]
    more: Annotated[
        IntervalOut, says("How much more a decision pays. All intervals of `winners` hold together.")
    ]


class ContextWorthOut(Struct):
    """What contexts are worth, judged by closed decisions and their propensities."""

    more: Annotated[
        IntervalOut | None,
        says(
            "How much more a decision pays if its arm is chosen by context; null if that cannot "
            "be told. The interval holds for one look. Do not stop because of it."
        ),
    ]
    with_contexts: Annotated[
        IntervalOut | None, says("What a decision pays if its arm is chosen by context.")
    ]
    without: Annotated[
        IntervalOut | None, says("What a decision pays if every decision gets the one arm that pays best.")
    ]
    single: Annotated[str, says("The one arm that pays best; several if that changed over time.")]
    winners: Annotated[list[WinnerOut], says("The contexts for which another arm pays more.")]
    decisions: Annotated[int, says("How many closed decisions were used: the last ones, at most 50,000.")]
    closed: Annotated[int, says("How many decisions have closed in all.")]
    effective: Annotated[float, says("How many decisions of equal weight would be as precise.")]
    reason: Annotated[str, says("Why nothing can be told; empty if something can.")]
    sentence: Annotated[str, says("What is known, in words.")]


# The service.


class HealthOut(Struct):
    """The process answers."""

    status: Literal["alive"]


class ReadyOut(Struct):
    """The service can store and decide now."""

    status: Literal["ready"]
    not_served: Annotated[int, says("How many bandits cannot be opened; `GET /v1/bandits` names them.")]
