"""Regret bounds as functions of the horizon, to read or to draw over regret curves.

Every bound takes one horizon or an array of rounds and answers with a float or an array. Sums run
over the arms whose mean is short of the best one's; where there are none, every bound is zero.

Upper bounds are finite-time: they hold at each horizon, for one policy, under its assumptions.
Lower bounds are asymptotic: regret divided by ln T ends up no smaller than theirs, for any policy
that does well on every problem; early on, regret may be below them.

`truncation_loss` is another kind: what a window that is too short costs any policy, per decision.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from accrual.core.errors import InputError, divides, whole
from accrual.problem import Problem
from accrual.spread import SpreadLike, Uniform, as_spread

Array = npt.NDArray[np.float64]
Curve = Any  # a float for one horizon, an array for an array of them
OfLog = Callable[[Any], Any]  # a bound as a function of ln T

# What is left of the union bounds in UCB1's proof: 1 for rounding up, pi^2 / 3 for sum 2 t^-2.
_REST = 1.0 + math.pi**2 / 3.0
_ROUNDING = 1e-12  # relative differences below this are none
_LOG_MOST = 700.0  # ln of a horizon that is still a floating-point number


def upper_tpucbfrg(problem: Problem, horizon: npt.ArrayLike, alpha: int, spread: SpreadLike) -> Curve:
    """The paper's Theorem 2: an upper bound on the regret of TP-UCB-FR-G.

    It holds where the policy's spread is the truth: the `alpha` groups of a decision are
    independent and group k pays at most ``spread(k) * cap``. A spread that promises smaller groups
    than there are has no such guarantee; ``"begin"`` on rewards that arrive evenly is one.

    Parameters
    ----------
    problem : Problem
        For its arms' caps and means, and its window.
    horizon : float or array_like
        One horizon, or several; each at least 1.
    alpha : int
        The number of groups; must divide the window.
    spread : str, Spread or sequence of float
        How the cap is divided over the groups.

    Returns
    -------
    float or ndarray

    Examples
    --------
    >>> problem = Problem(caps=[10, 20], window=6, groups=3)
    >>> round(upper_tpucbfrg(problem, 1000, alpha=3, spread=[0.5, 0.3, 0.2]), 2)
    569.0
    """
    bound = _theorem2(problem, alpha, spread)
    return _curve(horizon, bound)


def upper_tpucbfr(problem: Problem, horizon: npt.ArrayLike, alpha: int) -> Curve:
    """The upper bound of TP-UCB-FR (Romano et al., 2022): Theorem 2 with the even spread.

    It holds for alpha-smooth rewards: `alpha` independent groups, each with the same cap.

    Examples
    --------
    >>> problem = Problem(caps=[10, 20], window=6, groups=3)
    >>> round(upper_tpucbfr(problem, 1000, alpha=3), 2)
    537.46
    """
    return upper_tpucbfrg(problem, horizon, alpha, Uniform())


def upper_ucb1(problem: Problem, horizon: npt.ArrayLike) -> Curve:
    """The upper bound of UCB1 (Auer, Cesa-Bianchi and Fischer, 2002, Theorem 1), with caps.

    Totals of arm i lie in [0, R_i] and its bonus is R_i sqrt(2 ln t / n). Hoeffding's inequality
    gives t^-4 for either arm being off by its own bonus, whatever the caps; so a suboptimal arm is
    chosen only while twice its own bonus exceeds its gap, for n < 8 R_i^2 ln T / gap^2.

    Examples
    --------
    >>> problem = Problem(caps=[10, 20], window=6, groups=3)
    >>> round(upper_ucb1(problem, 1000), 2)  # 8 * 100 * ln(1000) / 5 + 4.29 * 5
    1126.69
    """
    gap, cap = _behind(problem)
    slope = float((8.0 * cap * (cap / gap)).sum())
    rest = _REST * float(gap.sum())
    return _curve(horizon, lambda log: slope * log + rest)


def upper_delayed_ucb1(problem: Problem, horizon: npt.ArrayLike) -> Curve:
    """The upper bound of DelayedUCB1 (Joulani, György and Szepesvári, 2013): UCB1's, plus delay.

    What is added is each arm's gap times the most of its decisions that may be pending at once.
    Every decision is pending for ``window - 1`` choices after its own: its last piece comes in the
    round before the next one. So the delay is ``window - 1``, and none at a window of 1. The
    constant beside the gaps is UCB1's, 1 + pi^2 / 3; counting the two arms' errors apart would do
    with 1 + 2 zeta(3), about 3.4, in both bounds alike.

    Examples
    --------
    >>> problem = Problem(caps=[10, 20], window=6, groups=3)
    >>> round(upper_delayed_ucb1(problem, 1000), 2)
    1151.69
    """
    gap, _ = _behind(problem)
    delay = (problem.window - 1) * float(gap.sum())
    return upper_ucb1(problem, horizon) + delay


def lower(problem: Problem, horizon: npt.ArrayLike, alpha: int, spread: SpreadLike) -> Curve:
    """The corrected lower bound for groups capped by a spread: the one to use.

    A decision shows one scaled Bernoulli variable for every group with a positive share, all with
    the same chance, however the shares are sized: that number, and not where the reward falls, is
    what a decision tells. It is `lower_smooth` with the number of such groups for `alpha`.

    Like all lower bounds here it speaks of the hardest problem with these means: Bernoulli groups,
    and every arm's cap unknown beyond the greatest of all.

    Examples
    --------
    >>> from accrual.problem import BernoulliLaw
    >>> problem = Problem(caps=[10, 10], window=6, groups=3, laws=[BernoulliLaw(0.5), BernoulliLaw(0.4)])
    >>> round(lower(problem, 1000, alpha=3, spread=[0.5, 0.3, 0.2]), 2)
    114.35
    >>> round(lower(problem, 1000, alpha=3, spread=[0, 0, 1]), 2)
    343.06
    """
    _phi(problem, alpha)
    telling = int(np.count_nonzero(as_spread(spread).pmf(alpha)))
    slope = _lai_robbins(problem) / telling
    return _curve(horizon, lambda log: slope * log)


def lower_smooth(problem: Problem, horizon: npt.ArrayLike, alpha: int) -> Curve:
    """The lower bound for alpha-smooth rewards (Romano et al., 2022).

    ln T times the sum of gap_i / (alpha KL(mu_i / R, mu* / R)), with R the greatest cap and KL
    that of Bernoulli variables.

    Examples
    --------
    >>> from accrual.problem import BernoulliLaw
    >>> problem = Problem(caps=[10, 10], window=6, groups=3, laws=[BernoulliLaw(0.5), BernoulliLaw(0.4)])
    >>> round(lower_smooth(problem, 1000, alpha=3), 2)
    114.35
    """
    return lower(problem, horizon, alpha, Uniform())


def lower_printed(problem: Problem, horizon: npt.ArrayLike, alpha: int, spread: SpreadLike) -> Curve:
    """The paper's Theorem 1 as printed: `lower_smooth` times `theorem1_factor`.

    It is no lower bound where it exceeds `lower`, that is where the factor exceeds alpha divided
    by the number of groups with a positive share (1 where all groups have one).

    Examples
    --------
    >>> from accrual.problem import BernoulliLaw
    >>> problem = Problem(caps=[10, 10], window=6, groups=3, laws=[BernoulliLaw(0.5), BernoulliLaw(0.4)])
    >>> round(lower_printed(problem, 1000, alpha=3, spread=[0, 0, 1]), 2)
    514.59
    """
    _phi(problem, alpha)
    return theorem1_factor(alpha, spread) * lower_smooth(problem, horizon, alpha)


def theorem1_factor(alpha: int, spread: SpreadLike) -> float:
    """Theorem 1's factor c = (2 E[Y] / (alpha + 1)) * alpha * IC; 1 for the even spread.

    Examples
    --------
    >>> round(theorem1_factor(3, [0, 0, 1]), 6)
    4.5
    """
    law = as_spread(spread)
    alpha = whole("alpha", alpha, 1)
    return 2.0 * law.mean(alpha) / (alpha + 1) * alpha * law.coincidence(alpha)


def beats(problem: Problem, horizon: npt.ArrayLike, alpha: int, first: SpreadLike, second: SpreadLike) -> Any:
    """Whether Theorem 2 with the spread `first` is below Theorem 2 with `second`.

    Returns
    -------
    bool or ndarray of bool
        At the horizon, or at each of them.

    Examples
    --------
    >>> problem = Problem(caps=[10, 20], window=6, groups=3)
    >>> beats(problem, [5, 50], alpha=3, first=[0.5, 0.3, 0.2], second="uniform")
    array([ True, False])
    """
    below = _difference(problem, alpha, first, second)
    rounds = _rounds(horizon)
    answer = below(np.log(rounds)) < 0
    return answer if rounds.ndim else bool(answer)


def beats_from(problem: Problem, alpha: int, first: SpreadLike, second: SpreadLike) -> float:
    """The horizon from which the bound with `first` stays below the one with `second`.

    As functions of the horizon the two cross at most once, so there is one such horizon or none:
    1 if `first` is below from the start, infinity if it does not end up below. (If it starts below
    and ends above, exchange the two to learn until when.)

    Examples
    --------
    >>> problem = Problem(caps=[10, 20], window=6, groups=3)
    >>> round(beats_from(problem, 3, "uniform", [0.5, 0.3, 0.2]), 1)
    9.9
    >>> beats_from(problem, 3, [0.5, 0.3, 0.2], "uniform")
    inf
    """
    from scipy.optimize import brentq

    below = _difference(problem, alpha, first, second)
    one, other = (as_spread(spread).coincidence(alpha) for spread in (first, second))
    # The coincidence multiplies ln T: where it is larger, the bound ends up above, however late.
    if one > (1.0 + _ROUNDING) * other or not below(_LOG_MOST) < 0:
        return math.inf
    if below(0.0) < 0:
        return 1.0
    return math.exp(brentq(below, 0.0, _LOG_MOST))


def dominates(alpha: int, first: SpreadLike, second: SpreadLike) -> bool:
    """Whether `first` beats `second` on every problem and at every horizon beyond 1.

    Theorem 2 grows with E[Y] and with the coincidence, so it is enough, and needed, that neither
    is larger for `first` and one is smaller. The even spread has the least coincidence of all:
    nothing dominates it.

    Examples
    --------
    >>> dominates(50, "begin", "end"), dominates(50, "begin", "uniform")
    (True, False)
    """
    alpha = whole("alpha", alpha, 1)
    one, other = as_spread(first), as_spread(second)
    signs = [
        0 if math.isclose(a, b, rel_tol=_ROUNDING) else (1 if a > b else -1)
        for a, b in (
            (one.mean(alpha), other.mean(alpha)),
            (one.coincidence(alpha), other.coincidence(alpha)),
        )
    ]
    return max(signs) <= 0 and min(signs) < 0


def truncation_loss(means: npt.ArrayLike, tail: npt.ArrayLike, least: npt.ArrayLike = 0.0) -> float:
    """The most that a decision can lose because reward after the window is never seen.

    The arm with the largest mean *inside* the window is taken to be the best. If arm i has mean
    m_i there, and a share of its reward between `least` and `tail` comes later, this arm j loses at
    most ``max_i m_i / (1 - tail_i) - m_j / (1 - least_j)``. Nothing smaller holds for all such arms.

    Proof: arm i's full mean is m_i / (1 - t_i) with its share t_i, which grows with t_i; so the best
    arm has at most the first term and j at least the second, and both may happen at once.

    With one `tail` for all arms and full means at most M this is at most M (tail - least) /
    (1 - least): tails that are alike, however long, cost nothing.

    Parameters
    ----------
    means : array_like
        The arms' mean totals inside the window, 0 or more.
    tail : float or array_like
        The greatest share after the window, for all arms or for each.
    least : float or array_like
        The least.

    Returns
    -------
    float
        Infinite if `tail` is 1 for an arm other than j.

    Examples
    --------
    >>> round(truncation_loss([0.5, 0.48, 0.2], tail=0.1), 4)  # 0.48 / 0.9 - 0.5
    0.0333
    >>> truncation_loss([0.5, 0.48, 0.2], tail=0.1, least=0.1)
    0.0
    """
    try:
        seen = np.asarray(means, dtype=np.float64)
        high, low = (np.broadcast_to(np.asarray(x, dtype=np.float64), seen.shape) for x in (tail, least))
    except (TypeError, ValueError):
        raise InputError(
            "means, tail and least must be numbers; tail and least one, or one per arm"
        ) from None
    if seen.ndim != 1 or seen.size == 0 or not (np.isfinite(seen).all() and (seen >= 0).all()):
        raise InputError("means must be a flat list of numbers of 0 or more, one per arm")
    if not ((low >= 0) & (low <= high) & (high <= 1) & (low < 1)).all():
        raise InputError("a tail must be a share: 0 <= least <= tail <= 1, and least below 1")
    with np.errstate(divide="ignore", invalid="ignore"):
        most = np.where(high < 1, seen / (1.0 - high), np.inf)
    loss = 0.0
    for j in np.flatnonzero(seen == seen.max()):  # any of equals may be the one that is taken
        others = np.delete(most, j)
        loss = max(loss, float((others - seen[j] / (1.0 - low[j])).max(initial=0.0)))
    return loss


def _theorem2(problem: Problem, alpha: int, spread: SpreadLike) -> OfLog:
    """Theorem 2 as a function of ln T."""
    law = as_spread(spread)
    owed = _phi(problem, alpha) * law.mean(alpha)
    coincidence = law.coincidence(alpha)
    gap, cap = _behind(problem)
    scale = 4.0 * cap * (cap / gap)
    once = float((2.0 * owed * cap + _REST * gap).sum())

    def bound(log: Any) -> Array:
        # The theorem's x (1 + sqrt(1 + y / x)), with x multiplied in: no ln T in a denominator.
        x = coincidence * np.asarray(log)[..., None]
        return np.asarray((scale * (x + np.sqrt(x * (x + gap * owed / cap)))).sum(axis=-1) + once)

    return bound


def _difference(problem: Problem, alpha: int, first: SpreadLike, second: SpreadLike) -> OfLog:
    """Theorem 2 with `first` less that with `second`, of ln T; negative only beyond rounding."""
    one, other = _theorem2(problem, alpha, first), _theorem2(problem, alpha, second)
    return lambda log: one(log) - (1.0 - _ROUNDING) * other(log)


def _lai_robbins(problem: Problem) -> float:
    """The sum of gap_i / KL_i: what ln T is multiplied by if a decision tells one observation."""
    gap, _ = _behind(problem)
    most = max(problem.caps)
    best = min(float(problem.means.max()) / most, 1.0)
    if best >= 1.0:  # one failure tells an arm from one that never fails: KL is infinite
        return 0.0
    means = np.maximum(best - gap / most, 0.0)
    return float((gap / _kl(means, best)).sum())


def _kl(p: Array, q: float) -> Array:
    """KL of Bernoulli(p) from Bernoulli(q), for 0 <= p < q < 1.

    By log1p of the distance: p ln(p / q) + ... would lose all digits where p is close to q.
    """
    distance = q - p
    some = p > 0  # p ln p vanishes at 0
    first = np.where(some, -p * np.log1p(distance / np.where(some, p, 1.0)), 0.0)
    return np.asarray(first - (1.0 - p) * np.log1p(-distance / (1.0 - p)))


def _behind(problem: Problem) -> tuple[Array, Array]:
    """Gaps and caps of the arms that are worse than the best by more than rounding."""
    worse = problem.gaps > _ROUNDING * problem.means.max()
    return problem.gaps[worse], np.array(problem.caps)[worse]


def _phi(problem: Problem, alpha: int) -> int:
    """The rounds in a group, after checking that there is a whole number of them."""
    return divides("alpha", whole("alpha", alpha, 1), problem.window)


def _rounds(horizon: npt.ArrayLike) -> Array:
    try:
        rounds = np.asarray(horizon, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"horizon must be a number or an array of numbers, not {horizon!r}") from None
    wrong = ~(np.isfinite(rounds) & (rounds >= 1))
    if wrong.any():
        raise InputError(f"horizon must be a number of at least 1, not {rounds[wrong].flat[0]:g}")
    return rounds


def _curve(horizon: npt.ArrayLike, of_log: OfLog) -> Curve:
    rounds = _rounds(horizon)
    bound = of_log(np.log(rounds))
    return bound if rounds.ndim else float(bound)
