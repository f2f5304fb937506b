"""What the routes about bandits take and give: `...In` is what a request says, `...Out` what is answered."""

from __future__ import annotations

import unicodedata
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from accrual.core.features import FEATURES_MOST
from accrual.core.interval import Interval
from accrual.live.context_worth import ContextWorth
from accrual.live.watch import GUARDRAILS_MOST

# What is taken and answered of features: of whom decisions are for, and of arms.

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


# What is answered of the worth of contexts.


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


# What is answered of verdicts, guardrails and the alarm, as part of a bandit's state.


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
    ahead: Annotated[
        tuple[int, int] | None,
        Meta(description="The decisions over which the first was shown to pay more on average: from, to."),
    ]
    behind: Annotated[
        tuple[int, int] | None,
        Meta(description="The decisions over which the second was shown to pay more on average: from, to."),
    ]


class VerdictOut(Struct):
    """What may be said of the arms in play, however often one looks."""

    winner: Annotated[str | None, Meta(description="The arm shown to pay more than every other one in play.")]
    error: Annotated[
        float,
        Meta(description="The chance that a false winner is ever named, in the whole life of a bandit."),
    ]
    contenders: Annotated[list[str], Meta(description="Arms in play that may still be the best.")]
    retirable: Annotated[
        list[str], Meta(description="Arms of which it was shown that another in play pays more.")
    ]
    changed: Annotated[
        list[str],
        Meta(description="Arms that have changed places: shown to pay more than another, and later less."),
    ]
    loss_if_stopped: Annotated[
        float | None,
        Meta(description="What a decision would lose on average, were the leader taken for good now; about."),
    ]
    decisions_to_go: Annotated[
        tuple[int, int | None] | None,
        Meta(
            description="About how many decisions more must close, a guess: from, to. "
            "To is null where it may be never; all is null where it cannot be told."
        ),
    ]
    time_to_go: Annotated[
        tuple[float, float | None] | None,
        Meta(description="The same in rounds or seconds, at this pace."),
    ]
    reason: Annotated[str, Meta(description="Why no verdict can be given; empty where one can.")]
    sentence: Annotated[str, Meta(description='The answer to "may I stop?" in words.')]
    leader: Annotated[str | None, Meta(description="The arm with the largest estimate: not for stopping.")]
    scored: Annotated[int, Meta(description="Closed decisions that count.")]
    skipped: Annotated[
        int,
        Meta(
            description="Closed decisions that do not count: without a recorded propensity, or of a worker "
            "that did not know of the newest arm yet."
        ),
    ]
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
    span: Annotated[
        tuple[int, int] | None, Meta(description="The decisions over which that was shown: from, to.")
    ]
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


BANDIT = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
NAME_MOST = 200
ARMS_MOST = 1_000
WHOLE_MOST = 2**53  # the greatest number up to which JSON has every whole one

BanditName = Annotated[
    str, Meta(pattern=BANDIT, description="Letters, digits, dots, dashes; it is part of addresses.")
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
        description="The most that one decision of the arm can pay in all, in the unit of its pieces. It is "
        "1 unless given, which is right only where no decision pays more than 1. A decision that pays more "
        "is counted and answered with a warning, and makes the policy choose badly.",
    ),
]
Window = (
    Annotated[int, Meta(ge=1, le=100_000, description="Rounds: the clock counts decisions.")]
    | Annotated[str, Meta(pattern=r"^[1-9][0-9]{0,4}[smhdwy]$", description="A time: 90s, 12h, 60d.")]
)


def _check_name(name: str, what: str = "an arm") -> None:
    if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in name):
        raise ValueError(f"the name of {what} must not have control characters")


class ArmIn(Struct, forbid_unknown_fields=True):
    """An arm of a new bandit."""

    name: ArmName
    cap: Cap = 1.0
    about: AboutIn | None = None

    def __post_init__(self) -> None:
        _check_name(self.name)


class GuardrailIn(Struct, forbid_unknown_fields=True):
    """What is asked of a second stream of pieces, such as refunds, of which less is better."""

    cap: Annotated[
        float, Meta(ge=1e-12, le=1e12, description="The greatest total of the stream for one decision.")
    ] = 1.0
    margin: Annotated[
        float, Meta(ge=0, description="By how much an arm may have more, for a decision; below the cap.")
    ] = 0.0
    action: Annotated[
        Literal["flag", "retire"],
        Meta(description="What becomes of an arm that is worse: it is shown and logged, or also retired."),
    ] = "flag"


GuardrailsIn = Annotated[
    dict[Annotated[str, Meta(min_length=1, max_length=NAME_MOST)], GuardrailIn],
    Meta(
        max_length=GUARDRAILS_MOST,
        description="Other streams of pieces, by name, of which no arm may have much more than another. They "
        "need a floor.",
    ),
]

PriorIn = Annotated[
    dict[str, list[list[tuple[float, float]]]],
    Meta(
        description="What an old log knows of the arms: for each its closed decisions, each a list of (age "
        "in seconds, value). They are stored as the first decisions, marked as imported. At most 20,000 are "
        "taken, evenly."
    ),
]


class BanditIn(Struct, forbid_unknown_fields=True):
    """A new bandit."""

    name: BanditName
    arms: Annotated[list[ArmIn], Meta(min_length=1, max_length=ARMS_MOST)]
    window: Annotated[Window, Meta(description="The age at which a decision's pieces end.")]
    groups: (
        Annotated[
            int,
            Meta(
                ge=1,
                le=10_000,
                description="Equal parts of the window; in rounds their number must divide the window.",
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
                description="Such as TPUCBFRG(alpha=50, spread=begin). AgePrior unless given; with features, "
                "AgeLinTS.",
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
                description="For policies that choose at random. Drawn and kept, unless given.",
            ),
        ]
        | None
    ) = None
    allow_negative: Annotated[bool, Meta(description="Whether pieces may be negative: refunds.")] = False
    unit: Annotated[
        str,
        Meta(
            max_length=40,
            description="What one unit of reward is, for people: lectures, or €. None if empty.",
        ),
    ] = ""
    floor: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="The share of decisions whose arm is drawn at random, such as 0.05. Then "
            "propensities are known and verdicts can be given; with 0 they cannot.",
        ),
    ] = 0.0
    shares: Annotated[
        dict[str, tuple[float, float]],
        Meta(description="Of an arm's name to the least and the greatest share of decisions that it gets."),
    ] = {}
    features: FeaturesIn | None = None
    arm_features: ArmFeaturesIn | None = None
    guardrails: GuardrailsIn = {}
    prior: PriorIn | None = None

    def __post_init__(self) -> None:
        if self.name.endswith("\n"):  # which the pattern's $ lets pass
            raise ValueError("the name of a bandit must not end in a newline")
        if len({arm.name for arm in self.arms}) < len(self.arms):
            raise ValueError("arms must have different names")
        for name in self.guardrails:
            _check_name(name, "a guardrail")


class NewArmIn(Struct, forbid_unknown_fields=True):
    """An arm to be added."""

    name: ArmName
    cap: Cap = 1.0
    window: (
        Annotated[Window, Meta(description="Its own window, if shorter than the bandit's, in the same unit.")]
        | None
    ) = None
    about: AboutIn | None = None

    def __post_init__(self) -> None:
        _check_name(self.name)


class RetireIn(Struct, forbid_unknown_fields=True):
    """An arm to be retired."""

    name: ArmName


class CloseIn(Struct, forbid_unknown_fields=True):
    """What closing a decision takes: nothing. A body may be left out."""


class NoQuery(Struct):
    """The query parameters of a route that takes none."""


class RecentQuery(Struct):
    """How many decisions to list."""

    limit: Annotated[int, Meta(ge=1, le=100, description="How many decisions at most.")] = 20


class ExportQuery(Struct):
    """Which part of the log to read."""

    after: Annotated[
        int, Meta(ge=0, le=WHOLE_MOST, description="A position of the log: events beyond it are listed.")
    ] = 0
    limit: Annotated[int, Meta(ge=1, le=10_000, description="How many events at most.")] = 1_000


class BanditOut(Struct):
    """A bandit, as it was made."""

    name: str
    rounds: Annotated[bool, Meta(description="Whether its clock counts decisions, not seconds.")]
    window: Annotated[float, Meta(description="In rounds, or in seconds.")]
    groups: int
    policy: str
    seed: int
    allow_negative: bool
    arms: Annotated[list[str], Meta(description="The arms it was made with.")]
    unit: Annotated[str, Meta(description="What one unit of reward is; empty where none was given.")] = ""
    floor: Annotated[float, Meta(description="The share of decisions whose arm is drawn at random.")] = 0.0
    features: FeaturesIn | None = None
    arm_features: ArmFeaturesIn | None = None
    guardrails: GuardrailsIn = {}
    imported: Annotated[
        int,
        Meta(description="How many of the first decisions come from an old log: those with ids below it."),
    ] = 0
    archived: Annotated[
        float | None, Meta(description="Since when it is archived, in seconds since 1970; null if it is not.")
    ] = None
    erase_at: Annotated[
        float | None, Meta(description="When it is erased for good, in seconds since 1970; null if never.")
    ] = None


class DeleteQuery(Struct):
    """When a deleted bandit is erased."""

    grace: Annotated[
        str,
        Meta(
            description="After how long it is erased for good: at least 1h. Until then it can be restored.",
            extra_json_schema={"pattern": r"^[1-9][0-9]{0,4}[smhdwy]$"},
        ),
    ] = "7d"


class NotServedOut(Struct):
    """A bandit that is in the store and cannot be opened."""

    name: str
    why: str


class BanditsOut(Struct):
    """All bandits: those that are served, those that are archived, and those that cannot be served."""

    bandits: list[BanditOut]
    archived: Annotated[list[BanditOut], Meta(description="Bandits that are archived or deleted.")]
    not_served: Annotated[
        list[NotServedOut],
        Meta(description="Bandits that cannot be opened. The service tries again every 30 seconds."),
    ]


class DoneOut(Struct):
    """What became of a request: `again` if the same request had been stored before."""

    status: Literal["stored", "again"]


class ArmStateOut(Struct):
    """What is known of an arm."""

    name: str
    cap: float
    retired: bool
    decisions: int
    pending: Annotated[int, Meta(description="Decisions that may still be paid for.")]
    observed: Annotated[float, Meta(description="Reward that has arrived in time.")]
    expected: Annotated[
        float | None,
        Meta(
            description="Reward still to come from pending decisions, at all ages up to the window. What it "
            "says of ages beyond `reached` is a guess: there an arm pays as other arms do, and at ages that "
            "none has reached evenly, or as the policy's prior says."
        ),
    ]
    estimate: Annotated[
        float | None, Meta(description="Of what one decision pays on average, up to the age `reached`.")
    ]
    interval: Annotated[
        tuple[float, float] | None, Meta(description="For one look at one arm: not for stopping a test.")
    ]
    reached: Annotated[
        float, Meta(description="The greatest age that a decision of the arm has reached, up to its window.")
    ]
    above_cap: Annotated[int, Meta(description="Decisions that have paid more in all than the cap.")]
    share: Annotated[float, Meta(description="Of the last 1,000 decisions.")]
    spread: Annotated[
        list[float], Meta(description="How the arm's reward divides over the ages up to each of `ages`.")
    ]
    about: Annotated[
        ContextIn | None, Meta(description="What is known about it; null for a bandit without arm_features.")
    ] = None


class StateOut(Struct):
    """What is known of a bandit, as of one position of the log; at most half a second old."""

    name: str
    position: int
    at: float
    decisions: int
    pending: int
    late: Annotated[int, Meta(description="Pieces that came too late, ever.")]
    duplicates: Annotated[
        int, Meta(description="Requests sent again and counted once, since this process started.")
    ]
    behind: Annotated[
        int, Meta(description="Events that other processes stored and that are not in this state yet.")
    ]
    ages: list[float]
    arms: list[ArmStateOut]
    verdict: VerdictOut
    features: Annotated[list[FeatureOut], Meta(description="Empty for a bandit without features.")]
    guardrails: Annotated[list[GuardrailOut], Meta(description="Empty for a bandit without guardrails.")]
    alarm: Annotated[AlarmOut, Meta(description="Whether arms still pay as they did.")]


class HistoryOut(Struct):
    """Stretches of the log, in order: all of a short log, samples of a long one."""

    arms: list[str]
    at: Annotated[list[float], Meta(description="The time, or round, of each stretch's last decision.")]
    decisions: Annotated[list[int], Meta(description="How many decisions there had been by then, in all.")]
    counts: Annotated[list[list[int]], Meta(description="For each stretch, the decisions of each arm.")]


class RecentDecisionOut(Struct):
    """A decision that was made."""

    id: int
    arm: str
    at: float
    propensity: Annotated[
        float | None, Meta(description="The probability with which its arm was chosen; null without a floor.")
    ]


class RecentOut(Struct):
    """The last decisions, newest first."""

    decisions: list[RecentDecisionOut]


class ReasonOut(Struct):
    """How an arm looked when a decision was made."""

    arm: str
    index: Annotated[
        float | None, Meta(description="The largest is chosen; null before all arms were tried.")
    ]
    terms: Annotated[dict[str, float | None], Meta(description="What the index is made of.")]
    estimate: Annotated[
        float | None,
        Meta(description="As in the state, at that moment; null unless the policy's name begins with Age."),
    ]


class ExplanationOut(Struct):
    """Why a decision fell as it did."""

    id: int
    arm: str
    at: float
    propensity: Annotated[
        float | None, Meta(description="The probability with which its arm was chosen; null without a floor.")
    ]
    first: Annotated[bool, Meta(description="Chosen because nothing was known of it: it was its turn.")]
    exact: Annotated[
        bool, Meta(description="Whether the state, computed again from the log, gives the same choice.")
    ]
    reasons: list[ReasonOut]
    context: Annotated[
        ContextIn, Meta(description="Whom the decision was for; empty for a bandit without features.")
    ] = {}


class EventOut(Struct, omit_defaults=True):
    """A row of the log."""

    seq: int
    kind: Literal["decision", "piece", "close", "add_arm", "retire_arm"]
    at: float
    decision: int | UnsetType = UNSET
    arm: str | UnsetType = UNSET
    value: float | UnsetType = UNSET
    age: float | UnsetType = UNSET
    stream: Annotated[str, Meta(description="The guardrail that a piece is of.")] | UnsetType = UNSET
    window: float | UnsetType = UNSET
    propensity: float | UnsetType = UNSET
    cap: float | UnsetType = UNSET
    about: (
        Annotated[ContextIn, Meta(description="What is known about an arm that was added.")] | UnsetType
    ) = UNSET
    context: (
        Annotated[ContextIn, Meta(description="Whom a decision was for, where the bandit has features.")]
        | UnsetType
    ) = UNSET
    imported: (
        Annotated[bool, Meta(description="True where a decision or piece comes from an old log.")] | UnsetType
    ) = UNSET


class EventsOut(Struct):
    """A stretch of the log."""

    events: list[EventOut]
    next: Annotated[int, Meta(description="What to give as `after` for the stretch after this one.")]
    end: Annotated[bool, Meta(description="Whether the log ends with this stretch.")]


class HealthOut(Struct):
    """That the process answers."""

    status: Literal["alive"]


class ReadyOut(Struct):
    """That the service can store and decide now."""

    status: Literal["ready"]
    not_served: Annotated[
        int, Meta(description="How many bandits cannot be opened; `GET /v1/bandits` names them.")
    ]
