"""What is sent to a service, and its answers. `make clients` writes this file."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypedDict


@dataclass(frozen=True)
class AlarmState:
    """Whether arms still pay as they did, however often one looks."""

    error: float
    """The chance that a false alarm is ever raised, for all arms together."""
    closed: int
    """How many closed decisions were checked."""
    reason: str
    """Why nothing can be said; empty if something can be said, now or later."""
    sentence: str
    """What is known, in words."""
    arms: list[ChangedArm]
    """The arms that no longer pay as they did."""


@dataclass(frozen=True)
class ArmState:
    """What is known about an arm from the pieces that have arrived.

    The estimate is a sum over ages: at each age, the average pay of the decisions that have reached that
    age. Once a window has closed, it is the average total; if all have closed, the plain mean of the
    totals. It is never cut off at the cap. The interval is cut off there, unless a decision has paid more
    than the cap."""

    name: str
    cap: float
    retired: bool
    decisions: int
    pending: int
    """Decisions whose window has not closed."""
    observed: float
    """Reward that arrived in time."""
    expected: float | None
    """Reward still to come from pending decisions, at all ages up to the window. For ages beyond `reached`
    it is a guess: the arm is assumed to pay as other arms do. At ages that no arm has reached, it is
    assumed to pay evenly, or as the policy's prior says."""
    estimate: float | None
    """An estimate of what one decision pays on average, up to the age `reached`; None while nothing is
    known."""
    interval: tuple[float, float] | None
    """An interval for the estimate. It aims at 95 % and is a heuristic (docs/verdicts.md says what it
    covered in tests). It holds for one look at one arm. Do not stop a test because of it."""
    reached: float
    """The greatest age that a decision of the arm has reached, up to its window."""
    above_cap: int
    """Decisions that have paid more in all than the cap."""
    share: float
    """The arm's share of the last 1,000 decisions."""
    spread: list[float]
    """The shares of the arm's reward at the ages up to each of the state's `ages`."""
    about: dict[str, str | bool | float | None] | None
    """The arm's features; None for a bandit without arm_features."""


@dataclass(frozen=True)
class BanditInfo:
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
    features: dict[str, Literal["bool"] | list[str | float]] | None = None
    arm_features: dict[str, Literal["bool"] | list[str | float]] | None = None
    streams: dict[str, Guardrail] = field(default_factory=dict)
    """Streams of pieces beside the reward, by name. The policy does not learn from them."""
    imported: int = 0
    """How many decisions come from an old log. Their ids are below this number."""
    archived: float | None = None
    """When the bandit was archived, in seconds since 1970; None if it is not archived."""
    erase_at: float | None = None
    """When the bandit will be erased, in seconds since 1970; None if never."""


@dataclass(frozen=True)
class BanditState:
    """What is known about a bandit at one position of its log. What a watcher says is under its name."""

    name: str
    position: int
    at: float
    """The time of the last event: a round, or seconds since 1970."""
    decisions: int
    pending: int
    """Decisions whose window has not closed."""
    late: int
    """Pieces that came too late, since the first decision."""
    ages: list[float]
    """The ages at which the parts of a `spread` end."""
    arms: list[ArmState]
    features: list[FeatureState]
    """Empty for a bandit without features."""
    verdict: Verdict
    alarm: AlarmState
    """Whether arms still pay as they did."""
    guardrails: list[GuardrailState]
    """Empty for a bandit without guardrails."""
    duplicates: int
    """Requests sent again and counted once, since this process opened the bandit."""
    behind: int
    """Events that other processes stored and that this state does not have yet."""


@dataclass(frozen=True)
class Bandits:
    """All bandits: served, archived, and those that cannot be served."""

    bandits: list[BanditInfo]
    archived: list[BanditInfo]
    """Bandits that are archived or deleted."""
    not_served: list[NotServed]
    """Bandits that cannot be opened. The service tries again every 30 seconds."""


@dataclass(frozen=True)
class ChangedArm:
    """An arm that no longer pays as it did."""

    name: str
    decision: int
    """The closed decision that raised the alarm."""
    lately: float
    """The mean that a decision paid when the alarm was raised: of the arm's last 64 decisions, or of half
    of them if there were fewer."""
    before: float
    """The mean of the decisions before those."""


@dataclass(frozen=True)
class ContextWorth:
    """What contexts are worth to a bandit.

    The estimate uses closed decisions and their propensities. A linear model is fitted to earlier decisions
    and chooses for later ones: once for each by its context, and once the same arm for all. Intervals are
    95 %, for one look: they are not for stopping."""

    more: Interval | None
    """How much more a decision pays if its arm is chosen by context; None if it cannot be told."""
    with_contexts: Interval | None
    """What a decision pays if its arm is chosen by context."""
    without: Interval | None
    """What a decision pays if every decision gets the one arm that pays best."""
    single: str
    """The one arm that pays best; several arms if that changed in the course of the decisions."""
    winners: list[Winner]
    """The contexts for which another arm pays more; their intervals hold together with 95 %."""
    decisions: int
    """How many closed decisions are used: the last ones, of which the first fifth only trains the model."""
    closed: int
    """How many decisions have closed in all."""
    effective: float
    """How many decisions of equal weight would give figures as certain as these."""
    reason: str
    """Why nothing can be told; empty if it can."""
    sentence: str
    """The result in words."""


@dataclass(frozen=True)
class Decision:
    """A decision."""

    id: int
    arm: str
    at: float
    """The round, or the time in seconds since 1970."""
    propensity: float | None
    """The probability with which the arm was chosen; None without a floor."""


@dataclass(frozen=True)
class Decisions:
    """Decisions, in order."""

    decisions: list[Decision]
    again: bool
    """Whether the key was used before. Then these are the decisions made at that time."""


@dataclass(frozen=True)
class Done:
    """What became of a request: `again` if the same request was stored before."""

    status: Literal["again", "stored"]


@dataclass(frozen=True)
class Event:
    """An event of the log."""

    seq: int
    kind: Literal["add_arm", "close", "decision", "piece", "retire_arm"]
    at: float
    decision: int | None = None
    arm: str | None = None
    value: float | None = None
    age: float | None = None
    stream: str | None = None
    """The stream of a piece, if it is not the reward."""
    window: float | None = None
    propensity: float | None = None
    cap: float | None = None
    about: dict[str, str | bool | float | None] | None = None
    """The features of an added arm."""
    context: dict[str, str | bool | float | None] | None = None
    """A decision's context, if the bandit has features."""
    imported: bool | None = None
    """True for a decision or piece of an old log."""


@dataclass(frozen=True)
class EventPage:
    """A part of the log, in order."""

    events: list[Event]
    next: int
    """The `after` of the request for the next part."""
    end: bool
    """Whether this part is the last."""


@dataclass(frozen=True)
class Explanation:
    """Why a decision chose its arm."""

    id: int
    arm: str
    at: float
    """The round, or the time in seconds since 1970."""
    propensity: float | None
    """The probability with which the arm was chosen; None without a floor."""
    first: bool
    """Whether the arm was chosen because nothing was known about it yet."""
    drawn: bool
    """Whether the arm was drawn at random, because of the floor, in place of the policy's own choice."""
    reasons: list[Reason]
    exact: bool
    """Whether the state, computed again from the log, gives the same choice."""
    context: dict[str, str | bool | float | None]
    """The decision's context; empty for a bandit without features."""


@dataclass(frozen=True)
class FeatureState:
    """What is known about a feature."""

    name: str
    unknown: int
    """Decisions with a level that was not declared."""
    missing: int
    """Decisions without a value."""
    beyond: int
    """Decisions with a number out of range, which counts as the nearest end."""
    levels: list[LevelState]
    """Empty while nothing is known, and for every policy but AgeLinTS."""


@dataclass(frozen=True)
class GuardedArm:
    """What is known about an arm on a guardrail."""

    name: str
    decisions: int
    """Closed decisions that count."""
    mean: float | None
    """The mean total of the stream for a decision, once one has closed."""
    excess: float | None
    """An estimate of how much more the arm has than the best other arm, if the arm is in play."""
    excess_least: float | None
    """A lower bound of the excess. It holds for all arms together, however often one looks."""
    worse: bool
    """Whether its excess was shown to be above the margin."""
    span: tuple[int, int] | None
    """The first and the last decision of the range over which that was shown."""
    retired: bool


@dataclass(frozen=True)
class Guardrail:
    """A stream of pieces where less is better, such as refunds. It needs a floor."""

    kind: Literal["guardrail"]
    cap: float = 1.0
    """The greatest total of the stream for one decision."""
    margin: float = 0.0
    """How much more per decision an arm may have than another arm; below the cap."""
    action: Literal["flag", "retire"] = "flag"
    """What happens to a worse arm. It is shown and logged; `retire` also retires it."""


@dataclass(frozen=True)
class GuardrailState:
    """What is known about the arms on a guardrail, a stream of pieces where less is better."""

    outcome: Literal["cannot_tell", "none_worse", "worse_arms"]
    """Whether an arm was found worse, none was so far, or nothing can be said."""
    name: str
    cap: float
    margin: float
    action: Literal["flag", "retire"]
    """What happens to a worse arm. It is shown and logged; `retire` also retires it."""
    error: float
    """The chance that an arm is ever called worse although it is not."""
    scored: int
    """Closed decisions that count."""
    cut: int
    """Totals of the stream above its cap, which count as the cap."""
    reason: str
    """Why nothing can be said; empty if something can be said, now or later."""
    sentence: str
    """What is known, in words."""
    arms: list[GuardedArm]


@dataclass(frozen=True)
class History:
    """How often each arm was chosen in each of several parts of the log, in order."""

    arms: list[str]
    at: list[float]
    """The time, or round, of the last decision of each part."""
    decisions: list[int]
    """How many decisions there were in all by the end of each part."""
    counts: list[list[int]]
    """For each part, the decisions of each arm."""


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval; the ends are NaN if they are not known."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class LevelState:
    """What the policy expects of the arms in play at one level of a feature."""

    level: str
    """For a number, one of the two ends of its range."""
    expected: dict[str, float]
    """By arm, an estimate of what a decision pays in all, if the other features are as they are on
    average."""


@dataclass(frozen=True)
class NotServed:
    """A bandit that is in the store and cannot be opened."""

    name: str
    why: str


@dataclass(frozen=True)
class Pair:
    """How much more one arm pays for a decision than another, on average."""

    first: str
    second: str
    difference: float
    """First minus second, estimated from closed decisions."""
    interval: tuple[float, float]
    """An interval for the difference. It holds for all pairs and at all times together, however often one
    looks."""
    sequence: list[tuple[int, float, float]]
    """Earlier intervals: after how many closed decisions, from, to."""
    ahead: tuple[int, int] | None
    """The first and the last decision of the range over which the first arm was shown to pay more on
    average, if it was."""
    behind: tuple[int, int] | None
    """The first and the last decision of the range over which the second arm was shown to pay more on
    average, if it was."""


@dataclass(frozen=True)
class Piece:
    """A piece of a decision's reward, or of another stream."""

    decision: int
    """The decision's id."""
    value: float
    age: float | str | None = None
    """Rounds, or seconds, since the decision; or a length of time, such as 1h."""
    at: float | str | datetime | None = None
    """When it was paid, instead of `age`: a round, seconds since 1970, or a time with its zone, such as
    2026-11-18T12:30:00Z."""
    key: str | None = None
    stream: str | None = None
    """The stream to which the piece belongs. The default is the reward."""


@dataclass(frozen=True)
class PieceResult:
    """What became of a piece."""

    status: Literal["again", "conflict", "early", "future", "invalid", "late", "stored", "unknown"]
    age: float | None = None
    """The age as stored."""
    late: bool | None = None
    """Whether the piece is stored and counted but not learned from."""
    warning: str | None = None
    """Present if the decision has now paid more in all than its arm's cap."""
    detail: str | None = None
    """Why the piece was not stored."""


@dataclass(frozen=True)
class Reason:
    """What the policy knew of an arm in play when it made a decision."""

    arm: str
    index: float | None
    """The policy chooses the arm with the largest index. None if nothing was known about the arm."""
    terms: dict[str, float]
    """What the index is made of, as the policy names it."""
    estimate: float | None
    """As in the state, at that moment; None while nothing was known, and unless the policy's name begins
    with Age."""


@dataclass(frozen=True)
class Recent:
    """The last decisions, newest first."""

    decisions: list[Decision]


@dataclass(frozen=True)
class Verdict:
    """What may be said about the arms in play, however often one looks.

    "Pays more" is meant on average over a range of decisions, which the sentence and `pairs` name. All that
    `winner` and `retirable` ever say in the life of a bandit is true with a chance of at least 1 - `error`,
    for any policy, under any drift, and however often one looks: see docs/verdicts.md for the proof."""

    outcome: Literal["cannot_tell", "none_yet", "winner"]
    """`winner`: an arm has won. `none_yet`: no arm has won so far. `cannot_tell`: no verdict can be given,
    for the reason in `reason`."""
    may_stop: bool
    """Whether there is a winner, and no arm in play was found to pay differently than before."""
    winner: str | None
    """The arm that was shown to pay more than every other arm in play, if none of these was ever shown to
    pay more than it."""
    error: float
    """The chance that a false winner is ever named, in the whole life of the bandit."""
    contenders: list[str]
    """The arms in play that may still be the best."""
    retirable: list[str]
    """The arms in play for which another arm was shown to pay more, and never the reverse."""
    changed: list[str]
    """Arms in play that have changed places: each was shown to pay more than another arm over one range of
    decisions, and less than the same arm over another range."""
    loss_if_stopped: float | None
    """About how much a decision loses on average if all get the leader from now on: a normal approximation,
    the largest over the other arms, and never more than the best-paid arm has paid on average. None before
    there is a leader."""
    decisions_to_go: tuple[int, int | None] | None
    """About how many more decisions must close: from, to. It is a guess, which assumes that arms go on
    paying as they have. The second number is None if there may never be a winner. None if there is a
    winner, or if nothing can be told."""
    time_to_go: tuple[float, float | None] | None
    """`decisions_to_go` in rounds or seconds at the present pace."""
    reason: str
    """Why nothing can be said; empty if something can be said, now or later."""
    sentence: str
    """The answer to "may I stop?" in words."""
    leader: str | None
    """The arm with the largest estimate. Do not stop because of it."""
    began: int
    """The first decision that counts: 0, or the first one after the newest arm was added."""
    scored: int
    """Closed decisions that count."""
    skipped: int
    """Closed decisions that do not count, because no propensity was recorded or because their worker did
    not know the newest arm yet."""
    cut: int
    """Totals above the cap, which count as the cap here."""
    intervals: dict[str, tuple[float, float]]
    """For each arm, bounds of what a decision pays on average, which hold at all times with a chance of 1 -
    `error`."""
    pairs: list[Pair]
    """The leader compared with every other arm in play."""
    warnings: list[str]
    """Arms that are not chosen as often as their propensities say, or whose pay has stopped."""


@dataclass(frozen=True)
class Winner:
    """A part of the decisions for which another arm pays more than the arm that is best for all."""

    part: str
    """The part, by a feature, such as ``"country=us"``."""
    decisions: int
    arm: str
    """The arm that pays more there."""
    than: str
    """The arm that pays best for all."""
    more: Interval
    """How much more it pays per decision. All such intervals hold together with 95 %."""


class PieceOptions(TypedDict, total=False):
    """The optional fields of `Piece`."""

    age: float | str | None
    at: float | str | datetime | None
    key: str | None
    stream: str | None
