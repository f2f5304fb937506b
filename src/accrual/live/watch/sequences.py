"""Confidence sequences for arms and pairs of arms: intervals that hold at all times together.

An interval contains every difference against which the bets of `accrual.live.watch.evidence` have not won
enough. The wealth of a bet against a difference x is known exactly for x = 0. For other differences the sums
of the evidence give a lower bound, log(1 - u) >= -u - u**2 for u <= 0.68, so that an interval is at most a
little too wide.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from accrual.core.arrays import Floats, Ints
from accrual.live.watch.evidence import BETS, CHECKPOINTS, DOWN, SCORED, UP, WEIGHTS, Evidence

Test = Callable[[Floats], npt.NDArray[np.bool_]]

_REACH = 0.68  # log(1 - u) >= -u - u**2 up to here
STEPS = 24  # halvings: to a ten-millionth of the range
_LOG_WEIGHTS = np.log(WEIGHTS)


class Sums(NamedTuple):
    """What the sequences of pairs need of `Evidence`, at several times; the first axis is the times."""

    scored: Floats
    decisions: Floats  # times x arms
    logs: Floats  # times x arms x sides x bets
    slopes: Floats  # times x arms x sides x bets
    curves: Floats  # times x arms x sides x bets


def sums_of(evidence: Evidence) -> Sums:
    """Return the sums at the checkpoints and, last, now."""
    arms = len(evidence.least)
    past = evidence.trace[: evidence.counts[CHECKPOINTS]]
    parts = past[:, 1 + arms :].reshape(len(past), arms, 2, len(BETS), 3)
    return Sums(
        np.append(past[:, 0], float(evidence.counts[SCORED])),
        np.concatenate([past[:, 1 : 1 + arms], evidence.heights[None, :-1, 0]]),
        np.concatenate([parts[..., 0], evidence.logs[None]]),
        np.concatenate([parts[..., 1], evidence.slopes[None, ..., 0]]),
        np.concatenate([parts[..., 2], evidence.curves[None, ..., 0]]),
    )


def wealth(logs: Floats) -> Floats:
    """Return the logarithm of the weighted wealth of bets, along the last axis."""
    each = logs + _LOG_WEIGHTS
    most = each.max(axis=-1, keepdims=True)
    most = np.where(np.isfinite(most), most, 0.0)
    return np.asarray(most[..., 0] + np.log(np.exp(each - most).sum(axis=-1)))


def estimates(evidence: Evidence) -> tuple[Floats, Floats]:
    """Return the estimated differences of all pairs, arms x arms, and their standard errors."""
    n = max(float(evidence.counts[0]), 1.0)
    mean = evidence.scores[:, 0] / n
    second = evidence.scores[:, 1] / n
    difference = mean[:, None] - mean[None, :]
    variance = np.maximum(second[:, None] + second[None, :] - difference**2, 0.0)
    return difference, np.sqrt(variance / n)


def pair_bounds(evidence: Evidence, sums: Sums, first: Ints, second: Ints) -> Floats:
    """Return, times x pairs, the least by which each arm of `first` pays more than that of `second`."""
    logs = sums.logs[:, first, UP] + sums.logs[:, second, DOWN]
    slopes = sums.slopes[:, first, UP] + sums.slopes[:, second, DOWN]
    curves = sums.curves[:, first, UP] + sums.curves[:, second, DOWN]
    others = sums.scored[:, None] - sums.decisions[:, first] - sums.decisions[:, second]
    width = float(evidence.unit[3])
    bets, bound = BETS * evidence.unit[0], math.log(evidence.unit[1])

    def given_up(x: Floats) -> npt.NDArray[np.bool_]:
        x = x[..., None]
        steps = np.minimum(bets * x, _REACH)
        each = logs - x * (slopes + x * curves) + others[..., None] * np.log1p(-steps)
        each = np.where(bets * x <= _REACH * (1.0 - BETS), each, -np.inf)
        return np.asarray(wealth(each) >= bound)

    return np.maximum(edge(given_up, np.full(others.shape, width), width), -width)


def arm_bounds(evidence: Evidence, side: int, bound: float) -> Floats:
    """Return for each arm the least (side UP) or the most (side DOWN) that a decision pays on average."""
    sign = 1.0 if side == UP else -1.0
    high = float(evidence.unit[2] + evidence.unit[3])  # no mean is beyond it
    low = float(evidence.unit[2] - evidence.unit[3])
    bets = BETS * evidence.unit[0]
    logs = evidence.logs[:, side]
    slopes, curves = evidence.slopes[:, side], evidence.curves[:, side]
    count, first, second = (evidence.heights[-1, i] - evidence.heights[:-1, i] for i in range(3))

    def given_up(x: Floats) -> npt.NDArray[np.bool_]:
        mean = (sign * x)[:, None]
        # The arm's own decisions come first, then the others, whose factor is 1 - bet * (x - h).
        linear = sign * (mean * slopes[..., 0] - slopes[..., 1])
        square = mean * mean * curves[..., 0] - 2.0 * mean * curves[..., 1] + curves[..., 2]
        rest = sign * bets * (mean[:, 0] * count - first)[:, None]
        rest2 = bets**2 * (mean[:, 0] ** 2 * count - 2.0 * mean[:, 0] * first + second)[:, None]
        each = logs - linear - square - rest - rest2
        each = np.where(bets * (high - low) <= _REACH * (1.0 - BETS), each, -np.inf)
        return np.asarray(wealth(each) >= np.log(bound))

    top = np.full(len(logs), high if side == UP else -low)
    found = edge(given_up, top, high - low)
    return sign * found


def edge(given_up: Test, top: Floats, width: float) -> Floats:
    """Return the greatest x below `top` that is given up; `top` less twice the width if there is none."""
    low, high = top - 2.0 * width, top.copy()
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        hit = given_up(middle)
        low, high = np.where(hit, middle, low), np.where(hit, high, middle)
    return low
