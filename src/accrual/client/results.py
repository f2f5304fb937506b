"""What a service answers, as typed tuples. Fields that a newer service adds are left out."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class Decision(NamedTuple):
    """A decision that was made."""

    id: int
    arm: str
    at: float  # its round, or its time in seconds since 1970
    propensity: float | None = None  # the probability with which its arm was chosen; None without a floor


class PieceResult(NamedTuple):
    """What became of a piece."""

    status: str  # stored, late or again; in a batch also conflict, unknown, future, early or invalid
    late: bool = False
    age: float | None = None
    detail: str = ""
    warning: str = ""  # text if the decision has paid more in all than its arm's cap


class BanditInfo(NamedTuple):
    """A bandit, as it was made."""

    name: str
    rounds: bool  # whether its clock counts decisions, not seconds
    window: float  # in rounds, or in seconds
    groups: int
    policy: str
    seed: int
    allow_negative: bool
    arms: list[str]
    unit: str = ""  # of the reward, such as lectures or €; empty where none was given
    floor: float = 0.0  # the share of decisions whose arm is drawn at random
    features: dict[str, Any] | None = None  # what may be known of whom a decision is for
    arm_features: dict[str, Any] | None = None  # what may be known about an arm
    guardrails: Mapping[str, Any] = MappingProxyType(
        {}
    )  # cap, margin and action of each other stream, by name
    imported: int = 0  # how many of the first decisions come from an old log
    archived: float | None = None  # since when it is archived, in seconds since 1970; None if it is not
    erase_at: float | None = None  # when it is erased for good; None if it is not


class ArmState(NamedTuple):
    """What is known of an arm."""

    name: str
    cap: float
    retired: bool
    decisions: int
    pending: int  # decisions that may still be paid for
    observed: float  # reward that has arrived in time
    expected: float | None  # reward still to come from pending decisions
    estimate: float | None  # of what one decision pays on average, up to the age `reached`
    interval: tuple[float, float] | None
    reached: float  # the greatest age that a decision of the arm has reached
    above_cap: int  # decisions that have paid more in all than the cap
    share: float  # of the last 1,000 decisions
    spread: list[float]  # how the arm's reward divides over the ages up to each of the state's `ages`
    about: dict[str, Any] | None = None  # what is known about it; None for a bandit without arm_features


class Pair(NamedTuple):
    """How much more the first arm pays for a decision than the second, on average."""

    first: str
    second: str
    difference: float
    interval: tuple[float, float]  # holds at all times together
    sequence: list[tuple[int, float, float]]  # the interval after so many closed decisions
    ahead: tuple[int, int] | None  # the decisions over which the first was shown to pay more on average
    behind: tuple[int, int] | None  # those over which the second was


class Verdict(NamedTuple):
    """What may be said of the arms in play, however often one looks."""

    winner: str | None  # the arm that was shown to pay more than every other one in play
    error: float  # the chance that a false winner is ever named, in the whole life of a bandit
    contenders: list[str]  # arms that may still be the best
    retirable: list[str]  # arms of which it was shown that another pays more
    changed: list[str]  # arms that have changed places: shown to pay more than another, and later less
    loss_if_stopped: float | None  # about what a decision would lose, were the leader taken now
    decisions_to_go: tuple[int, int | None] | None  # a guess: how many more must close, from and to
    time_to_go: tuple[float, float | None] | None  # in rounds or seconds
    reason: str  # why no verdict can be given; empty where one can
    sentence: str
    leader: str | None  # the arm with the largest estimate: not for stopping
    scored: int
    skipped: int
    cut: int
    intervals: dict[str, tuple[float, float]]
    pairs: list[Pair]
    warnings: list[str]


class GuardedArm(NamedTuple):
    """How an arm does on a guardrail."""

    name: str
    decisions: int  # closed ones that count
    mean: float | None  # of the stream, for a decision
    excess: float | None  # estimated: how much more than the best other arm in play
    excess_least: float | None  # the same at the least, however often one looks
    worse: bool  # whether it was shown to have more by more than the margin
    span: tuple[int, int] | None  # the decisions over which that was shown
    retired: bool


class Guardrail(NamedTuple):
    """What is known of the arms on a guardrail, a stream of pieces of which less is better."""

    name: str
    cap: float
    margin: float
    action: str  # flag or retire
    error: float  # the chance of ever finding an arm worse that is not
    scored: int
    cut: int
    reason: str  # why nothing can be said; empty where something can
    sentence: str
    arms: list[GuardedArm]


class ChangedArm(NamedTuple):
    """An arm that no longer pays as it did."""

    name: str
    decision: int  # the closed decision that raised the alarm
    lately: float  # what a decision paid on average then: the last 64 of the arm, or half of fewer
    before: float  # the mean of those before


class Alarm(NamedTuple):
    """Whether arms still pay as they did."""

    error: float  # the chance of ever raising a false alarm, for all arms together
    closed: int  # closed decisions that were looked at
    reason: str  # why nothing can be said; empty where something can
    sentence: str
    arms: list[ChangedArm]


class Level(NamedTuple):
    """What the policy expects of the arms in play at one level of a feature, all else as it is on average."""

    level: str  # of a number, one of the two ends of its range
    expected: dict[str, float]  # by arm: what a decision pays in all; an estimate


class Feature(NamedTuple):
    """What is known of a feature."""

    name: str
    unknown: int  # decisions with a level that was not declared
    missing: int  # decisions that said nothing of it
    beyond: int  # decisions with a number out of range
    levels: list[Level]  # empty while nothing is known, and unless the policy is AgeLinTS


class BanditState(NamedTuple):
    """What is known of a bandit, as of one position of its log."""

    name: str
    position: int
    at: float
    decisions: int
    pending: int
    late: int  # pieces that came too late, ever
    duplicates: int  # requests sent again and counted once
    behind: int  # events that are stored and not in this state yet
    ages: list[float]
    arms: list[ArmState]
    verdict: Verdict
    features: list[Feature]
    guardrails: list[Guardrail]
    alarm: Alarm


class Interval(NamedTuple):
    """An estimate with its 95 % interval."""

    value: float
    low: float
    high: float


class Winner(NamedTuple):
    """Decisions for which another arm pays more than the best one for all."""

    part: str  # whom they were for, such as country=us
    decisions: int
    arm: str  # the one that pays more there
    than: str  # the one that pays best for all
    more: Interval  # how much more, a decision; all such intervals hold together


class ContextWorth(NamedTuple):
    """What contexts are worth, judged by closed decisions. The intervals are for one look."""

    more: Interval | None  # what choosing by context adds to a decision; None where it cannot be told
    with_contexts: Interval | None  # what a decision pays if its arm is chosen by context
    without: Interval | None  # what it pays if all get the one arm that pays best
    single: str  # that arm
    winners: list[Winner]
    decisions: int  # closed ones that it is judged by, the last ones
    closed: int  # in all
    effective: float  # decisions of equal weight that the figures rest on
    reason: str  # why it cannot be told; empty where it can
    sentence: str


class Reason(NamedTuple):
    """How an arm looked when a decision was made."""

    arm: str
    # The largest is chosen; None before all arms were tried. It hides tuple's own method of this name.
    index: float | None  # type: ignore[assignment]
    terms: dict[str, float | None]  # what the index is made of
    estimate: float | None


class Explanation(NamedTuple):
    """Why a decision fell as it did."""

    id: int
    arm: str
    at: float
    propensity: float | None
    first: bool  # chosen because nothing was known of the arm
    exact: bool  # whether the state, computed again from the log, gives the same choice
    reasons: list[Reason]
    context: Mapping[str, Any] = MappingProxyType({})  # whom it was for; empty without features


class Event(NamedTuple):
    """A row of the log; None where a kind of event has no such field."""

    seq: int
    kind: str  # decision, piece, close, add_arm or retire_arm
    at: float
    decision: int | None = None
    arm: str | None = None
    value: float | None = None
    age: float | None = None
    stream: str | None = None  # the guardrail that a piece is of
    window: float | None = None
    propensity: float | None = None
    cap: float | None = None
    about: Mapping[str, Any] | None = None  # what is known about an arm that was added
    context: Mapping[str, Any] | None = None  # whom a decision was for, where the bandit has features
    imported: bool | None = None  # True where a decision or piece comes from an old log


class EventPage(NamedTuple):
    """Some of the log, in order."""

    events: list[Event]
    next: int  # what to give as `after` for the page behind this one
    end: bool  # whether the log ends here


def build(kind: type[T], answer: Mapping[str, Any]) -> T:
    """Make a tuple of `kind` from an answer's object.

    Examples
    --------
    >>> build(Decision, {"id": 0, "arm": "jazz", "at": 1.0, "new": True})
    Decision(id=0, arm='jazz', at=1.0, propensity=None)
    """
    fields: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]
    return kind(**{name: answer[name] for name in fields if name in answer})


def build_state(answer: Mapping[str, Any]) -> BanditState:
    """Make a state from an answer's object."""
    arms = [build(ArmState, arm | {"interval": arm["interval"] and tuple(arm["interval"])})
            for arm in answer["arms"]]  # fmt: skip
    features = [build(Feature, {**feature, "levels": [build(Level, level) for level in feature["levels"]]})
                for feature in answer["features"]]  # fmt: skip
    guardrails = [build(Guardrail, {**rail, "arms": [_guarded(arm) for arm in rail["arms"]]})
                  for rail in answer["guardrails"]]  # fmt: skip
    alarm = answer["alarm"]
    changed = build(Alarm, {**alarm, "arms": [build(ChangedArm, arm) for arm in alarm["arms"]]})
    parts = {"arms": arms, "verdict": _verdict(answer["verdict"]), "features": features,
             "guardrails": guardrails, "alarm": changed}  # fmt: skip
    return build(BanditState, {**answer, **parts})


def build_context_worth(answer: Mapping[str, Any]) -> ContextWorth:
    """Make what contexts are worth from an answer's object."""
    winners = [build(Winner, {**one, "more": build(Interval, one["more"])}) for one in answer["winners"]]
    names = ("more", "with_contexts", "without")
    figures = {name: answer[name] and build(Interval, answer[name]) for name in names}
    return build(ContextWorth, {**answer, **figures, "winners": winners})


def build_explanation(answer: Mapping[str, Any]) -> Explanation:
    """Make an explanation from an answer's object."""
    return build(Explanation, {**answer, "reasons": [build(Reason, reason) for reason in answer["reasons"]]})


def build_events(answer: Mapping[str, Any]) -> EventPage:
    """Make a page of the log from an answer's object."""
    return build(EventPage, {**answer, "events": [build(Event, event) for event in answer["events"]]})


def _guarded(arm: Mapping[str, Any]) -> GuardedArm:
    return build(GuardedArm, {**arm, "span": arm["span"] and tuple(arm["span"])})


def _verdict(answer: Mapping[str, Any]) -> Verdict:
    pairs = [
        build(
            Pair,
            pair
            | {"interval": tuple(pair["interval"]), "sequence": [tuple(one) for one in pair["sequence"]]}
            | {name: pair[name] and tuple(pair[name]) for name in ("ahead", "behind")},
        )
        for pair in answer["pairs"]
    ]
    intervals = {name: tuple(ends) for name, ends in answer["intervals"].items()}
    to_go = {name: answer[name] and tuple(answer[name]) for name in ("decisions_to_go", "time_to_go")}
    return build(Verdict, {**answer, **to_go, "pairs": pairs, "intervals": intervals})
