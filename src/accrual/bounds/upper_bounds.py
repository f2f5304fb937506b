"""Upper bounds of the paper's policies and of AgeUCB, and when one spread's is below another's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from accrual.bounds.common import ROUNDING, Curve, OfLog, behind, curve, horizons, phi
from accrual.core.arrays import Floats
from accrual.core.errors import whole
from accrual.problems.problem import Problem
from accrual.problems.spreads import SpreadLike, Uniform, as_spread

# What is left of the union bounds in UCB1's proof: 1 for rounding up, pi^2 / 3 for sum 2 t^-2.
_REST = 1.0 + math.pi**2 / 3.0
_LOG_MOST = 700.0  # ln of a horizon that is still a floating-point number


def upper_tpucbfrg(problem: Problem, horizon: npt.ArrayLike, alpha: int, spread: SpreadLike) -> Curve:
    """Return the paper's Theorem 2: an upper bound on the regret of TP-UCB-FR-G.

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
    return curve(horizon, bound)


def upper_tpucbfr(problem: Problem, horizon: npt.ArrayLike, alpha: int) -> Curve:
    """Return the upper bound of TP-UCB-FR (Romano et al., 2022): Theorem 2 with the even spread.

    It holds for alpha-smooth rewards: `alpha` independent groups, each with the same cap.

    Examples
    --------
    >>> problem = Problem(caps=[10, 20], window=6, groups=3)
    >>> round(upper_tpucbfr(problem, 1000, alpha=3), 2)
    537.46
    """
    return upper_tpucbfrg(problem, horizon, alpha, Uniform())


def upper_ucb1(problem: Problem, horizon: npt.ArrayLike) -> Curve:
    """Return the upper bound of UCB1 (Auer, Cesa-Bianchi and Fischer, 2002, Theorem 1), with caps.

    Totals of arm i lie in [0, R_i] and its bonus is R_i sqrt(2 ln t / n). Hoeffding's inequality
    gives t^-4 for either arm being off by its own bonus, whatever the caps; so a suboptimal arm is
    chosen only while twice its own bonus exceeds its gap, for n < 8 R_i^2 ln T / gap^2.

    Examples
    --------
    >>> problem = Problem(caps=[10, 20], window=6, groups=3)
    >>> round(upper_ucb1(problem, 1000), 2)  # 8 * 100 * ln(1000) / 5 + 4.29 * 5
    1126.69
    """
    gap, cap = behind(problem)
    slope = float((8.0 * cap * (cap / gap)).sum())
    rest = _REST * float(gap.sum())
    return curve(horizon, lambda log: slope * log + rest)


def upper_delayed_ucb1(problem: Problem, horizon: npt.ArrayLike) -> Curve:
    """Return the upper bound of DelayedUCB1 (Joulani, György and Szepesvári, 2013): UCB1's, plus delay.

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
    gap, _ = behind(problem)
    delay = (problem.window - 1) * float(gap.sum())
    return upper_ucb1(problem, horizon) + delay


def upper_ageucb(
    problem: Problem,
    horizon: npt.ArrayLike,
    alpha: int,
    spread: SpreadLike = "uniform",
    independent: bool = True,
) -> Curve:
    """Return the upper bound of AgeUCB with ``proved=True``; docs/proofs_age_ucb.md has the proof.

    It holds where decisions are independent, no total exceeds its arm's cap, group k never pays more than
    ``spread(k) * cap``, and there is no floor. The groups of one decision may depend on each other with
    ``independent=False``, as they do where decisions are closed early or have windows of their own.

    Parameters
    ----------
    problem, horizon, alpha, spread
        As for `upper_tpucbfrg`.
    independent : bool
        As the policy was made.

    Examples
    --------
    >>> problem = Problem(caps=[10, 20], window=6, groups=3)
    >>> round(upper_ageucb(problem, 1000, alpha=3), 2)  # 6 * 100 * ln(1000) / 3 / 5 + 5 * (6 + 4.93)
    330.98
    """
    law = as_spread(spread)
    coincidence = law.coincidence(alpha) if independent else 1.0
    owed = phi(problem, alpha) * law.mean(alpha) - 1.0  # full decisions' worth of groups that are unfinished
    gap, cap = behind(problem)
    ratio = cap / gap

    def bound(log: Any) -> Floats:
        x = 3.0 * coincidence * ratio**2 * np.asarray(log)[..., None]
        by_finished = 2.0 * x + problem.window
        by_all = x + np.sqrt(x * (x + 2.0 * owed * ratio)) + owed * ratio + 1.0
        return np.asarray((gap * (np.minimum(by_finished, by_all) + math.pi**2 / 2.0)).sum(axis=-1))

    return curve(horizon, bound)


def beats(problem: Problem, horizon: npt.ArrayLike, alpha: int, first: SpreadLike, second: SpreadLike) -> Any:
    """Return whether Theorem 2 with the spread `first` is below Theorem 2 with `second`.

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
    rounds = horizons(horizon)
    answer = below(np.log(rounds)) < 0
    return answer if rounds.ndim else bool(answer)


def beats_from(problem: Problem, alpha: int, first: SpreadLike, second: SpreadLike) -> float:
    """Return the horizon from which the bound with `first` stays below the one with `second`.

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
    if one > (1.0 + ROUNDING) * other or not below(_LOG_MOST) < 0:
        return math.inf
    if below(0.0) < 0:
        return 1.0
    return math.exp(brentq(below, 0.0, _LOG_MOST))


def dominates(alpha: int, first: SpreadLike, second: SpreadLike) -> bool:
    """Return whether `first` beats `second` on every problem and at every horizon beyond 1.

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
        0 if math.isclose(a, b, rel_tol=ROUNDING) else (1 if a > b else -1)
        for a, b in ((one.mean(alpha), other.mean(alpha)), (one.coincidence(alpha), other.coincidence(alpha)))
    ]
    return max(signs) <= 0 and min(signs) < 0


def _theorem2(problem: Problem, alpha: int, spread: SpreadLike) -> OfLog:
    """Return Theorem 2's bound as a function of ln T."""
    law = as_spread(spread)
    owed = phi(problem, alpha) * law.mean(alpha)
    coincidence = law.coincidence(alpha)
    gap, cap = behind(problem)
    scale = 4.0 * cap * (cap / gap)
    once = float((2.0 * owed * cap + _REST * gap).sum())

    def bound(log: Any) -> Floats:
        # The theorem's x (1 + sqrt(1 + y / x)), with x multiplied in: no ln T in a denominator.
        x = coincidence * np.asarray(log)[..., None]
        return np.asarray((scale * (x + np.sqrt(x * (x + gap * owed / cap)))).sum(axis=-1) + once)

    return bound


def _difference(problem: Problem, alpha: int, first: SpreadLike, second: SpreadLike) -> OfLog:
    """Return Theorem 2 with `first` less that with `second`, of ln T; negative only beyond rounding."""
    one, other = _theorem2(problem, alpha, first), _theorem2(problem, alpha, second)
    return lambda log: one(log) - (1.0 - ROUNDING) * other(log)
