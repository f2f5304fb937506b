"""The answers of a service, as typed tuples. Fields that a newer service adds are left out."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class Decision(NamedTuple):
    """A decision that was made."""

    id: int
    arm: str
    at: float  # the round, or the time in seconds since 1970
    propensity: float | None = None  # the probability with which the arm was chosen; None without a floor


class PieceResult(NamedTuple):
    """What became of a piece."""

    status: str  # stored, late or again; in a batch also conflict, unknown, future, early or invalid
    late: bool = False
    age: float | None = None
    detail: str = ""
    warning: str = ""  # not empty if the decision has now paid more in all than its arm's cap


class BanditInfo(NamedTuple):
    """A bandit as it was made."""

    name: str
    rounds: bool  # whether its clock counts decisions rather than seconds
    window: float  # in rounds or in seconds
    groups: int
    policy: str
    seed: int
    allow_negative: bool
    arms: list[str]
    unit: str = ""  # of the reward, such as lectures or €; empty for none
    floor: float = 0.0  # the share of decisions whose arm is drawn at random
    features: dict[str, Any] | None = None  # the features of a context
    arm_features: dict[str, Any] | None = None  # the features of an arm
    guardrails: Mapping[str, Any] = MappingProxyType({})  # by name: cap, margin and action
    imported: int = 0  # how many decisions come from an old log: those with ids below this
    archived: float | None = None  # when it was archived, in seconds since 1970; None if it is not archived
    erase_at: float | None = None  # when it will be erased; None if never


class ArmState(NamedTuple):
    """What is known about an arm."""

    name: str
    cap: float
    retired: bool
    decisions: int
    pending: int  # decisions whose window has not closed
    observed: float  # reward that arrived in time
    expected: float | None  # reward still to come from pending decisions
    estimate: float | None  # what one decision pays on average, up to the age `reached`
    interval: tuple[float, float] | None  # for one look at one arm: do not stop because of it
    reached: float  # the greatest age that a decision of the arm has reached
    above_cap: int  # decisions that have paid more in all than the cap
    share: float  # the arm's share of the last 1,000 decisions
    spread: list[float]  # how the arm's reward divides over the ages up to each of the state's `ages`
    about: dict[str, Any] | None = None  # the arm's features; None for a bandit without arm_features


class Pair(NamedTuple):
    """How much more one arm pays for a decision than another, on average."""

    first: str
    second: str
    difference: float  # first minus second, estimated from closed decisions
    interval: tuple[float, float]  # for the difference; holds at all times, however often one looks
    sequence: list[tuple[int, float, float]]  # earlier intervals: after how many closed decisions, from, to
    ahead: tuple[int, int] | None  # the range of decisions over which the first was shown to pay more
    behind: tuple[int, int] | None  # the range of decisions over which the second was shown to pay more


class Verdict(NamedTuple):
    """What may be said about the arms in play, however often one looks."""

    outcome: str  # winner, none_yet or cannot_tell
    may_stop: bool  # whether there is a winner, and no arm in play was found to pay differently than before
    winner: str | None  # the arm shown to pay more than every other arm in play
    error: float  # the chance that a false winner is ever named, in the whole life of the bandit
    contenders: list[str]  # arms that may still be the best
    retirable: list[str]  # arms for which another arm in play was shown to pay more
    changed: list[str]  # arms shown to pay more than another over some decisions, and less over others
    loss_if_stopped: (
        float | None
    )  # about how much a decision would lose if the leader were chosen from now on
    decisions_to_go: tuple[int, int | None] | None  # a guess of how many more must close: from, to
    time_to_go: tuple[float, float | None] | None  # the same in rounds or seconds
    reason: str  # why no verdict can be given; empty if one can
    sentence: str  # the answer to "may I stop?" in words
    leader: str | None  # the arm with the largest estimate: do not stop because of it
    scored: int  # closed decisions that count
    skipped: int  # closed decisions that do not count
    cut: int  # totals above the cap, which count as the cap here
    intervals: dict[str, tuple[float, float]]  # by arm: what a decision pays, at all times
    pairs: list[Pair]  # the leader compared with every other arm in play
    warnings: list[str]


class GuardedArm(NamedTuple):
    """What is known about an arm on a guardrail."""

    name: str
    decisions: int  # closed decisions that count
    mean: float | None  # the mean total of the stream for a decision
    excess: float | None  # an estimate of how much more the arm has than the best other arm in play
    excess_least: float | None  # a lower bound of the excess, however often one looks
    worse: bool  # whether the excess was shown to be above the margin
    span: tuple[int, int] | None  # the range of decisions over which that was shown
    retired: bool


class Guardrail(NamedTuple):
    """What is known about the arms on a guardrail, a stream of pieces where less is better."""

    name: str
    cap: float
    margin: float
    action: str  # flag or retire
    error: float  # the chance that an arm is ever called worse although it is not
    scored: int  # closed decisions that count
    cut: int  # totals of the stream above its cap, which count as the cap
    reason: str  # why nothing can be said; empty if something can
    sentence: str  # what is known, in words
    arms: list[GuardedArm]


class ChangedArm(NamedTuple):
    """An arm that no longer pays as it did."""

    name: str
    decision: int  # the closed decision that raised the alarm
    lately: float  # the mean when the alarm was raised: of the arm's last 64 decisions, or of half of fewer
    before: float  # the mean of the decisions before those


class Alarm(NamedTuple):
    """Whether arms still pay as they did."""

    error: float  # the chance that a false alarm is ever raised, for all arms together
    closed: int  # closed decisions that were checked
    reason: str  # why nothing can be said; empty if something can
    sentence: str  # what is known, in words
    arms: list[ChangedArm]


class Level(NamedTuple):
    """What the policy expects at one level of a feature, if the other features are as on average."""

    level: str  # for a number, one of the two ends of its range
    expected: dict[str, float]  # by arm: an estimate of what a decision pays in all


class Feature(NamedTuple):
    """What is known about a feature."""

    name: str
    unknown: int  # decisions with a level that was not declared
    missing: int  # decisions without a value
    beyond: int  # decisions with a number out of range
    levels: list[Level]  # empty while nothing is known, and for every policy but AgeLinTS


class BanditState(NamedTuple):
    """What is known about a bandit at one position of its log."""

    name: str
    position: int
    at: float
    decisions: int
    pending: int
    late: int  # pieces that came too late, since the first decision
    duplicates: int  # requests sent again and counted once
    behind: int  # stored events that this state does not have yet
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
    """Decisions for which another arm pays more than the arm that is best for all."""

    part: str  # the contexts of these decisions, such as country=us
    decisions: int
    arm: str  # the arm that pays more for these contexts
    than: str  # the arm that pays best for all contexts
    more: Interval  # how much more a decision pays; all intervals of `winners` hold together


class ContextWorth(NamedTuple):
    """What contexts are worth, judged by closed decisions. The intervals are for one look."""

    more: Interval | None  # what choosing by context adds to a decision; None if it cannot be told
    with_contexts: Interval | None  # what a decision pays if its arm is chosen by context
    without: Interval | None  # what a decision pays if every decision gets the one arm that pays best
    single: str  # the one arm that pays best
    winners: list[Winner]
    decisions: int  # how many closed decisions were used: the last ones
    closed: int  # how many decisions have closed in all
    effective: float  # how many decisions of equal weight would give figures as precise
    reason: str  # why nothing can be told; empty if something can
    sentence: str  # what is known, in words


class Reason(NamedTuple):
    """What the policy knew of an arm when it made a decision."""

    arm: str
    # The policy chooses the largest; None before all arms were tried. It hides tuple's own `index`.
    index: float | None  # type: ignore[assignment]
    terms: dict[str, float | None]  # what the index is made of
    estimate: float | None


class Explanation(NamedTuple):
    """Why a decision chose its arm."""

    id: int
    arm: str
    at: float
    propensity: float | None
    first: bool  # whether the arm was chosen because nothing was known about it yet
    exact: bool  # whether the state, computed again from the log, gives the same choice
    reasons: list[Reason]
    context: Mapping[str, Any] = MappingProxyType({})  # empty for a bandit without features


class Event(NamedTuple):
    """An event of the log. A field that its kind does not have is None."""

    seq: int
    kind: str  # decision, piece, close, add_arm or retire_arm
    at: float
    decision: int | None = None
    arm: str | None = None
    value: float | None = None
    age: float | None = None
    stream: str | None = None  # the guardrail to which a piece belongs
    window: float | None = None
    propensity: float | None = None
    cap: float | None = None
    about: Mapping[str, Any] | None = None  # the features of an added arm
    context: Mapping[str, Any] | None = None  # a decision's context, if the bandit has features
    imported: bool | None = None  # True for a decision or piece of an old log


class EventPage(NamedTuple):
    """A part of the log, in order."""

    events: list[Event]
    next: int  # the `after` of the next part
    end: bool  # whether this part is the last


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
    """Make a `ContextWorth` from an answer's object."""
    winners = [build(Winner, {**one, "more": build(Interval, one["more"])}) for one in answer["winners"]]
    names = ("more", "with_contexts", "without")
    figures = {name: answer[name] and build(Interval, answer[name]) for name in names}
    return build(ContextWorth, {**answer, **figures, "winners": winners})


def build_explanation(answer: Mapping[str, Any]) -> Explanation:
    """Make an explanation from an answer's object."""
    return build(Explanation, {**answer, "reasons": [build(Reason, reason) for reason in answer["reasons"]]})


def build_events(answer: Mapping[str, Any]) -> EventPage:
    """Make a part of the log from an answer's object."""
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
