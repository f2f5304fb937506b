"""The verdict: what may be said about the arms with a stated error, however often one looks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtr, ndtri

from accrual.core.arrays import Floats, Ints
from accrual.core.jit import njit
from accrual.live.watch.alarms import ChangedArm, listed
from accrual.live.watch.evidence import (
    BEGINS,
    BETS,
    CUT,
    DOWN,
    ERROR,
    LOW,
    SCORED,
    SHARE_BETS,
    SKIPPED,
    UP,
    WEIGHTS,
    Evidence,
    comparison_error,
    no_evidence,
    score,
)
from accrual.live.watch.sequences import arm_bounds, estimates, pair_bounds, sums_of
from accrual.live.watch.watcher import Comparison, Finished, Pace, Watcher

_SKEWED = 1e-4  # the chance of a false sample-ratio warning, for all arms and at all times together
_QUIET = 1e-6  # warn if a run of decisions without pay had less than this chance before

Interval = tuple[float, float]
Span = tuple[int, int]  # the first and the last decision of a range, by their ids
VerdictOutcome = Literal["winner", "none_yet", "cannot_tell"]
VERDICT_OUTCOMES: tuple[VerdictOutcome, ...] = get_args(VerdictOutcome)


@dataclass(frozen=True)
class Pair:
    """How much more one arm pays for a decision than another, on average."""

    first: str
    second: str
    difference: float
    """First minus second, estimated from closed decisions."""
    interval: Interval
    """An interval for the difference. It holds for all pairs and at all times together, however often one
    looks."""
    sequence: list[tuple[int, float, float]]
    """Earlier intervals: after how many closed decisions, from, to."""
    ahead: Span | None
    """The first and the last decision of the range over which the first arm was shown to pay more on average,
    if it was."""
    behind: Span | None
    """The first and the last decision of the range over which the second arm was shown to pay more on
    average, if it was."""


@dataclass(frozen=True)
class Verdict:
    """What may be said about the arms in play, however often one looks.

    "Pays more" is meant on average over a range of decisions, which the sentence and `pairs` name. All that
    `winner` and `retirable` ever say in the life of a bandit is true with a chance of at least 1 - `error`,
    for any policy, under any drift, and however often one looks: see docs/verdicts.md for the proof.
    """

    outcome: VerdictOutcome = field(init=False)
    """`winner`: an arm has won. `none_yet`: no arm has won so far. `cannot_tell`: no verdict can be given,
    for the reason in `reason`."""
    may_stop: bool
    """Whether there is a winner, and no arm in play was found to pay differently than before."""
    winner: str | None
    """The arm that was shown to pay more than every other arm in play, if none of these was ever shown to pay
    more than it."""
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
    """About how many more decisions must close: from, to. It is a guess, which assumes that arms go on paying
    as they have. The second number is None if there may never be a winner. None if there is a winner, or if
    nothing can be told."""
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
    """Closed decisions that do not count, because no propensity was recorded or because their worker did not
    know the newest arm yet."""
    cut: int
    """Totals above the cap, which count as the cap here."""
    intervals: dict[str, Interval]
    """For each arm, bounds of what a decision pays on average, which hold at all times with a chance of 1 -
    `error`."""
    pairs: list[Pair]
    """The leader compared with every other arm in play."""
    warnings: list[str]
    """Arms that are not chosen as often as their propensities say, or whose pay has stopped."""

    def __post_init__(self) -> None:
        none: VerdictOutcome = "cannot_tell" if self.reason else "none_yet"
        object.__setattr__(self, "outcome", none if self.winner is None else "winner")


@njit
def see(evidence: Evidence, rules: Any, decision: Finished) -> None:
    """Score a finished decision of the comparison."""
    if decision.id >= evidence.counts[BEGINS]:
        score(evidence, decision.arm, decision.total, decision.propensity)


@dataclass(frozen=True)
class VerdictWatcher(Watcher):
    """Compares what the arms pay."""

    name: ClassVar[str] = "verdict"
    see = staticmethod(see)

    def start(self, comparison: Comparison) -> Evidence:
        caps = comparison.caps
        ranges = np.stack([comparison.lowest * caps, caps], axis=1)
        error = comparison_error(comparison.number)
        return no_evidence(ranges, comparison.least, error, comparison.first)

    def with_arm(self, arrays: Evidence, comparison: Comparison) -> Evidence:
        new, had = self.start(comparison), len(arrays.beaten)
        new.beaten[:had, :had] = arrays.beaten
        new.spans[:had, :had] = arrays.spans
        return new

    def say(
        self,
        arrays: Evidence,
        playing: Sequence[int],
        name_of: Callable[[int], str],
        pace: Pace,
        said: Mapping[str, Any],
    ) -> Verdict:
        return verdict(arrays, playing, name_of, pace, said["alarm"].arms)


def untold(reason: str, arms: Sequence[str], skipped: int, began: int) -> Verdict:
    """Return the verdict if nothing can be said, now or later."""
    sentence = f"No verdict can be given: {reason}.{_not_recorded(skipped)}"
    return Verdict(
        may_stop=False,
        winner=None,
        error=ERROR,
        contenders=list(arms),
        retirable=[],
        changed=[],
        loss_if_stopped=None,
        decisions_to_go=None,
        time_to_go=None,
        reason=reason,
        sentence=sentence,
        leader=None,
        began=began,
        scored=0,
        skipped=skipped,
        cut=0,
        intervals={},
        pairs=[],
        warnings=[],
    )


def verdict(
    evidence: Evidence,
    playing: Sequence[int],
    name: Callable[[int], str],
    pace: Pace,
    alarms: Sequence[ChangedArm] = (),
) -> Verdict:
    """Return what the evidence allows to be said about the arms.

    Parameters
    ----------
    playing : sequence of int
        The arms in play.
    name : callable
        Returns an arm's name.
    alarms : sequence of ChangedArm
        The arms that no longer pay as they did.
    """
    names = [name(arm) for arm in playing]
    skipped, began = int(evidence.counts[SKIPPED]), int(evidence.counts[BEGINS])
    if len(playing) < 2:
        return untold("there is nothing to compare, with fewer than two arms in play", names, skipped, began)
    if evidence.counts[LOW]:
        return untold("the floor was raised, and earlier propensities are below it", names, skipped, began)
    if evidence.unit[0] == 0.0:
        return untold(
            "there is no floor, so the chance with which an arm was chosen is not known; "
            "a bandit made with floor=0.05, for example, gets verdicts",
            names,
            skipped,
            began,
        )
    own = np.asarray(playing)
    shown = evidence.beaten[np.ix_(own, own)] != 0
    beats = shown & ~shown.T  # where each has beaten the other, they have changed places
    difference, errors = (table[np.ix_(own, own)] for table in estimates(evidence))
    scored = int(evidence.counts[SCORED])
    out = beats.any(axis=0)
    if out.all():  # each was beaten by another over other decisions: no arm is known to be better
        out[:] = False
    winners = np.flatnonzero(beats.sum(axis=1) == len(own) - 1)
    best = int(winners[0]) if len(winners) else _leader(difference, out)
    leader = names[best] if scored or len(winners) else None
    winner = names[best] if len(winners) else None
    contenders = [n for n, gone in zip(names, out, strict=True) if not gone]
    pairs = _pairs(evidence, own, names, best) if leader else []
    to_go = None if winner or scored < 2 else _to_go(evidence, own, best, out)
    return Verdict(
        may_stop=winner is not None and not any(arm.name in names for arm in alarms),
        winner=winner,
        error=ERROR,
        contenders=contenders,
        retirable=[n for n, gone in zip(names, out, strict=True) if gone],
        changed=[n for n, swapped in zip(names, (shown & shown.T).any(axis=0), strict=True) if swapped],
        loss_if_stopped=_loss(evidence, own, difference[best], errors[best]) if scored > 1 else None,
        decisions_to_go=to_go,
        time_to_go=None if to_go is None else _time_to_go(to_go, pace),
        reason="",
        sentence=_sentence(evidence, own, names, winner, contenders, pairs, alarms),
        leader=leader,
        began=began,
        scored=scored,
        skipped=skipped,
        cut=int(evidence.counts[CUT]),
        intervals=_intervals(evidence, own, names) if scored else {},
        pairs=pairs,
        warnings=_warnings(evidence, own, names),
    )


def _leader(difference: Floats, out: npt.NDArray[np.bool_]) -> int:
    """Return the place of the arm with the largest estimate, among those that may be the best."""
    return int(np.argmax(np.where(out, -np.inf, difference[:, 0])))


def _sentence(
    evidence: Evidence,
    own: Ints,
    names: Sequence[str],
    winner: str | None,
    contenders: Sequence[str],
    pairs: Sequence[Pair],
    alarms: Sequence[ChangedArm],
) -> str:
    scored, skipped = int(evidence.counts[SCORED]), int(evidence.counts[SKIPPED])
    if winner is not None:
        began = "You may stop: "
        doubt = ""
        late = [arm for arm in alarms if arm.name in names]
        if late:
            began = ""
            known = listed([f"{arm.name} (known by decision {arm.decision:,})" for arm in late])
            doubt = f" That may no longer hold: since then arms pay differently, {known}."
        return f"{began}{winner} paid more than every other arm in play, {_ranges(pairs)}.{doubt} {_CHANCE}"
    swapped = _changed_places(evidence, own, names)
    if swapped:
        return f"No verdict: {swapped} {_CHANCE}"
    if not scored:
        made = "no decision with a recorded propensity, made among the arms now in play, has closed"
        return f"No verdict yet: {made}.{_not_recorded(skipped)}"
    if len(contenders) == 2:
        return f"No verdict yet: {contenders[0]} or {contenders[1]} may pay more."
    return f"No verdict yet: {len(contenders)} arms may still be the best."


_CHANCE = (
    f"The chance that such a sentence is ever wrong is at most {100 * ERROR:g} %, in the whole life of the "
    "bandit and however often one looks."
)
_RANGES_MOST = 3  # ranges of decisions that a sentence names, at most


def _between(span: Span) -> str:
    return f"from decision {span[0]:,} to {span[1]:,}"


def _ranges(pairs: Sequence[Pair]) -> str:
    """Return over which decisions the winner, the first of every pair, paid more than each other arm."""
    losers: dict[Span, list[str]] = {}
    for pair in pairs:
        assert pair.ahead is not None
        losers.setdefault(pair.ahead, []).append(pair.second)
    if len(losers) == 1:
        return f"on average {_between(next(iter(losers)))}"
    if len(losers) > _RANGES_MOST:
        first, last = min(losers), max(losers, key=lambda span: span[1])
        return f"on average over a range of decisions for each, between decision {first[0]:,} and {last[1]:,}"
    said = [f"than {listed(arms)} {_between(span)}" for span, arms in sorted(losers.items())]
    return "on average: " + listed(said)


def _changed_places(evidence: Evidence, own: Ints, names: Sequence[str]) -> str:
    """Return a sentence about the latest two arms that have changed places; empty if there are none."""
    shown = evidence.beaten[np.ix_(own, own)] != 0
    pairs = np.argwhere(np.triu(shown & shown.T))
    if not len(pairs):
        return ""
    spans = evidence.spans[np.ix_(own, own)]
    a, b = max(pairs.tolist(), key=lambda pair: int(spans[pair[0], pair[1], 1] + spans[pair[1], pair[0], 1]))
    if spans[a, b, 1] > spans[b, a, 1]:
        a, b = b, a
    before, after = (tuple(spans[pair].tolist()) for pair in ((a, b), (b, a)))
    more = f" So have {len(pairs) - 1} other pairs." if len(pairs) > 1 else ""
    return (
        f"{names[a]} and {names[b]} have changed places. On average {_between(before)} {names[a]} paid more, "
        f"and {_between(after)} {names[b]} did.{more}"
    )


def _not_recorded(skipped: int) -> str:
    """Return a sentence about the closed decisions that do not count; empty if there are none."""
    return f" No propensity was recorded before, for {skipped:,} decisions." if skipped else ""


def _loss(evidence: Evidence, own: Ints, difference: Floats, errors: Floats) -> float:
    """Return the expected loss against the arm that may cost most, with normal differences.

    If totals are 0 or more, the loss cannot be above what the best-paid arm has paid on average.
    """
    z = np.divide(difference, errors, out=np.full(len(errors), np.inf), where=errors > 0.0)
    density = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    loss = errors * density - difference * ndtr(-z)
    paid = evidence.heights[own]
    means = np.divide(paid[:, 3], paid[:, 0], out=np.full(len(own), -np.inf), where=paid[:, 0] > 0.0)
    most = max(float(means.max()) - float(evidence.ranges[own, 0].min()), 0.0)
    return min(float(np.max(np.where(errors > 0.0, loss, 0.0))), most)


def _to_go(
    evidence: Evidence, own: Ints, best: int, out: npt.NDArray[np.bool_]
) -> tuple[int, int | None] | None:
    """Return how many more decisions must close: the 10th and the 90th percentile of a guess.

    With each score the logarithm of the wealth of a bet b changes by b d - b**2 v / 2 on average, with a
    variance of b**2 v. Here d is the difference, of which an estimate and its standard error are known, and v
    is the variance of scores. So, given d and the bet, the number of decisions has about an inverse Gaussian
    distribution. The bet that is there first counts, against the closest arm that the leader has not beaten.
    """
    difference, errors = (table[own[best], own] for table in estimates(evidence))
    left = (evidence.beaten[own[best], own] == 0) & ~out
    left[best] = False
    if not left.any() or not (errors[left] > 0.0).all():
        return None
    place = int(np.argmin(np.where(left, difference / np.where(left, errors, 1.0), np.inf)))  # the closest
    a, b, bets = own[best], own[place], BETS[:, None] * evidence.unit[0]
    variance = float(errors[place] ** 2 * evidence.counts[SCORED])
    missing = np.log(evidence.unit[1] / WEIGHTS) - evidence.logs[a, UP] - evidence.logs[b, DOWN]
    drifts = bets * (difference[place] + _NORMAL * errors[place]) - 0.5 * bets**2 * variance
    least, most = _passage(np.maximum(missing, 0.1), drifts, bets[:, 0] * math.sqrt(variance))
    if not math.isfinite(least):
        return None
    return math.ceil(least), math.ceil(most) if math.isfinite(most) else None


_NORMAL = ndtri((np.arange(20) + 0.5) / 20)  # evenly spaced quantiles of a normal distribution
_LOG_TIMES = np.linspace(0.0, 8.0, 81)
_TIMES = 10.0**_LOG_TIMES


def _passage(levels: Floats, drifts: Floats, sds: Floats) -> Interval:
    """Return when the first of several walks reaches its level, in 10 % and in 90 % of cases.

    `drifts` are walks x cases. A level that is not reached within `_TIMES` may never be reached.
    """
    level, sd, drift = levels[:, None, None], sds[:, None, None], drifts[:, :, None]
    root = sd * np.sqrt(_TIMES)
    forth = ndtr((drift * _TIMES - level) / root)
    back = np.exp(np.minimum(2.0 * level * drift / sd**2 + log_ndtr(-(drift * _TIMES + level) / root), 0.0))
    by = np.minimum(forth + back, 1.0).max(axis=0).mean(axis=0)
    first, last = (10.0 ** np.interp(share, by, _LOG_TIMES, right=np.inf) for share in (0.1, 0.9))
    return float(first), float(last)


def _time_to_go(to_go: tuple[int, int | None], pace: Pace) -> tuple[float, float | None] | None:
    """Return how long it takes until this many more decisions close: pending ones first, then new ones."""
    if not pace.per_time:
        return None

    def time(count: int) -> float:
        made = max(count - pace.pending, 0) / float(pace.per_time or 1.0)
        return made + pace.window * min(count / max(pace.pending, 1), 1.0)

    return time(to_go[0]), None if to_go[1] is None else time(to_go[1])


def _intervals(evidence: Evidence, own: Ints, names: Sequence[str]) -> dict[str, Interval]:
    bound = 2.0 / float(evidence.unit[4])
    low, high = arm_bounds(evidence, UP, bound), arm_bounds(evidence, DOWN, bound)
    ranges = evidence.ranges
    return {
        n: (max(float(low[arm]), float(ranges[arm, 0])), min(float(high[arm]), float(ranges[arm, 1])))
        for n, arm in zip(names, own, strict=True)
    }


def _pairs(evidence: Evidence, own: Ints, names: Sequence[str], best: int) -> list[Pair]:
    difference, _ = estimates(evidence)
    others = np.delete(own, best)
    leader = np.full(len(others), own[best])
    sums = sums_of(evidence)
    both = pair_bounds(evidence, sums, np.append(leader, others), np.append(others, leader))
    low, high = both[:, : len(others)], -both[:, len(others) :]
    pairs = []
    for place, arm in enumerate(others):
        ends = list(zip(low[:, place].tolist(), high[:, place].tolist(), strict=True))
        past = [(int(n), *end) for n, end in zip(sums.scored[:-1], ends, strict=False)]
        other = names[place + (place >= best)]
        ahead, behind = (_shown(evidence, *two) for two in ((own[best], arm), (arm, own[best])))
        pairs.append(
            Pair(names[best], other, float(difference[own[best], arm]), ends[-1], past, ahead, behind)
        )
    return pairs


def _shown(evidence: Evidence, first: int, second: int) -> Span | None:
    """Return the decisions over which an arm was shown to pay more than another; None if it was not."""
    if not evidence.beaten[first, second]:
        return None
    span: Span = tuple(evidence.spans[first, second].tolist())
    return span


def _warnings(evidence: Evidence, own: Ints, names: Sequence[str]) -> list[str]:
    """Return warnings of arms that are chosen too often or too seldom, and of arms that stopped paying."""
    scored = int(evidence.counts[SCORED])
    found = []
    for n, arm in zip(names, own, strict=True):
        others = scored - evidence.heights[arm, 0]
        for side, text in ((UP, "more"), (DOWN, "less")):
            sign = 1.0 if side == UP else -1.0
            rest = others * np.log1p(-sign * SHARE_BETS * evidence.least[arm])
            each = evidence.shares[arm, side] + rest
            if np.logaddexp.reduce(each) - math.log(len(SHARE_BETS)) >= math.log(2.0 * len(own) / _SKEWED):
                found.append(f"{n} was chosen {text} often than its propensities say")
        quiet, paying = (int(count) for count in evidence.quiet[arm])
        before = int(evidence.heights[arm, 0]) - quiet
        if paying and before and quiet * math.log1p(-min(paying / (before + 1), 0.999)) < math.log(_QUIET):
            found.append(f"the last {quiet:,} closed decisions of {n} paid nothing; {paying:,} of {before:,} "
                         "before them did")  # fmt: skip
    return found
