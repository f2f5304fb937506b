"""The audit of the paper's Theorem 1: two problems on which regret grows more slowly than it allows.

Group k of a decision pays ``spread(k) * cap`` with the arm's chance p and nothing otherwise. The policy
knows the shares, and takes each group to have a chance of its own. So it is uniformly efficient on all
problems whose groups are independent and have these caps, and Theorem 1 is about these problems.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from accrual.core.errors import divides, whole
from accrual.core.jit import njit
from accrual.policies.base import Feedback, Floats, Functions, Ints, Moment, Policy
from accrual.policies.scalars import in_turn
from accrual.problems.laws import BernoulliLaw
from accrual.problems.problem import Problem
from accrual.problems.spreads import Empirical, Spread, named

GROUPS = 20
# So close that arm 2 gets fifty decisions or more in each tenfold of rounds. The delay of 20 rounds, in which
# arm 2 may be chosen again because nothing new is known, then does not blur how regret grows.
CHANCES = (0.5, 0.35)

_LEAST_LEVEL = 1e-9  # instead of ln 1, at which the index would be the mean and have no price
_CLOSE = 1e-3  # the relative error of what the index adds to the mean is the square of this
_STEPS_MOST = 30


def spread(name: str) -> Spread:
    """Return the spread ``"last"`` (all in the last group) or one of the paper's by its name."""
    return Empirical([0.0] * (GROUPS - 1) + [1.0]) if name == "last" else named(name)


def problem(name: str) -> Problem:
    """Make two arms of cap 1 whose groups are scaled Bernoulli variables with this spread."""
    laws = [BernoulliLaw(p, spread(name)) for p in CHANCES]
    return Problem(caps=[1.0] * len(laws), window=GROUPS, groups=GROUPS, laws=laws)


class Params(NamedTuple):
    cap: Floats
    share: Floats  # of each group in the cap
    last: int  # the last group with a share


class Stats(NamedTuple):
    pulls: Ints
    counts: Ints  # arms x groups: decisions that have finished the group
    paid: Floats  # arms x groups: what they paid in it, divided by its cap
    chance: Floats  # arms x groups: paid / counts, stored because dividing again takes longer
    weight: Floats  # arms x groups: share / counts, stored for the same reason


@njit
def finished(params: Params, stats: Stats, arm: int, group: int, before: float, after: float) -> None:
    most = params.share[group] * params.cap[arm]
    if most > 0.0:
        n = stats.counts[arm, group] + 1
        paid = stats.paid[arm, group] + (after - before) / most
        stats.counts[arm, group] = n
        stats.paid[arm, group] = paid
        stats.chance[arm, group] = min(max(paid / n, 0.0), 1.0)
        stats.weight[arm, group] = params.share[group] / n


@njit
def bought(params: Params, stats: Stats, arm: int, price: float) -> tuple[float, float, float]:
    """Return the greatest mean at a price: sum share_k q_k, its derivative, and sum n_k kl(p_k, q_k).

    The q_k in [p_k, 1] are the best for the price: n_k (q_k - p_k) / (q_k (1 - q_k)) = price * share_k.
    """
    mean, growth, cost = 0.0, 0.0, 0.0
    for group in range(params.last + 1):
        share = params.share[group]
        if share > 0.0:
            n, p = stats.counts[arm, group], stats.chance[arm, group]
            pull = price * stats.weight[arm, group]
            root = math.sqrt((1.0 - pull) ** 2 + 4.0 * pull * p)
            q = 2.0 * p / (1.0 - pull + root) if pull < 1.0 else (pull - 1.0 + root) / (2.0 * pull)
            odds = 1.0 + pull * q  # (1 - p) / (1 - q)
            mean += share * q
            if root > 0.0:
                growth += share * stats.weight[arm, group] * q * (1.0 - p) / (odds * root)
            if p > 0.0:
                cost += n * p * math.log(p / q)
            cost += n * (1.0 - p) * math.log(odds)
    return mean, growth, cost


@njit
def index(params: Params, stats: Stats, arm: int, moment: Moment) -> float:
    """cap * max{sum share_k q_k : sum n_k kl(p_k, q_k) <= ln t} over the n_k finished groups

    It is the least mean + (ln t - cost) / price over all prices. Each price gives at least the maximum,
    and near the best price the excess is of second order, so a price that is nearly right will do.
    """
    if stats.counts[arm, params.last] == 0:  # groups finish in order
        return float(in_turn(stats.pulls[arm]))
    level = max(moment.log, _LEAST_LEVEL)
    variance = 0.0
    for group in range(params.last + 1):
        p = stats.chance[arm, group]
        variance += params.share[group] * stats.weight[arm, group] * max(p * (1.0 - p), 0.01)
    price = math.sqrt(2.0 * level / variance)  # right if the mean were normal
    upper = 1.0
    for _ in range(_STEPS_MOST):
        mean, growth, cost = bought(params, stats, arm, price)
        upper = min(upper, mean + (level - cost) / price)
        if abs(cost - level) <= _CLOSE * level:
            break
        # Newton's step for sqrt(cost), which is nearly linear in the price; its derivative is
        # price * growth / (2 sqrt(cost)).
        step = 2.0 * (math.sqrt(level * cost) - cost) / (price * growth) if growth > 0.0 else price
        price = min(max(price + step, 0.5 * price), 2.0 * price)
    return float(params.cap[arm] * upper)


@dataclass(frozen=True)
class GroupKLUCB(Policy):
    """KL-UCB on groups with known caps and unknown chances, each group a chance of its own.

    An arm's index is the greatest mean total over all chances q_k that the finished groups do not contradict:
    the sum of n_k kl(p_k, q_k) is at most ln t. The policy is uniformly efficient on every problem whose
    groups are independent and capped by the spread (docs/bounds.md has the proof).

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
        shares = spread(self.spread).pmf(self.alpha)
        return Params(caps, shares, int(np.flatnonzero(shares)[-1]))

    def stats(self, params: Params) -> Stats:
        shape = (len(params.cap), len(params.share))
        counts = np.zeros(shape[0], np.int64), np.zeros(shape, np.int64)
        return Stats(*counts, *(np.zeros(shape) for _ in range(3)))

    def edges(self, window: int) -> Ints:
        phi = divides("alpha", self.alpha, window)
        return phi * np.arange(1, self.alpha + 1, dtype=np.int64)
