"""AgePrior: pieces at every age, a prior over arms learned on the way, and an index for many arms or few."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np

from accrual.core.arrays import Floats, Ints, as_numbers
from accrual.core.errors import InputError, not_negative, positive
from accrual.core.jit import njit, njit_noinline, python_function
from accrual.policies.age_cells import (
    KAPPA_START,
    CellPolicy,
    bucket_edges,
    checked_buckets,
    spread_over_buckets,
)
from accrual.policies.age_prior import forgetting
from accrual.policies.age_prior.arm_features import KAPPA_KNOWN, SLOPE_START
from accrual.policies.age_prior.learning import refresh, refresh_stage
from accrual.policies.age_prior.model import (
    BETWEEN,
    KAPPA,
    LEAD,
    LEAD_NOISE,
    LEAST,
    PART,
    REACH,
    REACHED,
    READY,
    ROOM,
    SIGMA2,
    SLOPE,
    STAGE,
    TARGET,
    TILT,
    WIDER,
    Params,
    Stats,
    amended,
    cell_update,
    decided,
    estimate,
    expected_level,
    finished,
    lumps,
    payments,
    size,
    top,
)
from accrual.policies.base import Functions, Moment
from accrual.policies.engine_hooks import EngineHooks
from accrual.policies.scalars import kl
from accrual.problems.spreads import SpreadLike, as_spread

_ALMOST = 1.0 - 1e-9
_KNOWN_MOST = 1e50  # the size of a number that is known about an arm: beyond, squares are infinite
_SPENT = 2.0  # n decisions of one of few arms count as n^2 / (n + _SPENT), of very many arms as n
_MANY = 10.0  # of so many arms the index is half for few and half for very many
_FORCED = 1e5  # decisions an arm: forcing is for the theorem, and dear where a try of a bad arm is
_FIRST = 1e9  # above every index: an arm that has too few decisions is tried first


@njit
def _bernstein(gap: float, mean: float, variance: float) -> float:
    """Return Bernstein's bound with 2/3 in place of 1/3: for totals of 0 or the cap it is then below kl."""
    most = min(variance / mean, 1.0) if mean > 0.0 else 1.0
    return gap * gap / (2.0 * (variance + 2.0 * most * gap / 3.0))


@njit
def _cost(gap: float, mean: float, variance: float) -> float:
    """Return how strongly one decision speaks against a mean that is higher by `gap`, in nats.

    It is the greater of two bounds: Bernstein's, and that of a total with this mean and variance that takes
    two values, the lower one 0 if possible. The second bound is exact for totals of 0 or the cap.
    """
    mean = min(mean, _ALMOST)
    above = 1.0 - mean
    if mean > 0.0:
        above = min(above, max(variance / mean, 1.5 * gap))
    p = variance / (variance + above * above)
    q = min(p + gap / (above + variance / above), _ALMOST)
    return max(kl(p, q), _bernstein(gap, mean, variance))


@njit
def _larger(params: Params, stats: Stats, arm: int, gap: float, count: float) -> float:
    """Return what it costs to hold that the arm hides totals so large that its mean is higher by `gap`.

    Totals near b have the chance (size / b) to the power of `surprise`, which counts in full once the arm's
    own totals are known. With rare totals near b, none of which is among `count` decisions, the mean is
    higher by `gap`. The least is taken over b, up to the cap.
    """
    own, most = stats.own[np.uint64(arm)], top(stats)
    usual, power = most, 0.0
    known = payments(stats, arm)
    if known > 0.0:
        usual = size(params, stats, arm)
        power = params.surprise * known / (1.0 + known)
    largest = most if power <= 0.0 else min(max(own + count * gap / power, usual), most)
    if gap >= largest - own:
        return math.inf
    return power * math.log(largest / usual) - count * math.log(1.0 - gap / (largest - own))


@njit
def _log_noise(mean: float, variance: float, cap: float) -> float:
    """Return how much totals vary, compared with totals of 0 or 1 of the same mean: a logarithm."""
    most = mean * (1.0 - mean)
    noise = cap * (min(variance / most, 1.0) if most > 0.0 else 1.0)
    return math.log(noise) if noise > 0.0 else 0.0  # a retired arm has the cap 0


@njit_noinline
def weigh(params: Params, stats: Stats, arm: int) -> None:
    """Compute how strongly the data speak against the arm being as good as the leader, in two ways.

    It may be as good because the model's estimate is off (`cost`), or because the arm is like no other and
    either its own estimate is off or it hides larger totals (`cost_alone`). The second includes what it takes
    to believe that the arm is like no other.
    """
    sh = stats.shared
    a = np.uint64(arm)
    target = sh[TARGET] * params.inverse_cap[a]
    mean, own, variance = stats.mean[a], stats.own[a], stats.variance[a]
    # All decisions count, also those in flight, and so does the prior.
    apart = sh[SIGMA2] / sh[KAPPA]
    count = stats.counted[a] + min(variance / (sh[WIDER] * sh[BETWEEN] + apart), params.most)
    alone = stats.counted[a] + 1.0
    stats.costed[a] = stats.counted[a]
    stats.log_count[a] = math.log(count)
    stats.cost[a] = stats.cost_alone[a] = 0.0
    if target <= mean or arm == sh[LEAD]:  # `index` needs no more, and the leader comes here in every round
        return
    # A leader that varies less than this arm is known better than its decisions say. (How much an arm varies
    # that has paid nothing is a guess. Such guesses of many arms would leave none to the leader.)
    noisier = 0.0
    if stats.second[a] > 0.0:
        noisier = min(max(0.5 * (_log_noise(mean, variance, params.cap[a]) - sh[LEAD_NOISE]), 0.0), sh[ROOM])
    stats.log_count[a] -= noisier
    stats.log_alone[a] = math.log(alone) - noisier
    # Where arms pay differently at known ages, they will also at ages that no decision has reached. More
    # decisions than it takes to learn such an age, once it comes, do not help against that.
    unseen = apart * (1.0 - sh[PART]) / variance
    count /= 1.0 + unseen * count * REACHED / (REACHED + count)
    alone /= 1.0 + unseen * alone * REACHED / (REACHED + alone)
    # Mean and variance are estimated from the same decisions.
    share = stats.share[a]
    count *= count / (count + _SPENT * (1.0 - params.share))
    alone *= alone / (alone + _SPENT * (1.0 - share))
    stats.cost[a] = count * _cost(target - mean, mean, variance)
    stats.cost_alone[a] = stats.price[a]
    gap = target - own
    if gap > 0.0:
        variance += lumps(params, stats, arm, share) - lumps(params, stats, arm, params.share)
        stats.cost_alone[a] += min(alone * _cost(gap, own, variance), _larger(params, stats, arm, gap, alone))


@njit
def estimate_anew(params: Params, stats: Stats, arm: int) -> None:
    """Estimate the arm if enough of its buckets have finished since, or during a refresh."""
    a = np.uint64(arm)
    sh = stats.shared
    if stats.news[a] >= stats.wait[a] and (sh[READY] > 0.0 or sh[STAGE] > 0.0):
        estimate(params, stats, arm)


@njit
def find_leader(params: Params, stats: Stats) -> None:
    """Find the arm with the highest estimate; if it was estimated anew, mark all arms for weighing."""
    sh = stats.shared
    if sh[READY] == 0.0:
        return
    best = -1.0
    lead = 0
    for arm in range(len(params.cap)):
        a = np.uint64(arm)
        reward = stats.mean[a] * params.cap[a]
        if reward > best:
            best = reward
            lead = arm
    # With a leader at its cap no other arm would ever be tried, and few decisions do not show that it is.
    closed = stats.seen[lead, int(sh[REACH]) - 1]
    target = min(best, params.cap[lead] * (1.0 - 0.5 / (closed + 1.0)))
    if target != sh[TARGET] or lead != sh[LEAD] or stats.costed[lead] < 0.0:
        sh[TARGET], sh[LEAD] = target, lead
        sh[LEAD_NOISE] = _log_noise(stats.mean[lead], stats.variance[lead], params.cap[lead])
        sh[ROOM] = max(math.log(stats.counted.sum() / max(stats.counted[lead], 1.0)), 0.0)
        stats.costed[:] = -1.0


@njit
def weigh_anew(params: Params, stats: Stats, arm: int) -> None:
    """Weigh the arm, if it or the leader has changed."""
    a = np.uint64(arm)
    if stats.costed[a] != stats.counted[a] and stats.shared[READY] > 0.0:
        weigh(params, stats, arm)


@njit
def survey(params: Params, stats: Stats, moment: Moment) -> None:
    """Estimate the arms that have news, find the leader, and weigh the arms for which something changed."""
    for arm in range(len(params.cap)):
        estimate_anew(params, stats, arm)
    find_leader(params, stats)
    for arm in range(len(params.cap)):
        weigh_anew(params, stats, arm)


@njit
def _worth(share: float, behind: float) -> float:
    """Return what a try is worth of an arm that has exp(-behind) times the leader's decisions.

    For two arms this is nine tenths of `behind`, which it is in IMED. For very many arms, which cannot all be
    tried, it is Brezzi and Lai's approximation to Gittins' index.
    """
    least = (1.0 - 0.65 * share) * behind
    if behind <= 4.0:  # the other is less here, whatever the share
        return least
    return max(least, behind - share * (0.5 * math.log(behind) + 1.96))


@njit
def index(params: Params, stats: Stats, arm: int, moment: Moment) -> float:
    """-(the least that it costs to hold that the arm is as good as the leader, less what a try is worth)"""
    sh = stats.shared
    a = np.uint64(arm)
    if sh[READY] == 0.0:
        return -float(stats.counted[a])
    if stats.pulls[a] < sh[LEAST]:
        return _FIRST - float(stats.pulls[a])
    lead = stats.log_count[np.uint64(sh[LEAD])]
    behind, behind_alone = lead - stats.log_count[a], lead - stats.log_alone[a]
    cost, alone = stats.cost[a], stats.cost_alone[a]
    # The leader's index is 0, and a try is never worth more than `far`, so most arms are out of reach.
    far = max(behind, behind_alone, 0.0)
    least = min(cost, alone)
    if least > far:
        return far - least
    if cost <= 0.0:
        return _worth(params.share, behind)
    return max(_worth(params.share, behind) - cost, _worth(stats.share[a], behind_alone) - alone)


_STEPS = ((True, estimate_anew), (False, find_leader), (True, weigh_anew))


class _ByHalfLife:
    """Selects the functions of an `AgePrior`: with a half-life, those that forget."""

    remembering = Functions(
        index=index,
        survey=survey,
        decided=decided,
        finished=finished,
        amended=amended,
        refresh=refresh,
        hooks=EngineHooks(cell_update, ("news",), _STEPS, refresh_stage),
    )
    forgetting = Functions(
        index=index,
        survey=survey,
        decided=forgetting.decided,
        finished=forgetting.finished,
        amended=forgetting.amended,
        refresh=forgetting.refresh,
        hooks=EngineHooks(forgetting.cell_update, ("news",), _STEPS),
    )

    def __get__(self, policy: AgePrior | None, owner: type) -> Functions:
        return self.remembering if policy is None or policy.half_life is None else self.forgetting


@dataclass(frozen=True)
class AgePrior(CellPolicy):
    """Learn from every piece at every age, and what arms have in common on the way.

    A heuristic. docs/age_prior.md has the model and says where it does badly; docs/proofs.md says what is
    proved about the long run.

    Parameters
    ----------
    buckets : int
        Into how many parts the window is cut, fine early and coarse late (fewer if it is short).
    surprise : float
        How unlikely it is that an arm of regular pay hides rare totals that are larger: totals b times as
        large, up to the cap, have the chance b to the power of -surprise. Use 0 where caps are facts and rare
        large totals are likely.
    spread : str, Spread or sequence of float
        The pooled spread before anything is known; soon outweighed.
    history : sequence of float
        What older arms were like, four numbers in units of caps: mean of the arms' means, variance of those,
        variance of their tilts, and how many arms that counts as. `spread` should then be theirs.
        `accrual.Fitted.prior` finds both in a log.
    about : sequence of sequence of float
        Features of the arms: a row of numbers for each arm, all of one length, best from 0 to 1. New arms
        then start from what similar arms showed. For simulations; a bandit has `arm_features` instead.
    half_life : float, optional
        After how many later decisions a decision counts half, for rewards that change. Without it nothing is
        forgotten: where rewards do not change, forgetting costs regret.

    Examples
    --------
    >>> AgePrior().label
    'AgePrior'
    """

    buckets: int = 20
    surprise: float = 1.5
    spread: SpreadLike = "uniform"
    history: Sequence[float] = ()
    about: Sequence[Sequence[float]] | Floats = ()
    half_life: float | None = None

    functions: ClassVar[Functions] = cast(Functions, _ByHalfLife())
    takes_about: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "buckets", checked_buckets(self.buckets))
        object.__setattr__(self, "spread", as_spread(self.spread))
        not_negative("surprise", self.surprise)
        history = tuple(np.atleast_1d(as_numbers(self.history)).tolist())
        if history and not (len(history) == 4 and np.isfinite(history).all() and min(history) >= 0):
            raise InputError(
                "history must be four numbers, 0 or more: mean and variance of arms' means, variance of "
                f"tilts, number of arms; not {self.history!r}"
            )
        object.__setattr__(self, "history", history)
        object.__setattr__(self, "about", _rows(self.about))
        if self.half_life is not None:
            object.__setattr__(self, "half_life", positive("half_life", self.half_life))
            if self.half_life < 1.0:
                raise InputError(f"half_life must be at least 1 decision, not {self.half_life:g}")

    @property
    def label(self) -> str:
        said = ["about"] if self.about else []
        if self.half_life is not None:
            said.append(f"half_life={self.half_life:g}")
        return type(self).__name__ + (f"({', '.join(said)})" if said else "")

    def terms(self, params: Params, stats: Stats, arm: int, moment: Moment) -> dict[str, float]:
        if stats.shared[READY] == 0.0:
            return {"decisions": float(stats.pulls[arm])}
        cap = float(params.cap[arm])
        line = {}
        if params.slope > 0.0:
            level = python_function(expected_level)(params, stats, arm)
            line = {"expected from what is known about it": cap * float(level)}
        return {
            "estimate": cap * float(stats.mean[arm]),
            "its own, without the other arms": cap * float(stats.own[arm]),
            **line,
            "best estimate": float(stats.shared[TARGET]),
            "full decisions that it stands on": float(stats.weight[arm]),
            "decisions": float(stats.pulls[arm]),
            "deviation of a total": cap * math.sqrt(float(stats.variance[arm])),
        }

    def edges(self, window: int) -> Ints:
        # Nothing is learned before the first bucket ends. It should not take longer than to know a bucket.
        return bucket_edges(self.buckets, window, 2 if window <= REACHED * self.buckets**2 else 3)

    def params(self, caps: Floats, window: int, about: Floats | None = None) -> Params:
        arms = len(caps)
        known = self._known(arms) if about is None else about
        share = arms / (arms + _MANY)
        return Params(
            caps,
            1.0 / caps,
            spread_over_buckets(self.spread, self.edges(window), window),
            np.zeros((arms, 1)) if known is None else known,
            np.array(self.history or (0.0,) * 4),
            slope=0.0 if known is None else SLOPE_START,
            pull=0.2 + 0.3 * math.log(arms),
            most=0.5 * arms,
            share=share,
            outlier=share * math.log(arms + 1.0),
            surprise=float(self.surprise),
            forced=_FORCED,
            decay=0.0 if self.half_life is None else math.log(2.0) / self.half_life,
        )

    def _known(self, arms: int) -> Floats | None:
        """Return what is known about this many arms; None for nothing."""
        if not self.about:
            return None
        if len(self.about) != arms:
            raise InputError(f"about must have a row for each of {arms} arms, not {len(self.about)} rows")
        return np.array(self.about)

    def stats(self, params: Params) -> Any:
        arms, buckets = len(params.cap), len(params.spread)
        cells, columns = (arms, buckets), params.about.shape[1]
        shared = np.zeros(21)
        shared[[KAPPA, BETWEEN, TILT, SIGMA2, WIDER]] = KAPPA_START, 1.0, 1.0, 1.0, 1.0
        shared[SLOPE] = params.slope
        if params.slope > 0.0:
            shared[KAPPA] = KAPPA_KNOWN
        stats = Stats(
            pulls=np.zeros(arms, np.int64),
            counted=np.zeros(arms),
            seen=np.zeros(cells),
            paid=np.zeros(cells),
            growth=np.zeros(cells),
            square=np.zeros(cells),
            news=np.zeros(arms),
            wait=np.zeros(arms),
            own=np.zeros(arms),
            second=np.zeros(arms),
            weight=np.zeros(arms),
            mean=np.zeros(arms),
            variance=np.zeros(arms),
            price=np.zeros(arms),
            share=np.zeros(arms),
            cost=np.zeros(arms),
            cost_alone=np.zeros(arms),
            log_count=np.zeros(arms),
            log_alone=np.zeros(arms),
            costed=np.full(arms, -1.0),
            level=np.zeros(arms),
            information=np.zeros(arms),
            tilt=np.zeros(arms),
            tilt_error=np.zeros(arms),
            quiet=np.ones(arms),
            line=np.zeros((5, columns)),
            line_covariance=np.zeros((columns, columns)),
            spread=np.zeros(buckets),
            spread2=np.zeros(buckets),
            late=np.zeros(buckets),
            noise=np.ones(buckets),
            scratch=np.zeros((3, buckets)),
            due=np.array([min(8, buckets)], np.int64),
            shared=shared,
        )
        if self.half_life is None:
            return stats
        return forgetting.ForgettingStats(*stats, clock=np.zeros(2), finishing=np.zeros(buckets, np.int64))


def _rows(about: Sequence[Sequence[float]] | Floats) -> tuple[tuple[float, ...], ...]:
    """Return what is known about arms, checked: a row of numbers for each, all of one length."""
    said = "about must be a row of numbers for each arm, each of at most 1e50 in size"
    try:
        rows: Any = [list(row) for row in about]
        sound = all(isinstance(x, int | float | np.number) for row in rows for x in row)
        if not sound or not all(abs(x) <= _KNOWN_MOST for row in rows for x in row):
            raise InputError(said)
    except TypeError as wrong:
        raise InputError(said) from wrong
    if len(set(map(len, rows))) > 1 or (rows and not rows[0]):
        raise InputError("the rows of about must be of one length, and not empty")
    return tuple(tuple(map(float, row)) for row in rows)
