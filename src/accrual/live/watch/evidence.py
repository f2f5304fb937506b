"""What closed decisions say about the differences between arms, for any policy and any drift.

Closed decisions are scored in the order in which they were made. A decision whose arm was chosen with
probability p, and which paid y, gives that arm the score s = (y - h) / p and every other arm 0; h is the
mean of all earlier totals. Because p is known, the expected difference of the scores of arms a and b is the
difference of what they pay on average, whatever the policy did. No model of the rewards is needed, and
a change that is the same for all arms (a weekend) does no harm.

A gambler starts with a wealth of 1 and bets a fixed part of it on "a pays more than b": the wealth is
multiplied by 1 + bet * s when a is scored, and by 1 - bet * s when b is scored. If a does not pay more, the
game is not in the gambler's favour. Then, by Ville's inequality, the chance that the wealth ever reaches x
is at most 1 / x, however long one watches. No bet can lose everything, because totals lie between 0 and the
cap and p is at least the floor's share. So the bound on the error is exact, for few decisions too. Several
bets are made at once, for differences of several sizes; `WEIGHTS` divides the first stake among them.
Because every bet is constant, more is true: under any drift, when the wealth reaches x the average of a - b
over the decisions scored so far is above 0, except for a chance of 1 / x (docs/verdicts.md has the proof).

A total above the cap counts as the cap, and a total below the least counts as the least. Both are counted,
and the verdict is then about totals that are cut off there. Further sums give, at any time, a lower bound of
the wealth of a bet against any difference other than 0, and so confidence sequences
(`accrual.live.watch.sequences`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from accrual.core.arrays import Floats, Ints
from accrual.core.jit import njit, njit_noinline

BETS = np.array([0.5, 0.4, 0.2, 0.08, 0.03])
"""The part of the wealth that each bet loses with the largest possible score."""

WEIGHTS = np.array([0.45, 0.4, 0.07, 0.05, 0.03])
"""How the first stake is divided among the bets."""

SHARE_BETS = np.array([0.4, 0.08])
"""Like `BETS`, for bets that an arm is chosen more or less often than its propensities say."""

ERROR = 0.05
"""The accepted chance of ever naming a false winner, in the whole life of a bandit."""

UP, DOWN = range(2)  # sides: a bet that the arm pays more; a bet that it pays less
TRACED = 32  # checkpoints in `Evidence.trace`, at most
CHECK = 16  # scored decisions between two checks for a beaten arm

# Places in `Evidence.counts`: decisions that were scored; decisions that do not count; totals that were cut
# off; checkpoints, and how many decisions they are apart; the id of the first decision of this comparison;
# whether a propensity was below the floor's; and the id of the first scored decision.
SCORED, SKIPPED, CUT, CHECKPOINTS, _EVERY, BEGINS, LOW, SINCE = range(8)
NO_PROPENSITY = 0.0
FIRST, LAST = range(2)  # the ends of a range of decisions


class Evidence(NamedTuple):
    """Sums over the scored decisions of one comparison."""

    counts: Ints  # see `SCORED` and the other places
    unit: Floats  # 1 / largest score; the wealth at which an arm is beaten; the first h; the range; the error
    ranges: Floats  # arms x 2: the least and the greatest total
    least: Floats  # arms: the least propensity
    heights: Floats  # arms, then all arms: number, sum, sum of squares of h; sum, sum of squares of totals
    scores: Floats  # arms x 2: sum of scores and of their squares
    logs: Floats  # arms x sides x bets: sum of the logarithms of the factors
    slopes: Floats  # arms x sides x bets x 2: with r = bet / factor, sums of r and r h
    curves: Floats  # arms x sides x bets x 3: sums of r**2, r**2 h and r**2 h**2
    shares: Floats  # arms x sides x bets: sums of logarithms, for bets on how often an arm is chosen
    beaten: Ints  # arms x arms: [a, b] is the number of scored decisions when a had beaten b; 0 before
    spans: Ints  # arms x arms x 2: the decisions, from id to id, over which a was last shown to pay more
    quiet: Ints  # arms x 2: the last decisions in a row that paid nothing; all that paid something
    trace: Floats  # checkpoints x numbers: decisions; decisions of each arm; logs, slopes and curves


def comparison_error(number: int) -> float:
    """Return the part of `ERROR` that a comparison may spend; its number is that of the arms added so far.

    The first may spend four fifths, and number k a share of 1 / (k (k + 1)) of the last fifth. So all
    comparisons of a bandit together, however many, never spend more than `ERROR`.

    Examples
    --------
    >>> round(comparison_error(0), 3), round(comparison_error(1), 3)
    (0.04, 0.005)
    >>> round(sum(comparison_error(number) for number in range(1_000_000)), 5)
    0.05
    """
    return ERROR * (0.8 if number == 0 else 0.2 / (number * (number + 1)))


def bound_of(arms: int, error: float) -> float:
    """Return the wealth at which one of this many arms has beaten another.

    All ordered pairs share the error. So it holds for any pair that is compared in the end, under any drift,
    and for any rule by which arms are retired.
    """
    return max(arms * (arms - 1), 1) / error


def no_evidence(ranges: Floats, least: Floats, error: float, first: int) -> Evidence:
    """Return evidence before the first decision of a comparison.

    Parameters
    ----------
    ranges : ndarray
        Arms x 2: the least and the greatest total of each arm.
    least : ndarray
        The least propensity of each arm; NaN for an arm that has retired.
    error : float
        The chance that this comparison is ever wrong about any pair.
    first : int
        The id of the first decision that counts.
    """
    arms, bets = len(least), len(BETS)
    playing = ~np.isnan(least)
    smallest = float(least[playing].min()) if playing.any() else 0.0
    width = float(ranges[playing, 1].max() - ranges[playing, 0].min()) if playing.any() else 1.0
    unit = smallest / width if smallest > 0.0 else 0.0
    middle = float(ranges[playing].mean()) if playing.any() else 0.0
    return Evidence(
        counts=np.array([0, 0, 0, 0, CHECK, first, 0, first], np.int64),
        unit=np.array([unit, bound_of(int(playing.sum()), error), middle, width, error]),
        ranges=np.ascontiguousarray(ranges, np.float64),
        least=np.ascontiguousarray(least, np.float64),
        heights=np.zeros((arms + 1, 5)),
        scores=np.zeros((arms, 2)),
        logs=np.zeros((arms, 2, bets)),
        slopes=np.zeros((arms, 2, bets, 2)),
        curves=np.zeros((arms, 2, bets, 3)),
        shares=np.zeros((arms, 2, len(SHARE_BETS))),
        beaten=np.zeros((arms, arms), np.int64),
        spans=np.zeros((arms, arms, 2), np.int64),
        quiet=np.zeros((arms, 2), np.int64),
        trace=np.zeros((TRACED, 1 + arms * (1 + 2 * bets * 3))),
    )


@njit_noinline
def score(evidence: Evidence, arm: int, total: float, propensity: float) -> None:
    """Score the next closed decision, in the order in which decisions were made."""
    counts, heights = evidence.counts, evidence.heights
    if propensity == NO_PROPENSITY or evidence.unit[0] == 0.0:
        counts[SKIPPED] += 1
        return
    if propensity < evidence.least[arm] * (1.0 - 1e-9):  # the floor was lower then: no bet would be safe
        evidence.unit[0] = 0.0
        counts[LOW] += 1
        return
    low, high = evidence.ranges[arm, 0], evidence.ranges[arm, 1]
    y = min(max(total, low), high)
    if total > high * (1.0 + 1e-9) or total < low:
        counts[CUT] += 1
    if counts[SCORED] == 0:
        counts[SINCE] = counts[BEGINS] + counts[SKIPPED]
    last = len(heights) - 1
    every = heights[last]
    h = (every[3] + evidence.unit[2]) / (every[0] + 1.0)
    s = (y - h) / propensity
    for row in (arm, last):
        heights[row, 0] += 1.0
        heights[row, 1] += h
        heights[row, 2] += h * h
        heights[row, 3] += y
        heights[row, 4] += y * y
    evidence.scores[arm, 0] += s
    evidence.scores[arm, 1] += s * s
    excess = 1.0 / propensity - 1.0
    for side in range(2):
        sign = 1.0 if side == UP else -1.0
        for j in range(len(BETS)):
            bet = BETS[j] * evidence.unit[0]
            factor = 1.0 + sign * bet * s
            r = bet / factor
            evidence.logs[arm, side, j] += math.log(factor)
            evidence.slopes[arm, side, j, 0] += r
            evidence.slopes[arm, side, j, 1] += r * h
            evidence.curves[arm, side, j, 0] += r * r
            evidence.curves[arm, side, j, 1] += r * r * h
            evidence.curves[arm, side, j, 2] += r * r * h * h
        for j in range(len(SHARE_BETS)):
            evidence.shares[arm, side, j] += math.log(
                1.0 + sign * SHARE_BETS[j] * evidence.least[arm] * excess
            )
    if total == 0.0:
        evidence.quiet[arm, 0] += 1
    else:
        evidence.quiet[arm, 0] = 0
        evidence.quiet[arm, 1] += 1
    counts[SCORED] += 1
    if counts[SCORED] % CHECK == 0:
        find_beaten(evidence)
    if counts[SCORED] % counts[_EVERY] == 0:
        note_trace(evidence)


@njit
def last_scored(evidence: Evidence) -> int:
    """Return the id of the last decision that was scored or skipped; they come in the order of their ids."""
    counts = evidence.counts
    last: int = counts[BEGINS] + counts[SCORED] + counts[SKIPPED] - 1
    return last


@njit_noinline
def find_beaten(evidence: Evidence) -> None:
    """Record which arm has beaten which: its bets that it pays more have reached the bound.

    A pair that was recorded before is recorded again, with the decisions up to now.
    """
    logs, bound = evidence.logs, evidence.unit[1]
    arms, bets = len(logs), len(BETS)
    for a in range(arms):
        for b in range(arms):
            if a == b:
                continue
            most = -np.inf
            for j in range(bets):
                most = max(most, logs[a, UP, j] + logs[b, DOWN, j])
            if most < math.log(bound):  # then the weighted wealth is below it too
                continue
            wealth = 0.0
            for j in range(bets):
                wealth += WEIGHTS[j] * math.exp(min(logs[a, UP, j] + logs[b, DOWN, j], 700.0))
            if wealth >= bound:
                if evidence.beaten[a, b] == 0:
                    evidence.beaten[a, b] = evidence.counts[SCORED]
                evidence.spans[a, b, FIRST] = evidence.counts[SINCE]
                evidence.spans[a, b, LAST] = last_scored(evidence)


@njit_noinline
def note_trace(evidence: Evidence) -> None:
    """Add a checkpoint with the sums that sequences need; without room, drop every other checkpoint first."""
    counts, trace = evidence.counts, evidence.trace
    if counts[CHECKPOINTS] == TRACED:
        for i in range(TRACED // 2):
            for k in range(trace.shape[1]):
                trace[i, k] = trace[2 * i + 1, k]
        counts[CHECKPOINTS] = TRACED // 2
        counts[_EVERY] *= 2
    row = trace[counts[CHECKPOINTS]]
    row[0] = counts[SCORED]
    arms = len(evidence.logs)
    at = 1 + arms
    for a in range(arms):
        row[1 + a] = evidence.heights[a, 0]
        for side in range(2):
            for j in range(len(BETS)):
                row[at] = evidence.logs[a, side, j]
                row[at + 1] = evidence.slopes[a, side, j, 0]
                row[at + 2] = evidence.curves[a, side, j, 0]
                at += 3
    counts[CHECKPOINTS] += 1
