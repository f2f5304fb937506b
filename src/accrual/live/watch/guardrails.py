"""Guardrails: a second stream of pieces, such as refunds, of which no arm may have much more than another.

Each guardrail has evidence (`accrual.live.watch.evidence`) on the totals of its own stream: for each pair of
arms, a gambler bets that the first has more of the stream than the second. An arm is worse when the wealth
of its bets against "it has at most the margin more", one bet for each other arm in play, adds up to
K * (K - 1) / error, with K arms. If an arm is within the margin of the best one, none of its K - 1 bets is in
the gambler's favour. So the mean of the bets reaches K / error with a chance of at most error / K, however
long one watches; and there are K arms. With fewer arms the sum is never larger, so the bound also holds for
the arms that are left when others have retired, by any rule. As for verdicts, "within the margin" is meant
on average over the scored decisions, and each comparison spends its own part of the error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np

from accrual.core.arrays import Floats, Ints
from accrual.core.errors import InputError, as_number, only
from accrual.core.jit import kernel, njit, njit_noinline, python_function
from accrual.live.watch.alarms import listed
from accrual.live.watch.evidence import (
    BEGINS,
    BETS,
    CHECK,
    CUT,
    DOWN,
    ERROR,
    FIRST,
    LAST,
    LOW,
    SCORED,
    SINCE,
    UP,
    WEIGHTS,
    Evidence,
    comparison_error,
    last_scored,
    no_evidence,
    score,
)
from accrual.live.watch.sequences import STEPS, estimates
from accrual.live.watch.streams import DeclaredStream, Stream
from accrual.live.watch.watcher import Comparison, Finished, Flags, Pace, Watcher

GuardrailAction = Literal["flag", "retire"]
GuardrailOutcome = Literal["worse_arms", "none_worse", "cannot_tell"]
GUARDRAIL_OUTCOMES: tuple[GuardrailOutcome, ...] = get_args(GuardrailOutcome)


class Guards(NamedTuple):
    """The evidence of every guardrail, and which arms are worse."""

    evidence: Evidence  # every array has one more axis, the first: guardrails
    streams: Ints  # guardrails: the number of its stream
    margins: Floats  # guardrails
    worse: Ints  # guardrails x arms: the number of scored decisions when an arm was found worse; 0 before
    spans: Ints  # guardrails x arms x 2: the decisions, from id to id, over which an arm was found worse


def no_guards(
    streams: Sequence[int],
    ranges: Sequence[tuple[float, float]],
    margins: Sequence[float],
    least: Floats,
    error: float,
    first: int,
) -> Guards:
    """Return guards before the first decision of a comparison.

    Parameters
    ----------
    streams : sequence of int
        The number of each guardrail's stream.
    ranges : sequence of (float, float)
        The least and the greatest total of each guardrail.
    margins : sequence of float
        How much more of each stream an arm may have.
    least : ndarray
        The least propensity of each arm; NaN for an arm that has retired.
    error : float
        The chance that a guardrail of this comparison ever wrongly finds an arm worse.
    first : int
        The id of the first decision that counts.
    """
    arms = len(least)
    each = [no_evidence(np.tile(own, (arms, 1)), least, error, first) for own in ranges]
    return Guards(
        evidence=Evidence._make(map(np.stack, zip(*each, strict=True))),
        streams=np.array(streams, np.int64),
        margins=np.array(margins, np.float64),
        worse=np.zeros((len(ranges), arms), np.int64),
        spans=np.zeros((len(ranges), arms, 2), np.int64),
    )


@njit
def evidence_of(guards: Guards, number: int) -> Evidence:
    """Return the evidence of one guardrail: its part of every array."""
    every = guards.evidence
    return Evidence(
        counts=every.counts[number],
        unit=every.unit[number],
        ranges=every.ranges[number],
        least=every.least[number],
        heights=every.heights[number],
        scores=every.scores[number],
        logs=every.logs[number],
        slopes=every.slopes[number],
        curves=every.curves[number],
        shares=every.shares[number],
        beaten=every.beaten[number],
        spans=every.spans[number],
        quiet=every.quiet[number],
        trace=every.trace[number],
    )


@njit_noinline
def guard(guards: Guards, playing: Flags, arm: int, totals: Floats, propensity: float) -> None:
    """Score the next closed decision, in the order of decisions, by its total of each stream."""
    for number in range(len(guards.margins)):
        evidence = evidence_of(guards, number)
        score(evidence, arm, totals[guards.streams[number]], propensity)
        if evidence.counts[SCORED] % CHECK == 0:
            find_worse(evidence, guards.margins[number], playing, guards.worse[number], guards.spans[number])


@njit
def see(guards: Guards, rules: Any, decision: Finished) -> None:
    """Score a finished decision for every guardrail."""
    if decision.id >= guards.evidence.counts[0, BEGINS]:
        guard(guards, rules.playing, decision.arm, decision.streams, decision.propensity)


@njit_noinline
def find_worse(evidence: Evidence, margin: float, playing: Flags, worse: Ints, spans: Ints) -> None:
    """Record which arm in play has more of the stream than another one, by more than the margin.

    Sums give a lower bound of the wealth against "at most the margin more", by log(1 - u) >= -u - u**2.
    """
    scored, decisions = evidence.counts[SCORED], evidence.heights
    if evidence.unit[0] == 0.0:
        return
    for a in range(len(playing)):
        if not playing[a] or worse[a] != 0:
            continue
        total = 0.0
        for b in range(len(playing)):
            if b == a or not playing[b]:
                continue
            others = scored - decisions[a, 0] - decisions[b, 0]
            for j in range(len(BETS)):
                slope = evidence.slopes[a, UP, j, 0] + evidence.slopes[b, DOWN, j, 0]
                curve = evidence.curves[a, UP, j, 0] + evidence.curves[b, DOWN, j, 0]
                log = evidence.logs[a, UP, j] + evidence.logs[b, DOWN, j] - margin * (slope + margin * curve)
                log += others * math.log1p(-margin * BETS[j] * evidence.unit[0])
                total += WEIGHTS[j] * math.exp(min(log, 690.0))
        if total >= evidence.unit[1]:
            worse[a] = scored
            spans[a, FIRST] = evidence.counts[SINCE]
            spans[a, LAST] = last_scored(evidence)


def least_excess(evidence: Evidence, playing: Sequence[int]) -> Floats:
    """Return the least by which each arm in play has more of the stream than the best other arm.

    All these bounds hold at all times together, with a chance of at least 1 less the error of the comparison.
    """
    own = np.asarray(playing)
    up, down = (
        np.stack(
            [evidence.logs[own, side], evidence.slopes[own, side, :, 0], evidence.curves[own, side, :, 0]]
        )
        for side in (UP, DOWN)
    )
    decisions = evidence.heights[own, 0]
    scored, width = float(evidence.counts[SCORED]), float(evidence.unit[3])
    bets, bound = BETS * evidence.unit[0], math.log(evidence.unit[1])
    low, high = np.full(len(own), -width), np.full(len(own), width)
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        hit = _given_up(up, down, decisions, scored, bets, bound, middle)
        low, high = np.where(hit, middle, low), np.where(hit, high, middle)
    return low


@kernel
def _given_up(
    up: Floats, down: Floats, decisions: Floats, scored: float, bets: Floats, bound: float, x: Floats
) -> Flags:
    """Return for each arm whether bets against "it has at most x more than the best other arm" have won.

    `up` and `down` are logarithms, slopes and curves x arms x bets. This computes an exponential for each bet
    of each pair, so it is compiled.
    """
    arms = len(x)
    hit = np.zeros(arms, np.bool_)
    for a in range(arms):
        y, total = x[a], 0.0  # a bet is at most half of the least propensity, so all steps are small enough
        for j in range(len(bets)):
            step = math.log1p(-bets[j] * y)
            own = up[0, a, j] - y * (up[1, a, j] + y * up[2, a, j]) + (scored - decisions[a]) * step
            own += math.log(WEIGHTS[j]) - bound
            for b in range(arms):
                if b != a:
                    other = down[0, b, j] - y * (down[1, b, j] + y * down[2, b, j]) - decisions[b] * step
                    total += math.exp(min(own + other, 690.0))
            if total >= 1.0:
                hit[a] = True
                break
    return hit


@dataclass(frozen=True)
class Guardrail(Stream):
    """A limit on a second stream of pieces, where less is better. It needs a floor.

    An arm is worse when it is shown to have more of the stream than the best other arm in play, by more than
    the margin, on average over a range of decisions. The chance that a guardrail ever wrongly finds an arm
    worse is at most 5 % in the whole life of a bandit, for all arms together and however often one looks.

    Attributes
    ----------
    cap : float
        The greatest total of the stream for one decision.
    margin : float
        How much more an arm may have, for a decision on average. If refunds are 0 or 1, a margin of 0.02 is
        two more refunds in a hundred decisions.
    action : {"flag", "retire"}
        What happens to an arm that is worse: it is only shown and logged, or it is also retired.

    Examples
    --------
    >>> import accrual as ac
    >>> bandit = ac.Bandit(["jazz", "rock"], window=80, floor=0.1,
    ...                    streams={"refunds": ac.Guardrail(margin=0.02)})
    >>> d = bandit.decide()
    >>> bandit.observe(d.id, 1.0, age=0, stream="refunds").status
    <Status.STORED: 'stored'>
    >>> print(bandit.state().guardrails[0].sentence)
    No arm is known to be worse on refunds.
    """

    kind: ClassVar[str] = "guardrail"
    needs_floor: ClassVar[bool] = True
    margin: float = 0.0
    action: GuardrailAction = "flag"

    def checked(self, name: str) -> Guardrail:
        """Check settings that a user gives for a stream of this name; return them with plain numbers."""
        only("action of a guardrail", (self.action,), get_args(GuardrailAction))
        margin = self.margin
        if not 0.0 <= as_number(margin) < self.cap:
            raise InputError(
                f"the margin of guardrail {name!r} must be from 0 to below its cap, not {margin!r}"
            )
        return replace(self, margin=float(margin))

    @staticmethod
    def watcher(streams: Sequence[DeclaredStream]) -> Watcher:
        """Return the watcher of all guardrails."""
        return GuardrailWatcher(tuple(streams))


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
class GuardrailState:
    """What is known about the arms on a guardrail, a stream of pieces where less is better."""

    outcome: GuardrailOutcome = field(init=False)
    """Whether an arm was found worse, none was so far, or nothing can be said."""
    name: str
    cap: float
    margin: float
    action: GuardrailAction
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

    def __post_init__(self) -> None:
        none: GuardrailOutcome = "cannot_tell" if self.reason else "none_worse"
        worse = any(arm.worse for arm in self.arms)
        object.__setattr__(self, "outcome", "worse_arms" if worse else none)


@dataclass(frozen=True)
class GuardrailWatcher(Watcher):
    """Finds the arms that are worse on a guardrail, and retires them if the guardrail says so.

    Parameters
    ----------
    guardrails : tuple of DeclaredStream
        At least one.
    """

    name: ClassVar[str] = "guardrails"
    see = staticmethod(see)
    guardrails: tuple[DeclaredStream, ...]

    def start(self, comparison: Comparison) -> Guards:
        rails = [rail.settings for rail in self.guardrails]
        return no_guards(
            streams=[rail.number for rail in self.guardrails],
            ranges=[(comparison.lowest * rail.cap, rail.cap) for rail in rails],
            margins=[rail.margin for rail in rails],
            least=comparison.least,
            error=comparison_error(comparison.number),
            first=comparison.first,
        )

    def with_arm(self, arrays: Guards, comparison: Comparison) -> Guards:
        new, had = self.start(comparison), arrays.worse.shape[1]
        new.worse[:, :had] = arrays.worse
        new.spans[:, :had] = arrays.spans
        return new

    def say(
        self,
        arrays: Guards,
        playing: Sequence[int],
        name_of: Callable[[int], str],
        pace: Pace,
        said: Mapping[str, Any],
    ) -> list[GuardrailState]:
        return [
            _state(rail.name, rail.settings, arrays, place, playing, name_of)
            for place, rail in enumerate(self.guardrails)
        ]

    def found(self, arrays: Guards) -> Ints:
        return arrays.worse

    def log_line(self, arrays: Guards, place: Sequence[int]) -> tuple[str, dict[str, Any]]:
        number, arm = place
        _, name, rail = self.guardrails[number]
        closed = int(arrays.worse[number, arm])
        fields = {"guardrail": name, "margin": rail.margin, "action": rail.action, "closed_decisions": closed}
        return "a guardrail has found an arm worse", fields

    def retiring(self, arrays: Guards) -> Flags:
        strict = [rail.settings.action == "retire" for rail in self.guardrails]
        return np.asarray(arrays.worse[strict].any(axis=0))


def _state(
    name: str,
    rail: Guardrail,
    guards: Guards,
    number: int,
    playing: Sequence[int],
    name_of: Callable[[int], str],
) -> GuardrailState:
    evidence = python_function(evidence_of)(guards, number)
    scored = int(evidence.counts[SCORED])
    reason = ""
    if len(playing) < 2:
        reason = "there is nothing to compare, with fewer than two arms in play"
    elif evidence.counts[LOW]:
        reason = "the floor was raised, and earlier propensities are below it"
    elif evidence.unit[0] == 0.0:
        reason = "an arm in play has no part of the floor"
    excess: dict[int, tuple[float, float]] = {}
    if scored and not reason:
        difference, _ = estimates(evidence)
        least = least_excess(evidence, playing)
        for place, arm in enumerate(playing):
            others = [other for other in playing if other != arm]
            excess[arm] = (float(difference[arm, others].max()), float(least[place]))
    arms = []
    for arm, (count, *_, total, _) in enumerate(evidence.heights[:-1].tolist()):
        mean = total / count if count else None
        estimated, at_least = excess.get(arm, (None, None))
        worse, retired = bool(guards.worse[number, arm]), arm not in playing
        span = tuple(guards.spans[number, arm].tolist()) if worse else None
        arms.append(
            GuardedArm(
                name=name_of(arm),
                decisions=int(count),
                mean=mean,
                excess=estimated,
                excess_least=at_least,
                worse=worse,
                span=span,
                retired=retired,
            )
        )
    return GuardrailState(
        name=name,
        cap=rail.cap,
        margin=rail.margin,
        action=rail.action,
        error=ERROR,
        scored=scored,
        cut=int(evidence.counts[CUT]),
        reason=reason,
        sentence=_sentence(name, rail, [arm for arm in arms if arm.worse], reason),
        arms=arms,
    )


def _sentence(name: str, rail: Guardrail, worse: Sequence[GuardedArm], reason: str) -> str:
    if worse:
        said = [
            arm.name + (" (retired)" if arm.retired else "") + f" from decision {first:,} to {last:,}"
            for arm in worse
            for first, last in [arm.span or (0, 0)]
        ]
        return (
            f"Worse on {name}: {listed(said)}, on average by more than {rail.margin:g} per decision, "
            f"compared with the best other arm. The chance that this guardrail ever says so wrongly is at "
            f"most {100 * ERROR:g} %, in the whole life of the bandit and however often one looks."
        )
    if reason:
        return f"Nothing can be said about {name}: {reason}."
    return f"No arm is known to be worse on {name}."
