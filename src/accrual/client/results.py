"""What is sent to a service, and its answers. `make clients` writes this file."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypedDict


@dataclass(frozen=True)
class AlarmState:
    """Whether arms still pay as they did, however often one looks.

    Attributes
    ----------
    error
        The chance that a false alarm is ever raised, for all arms together.
    closed
        How many closed decisions were checked.
    reason
        Why nothing can be said; empty if something can be said, now or later.
    sentence
        What is known, in words.
    arms
        The arms that no longer pay as they did.
    """

    error: float
    closed: int
    reason: str
    sentence: str
    arms: list[ChangedArm]


@dataclass(frozen=True)
class ArmState:
    """What is known about an arm from the pieces that have arrived.

    The estimate is a sum over ages: at each age, the average pay of the decisions that have reached that
    age. Once a window has closed, it is the average total; if all have closed, the plain mean of the
    totals. It is never cut off at the cap. The interval is cut off there, unless a decision has paid more
    than the cap.

    Attributes
    ----------
    pending
        Decisions whose window has not closed.
    observed
        Reward that arrived in time.
    expected
        Reward still to come from pending decisions, at all ages up to the window. For ages beyond `reached`
        it is a guess: the arm is assumed to pay as other arms do. At ages that no arm has reached, it is
        assumed to pay evenly, or as the policy's prior says.
    estimate
        An estimate of what one decision pays on average, up to the age `reached`; None while nothing is
        known.
    interval
        An interval for the estimate. It aims at 95 % and is a heuristic (docs/verdicts.md says what it
        covered in tests). It holds for one look at one arm. Do not stop a test because of it.
    reached
        The greatest age that a decision of the arm has reached, up to its window.
    above_cap
        Decisions that have paid more in all than the cap.
    share
        The arm's share of the last 1,000 decisions.
    spread
        The shares of the arm's reward at the ages up to each of the state's `ages`.
    about
        The arm's features; None for a bandit without arm_features.
    """

    name: str
    cap: float
    retired: bool
    decisions: int
    pending: int
    observed: float
    expected: float | None
    estimate: float | None
    interval: tuple[float, float] | None
    reached: float
    above_cap: int
    share: float
    spread: list[float]
    about: dict[str, str | bool | float | None] | None


@dataclass(frozen=True)
class BanditInfo:
    """How a bandit was made, and the arms that it has now.

    Attributes
    ----------
    rounds
        Whether its clock counts decisions rather than seconds.
    window
        In rounds or in seconds.
    arms
        The arms that are in play now.
    retired
        The arms that have retired.
    unit
        What one unit of reward is; empty for none.
    floor
        The share of decisions whose arm is drawn at random.
    streams
        Streams of pieces beside the reward, by name. The policy does not learn from them.
    imported
        How many decisions come from an old log. Their ids are below this number.
    archived
        When the bandit was archived, in seconds since 1970; None if it is not archived.
    erase_at
        When the bandit will be erased, in seconds since 1970; None if never.
    """

    name: str
    rounds: bool
    window: float
    groups: int
    policy: str
    seed: int
    allow_negative: bool
    arms: list[str]
    retired: list[str]
    unit: str = ""
    floor: float = 0.0
    features: dict[str, Literal["bool"] | list[str | float]] | None = None
    arm_features: dict[str, Literal["bool"] | list[str | float]] | None = None
    streams: dict[str, Guardrail] = field(default_factory=dict)
    imported: int = 0
    archived: float | None = None
    erase_at: float | None = None


@dataclass(frozen=True)
class BanditState:
    """What is known about a bandit at one position of its log. What a watcher says is under its name.

    Attributes
    ----------
    at
        The time of the last event: a round, or seconds since 1970.
    pending
        Decisions whose window has not closed.
    late
        Pieces that came too late, since the first decision.
    ages
        The ages at which the parts of a `spread` end.
    features
        Empty for a bandit without features.
    alarm
        Whether arms still pay as they did.
    guardrails
        Empty for a bandit without guardrails.
    duplicates
        Requests sent again and counted once, since this process opened the bandit.
    behind
        Events that other processes stored and that this state does not have yet.
    """

    name: str
    position: int
    at: float
    decisions: int
    pending: int
    late: int
    ages: list[float]
    arms: list[ArmState]
    features: list[FeatureState]
    verdict: Verdict
    alarm: AlarmState
    guardrails: list[GuardrailState]
    duplicates: int
    behind: int


@dataclass(frozen=True)
class Bandits:
    """All bandits: served, archived, and those that cannot be served.

    Attributes
    ----------
    archived
        Bandits that are archived or deleted.
    not_served
        Bandits that cannot be opened. The service tries again every 30 seconds.
    """

    bandits: list[BanditInfo]
    archived: list[BanditInfo]
    not_served: list[NotServed]


@dataclass(frozen=True)
class ChangedArm:
    """An arm that no longer pays as it did.

    Attributes
    ----------
    decision
        The closed decision that raised the alarm.
    lately
        The mean that a decision paid when the alarm was raised: of the arm's last 64 decisions, or of half
        of them if there were fewer.
    before
        The mean of the decisions before those.
    """

    name: str
    decision: int
    lately: float
    before: float


@dataclass(frozen=True)
class ContextWorth:
    """What contexts are worth to a bandit.

    The estimate uses closed decisions and their propensities. A linear model is fitted to earlier decisions
    and chooses for later ones: once for each by its context, and once the same arm for all. Intervals are
    95 %, for one look: they are not for stopping.

    Attributes
    ----------
    more
        How much more a decision pays if its arm is chosen by context; None if it cannot be told.
    with_contexts
        What a decision pays if its arm is chosen by context.
    without
        What a decision pays if every decision gets the one arm that pays best.
    single
        The one arm that pays best; several arms if that changed in the course of the decisions.
    winners
        The contexts for which another arm pays more; their intervals hold together with 95 %.
    decisions
        How many closed decisions are used: the last ones, of which the first fifth only trains the model.
    closed
        How many decisions have closed in all.
    effective
        How many decisions of equal weight would give figures as certain as these.
    reason
        Why nothing can be told; empty if it can.
    sentence
        The result in words.
    """

    more: Interval | None
    with_contexts: Interval | None
    without: Interval | None
    single: str
    winners: list[Winner]
    decisions: int
    closed: int
    effective: float
    reason: str
    sentence: str


@dataclass(frozen=True)
class Decision:
    """A decision.

    Attributes
    ----------
    at
        The round, or the time in seconds since 1970.
    propensity
        The probability with which the arm was chosen; None without a floor.
    """

    id: int
    arm: str
    at: float
    propensity: float | None


@dataclass(frozen=True)
class Decisions:
    """Decisions, in order.

    Attributes
    ----------
    again
        Whether the key was used before. Then these are the decisions made at that time.
    """

    decisions: list[Decision]
    again: bool


@dataclass(frozen=True)
class Done:
    """What became of a request: `again` if the same request was stored before."""

    status: Literal["again", "stored"]


@dataclass(frozen=True)
class Event:
    """An event of the log.

    Attributes
    ----------
    stream
        The stream of a piece, if it is not the reward.
    about
        The features of an added arm.
    context
        A decision's context, if the bandit has features.
    imported
        True for a decision or piece of an old log.
    """

    seq: int
    kind: Literal["add_arm", "close", "decision", "piece", "retire_arm"]
    at: float
    decision: int | None = None
    arm: str | None = None
    value: float | None = None
    age: float | None = None
    stream: str | None = None
    window: float | None = None
    propensity: float | None = None
    cap: float | None = None
    about: dict[str, str | bool | float | None] | None = None
    context: dict[str, str | bool | float | None] | None = None
    imported: bool | None = None


@dataclass(frozen=True)
class EventPage:
    """A part of the log, in order.

    Attributes
    ----------
    next
        The `after` of the request for the next part.
    end
        Whether this part is the last.
    """

    events: list[Event]
    next: int
    end: bool


@dataclass(frozen=True)
class Explanation:
    """Why a decision chose its arm.

    Attributes
    ----------
    at
        The round, or the time in seconds since 1970.
    propensity
        The probability with which the arm was chosen; None without a floor.
    first
        Whether the arm was chosen because nothing was known about it yet.
    drawn
        Whether the arm was drawn at random, because of the floor, in place of the policy's own choice.
    exact
        Whether the state, computed again from the log, gives the same choice.
    context
        The decision's context; empty for a bandit without features.
    """

    id: int
    arm: str
    at: float
    propensity: float | None
    first: bool
    drawn: bool
    reasons: list[Reason]
    exact: bool
    context: dict[str, str | bool | float | None]


@dataclass(frozen=True)
class FeatureState:
    """What is known about a feature.

    Attributes
    ----------
    unknown
        Decisions with a level that was not declared.
    missing
        Decisions without a value.
    beyond
        Decisions with a number out of range, which counts as the nearest end.
    levels
        Empty while nothing is known, and for every policy but AgeLinTS.
    """

    name: str
    unknown: int
    missing: int
    beyond: int
    levels: list[LevelState]


@dataclass(frozen=True)
class GuardedArm:
    """What is known about an arm on a guardrail.

    Attributes
    ----------
    decisions
        Closed decisions that count.
    mean
        The mean total of the stream for a decision, once one has closed.
    excess
        An estimate of how much more the arm has than the best other arm, if the arm is in play.
    excess_least
        A lower bound of the excess. It holds for all arms together, however often one looks.
    worse
        Whether its excess was shown to be above the margin.
    span
        The first and the last decision of the range over which that was shown.
    """

    name: str
    decisions: int
    mean: float | None
    excess: float | None
    excess_least: float | None
    worse: bool
    span: tuple[int, int] | None
    retired: bool


@dataclass(frozen=True)
class Guardrail:
    """A stream of pieces where less is better, such as refunds. It needs a floor.

    Attributes
    ----------
    cap
        The greatest total of the stream for one decision.
    margin
        How much more per decision an arm may have than another arm; below the cap.
    action
        What happens to a worse arm. It is shown and logged; `retire` also retires it.
    """

    kind: Literal["guardrail"]
    cap: float = 1.0
    margin: float = 0.0
    action: Literal["flag", "retire"] = "flag"


@dataclass(frozen=True)
class GuardrailState:
    """What is known about the arms on a guardrail, a stream of pieces where less is better.

    Attributes
    ----------
    outcome
        Whether an arm was found worse, none was so far, or nothing can be said.
    action
        What happens to a worse arm. It is shown and logged; `retire` also retires it.
    error
        The chance that an arm is ever called worse although it is not.
    scored
        Closed decisions that count.
    cut
        Totals of the stream above its cap, which count as the cap.
    reason
        Why nothing can be said; empty if something can be said, now or later.
    sentence
        What is known, in words.
    """

    outcome: Literal["cannot_tell", "none_worse", "worse_arms"]
    name: str
    cap: float
    margin: float
    action: Literal["flag", "retire"]
    error: float
    scored: int
    cut: int
    reason: str
    sentence: str
    arms: list[GuardedArm]


@dataclass(frozen=True)
class History:
    """How often each arm was chosen in each of several parts of the log, in order.

    Attributes
    ----------
    at
        The time, or round, of the last decision of each part.
    decisions
        How many decisions there were in all by the end of each part.
    counts
        For each part, the decisions of each arm.
    """

    arms: list[str]
    at: list[float]
    decisions: list[int]
    counts: list[list[int]]


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval; the ends are NaN if they are not known."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class LevelState:
    """What the policy expects of the arms in play at one level of a feature.

    Attributes
    ----------
    level
        For a number, one of the two ends of its range.
    expected
        By arm, an estimate of what a decision pays in all, if the other features are as they are on
        average.
    """

    level: str
    expected: dict[str, float]


@dataclass(frozen=True)
class NotServed:
    """A bandit that is in the store and cannot be opened."""

    name: str
    why: str


@dataclass(frozen=True)
class Pair:
    """How much more one arm pays for a decision than another, on average.

    Attributes
    ----------
    difference
        First minus second, estimated from closed decisions.
    interval
        An interval for the difference. It holds for all pairs and at all times together, however often one
        looks.
    sequence
        Earlier intervals: after how many closed decisions, from, to.
    ahead
        The first and the last decision of the range over which the first arm was shown to pay more on
        average, if it was.
    behind
        The first and the last decision of the range over which the second arm was shown to pay more on
        average, if it was.
    """

    first: str
    second: str
    difference: float
    interval: tuple[float, float]
    sequence: list[tuple[int, float, float]]
    ahead: tuple[int, int] | None
    behind: tuple[int, int] | None


@dataclass(frozen=True)
class Piece:
    """A piece of a decision's reward, or of another stream.

    Attributes
    ----------
    decision
        The decision's id.
    age
        Rounds, or seconds, since the decision; or a length of time, such as 1h.
    at
        When it was paid, instead of `age`: a round, seconds since 1970, or a time with its zone, such as
        2026-11-18T12:30:00Z.
    """

    decision: int
    value: float
    age: float | str | None = None
    at: float | str | datetime | None = None
    key: str | None = None
    stream: str | None = None


@dataclass(frozen=True)
class PieceResult:
    """What became of a piece.

    Attributes
    ----------
    age
        The age as stored.
    late
        Whether the piece is stored and counted but not learned from.
    warning
        Present if the decision has now paid more in all than its arm's cap.
    detail
        Why the piece was not stored.
    """

    status: Literal["again", "conflict", "early", "future", "invalid", "late", "stored", "unknown"]
    age: float | None = None
    late: bool | None = None
    warning: str | None = None
    detail: str | None = None


@dataclass(frozen=True)
class Reason:
    """What the policy knew of an arm in play when it made a decision.

    Attributes
    ----------
    index
        The policy chooses the arm with the largest index. None if nothing was known about the arm.
    terms
        What the index is made of, as the policy names it.
    estimate
        As in the state, at that moment; None while nothing was known, and unless the policy's name begins
        with Age.
    """

    arm: str
    index: float | None
    terms: dict[str, float]
    estimate: float | None


@dataclass(frozen=True)
class Recent:
    """The last decisions, newest first."""

    decisions: list[Decision]


@dataclass(frozen=True)
class Verdict:
    """What may be said about the arms in play, however often one looks.

    "Pays more" is meant on average over a range of decisions, which the sentence and `pairs` name. All that
    `winner` and `retirable` ever say in the life of a bandit is true with a chance of at least 1 - `error`,
    for any policy, under any drift, and however often one looks: see docs/verdicts.md for the proof.

    Attributes
    ----------
    outcome
        `winner`: an arm has won. `none_yet`: no arm has won so far. `cannot_tell`: no verdict can be given,
        for the reason in `reason`.
    may_stop
        Whether there is a winner, and no arm in play was found to pay differently than before.
    winner
        The arm that was shown to pay more than every other arm in play, if none of these was ever shown to
        pay more than it.
    error
        The chance that a false winner is ever named, in the whole life of the bandit.
    contenders
        The arms in play that may still be the best.
    retirable
        The arms in play for which another arm was shown to pay more, and never the reverse.
    changed
        Arms in play that have changed places: each was shown to pay more than another arm over one range of
        decisions, and less than the same arm over another range.
    loss_if_stopped
        About how much a decision loses on average if all get the leader from now on: a normal
        approximation, the largest over the other arms, and never more than the best-paid arm has paid on
        average. None before there is a leader.
    decisions_to_go
        About how many more decisions must close: from, to. It is a guess, which assumes that arms go on
        paying as they have. The second number is None if there may never be a winner. None if there is a
        winner, or if nothing can be told.
    time_to_go
        `decisions_to_go` in rounds or seconds at the present pace.
    reason
        Why nothing can be said; empty if something can be said, now or later.
    sentence
        The answer to "may I stop?" in words.
    leader
        The arm with the largest estimate. Do not stop because of it.
    began
        The first decision that counts: 0, or the first one after the newest arm was added.
    scored
        Closed decisions that count.
    skipped
        Closed decisions that do not count, because no propensity was recorded or because their worker did
        not know the newest arm yet.
    cut
        Totals above the cap, which count as the cap here.
    intervals
        For each arm, bounds of what a decision pays on average, which hold at all times with a chance of 1
        - `error`.
    pairs
        The leader compared with every other arm in play.
    warnings
        Arms that are not chosen as often as their propensities say, or whose pay has stopped.
    """

    outcome: Literal["cannot_tell", "none_yet", "winner"]
    may_stop: bool
    winner: str | None
    error: float
    contenders: list[str]
    retirable: list[str]
    changed: list[str]
    loss_if_stopped: float | None
    decisions_to_go: tuple[int, int | None] | None
    time_to_go: tuple[float, float | None] | None
    reason: str
    sentence: str
    leader: str | None
    began: int
    scored: int
    skipped: int
    cut: int
    intervals: dict[str, tuple[float, float]]
    pairs: list[Pair]
    warnings: list[str]


@dataclass(frozen=True)
class Winner:
    """A part of the decisions for which another arm pays more than the arm that is best for all.

    Attributes
    ----------
    part
        The part, by a feature, such as ``"country=us"``.
    arm
        The arm that pays more there.
    than
        The arm that pays best for all.
    more
        How much more it pays per decision. All such intervals hold together with 95 %.
    """

    part: str
    decisions: int
    arm: str
    than: str
    more: Interval


class PieceOptions(TypedDict, total=False):
    """The optional fields of `Piece`."""

    age: float | str | None
    at: float | str | datetime | None
    key: str | None
    stream: str | None
