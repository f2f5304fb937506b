"""Guardrails in arrays: what closed decisions say of a second stream of pieces, such as refunds.

The evidence is that of `accrual.live.evidence`, kept for each guardrail on its own totals: a gambler for each
pair of arms bets that the first has more of the stream than the second. An arm is worse when the wealth of
its bets against "it has at most the margin more", one bet for each other arm in play, adds up to
K * (K - 1) / error, with K arms. If an arm is within the margin of the best one in play, none of its K - 1
bets is in the gambler's favour. So their mean reaches K / error with a chance of at most error / K, for
however long one watches; and there are K arms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from accrual.core.jit import njit, njit_noinline
from accrual.live.evidence import BETS, CHECK, DOWN, ERROR, SCORED, UP, WEIGHTS, Evidence, no_evidence, score
from accrual.live.sequences import edge, wealth

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

REWARD = -1  # the stream of a piece that is of no guardrail


class Guards(NamedTuple):
    """The evidence of every guardrail, and which arms are worse."""

    evidence: Evidence  # each array has one axis more, the first: guardrails
    margins: Floats  # guardrails
    worse: Ints  # guardrails x arms: the number of scored decisions when an arm was found worse; 0 before


def no_guards(
    ranges: Sequence[tuple[float, float]], margins: Sequence[float], least: Floats, first: int
) -> Guards:
    """Return guards before the first decision of a comparison.

    Parameters
    ----------
    ranges : sequence of (float, float)
        The least and the greatest total of each guardrail.
    margins : sequence of float
        By how much an arm may have more of each.
    least : ndarray
        The least propensity of each arm; not a number for one that has retired.
    first : int
        The id of the first decision that counts.
    """
    arms = len(least)
    others = max(int(np.count_nonzero(~np.isnan(least))) - 1, 1)
    like = no_evidence(np.tile([0.0, 1.0], (arms, 1)), least, ERROR, first)
    each = [no_evidence(np.tile(own, (arms, 1)), least, ERROR / others, first) for own in ranges]
    stacked = [
        np.stack(columns) if columns else np.zeros((0, *array.shape), array.dtype)
        for array, columns in zip(like, zip(*each, strict=True) if each else [()] * len(like), strict=True)
    ]
    return Guards(
        Evidence._make(stacked), np.array(margins, np.float64), np.zeros((len(ranges), arms), np.int64)
    )


@njit
def evidence_of(guards: Guards, number: int) -> Evidence:
    """Return the evidence of one guardrail: its part of every array."""
    every = guards.evidence
    return Evidence(
        every.counts[number], every.unit[number], every.ranges[number], every.least[number],
        every.heights[number], every.scores[number], every.logs[number], every.slopes[number],
        every.curves[number], every.shares[number], every.beaten[number], every.quiet[number],
        every.trace[number],
    )  # fmt: skip


@njit_noinline
def guard(guards: Guards, playing: Flags, arm: int, totals: Floats, propensity: float) -> None:
    """Take the next closed decision, in the order of decisions, with its total of each stream."""
    for number in range(len(guards.margins)):
        evidence = evidence_of(guards, number)
        score(evidence, arm, totals[number], propensity)
        if evidence.counts[SCORED] % CHECK == 0:
            find_worse(evidence, guards.margins[number], playing, guards.worse[number])


@njit_noinline
def find_worse(evidence: Evidence, margin: float, playing: Flags, worse: Ints) -> None:
    """Note which arm in play has more of the stream than another one, by more than the margin.

    The wealth against "at most the margin more" follows from sums, by log(1 - u) >= -u - u**2: a little less
    than it is.
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


def least_excess(evidence: Evidence, playing: Sequence[int]) -> Floats:
    """Return by how much, at the least, each arm in play has more of the stream than the best other one.

    All of these hold at all times together with a chance of at least 1 - `ERROR`.
    """
    own = np.asarray(playing)
    width = float(evidence.unit[3])
    decisions = evidence.heights[own, 0]
    others = float(evidence.counts[SCORED]) - decisions[:, None] - decisions[None, :]
    logs, slopes, curves = (
        table[own, UP][:, None] + table[own, DOWN][None, :]
        for table in (evidence.logs, evidence.slopes[..., 0], evidence.curves[..., 0])
    )
    bets, bound = BETS * evidence.unit[0], math.log(evidence.unit[1])
    same = np.eye(len(own), dtype=np.bool_)

    def given_up(x: Floats) -> Flags:
        y = x[:, None, None]  # a bet is at most half of the least propensity, so all steps are small enough
        each = logs - y * (slopes + y * curves) + others[..., None] * np.log1p(-bets * y)
        pairs = np.where(same, -np.inf, wealth(each))
        return np.asarray(np.logaddexp.reduce(pairs, axis=1) >= bound)

    return edge(given_up, np.full(len(own), width), width)
