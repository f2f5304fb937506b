"""Clusters of arms: the paper's policy with a spread for each, and a way to find clusters.

Arms of one cluster pay at the same speed: a short video is watched today, a course over weeks. The
Age policies take clusters as a tuple of numbers, one for each arm, and learn each cluster's spread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from accrual.core.arrays import Floats
from accrual.core.errors import InputError, divides, whole
from accrual.policies.base import Feedback, Functions, Policy
from accrual.policies.tpucbfrg import Params, Stats, decided, index, no_stats
from accrual.problems.spreads import SpreadLike, as_spread

_SPARE = 10.0  # spare decisions that a bucket's noise must be known from, as in the Age policies
_SWEEPS = 30
_BINS = 3  # into which the test sorts the buckets, with about the same pay in each


@dataclass(frozen=True)
class Cluster:
    """Arms with one number of groups, one spread and one window.

    Parameters
    ----------
    arms : sequence of int
        The numbers of the arms, from 0 on.
    alpha : int
        Their number of groups; must divide their window.
    spread : str, Spread or sequence of float
        Their assumed spread over their own window.
    window : int, optional
        The age after which they pay nothing more, at most the problem's window, which it is
        unless given.

    Examples
    --------
    >>> Cluster(arms=(0, 2), alpha=10, spread="begin", window=50).arms
    (0, 2)
    """

    arms: Sequence[int]
    alpha: int
    spread: SpreadLike
    window: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.arms, str) or not np.iterable(self.arms) or not len(self.arms):
            raise InputError(f"a cluster's arms must be numbers such as (0, 2), not {self.arms!r}")
        object.__setattr__(self, "arms", tuple(whole("an arm", arm, 0) for arm in self.arms))
        object.__setattr__(self, "alpha", whole("alpha", self.alpha, 1))
        object.__setattr__(self, "spread", as_spread(self.spread))
        as_spread(self.spread).pmf(self.alpha)
        if self.window is not None:
            object.__setattr__(self, "window", whole("a cluster's window", self.window, 1))


@dataclass(frozen=True)
class ClusteredTPUCBFRG(Policy):
    """TP-UCB-FR-G in which every cluster of arms has its own groups, spread and window.

    An arm's index is TPUCBFRG's with its own cluster's numbers, so Theorem 2 carries over arm by
    arm where each cluster's spread and window are true of its arms, and is no more than a
    heuristic where they are not. Clusters may name arms that are added later; an arm that none
    names is refused. It is in no catalog, because clusters cannot be written in one line.

    Parameters
    ----------
    clusters : sequence of Cluster

    Examples
    --------
    >>> fast = Cluster(arms=(0, 1), alpha=10, spread="begin", window=50)
    >>> slow = Cluster(arms=(2,), alpha=20, spread="end")
    >>> policy = ClusteredTPUCBFRG([fast, slow])
    >>> policy.label
    'ClusteredTPUCBFRG(10 begin, 20 end)'
    >>> policy.params(np.array([1.0, 1.0, 1.0]), window=100).coincidence.round(3)
    array([0.199, 0.199, 0.109])
    """

    clusters: Sequence[Cluster]

    feedback: ClassVar[Feedback] = "pieces"
    functions: ClassVar[Functions] = Functions(index=index, decided=decided)

    def __post_init__(self) -> None:
        clusters = tuple(self.clusters) if np.iterable(self.clusters) else (self.clusters,)
        if not clusters or not all(isinstance(cluster, Cluster) for cluster in clusters):
            raise InputError(f"clusters must be Clusters, not {self.clusters!r}")
        arms = [arm for cluster in clusters for arm in cluster.arms]
        twice = sorted({arm for arm in arms if arms.count(arm) > 1})
        if twice:
            raise InputError(f"an arm belongs to one cluster; arm {twice[0]} is named twice")
        object.__setattr__(self, "clusters", clusters)

    @property
    def label(self) -> str:
        parts = (f"{cluster.alpha} {as_spread(cluster.spread).label}" for cluster in self.clusters)
        return f"ClusteredTPUCBFRG({', '.join(parts)})"

    def params(self, caps: Floats, window: int) -> Params:
        owed, coincidence = np.full(len(caps), np.nan), np.zeros(len(caps))
        for cluster in self.clusters:
            own = window if cluster.window is None else cluster.window
            if own > window:
                raise InputError(f"a cluster's window must be at most the problem's {window}, not {own}")
            phi = divides("alpha", cluster.alpha, own)
            law = as_spread(cluster.spread)
            arms = [arm for arm in cluster.arms if arm < len(caps)]
            owed[arms] = phi * caps[arms] * law.mean(cluster.alpha)
            coincidence[arms] = law.coincidence(cluster.alpha)
        if np.isnan(owed).any():
            raise InputError(f"arm {int(np.flatnonzero(np.isnan(owed))[0])} is in no cluster; name it in one")
        return Params(caps, owed, coincidence)

    def stats(self, params: Params) -> Stats:
        return no_stats(len(params.cap))


def find_clusters(stats: Any, level: float = 0.01) -> tuple[int, ...]:
    """Group arms whose learned spreads agree, for ``AgeIMED(clusters=...)``.

    Each arm begins alone, and the two clusters that agree best are joined for as long as some two
    agree. Whether two agree is Pearson's test: one spread p is fitted to both; in bucket g, where
    a cluster should have paid E_g p_g, its pay varies by noise_g E_g p_g, the noise being
    estimated from the squares in it as the Age policies do for kappa. The buckets are put into
    three bins of about the same pay, standard deviations added up within a bin as if its buckets
    were parts of one payment, and the sum of (paid - expected)^2 / variance over the bins of both
    is compared with the chi-square law with two degrees of freedom.

    A heuristic. Two clusters stay apart where the p-value is below `level` / (arms - 1). So, by
    Bonferroni's rule, arms with one spread would be split with a probability of about `level` at
    most, if many decisions were behind every arm, bins were independent, and the pairs were not
    picked by their outcome. Where a policy has starved some arms it happens more often.

    Parameters
    ----------
    stats : the statistics of an Age policy
        For example a ledger's ``stats``; ``seen``, ``paid`` and ``square`` are read. An arm about
        which too little is known agrees with every other.
    level : float
        About the chance of splitting arms that have one spread.

    Returns
    -------
    tuple of int
        The cluster of each arm, numbered in the order of their first arms.

    Examples
    --------
    >>> import accrual as ac
    >>> from accrual.engine.recording import record
    >>> laws = [ac.BernoulliLaw(0.5, spread) for spread in ("begin", "end", "begin", "end")]
    >>> problem = ac.Problem([1.0] * 4, window=100, groups=20, laws=laws)
    >>> find_clusters(record(problem, ac.AgeTS(), horizon=5000).stats)
    (0, 1, 0, 1)
    """
    if not 0.0 < level < 1.0:
        raise InputError(f"level must be between 0 and 1, not {level!r}")
    try:
        seen, paid, square = (
            np.array(getattr(stats, name), np.float64) for name in ("seen", "paid", "square")
        )
    except AttributeError:
        raise InputError("find_clusters needs the statistics of an Age policy, such as AgeIMED's") from None
    spare = np.maximum(seen - 1.0, 0.0)
    here = paid / np.maximum(seen, 1.0)
    strays = np.where(seen >= 2.0, square - seen * here**2, 0.0)
    # Clusters x buckets: what should be paid up to a factor, what was, and what tells the noise.
    table = np.stack([seen, paid, strays, spare * here, spare])
    members = [[arm] for arm in range(len(seen))]
    agreement = np.array([_agreement(table, row) for row in range(len(seen))])
    while len(members) > 1:
        np.fill_diagonal(agreement, -1.0)
        a, b = sorted(map(int, np.unravel_index(np.argmax(agreement), agreement.shape)))
        if agreement[a, b] < level / (len(seen) - 1):
            break
        members[a] += members.pop(b)
        table[:, a] += table[:, b]
        table[0, a] = _expected(seen[members[a]], paid[members[a]])
        table = np.delete(table, b, 1)
        agreement = np.delete(np.delete(agreement, b, 0), b, 1)
        agreement[a] = agreement[:, a] = _agreement(table, a)
    cluster = np.zeros(len(seen), np.int64)
    for number, arms in enumerate(sorted(members, key=min)):
        cluster[arms] = number
    return tuple(map(int, cluster))


def _agreement(table: Floats, row: int) -> Floats:
    """Return the p-values of the tests of one cluster against each of all clusters."""
    from scipy.special import chdtrc

    pairs = np.stack([np.broadcast_to(table[:, row, None], table.shape), table])  # 2 x 5 x clusters x buckets
    (_, _, strays, level, spare), known = pairs.sum(axis=0), (pairs[:, 0] > 0.0).all(axis=0)
    used = known & (spare >= _SPARE) & (strays > 0.0) & (level > 0.0)
    due, paid = pairs[:, 0] * used, pairs[:, 1] * used
    means, spread = _fit(due.swapaxes(0, 1), paid.swapaxes(0, 1))
    due = np.maximum(due * means.T[:, :, None] * spread, 0.0)  # refunds may outweigh what is paid
    # A cluster's own noise, drawn to that of both by as many decisions as a noise must have.
    shared = np.divide(strays, level, out=np.zeros_like(strays), where=used)
    each = _SPARE * _ratio(pairs[:, 3], pairs[:, 4])
    noise = _ratio(pairs[:, 2] + each * shared, pairs[:, 3] + each)
    # Neighbouring buckets may be parts of one payment: in a bin their deviations add up.
    reached = np.cumsum(spread, axis=1) - 0.5 * spread
    part = (np.minimum(reached * _BINS, _BINS - 1).astype(np.int64)[:, :, None] == np.arange(_BINS)) * 1.0
    astray = ((paid - due)[:, :, None] @ part)[:, :, 0]
    deviation = (np.sqrt(noise * due)[:, :, None] @ part)[:, :, 0]
    freedom = (deviation[0] > 0.0).sum(axis=1) - 1
    value = chdtrc(np.maximum(freedom, 1), (_ratio(astray, deviation) ** 2).sum(axis=(0, 2)))
    return np.where(freedom >= 1, value, 1.0)


def _expected(seen: Floats, paid: Floats) -> Floats:
    """Return what a cluster's decisions should have paid in each bucket, per share of the spread."""
    means, _ = _fit(seen[None], paid[None])
    return np.asarray(means[0] @ seen)


def _fit(due: Floats, paid: Floats) -> tuple[Floats, Floats]:
    """Return means of rows and a spread such that paid = due * mean * spread, for tables x rows x buckets.

    The sweeps go to the maximum of the likelihood of counts, which Pearson's test needs.
    """
    spread = np.full((len(due), due.shape[2]), 1.0 / due.shape[2])
    for _ in range(_SWEEPS):
        means = _ratio(paid.sum(axis=2), (due * spread[:, None]).sum(axis=2))
        spread = _ratio(paid.sum(axis=1), (due * means[:, :, None]).sum(axis=1))
        spread = _ratio(spread, spread.sum(axis=1, keepdims=True))
    return means, spread


def _ratio(top: Floats, bottom: Floats) -> Floats:
    """Return top / bottom, and 0 where the bottom is 0."""
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0.0)
