"""Lower bounds, each for the policies that are uniformly efficient on one class of problems."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from accrual.bounds.common import ROUNDING, Curve, behind, curve, phi
from accrual.core.arrays import Floats
from accrual.core.errors import InputError, whole
from accrual.problems.problem import Problem
from accrual.problems.spreads import Spread, SpreadLike, Uniform, as_spread

_OVER = 1e-9  # by rounding alone, a group's mean may exceed its cap by this share


def lower(problem: Problem, horizon: npt.ArrayLike, alpha: int, spread: SpreadLike) -> Curve:
    """Return the lower bound for groups that pay with one common chance.

    The class: group k of arm i pays ``spread(k) * R`` with chance p_i and otherwise nothing, the
    same p_i for all its groups, all groups independent. The policies: those uniformly efficient on
    this class, which therefore may count every group as one more observation of p_i.

    A decision then shows one observation for every group with a positive share, however the shares
    are sized and whenever they arrive: the bound is `lower_smooth` with the number of such groups
    for `alpha`. R is the greatest cap of all arms and p_i is arm i's mean divided by R: no arm's cap
    is taken to be known beyond that.

    See Also
    --------
    lower_free_chances : the greater bound for policies that must not rely on a common chance.

    Examples
    --------
    >>> from accrual.problems.laws import BernoulliLaw
    >>> problem = Problem(caps=[10, 10], window=6, groups=3, laws=[BernoulliLaw(0.5), BernoulliLaw(0.4)])
    >>> round(lower(problem, 1000, alpha=3, spread=[0.5, 0.3, 0.2]), 2)
    114.35
    >>> round(lower(problem, 1000, alpha=3, spread=[0, 0, 1]), 2)
    343.06
    """
    phi(problem, alpha)
    paying = int(np.count_nonzero(as_spread(spread).pmf(alpha)))
    slope = _lai_robbins(problem) / paying
    return curve(horizon, lambda log: slope * log)


def lower_free_chances(problem: Problem, horizon: npt.ArrayLike, alpha: int, spread: SpreadLike) -> Curve:
    """Return the lower bound for groups that each pay with a chance of their own.

    The class: group k of arm i pays ``spread(k) * R`` with chance p_ik and otherwise nothing; the
    shares are known, every p_ik may be anything from 0 to 1, and all groups are independent. The
    policies: those uniformly efficient on this class. The bound is ln T times the sum over the worse
    arms of ::

        gap_i / min { sum_k kl(p_ik, q_k) : R sum_k spread(k) q_k >= mu* }

    The minimum is over the ways in which arm i could be the best arm. It is what a decision says against the
    way that is hardest to rule out. R is the greatest cap of all arms and p_ik is
    the mean that the problem pays in group k of arm i, divided by ``spread(k) * R``. Laws other than
    scaled Bernoulli ones inside the same group caps do not change the minimum, so the bound also
    holds for policies uniformly efficient on all of them.

    Where all p_ik of an arm are equal the bound is at least `lower`. For small gaps it is alpha
    times the spread's coincidence times `lower_smooth`, in the limit.

    Parameters
    ----------
    problem : Problem
        For its window, its arms' caps, and the mean that each group pays.
    horizon : float or array_like
        One horizon, or several; each at least 1.
    alpha : int
        The number of groups; must divide the window.
    spread : str, Spread or sequence of float
        How the cap is divided over the groups. A group of the problem that pays more on average
        than this allows raises `InputError`: the problem is not in the class.

    Returns
    -------
    float or ndarray
        0 for arms that cannot be the best: with mu* = R one unpaid group rules an arm out.

    Examples
    --------
    >>> from accrual.problems.laws import BernoulliLaw
    >>> laws = [BernoulliLaw(0.5, "very_begin"), BernoulliLaw(0.35, "very_begin")]
    >>> problem = Problem(caps=[1, 1], window=20, groups=20, laws=laws)
    >>> round(lower_free_chances(problem, math.e, 20, "very_begin"), 3)  # per unit of ln T
    0.986
    >>> round(lower(problem, math.e, 20, "very_begin"), 3)
    0.164
    """
    chances, shares = _chances(problem, alpha, as_spread(spread))
    gaps, _ = behind(problem)
    most = max(problem.caps)
    if problem.means.max() >= most:  # one unpaid group tells an arm from one that always pays
        gaps, chances = gaps[:0], chances[:0]
    divergences = [_divergence(p, shares, gap / most) for p, gap in zip(chances, gaps, strict=True)]
    slope = float((gaps / np.array(divergences)).sum())
    return curve(horizon, lambda log: slope * log)


def lower_smooth(problem: Problem, horizon: npt.ArrayLike, alpha: int) -> Curve:
    """Return the lower bound for alpha-smooth rewards (Romano et al., 2022): `lower` with the even spread.

    For problems in which the groups of an arm pay with one common chance it holds for both classes:
    with equal shares `lower_free_chances` is the same there.

    It is ln T times the sum of gap_i / (alpha KL(mu_i / R, mu* / R)), with R the greatest cap and KL
    that of Bernoulli variables.

    Examples
    --------
    >>> from accrual.problems.laws import BernoulliLaw
    >>> problem = Problem(caps=[10, 10], window=6, groups=3, laws=[BernoulliLaw(0.5), BernoulliLaw(0.4)])
    >>> round(lower_smooth(problem, 1000, alpha=3), 2)
    114.35
    """
    return lower(problem, horizon, alpha, Uniform())


def lower_printed(problem: Problem, horizon: npt.ArrayLike, alpha: int, spread: SpreadLike) -> Curve:
    """Return the paper's Theorem 1 as printed: `lower_smooth` times `theorem1_factor`.

    For policies uniformly efficient on one of the two classes it is a lower bound where it does not
    exceed that class's own bound, `lower` or `lower_free_chances`. Where it exceeds it, it is none:
    there are policies that attain the class's own bound.

    The proof fails where ``c * m > alpha``, c being `theorem1_factor` and m the number of groups with
    a positive share. It says that P(E2) tends to 1, where E2 is the event that the log-likelihood
    ratio of the first f_t / alpha decisions stays below (1 - eps / 2) ln t. By the law of large
    numbers that ratio tends to (c m / alpha) (1 - eps) ln t, which is above (1 - eps / 2) ln t once
    c m > alpha and eps is small: P(E2) tends to 0.

    Examples
    --------
    >>> from accrual.problems.laws import BernoulliLaw
    >>> problem = Problem(caps=[10, 10], window=6, groups=3, laws=[BernoulliLaw(0.5), BernoulliLaw(0.4)])
    >>> round(lower_printed(problem, 1000, alpha=3, spread=[0, 0, 1]), 2)
    514.59
    """
    phi(problem, alpha)
    return theorem1_factor(alpha, spread) * lower_smooth(problem, horizon, alpha)


def theorem1_factor(alpha: int, spread: SpreadLike) -> float:
    """Return Theorem 1's factor c = (2 E[Y] / (alpha + 1)) * alpha * IC; 1 for the even spread.

    Examples
    --------
    >>> round(theorem1_factor(3, [0, 0, 1]), 6)
    4.5
    """
    law = as_spread(spread)
    alpha = whole("alpha", alpha, 1)
    return 2.0 * law.mean(alpha) / (alpha + 1) * alpha * law.coincidence(alpha)


def _lai_robbins(problem: Problem) -> float:
    """Return the sum of gap_i / KL_i: the factor of ln T if a decision brings one observation."""
    gap, _ = behind(problem)
    most = max(problem.caps)
    best = min(float(problem.means.max()) / most, 1.0)
    if best >= 1.0:  # one failure tells an arm from one that never fails: KL is infinite
        return 0.0
    means = np.maximum(best - gap / most, 0.0)
    return float((gap / _kl(means, best)).sum())


def _kl(p: Floats, q: float) -> Floats:
    """Return the KL divergence of Bernoulli(p) from Bernoulli(q), for 0 <= p < q < 1.

    By log1p of the distance: p ln(p / q) + ... would lose all digits where p is close to q.
    """
    distance = q - p
    some = p > 0  # p ln p vanishes at 0
    first = np.where(some, -p * np.log1p(distance / np.where(some, p, 1.0)), 0.0)
    return np.asarray(first - (1.0 - p) * np.log1p(-distance / (1.0 - p)))


def _chances(problem: Problem, alpha: int, spread: Spread) -> tuple[Floats, Floats]:
    """Return the chances of the worse arms, arms x groups, and the shares, for groups that have a share."""
    phi(problem, alpha)
    most = max(problem.caps)
    shares = spread.pmf(alpha)
    paid = _paid(problem, alpha)
    allowed = most * shares
    over = paid > allowed * (1.0 + _OVER)
    if over.any():
        arm, group = np.argwhere(over)[0]
        raise InputError(
            f"group {group + 1} of arm {problem.arms[arm]} pays {paid[arm, group]:.3g} on average, more than "
            f"the {allowed[group]:.3g} that the spread allows; give the spread that caps the problem's groups"
        )
    worse = problem.gaps > ROUNDING * problem.means.max()
    some = shares > 0
    chances = np.minimum(paid[worse][:, some] / allowed[some], 1.0)
    return chances, shares[some]


def _paid(problem: Problem, alpha: int) -> Floats:
    """Return the mean that each arm pays in each of `alpha` groups, arms x groups."""
    means = problem.group_means
    pieces = math.lcm(problem.groups, alpha) // problem.groups  # of each of the problem's groups
    fine = np.zeros((*means.shape, pieces))
    if problem.division == "first":
        fine[..., 0] = means
    else:
        fine[:] = means[..., None] / pieces
    return np.asarray(fine.reshape(len(means), alpha, -1).sum(axis=2))


def _divergence(p: Floats, shares: Floats, rise: float) -> float:
    """Return the least sum of kl(p_k, q_k) over q with sum_k shares_k (q_k - p_k) >= rise, or infinity.

    The minimum has (q_k - p_k) / (q_k (1 - q_k)) = price * shares_k with one price for all k: a
    quadratic equation for each q_k. The weighted sum of the q_k grows with the price, so the price is
    a root of one function of one number.
    """
    from scipy.optimize import brentq

    if rise >= float(shares @ (1.0 - p)):
        return math.inf

    def short(price: float) -> float:
        return float(shares @ _raised(p, price * shares)) - rise

    price = 1.0 / float(shares.max())
    while short(price) < 0.0:
        price *= 2.0
        if math.isinf(price):  # within rounding of the most that any q has
            return math.inf
    while short(price / 2.0) >= 0.0:
        price /= 2.0
    price = brentq(short, price / 2.0, price, xtol=price * 1e-15)
    step = _raised(p, price * shares)
    unpaid = (1.0 - p) * np.log1p(price * shares * (p + step))  # ln((1 - p) / (1 - q))
    some = p > 0  # p ln p vanishes at 0
    return float((unpaid - np.where(some, p * np.log1p(step / np.where(some, p, 1.0)), 0.0)).sum())


def _raised(p: Floats, pull: Floats) -> Floats:
    """Return q - p for the q in [p, 1] with (q - p) / (q (1 - q)) = pull, without loss of digits."""
    with np.errstate(divide="ignore", over="ignore"):
        linear = 1.0 / pull - (1.0 - 2.0 * p)
        root = np.sqrt(linear * linear + 4.0 * p * (1.0 - p))
    positive = linear > 0
    small = 2.0 * p * (1.0 - p) / np.where(positive, linear + root, 1.0)
    return np.minimum(np.where(positive, small, (root - linear) / 2.0), 1.0 - p)
