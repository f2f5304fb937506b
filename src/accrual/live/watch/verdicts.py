"""The verdict: what may be said of the arms with a stated error, however often one looks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from accrual.live.watch.evidence import (
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
)
from accrual.live.watch.sequences import arm_bounds, estimates, pair_bounds, sums_of

Floats = npt.NDArray[np.float64]

_SKEWED = 1e-4  # a sample-ratio alarm is false with this chance, for all arms and at all times together
_QUIET = 1e-6  # the chance of so many decisions in a row without pay, at the rate before them

Interval = tuple[float, float]
VERDICT_OUTCOMES = ("winner", "none_yet", "cannot_tell")


class Pair(NamedTuple):
    """How much more the first arm pays for a decision than the second, on average."""

    first: str
    second: str
    difference: float  # estimated
    interval: Interval  # holds at all times together, with a chance of at least 1 - 2 * error / arms
    sequence: list[tuple[int, float, float]]  # the same earlier: scored decisions, least, most


class Verdict(NamedTuple):
    """What may be said of the arms in play.

    All that `winner` and `retirable` ever say of one set of arms is true with a chance of at least
    1 - `error`, whatever the policy and however often one looks: see docs/verdicts.md for what that rests on.

    Attributes
    ----------
    winner : str or None
        The arm that pays more than every other one in play.
    error : float
    contenders : list of str
        The arms in play that may still be the best.
    retirable : list of str
        Those of which it is known that another arm in play pays at least as much.
    loss_if_stopped : float or None
        What a decision would lose on average if the leader were taken for good now: a normal
        approximation, the largest over the other arms. None before there is a leader.
    decisions_to_go : int or None
        About how many decisions more it takes at the present estimates; None where they do not tell.
    time_to_go : float or None
        The same in rounds or seconds at the present pace, with the window of the last decision.
    reason : str
        Why nothing can be said; empty where something can, now or later.
    sentence : str
        The answer to "may I stop?" in words.
    leader : str or None
        The arm with the largest estimate. Not for stopping.
    scored, skipped, cut : int
        Closed decisions that count; those without a recorded propensity; totals cut off at the cap.
    intervals : dict of str to (float, float)
        For each arm, what a decision pays on average: holds at all times with a chance of 1 - `error`.
    pairs : list of Pair
        The leader beside every other arm in play.
    warnings : list of str
        Arms that are not chosen as often as their propensities say, or whose pay has stopped.
    """

    winner: str | None
    error: float
    contenders: list[str]
    retirable: list[str]
    loss_if_stopped: float | None
    decisions_to_go: int | None
    time_to_go: float | None
    reason: str
    sentence: str
    leader: str | None
    scored: int
    skipped: int
    cut: int
    intervals: dict[str, Interval]
    pairs: list[Pair]
    warnings: list[str]

    @property
    def outcome(self) -> str:
        """Which of `OUTCOMES` it is."""
        return VERDICT_OUTCOMES[2 if self.reason else int(self.winner is None)]


class Pace(NamedTuple):
    """How fast decisions come."""

    pending: int  # made, and not closed
    per_time: float | None  # decisions in a round or a second; None while it is not known
    window: float


def untold(reason: str, arms: Sequence[str], skipped: int = 0) -> Verdict:
    """Return the verdict where nothing can be said, now or later."""
    sentence = f"No verdict can be given: {reason}.{_not_recorded(skipped)}"
    return Verdict(
        None, ERROR, list(arms), [], None, None, None, reason, sentence, None, 0, skipped, 0, {}, [], []
    )


def verdict(evidence: Evidence, playing: Sequence[int], name: Callable[[int], str], pace: Pace) -> Verdict:
    """Say what the evidence allows.

    Parameters
    ----------
    evidence : Evidence
    playing : sequence of int
        The arms in play.
    name : callable
        Gives an arm's name.
    pace : Pace
    """
    names = [name(arm) for arm in playing]
    skipped = int(evidence.counts[SKIPPED])
    if len(playing) < 2:
        return untold("there is nothing to compare, with fewer than two arms in play", names, skipped)
    if evidence.counts[LOW]:
        return untold("the floor was raised, and earlier propensities are below it", names, skipped)
    if evidence.unit[0] == 0.0:
        return untold(
            "there is no floor, so the chance with which an arm was chosen is not known; "
            "a bandit made with floor=0.05, for example, gets verdicts",
            names,
            skipped,
        )
    own = np.asarray(playing)
    beats = evidence.beaten[np.ix_(own, own)] != 0
    difference, errors = (table[np.ix_(own, own)] for table in estimates(evidence))
    scored = int(evidence.counts[SCORED])
    out = beats.any(axis=0)
    winners = np.flatnonzero(beats.sum(axis=1) == len(own) - 1)
    best = int(winners[0]) if len(winners) else _leader(difference, out)
    leader = names[best] if scored else None
    winner = names[best] if len(winners) else None
    contenders = [n for n, gone in zip(names, out, strict=True) if not gone]
    to_go = None if winner or not scored else _to_go(evidence, own, best, out, pace)
    time = None
    if to_go is not None and pace.per_time:
        time = to_go / pace.per_time + pace.window
    return Verdict(
        winner,
        ERROR,
        contenders,
        [n for n, gone in zip(names, out, strict=True) if gone],
        _loss(difference[best], errors[best]) if scored > 1 else None,
        to_go,
        time,
        "",
        _sentence(winner, contenders, scored, skipped),
        leader,
        scored,
        skipped,
        int(evidence.counts[CUT]),
        _intervals(evidence, own, names) if scored else {},
        _pairs(evidence, own, names, best) if scored else [],
        _warnings(evidence, own, names),
    )


def _leader(difference: Floats, out: npt.NDArray[np.bool_]) -> int:
    """Return the place of the arm with the largest estimate, of those that may be the best."""
    return int(np.argmax(np.where(out, -np.inf, difference[:, 0])))


def _sentence(winner: str | None, contenders: Sequence[str], scored: int, skipped: int) -> str:
    if winner is not None:
        return (
            f"You may stop: {winner} pays more than every other arm in play. The chance that such a sentence "
            f"is ever wrong is at most {100 * ERROR:g} %, however often one looks."
        )
    if not scored:
        made = "no decision with a recorded propensity, made among the arms now in play, has closed"
        return f"No verdict yet: {made}.{_not_recorded(skipped)}"
    if len(contenders) == 2:
        return f"No verdict yet: {contenders[0]} or {contenders[1]} may pay more."
    return f"No verdict yet: {len(contenders)} arms may still be the best."


def _not_recorded(skipped: int) -> str:
    """Say how many closed decisions do not count, as those of a store from before there were propensities."""
    return f" No propensity was recorded before, for {skipped:,} decisions." if skipped else ""


def _loss(difference: Floats, errors: Floats) -> float:
    """Return the expected loss against the arm that may cost most, where differences are normal."""
    z = np.divide(difference, errors, out=np.full(len(errors), np.inf), where=errors > 0.0)
    density = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    loss = errors * density - difference * ndtr(-z)
    return float(np.max(np.where(errors > 0.0, loss, 0.0)))


def _to_go(
    evidence: Evidence, own: npt.NDArray[np.int64], best: int, out: npt.NDArray[np.bool_], pace: Pace
) -> int | None:
    """Return how many decisions more it takes if every bet goes on growing as it has, on average."""
    scored = int(evidence.counts[SCORED])
    needed = 0.0
    for place, arm in enumerate(own):
        if place == best or evidence.beaten[own[best], arm] or out[place]:
            continue
        growth = (evidence.logs[own[best], UP] + evidence.logs[arm, DOWN]) / scored
        with np.errstate(divide="ignore"):
            each = np.where(growth > 0.0, np.log(evidence.unit[1] / WEIGHTS) / growth, np.inf)
        needed = max(needed, float(each.min()))
    if not math.isfinite(needed):
        return None
    return max(math.ceil(needed) - scored - pace.pending, 0)


def _intervals(evidence: Evidence, own: npt.NDArray[np.int64], names: Sequence[str]) -> dict[str, Interval]:
    bound = 2.0 / ERROR
    low, high = arm_bounds(evidence, UP, bound), arm_bounds(evidence, DOWN, bound)
    ranges = evidence.ranges
    return {
        n: (max(float(low[arm]), float(ranges[arm, 0])), min(float(high[arm]), float(ranges[arm, 1])))
        for n, arm in zip(names, own, strict=True)
    }


def _pairs(evidence: Evidence, own: npt.NDArray[np.int64], names: Sequence[str], best: int) -> list[Pair]:
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
        pairs.append(Pair(names[best], other, float(difference[own[best], arm]), ends[-1], past))
    return pairs


def _warnings(evidence: Evidence, own: npt.NDArray[np.int64], names: Sequence[str]) -> list[str]:
    """Say where decisions are not shared out as they should be, and where pay has stopped."""
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
