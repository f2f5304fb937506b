"""What closed decisions say of the difference between arms, whatever policy chose and however it drifts.

Closed decisions are taken in the order in which they were made. A decision whose arm was chosen with
probability p, and which paid y, gives that arm the score s = (y - h) / p and every other arm 0; h is the
mean of all totals before it. Whatever the policy did, the expected difference of the scores of arms a and b
is the difference of what they pay on average, since p is known: no model of the rewards is needed, and
something that changes for all arms alike (a weekend) does no harm.

From these scores the wealth of a gambler is computed who starts with 1 and bets a fixed part of it on "a pays
more than b": it is multiplied by 1 + bet * s when a is scored, and by 1 - bet * s when b is. If a does not
pay more, the game is not in the gambler's favour, and by Ville's inequality the chance that the wealth ever
reaches x is at most 1 / x, for however long one watches. No bet can lose everything, since totals lie between
0 and the cap and p is at least the floor's share. So the bound on the error is exact, for few decisions too.
Several bets are held at once, for differences of several sizes; `WEIGHTS` divides the first stake among them.

A total above the cap counts as the cap, and one below what is allowed counts as the least; both are
counted, and the verdict is then one on totals cut off there. Sums that are kept beside
the wealth give, at any time, a lower bound of the wealth of a bet against any other difference
than 0, and so confidence sequences (`accrual.live.watch.sequences`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from accrual.core.jit import njit_noinline

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

BETS = np.array([0.5, 0.4, 0.2, 0.08, 0.03])
"""What part of the wealth the bets would lose at most, of the largest that a score may be."""

WEIGHTS = np.array([0.45, 0.4, 0.07, 0.05, 0.03])
"""How the first stake is divided among the bets."""

SHARE_BETS = np.array([0.4, 0.08])
"""Like `BETS`, on an arm being chosen more or less often than its propensities say; half a stake each."""

ERROR = 0.05
"""The chance of ever naming a false winner that is accepted."""

UP, DOWN = range(2)  # a bet that the arm pays more; that it pays less
TRACED = 32  # checkpoints of the past that are kept, at most
CHECK = 16  # scored decisions between two looks for an arm that is beaten

SCORED, SKIPPED, CUT, CHECKPOINTS, _EVERY, BEGINS, LOW = range(7)
NO_PROPENSITY = 0.0


class Evidence(NamedTuple):
    """Sums over scored decisions."""

    counts: Ints  # decisions scored; those without a propensity; totals cut off; checkpoints, ...
    #               ... how many decisions apart; the id of the first decision of this comparison; ...
    #               ... whether a propensity was below the floor's
    unit: Floats  # 1 / the largest score; the wealth at which an arm is beaten; the first h; the range
    ranges: Floats  # arms x 2: the least and the greatest total
    least: Floats  # arms: the least propensity
    heights: Floats  # arms and, last, all: number, sum and sum of squares of h; sum of totals and of squares
    scores: Floats  # arms x 2: sum of scores and of their squares
    logs: Floats  # arms x sides x bets: the logarithm of the factors
    slopes: Floats  # arms x sides x bets x 2: with r = bet / factor, sums of r and r h
    curves: Floats  # arms x sides x bets x 3: sums of r**2, r**2 h and r**2 h**2
    shares: Floats  # arms x sides x bets: logarithms of factors of bets on how often an arm is chosen
    beaten: Ints  # arms x arms: [a, b] is the number of scored decisions when a had beaten b; 0 before
    quiet: Ints  # arms x 2: decisions in a row that paid nothing; those that paid something
    trace: Floats  # checkpoints x numbers: decisions; those of each arm; logs, slopes and curves


def no_evidence(ranges: Floats, least: Floats, error: float, first: int) -> Evidence:
    """Return evidence before the first decision of a comparison.

    Parameters
    ----------
    ranges : ndarray
        Arms x 2: the least and the greatest total of each arm.
    least : ndarray
        The least propensity of each arm; not a number for one that has retired.
    error : float
        The chance of a false winner that is accepted.
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
        np.array([0, 0, 0, 0, CHECK, first, 0], np.int64),
        np.array([unit, max(playing.sum(), 1) / error, middle, width]),
        np.ascontiguousarray(ranges, np.float64),
        np.ascontiguousarray(least, np.float64),
        np.zeros((arms + 1, 5)),
        np.zeros((arms, 2)),
        np.zeros((arms, 2, bets)),
        np.zeros((arms, 2, bets, 2)),
        np.zeros((arms, 2, bets, 3)),
        np.zeros((arms, 2, len(SHARE_BETS))),
        np.zeros((arms, arms), np.int64),
        np.zeros((arms, 2), np.int64),
        np.zeros((TRACED, 1 + arms * (1 + 2 * bets * 3))),
    )


@njit_noinline
def score(evidence: Evidence, arm: int, total: float, propensity: float) -> None:
    """Take the next closed decision, in the order in which decisions were made."""
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


@njit_noinline
def find_beaten(evidence: Evidence) -> None:
    """Note which arm has beaten which: the wealth of the bets that it pays more has reached the bound."""
    logs, bound = evidence.logs, evidence.unit[1]
    arms, bets = len(logs), len(BETS)
    for a in range(arms):
        for b in range(arms):
            if a == b or evidence.beaten[a, b] != 0:
                continue
            most = -np.inf
            for j in range(bets):
                most = max(most, logs[a, UP, j] + logs[b, DOWN, j])
            if most < math.log(bound):  # then the weighted wealth is below, too
                continue
            wealth = 0.0
            for j in range(bets):
                wealth += WEIGHTS[j] * math.exp(min(logs[a, UP, j] + logs[b, DOWN, j], 700.0))
            if wealth >= bound:
                evidence.beaten[a, b] = evidence.counts[SCORED]


@njit_noinline
def note_trace(evidence: Evidence) -> None:
    """Keep what the sequences need, to draw them; every other checkpoint goes when there is no room."""
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
