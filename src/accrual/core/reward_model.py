"""What each arm pays by context: a linear model, fitted so that it can be judged by what it has not seen.

An arm's coefficients are those of all arms together and its own deviation from them, which is drawn towards
nothing (ridge regression). By how much is found by cross-validation. Decisions are cut into folds; what the
model says of a decision comes from a model that was fitted without the decision's fold.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from accrual.core.arrays import Floats, Ints

Bools = npt.NDArray[np.bool_]
Way = Literal["crossed", "forward", "in time"]

FOLDS, FORWARD = 5, 10
LEAST = 20  # decisions of an arm without which the model does not choose it
_PENALTIES = (1.0, 10.0, 100.0, 1e3, 1e4, 1e5)  # decisions that "like all arms" is worth


class Observed(NamedTuple):
    """Decisions whose reward is known.

    Attributes
    ----------
    x : ndarray
        Decisions x width: contexts, the first number of each is 1.
    arm, reward, propensity : ndarray
        Of each decision.
    arms : int
        How many arms there are.
    """

    x: Floats
    arm: Ints
    reward: Floats
    propensity: Floats
    arms: int


class _Sums(NamedTuple):
    """Sums over decisions, by fold and arm."""

    gram: Floats  # folds x arms x width x width
    response: Floats  # folds x arms x width
    square: Floats  # folds x arms


class CrossFit(NamedTuple):
    """What models say of decisions that they were fitted without.

    Attributes
    ----------
    expected : ndarray
        Decisions x arms: what each would pay; minus infinity for an arm with too few decisions or that may
        not be chosen, and not a number for decisions that are not judged.
    single : ndarray
        Of each decision, the arm of which its model expects most on average, over the contexts that it was
        fitted to.
    judged : ndarray of bool
        Which decisions there is a model for.
    """

    expected: Floats
    single: Ints
    judged: Bools

    @property
    def choice(self) -> Ints:
        """The arm of which most is expected, decision by decision."""
        return np.asarray(np.where(self.judged[:, None], self.expected, 0.0).argmax(axis=1))


def cross_fit(seen: Observed, way: Way = "crossed", choosable: Bools | None = None) -> CrossFit:
    """Fit models to parts of the decisions, and ask each about a fold that it was fitted without.

    Parameters
    ----------
    seen : Observed
    way : {"crossed", "forward", "in time"}
        Crossed, the model for a fold is fitted to all other folds. Forward, it is fitted to the folds before
        it alone, in an order that chance made; the first two are then not judged. That is for judging
        choices of the model itself: were folds fitted to each other, luck in one would choose what is
        judged in another, and the other way round; the two errors would be alike, and an interval that takes
        them for independent too short. In time, folds are stretches of decisions in the order in which they
        are given, and each is judged by those before it. That is for decisions of a bandit that learned
        from the earlier ones: what it chose later says something of what a decision paid, so a model must
        not know it.
    choosable : ndarray of bool, optional
        Which arms may be chosen; all, unless given.

    Examples
    --------
    >>> dice = np.random.default_rng(1)
    >>> x = np.stack([np.ones(2000), dice.integers(0, 2, 2000)], axis=1)
    >>> arm = dice.integers(0, 2, 2000)
    >>> reward = np.where(arm == x[:, 1], 1.0, 0.0) + dice.normal(size=2000)
    >>> found = cross_fit(Observed(x, arm, reward, np.full(2000, 0.5), 2))
    >>> bool((found.choice == x[:, 1]).all())
    True
    """
    crossed, count = way == "crossed", len(seen.arm)
    folds, begin = (FOLDS, 0) if crossed else (FORWARD, 2)
    fold = np.arange(count) * folds // max(count, 1)
    if way != "in time":
        fold = np.random.Generator(np.random.Philox(0)).permutation(count) % folds
    x = _standard(seen.x)
    sums = _sums(x, seen, fold, folds)
    made = np.bincount(fold * seen.arms + seen.arm, minlength=folds * seen.arms).reshape(folds, seen.arms)
    barred = np.zeros(seen.arms, np.bool_) if choosable is None else ~choosable
    expected = np.full((count, seen.arms), np.nan)
    single = np.zeros(count, np.int64)
    for k in range(begin, folds):
        known = np.arange(folds) != k if crossed else np.arange(folds) < k
        model = _fitted(sums, known, _best_penalty(sums, known))
        mine = fold == k
        expected[mine] = x[mine] @ model.T
        out = barred | (made[known].sum(axis=0) < LEAST)
        expected[np.ix_(mine, out)] = -np.inf
        # Chosen by the same model, so that with and without contexts an arm is known equally well.
        single[mine] = np.where(out, -np.inf, x[known[fold]].mean(axis=0) @ model.T).argmax()
    return CrossFit(expected, single, fold >= begin)


def _standard(x: Floats) -> Floats:
    """Return contexts with mean 0 and variance 1, but for the constant: so that one penalty suits all."""
    mean, deviation = x.mean(axis=0), x.std(axis=0)
    mean[0], deviation[0] = 0.0, 1.0
    deviation[deviation < 1e-12] = 1.0
    return np.asarray((x - mean) / deviation)


def _sums(x: Floats, seen: Observed, fold: Ints, folds: int) -> _Sums:
    width = x.shape[1]
    made = _Sums(
        np.zeros((folds, seen.arms, width, width)),
        np.zeros((folds, seen.arms, width)),
        np.zeros((folds, seen.arms)),
    )
    cell = fold * seen.arms + seen.arm
    order = np.argsort(cell, kind="stable")
    ends = np.searchsorted(cell[order], np.arange(folds * seen.arms + 1))
    for place in range(folds * seen.arms):
        rows = order[ends[place] : ends[place + 1]]
        own, reward = x[rows], seen.reward[rows]
        k, a = divmod(place, seen.arms)
        made.gram[k, a], made.response[k, a], made.square[k, a] = own.T @ own, own.T @ reward, reward @ reward
    return made


def _fitted(sums: _Sums, folds: Bools, penalty: float) -> Floats:
    """Return the coefficients of each arm, arms x width."""
    gram, response = sums.gram[folds].sum(axis=0), sums.response[folds].sum(axis=0)
    width = gram.shape[-1]
    common = np.linalg.solve(gram.sum(axis=0) + np.eye(width), response.sum(axis=0))
    ridge = np.full(width, penalty)
    ridge[0] = 1.0  # arms' levels are their own
    left = response - gram @ common
    return np.asarray(common + np.linalg.solve(gram + np.diag(ridge), left[..., None])[..., 0])


def _best_penalty(sums: _Sums, known: Bools) -> float:
    """Return the penalty whose models err least in those of the `known` folds that they were fitted without."""
    errors = []
    for penalty in _PENALTIES:
        error = 0.0
        for k in np.flatnonzero(known):
            others = known.copy()
            others[k] = False
            model = _fitted(sums, others, penalty)
            error += float(
                sums.square[k].sum()
                - 2.0 * (model * sums.response[k]).sum()
                + np.einsum("ai,aij,aj->", model, sums.gram[k], model)
            )
        errors.append(error)
    return _PENALTIES[int(np.argmin(errors))]


def scores(seen: Observed, found: CrossFit, arm: Ints) -> Floats:
    """Return the doubly robust score of a choice of `arm` at each judged decision: their mean is what it pays.

    The score is what the model expects and, where the log chose that arm, what it got wrong over the
    propensity.
    """
    rows = np.flatnonzero(found.judged)
    expected = found.expected[rows, arm[rows]]
    wrong = (seen.reward[rows] - expected) / seen.propensity[rows]
    return np.asarray(expected + np.where(seen.arm[rows] == arm[rows], wrong, 0.0))
