from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from accrual.core.jit import njit
from accrual.policy.age_model import *
from accrual.policy.age_model import KAPPA_START
from accrual.policy.base import Feedback, Functions, Policy
from accrual.policy.estimate import kl
from accrual.policy.totals import UNKNOWN


@njit
def _count(params, stats, a):
    return stats.pulls[a] + min(stats.variance[a] / (stats.shared[GAMMA] + stats.shared[SIGMA] / stats.shared[KAPPA]), params.most)


@njit
def survey(params, stats, moment):
    sh = stats.shared
    if sh[READY] == 0.0:
        return
    best = -1.0
    lead = 0
    for a in range(len(params.cap)):
        if stats.news[a] >= stats.wait[a]:
            estimate(params, stats, a)
        if stats.mean[a] * params.cap[a] > best:
            best = stats.mean[a] * params.cap[a]
            lead = a
    n = stats.seen[lead, int(sh[REACH]) - 1]
    sh[BEST] = min(best, params.cap[lead] * (1.0 - 0.5 / (n + 1.0)))
    sh[LOGN] = math.log(_count(params, stats, lead))


@njit
def cost_of(d, m, s2):
    m = min(m, 1.0 - 1e-9)
    D = s2 / max(m, 1e-9)
    b = min(1.0 - m, max(D, 1.5 * d))
    p = s2 / (s2 + b * b)
    return max(kl(p, min(p + d / (b + s2 / b), 1.0 - 1e-9)), d * d / (2.0 * (s2 + min(D, 1.0) * d / 3.0)))


@njit
def worth(off, L):
    if L <= 1.0:
        return (1.0 - 0.5 * off) * L
    return max((1.0 - 0.5 * off) * L, L - off * (0.5 * math.log(L) + 1.96))


@njit
def index(params, stats, arm, moment):
    sh = stats.shared
    if sh[READY] == 0.0:
        return -float(stats.pulls[arm])
    n = _count(params, stats, arm)
    s2 = stats.variance[arm]
    f = worth(params.off, sh[LOGN] - math.log(n))
    left = 1.0 - sh[PART]
    U = params.U * sh[SIGMA] * left / sh[KAPPA] + params.V * sh[TILT] * left ** 2
    k = stats.pulls[arm] + 1.0
    L = sh[LOGN] - math.log(k)
    n /= 1.0 + n * U / s2
    k /= 1.0 + k * U / s2
    m = stats.mean[arm]
    target = sh[BEST] * params.inverse_cap[arm]
    d = target - m
    if d <= 0.0:
        return f
    cost = n * cost_of(d, m, s2) - f
    x = target - stats.own[arm]
    other = params.alt * math.log(len(params.cap) + 1.0) - worth(params.off, L)
    if other < cost:
        if x > 0.0:
            other += k * cost_of(x, stats.own[arm], s2)
        cost = min(cost, other)
    if params.jack > 0.0:
        w = stats.weight[arm]
        many = w * stats.own[arm] ** 2 / stats.second[arm] if stats.second[arm] > 0.0 else 0.0
        other = params.jack * (1.0 + many) / (1.0 + w) - L
        if other < cost:
            if x > 0.0:
                y = x / max(sh[PART] ** params.und - stats.own[arm], 1e-9)
                other -= k * math.log(max(1.0 - y, 1e-9))
            cost = min(cost, other)
    return -cost


@dataclass(frozen=True)
class AgePrior(Policy):
    buckets: int = 32
    lt: float = 0.2
    lk: float = 0.3
    most: float = 5.0
    mk: float = 0.5
    many: float = 10.0
    alt: float = 0.5
    jack: float = 1.0
    cv: float = 0.3
    nu: float = 4.0
    own: float = 5.0
    e: float = 2.0
    mix: float = 4.0
    und: float = 4.0
    rmin: float = 0.1
    tv: float = 0.03
    U: float = 10.0
    V: float = 0.0
    sweeps: float = 2
    feedback: ClassVar[Feedback] = "groups"
    functions: ClassVar[Functions] = Functions(
        index=index, survey=survey, finished=finished, amended=amended, refresh=refresh, noted=noted, sums=("news",)
    )

    @property
    def label(self):
        return "AgePrior"

    def edges(self, window):
        g = np.arange(1, self.buckets + 1)
        return np.unique(np.ceil(window * (g / self.buckets) ** 2).astype(np.int64))

    def params(self, caps, window):
        prior = np.diff(np.concatenate([[0], self.edges(window)])) / window
        K = len(caps)
        return Params(caps, 1.0 / caps, prior, self.lt + self.lk * math.log(K), self.most + self.mk * K,
                      K / (K + self.many), self.alt, self.jack + math.log(K), self.cv, self.nu, self.own, self.e, self.mix, self.und, self.rmin, self.tv, self.U, self.V, float(self.sweeps))

    def stats(self, params):
        arms, buckets = len(params.cap), len(params.prior)
        cells = (arms, buckets)
        shared = np.zeros(12)
        shared[KAPPA], shared[GAMMA], shared[SIGMA], shared[TILT] = KAPPA_START, 1.0, 1.0, 1.0
        return Stats(np.zeros(arms, np.int64), np.zeros(cells), np.zeros(cells), np.zeros(cells), np.zeros(cells),
                     np.zeros(arms), np.zeros(arms), np.zeros(arms), np.zeros(arms), np.zeros(arms), np.zeros(arms), np.zeros(arms), np.zeros(arms), np.zeros(arms), np.zeros(arms), np.zeros(arms),
                     np.zeros(buckets), np.zeros(buckets), np.ones(buckets), np.zeros(buckets), np.zeros((3, buckets)), np.array([8], np.int64), shared)
