"""OTFLinUCB and OTFLinTS (Vernade et al., ICML 2020): linear models that count pieces as they come.

A decision counts from the moment it is made, as if it had paid nothing, and every piece is added when it
comes. So estimates are too low by what is still to come, and the width has a term for the decisions in
flight. Each arm has a model of its own, as in `accrual.policies.lin`. With V = ridge I + sum of x x' over the
arm's n decisions, the deviation of a context x is the root of x' V^-1 x, and the width is the deviation times

    sqrt(2 ln(1 / delta) + d ln(1 + n / (ridge d))) + sqrt(ridge) + sum over decisions in flight of theirs.

The sum changes whenever V does. Here it is replaced by a bound that needs no list of decisions (Cauchy and
Schwarz): the root of (their number) * trace(V^-1 P), P the sum of x x' over them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from accrual.core.arrays import Floats, Ints
from accrual.core.dense import dot, times
from accrual.core.errors import InputError, as_number, not_negative, positive, whole
from accrual.core.jit import njit
from accrual.core.random import normal
from accrual.policies.age_cells import bucket_edges, checked_buckets
from accrual.policies.base import Feedback, Functions, Moment
from accrual.policies.contexts import WIDTH_MOST, ContextualPolicy
from accrual.policies.lin import learn, nothing_learned


class Params(NamedTuple):
    cap: Floats
    inverse_cap: Floats
    alpha: float
    ridge: float
    log: float  # 2 ln(1 / delta)
    width: int
    last: int  # the last bucket, after which a decision is not in flight any more


class Stats(NamedTuple):
    pulls: Ints
    learned: Floats  # arms: decisions made
    inverse: Floats  # arms x width x width: of ridge I + sum of x x' over those
    response: Floats  # arms x width: sum of x times what has come, in caps
    estimate: Floats  # arms x width: the coefficients
    flying: Floats  # arms: decisions in flight, and ...
    flight: Floats  # ... arms x width x width: the sum of x x' over them
    guess: Floats  # arms: the mean in the context of the last survey, and ...
    deviation: Floats  # ... how far it may be off
    scratch: Floats  # width


@njit
def _fly(params: Params, stats: Stats, arm: int, x: Floats, change: float) -> None:
    """Count a decision in flight (`change` 1), or none any more (-1)."""
    stats.flying[arm] += change
    for i in range(params.width):
        for j in range(params.width):
            stats.flight[arm, i, j] += change * x[i] * x[j]


@njit
def decided(params: Params, stats: Stats, arm: int, x: Floats) -> None:
    learn(params, stats, arm, 0.0, x)  # type: ignore[arg-type]  # tuples with the fields that it reads
    _fly(params, stats, arm, x, 1.0)


@njit
def _add(params: Params, stats: Stats, arm: int, reward: float, x: Floats) -> None:
    share = reward * params.inverse_cap[arm]
    for j in range(params.width):
        stats.response[arm, j] += share * x[j]


@njit
def finished(
    params: Params, stats: Stats, arm: int, group: int, before: float, after: float, x: Floats
) -> None:
    _add(params, stats, arm, after - before, x)
    if group == params.last:
        _fly(params, stats, arm, x, -1.0)


@njit
def amended(  # noqa: PLR0913, PLR0917  (as every policy's, and the context)
    params: Params, stats: Stats, arm: int, group: int,
    before: float, after: float, more_before: float, more_after: float, x: Floats,
) -> None:  # fmt: skip
    _add(params, stats, arm, more_after - more_before, x)


@njit
def survey(params: Params, stats: Stats, moment: Moment, x: Floats) -> None:
    for arm in range(len(params.cap)):
        inverse, flight = stats.inverse[arm], stats.flight[arm]
        times(inverse, stats.response[arm], stats.estimate[arm])
        stats.guess[arm] = dot(stats.estimate[arm], x)
        trace = 0.0
        for i in range(params.width):
            trace += dot(inverse[i], flight[i])
        times(inverse, x, stats.scratch)
        known = math.log(1.0 + stats.learned[arm] / (params.ridge * params.width))
        scale = math.sqrt(params.log + params.width * known) + math.sqrt(params.ridge)
        scale += math.sqrt(max(stats.flying[arm] * trace, 0.0))
        stats.deviation[arm] = params.alpha * scale * math.sqrt(max(dot(x, stats.scratch), 0.0))


@dataclass(frozen=True)
class OnTheFlyPolicy(ContextualPolicy):
    """A linear policy that counts every decision at once, and pieces as they come.

    Parameters
    ----------
    alpha : float
        By how much the width is multiplied. 1 is about the width of the paper's theorem.
    ridge : float
        Weight of the prior, in decisions.
    delta : float
        How probable it may be that a width is exceeded.
    buckets : int
        Into how many parts the window is cut at most. Pieces are added when their part is over.
    """

    alpha: float = 1.0
    ridge: float = 1.0
    delta: float = 0.1
    buckets: int = 20

    feedback: ClassVar[Feedback] = "groups"

    def __post_init__(self) -> None:
        not_negative("alpha", self.alpha)
        positive("ridge", self.ridge)
        if not 0.0 < as_number(self.delta) < 1.0:
            raise InputError(f"delta must be between 0 and 1, not {self.delta!r}")
        object.__setattr__(self, "buckets", checked_buckets(self.buckets))

    @property
    def label(self) -> str:
        return f"{type(self).__name__}({self.alpha:g})"

    def edges(self, window: int) -> Ints:
        return bucket_edges(self.buckets, window)

    def params(self, caps: Floats, window: int, width: int = 1) -> Params:
        width = whole("the numbers of a context", width, 1, WIDTH_MOST)
        log, last = 2.0 * math.log(1.0 / self.delta), len(self.edges(window)) - 1
        return Params(caps, 1.0 / caps, float(self.alpha), float(self.ridge), log, width, last)

    def stats(self, params: Params) -> Stats:
        arms, width = len(params.cap), params.width
        flying, flight = np.zeros(arms), np.zeros((arms, width, width))
        return Stats(**nothing_learned(params), flying=flying, flight=flight)

    def terms(self, params: Params, stats: Stats, arm: int, moment: Moment) -> dict[str, float]:
        cap = float(params.cap[arm])
        return {
            "mean so far in this context": cap * float(stats.guess[arm]),
            "its uncertainty": cap * float(stats.deviation[arm]),
            "decisions in flight": float(stats.flying[arm]),
        }


@njit
def upper_index(params: Params, stats: Stats, arm: int, moment: Moment, x: Floats) -> float:
    """cap * (guess + width)"""
    return float(params.cap[arm] * (stats.guess[arm] + stats.deviation[arm]))


@dataclass(frozen=True)
class OTFLinUCB(OnTheFlyPolicy):
    """OTFLinUCB (Vernade et al., 2020), each arm with a model of its own.

    Examples
    --------
    >>> OTFLinUCB(alpha=0.1).label
    'OTFLinUCB(0.1)'
    """

    functions: ClassVar[Functions] = Functions(
        index=upper_index, survey=survey, decided=decided, finished=finished, amended=amended
    )


@njit
def thompson_index(params: Params, stats: Stats, arm: int, moment: Moment, x: Floats) -> float:
    """cap * a draw from N(guess, width^2)"""
    draw = normal((moment.seed, moment.run), moment.round, arm)
    return float(params.cap[arm] * (stats.guess[arm] + stats.deviation[arm] * draw))


@dataclass(frozen=True)
class OTFLinTS(OnTheFlyPolicy):
    """OTFLinTS (Vernade et al., 2020), each arm with a model of its own: a draw in place of the bound.

    Examples
    --------
    >>> OTFLinTS(alpha=0.1).label
    'OTFLinTS(0.1)'
    """

    functions: ClassVar[Functions] = Functions(
        index=thompson_index, survey=survey, decided=decided, finished=finished, amended=amended
    )
