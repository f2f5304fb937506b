"""The audit of the paper's Theorem 1: two problems on which its printed bound is beaten.

Group k of a decision pays ``spread(k) * cap`` with probability p and nothing otherwise, so
every group divided by its own cap is a Bernoulli variable with the arm's p. The printed bound
grows with how late and how concentrated the spread is; the information in a decision does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from accrual.core.errors import divides, whole
from accrual.core.jit import njit
from accrual.policy.base import Feedback, Floats, Functions, Ints, Moment, Policy
from accrual.policy.estimate import in_turn, kl_upper
from accrual.problem import BernoulliLaw, Problem
from accrual.spread import Empirical, Spread, named

GROUPS = 20
CHANCES = {"last": (0.6, 0.2), "very_end": (0.5, 0.35)}


def spread(name: str) -> Spread:
    """``"last"`` (all in the last group) or a named spread."""
    return Empirical([0.0] * (GROUPS - 1) + [1.0]) if name == "last" else named(name)


def problem(name: str) -> Problem:
    """Two arms of cap 1 whose groups are scaled Bernoulli variables with this spread."""
    laws = [BernoulliLaw(p, spread(name)) for p in CHANCES[name]]
    return Problem(caps=[1.0] * len(laws), window=GROUPS, groups=GROUPS, laws=laws)


class Params(NamedTuple):
    cap: Floats
    group_cap: Floats  # as a share of the cap


class Stats(NamedTuple):
    pulls: Ints
    seen: Ints  # finished groups with a positive cap
    paid: Floats  # what they paid, each divided by its cap


@njit
def finished(params: Params, stats: Stats, arm: int, group: int, before: float, after: float) -> None:
    most = params.group_cap[group] * params.cap[arm]
    if most > 0.0:
        stats.seen[arm] += 1
        stats.paid[arm] += (after - before) / most


@njit
def index(params: Params, stats: Stats, arm: int, moment: Moment) -> float:
    """cap * sup{q : n kl(mean, q) <= ln t} over the n finished groups"""
    n = stats.seen[arm]
    if n == 0:
        return float(in_turn(stats.pulls[arm]))
    mean = min(max(stats.paid[arm] / n, 0.0), 1.0)
    return float(params.cap[arm] * kl_upper(mean, moment.log / n))


@dataclass(frozen=True)
class GroupKLUCB(Policy):
    """KL-UCB on normalised groups, for problems whose groups are scaled Bernoulli variables.

    Every finished group, divided by its cap, is one observation of the arm's p.

    Parameters
    ----------
    alpha : int
        The problem's number of groups.
    spread : str
        The problem's spread: ``"last"`` or a named one.
    """

    alpha: int
    spread: str

    feedback: ClassVar[Feedback] = "groups"
    functions: ClassVar[Functions] = Functions(index=index, finished=finished)

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", whole("alpha", self.alpha, 1))

    @property
    def label(self) -> str:
        return f"GroupKLUCB({self.alpha}, {self.spread})"

    def params(self, caps: Floats, window: int) -> Params:
        return Params(caps, spread(self.spread).pmf(self.alpha))

    def stats(self, params: Params) -> Stats:
        arms = len(params.cap)
        return Stats(np.zeros(arms, np.int64), np.zeros(arms, np.int64), np.zeros(arms))

    def edges(self, window: int) -> Ints:
        phi = divides("alpha", self.alpha, window)
        return phi * np.arange(1, self.alpha + 1, dtype=np.int64)
