"""A linear model of what each arm pays by context, judged by decisions that it was not fitted to.

An arm's coefficients are the coefficients of all arms together plus the arm's own deviation, which ridge
regression shrinks towards zero. Cross-validation chooses how much. Decisions are cut into folds, and what is
predicted for a decision comes from a model that was fitted without the decision's fold.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from accrual.core.arrays import Floats, Ints

Bools = npt.NDArray[np.bool_]
Way = Literal["crossed", "forward", "in time"]

FOLDS, FORWARD = 5, 10
LEAST = 20  # the model chooses no arm with fewer decisions
_PENALTIES = (1.0, 10.0, 100.0, 1e3, 1e4, 1e5)  # decisions that the prior "like all arms" is worth


class Observed(NamedTuple):
    """Decisions whose reward is known."""

    x: Floats
    """Decisions x width: contexts, each of which begins with 1."""
    arm: Ints
    reward: Floats
    propensity: Floats
    """`arm`, `reward` and `propensity` are of each decision."""
    arms: int
    """How many arms there are."""


class _Sums(NamedTuple):
    """Sums over decisions, by fold and arm."""

    gram: Floats  # folds x arms x width x width
    response: Floats  # folds x arms x width
    square: Floats  # folds x arms


class CrossFit(NamedTuple):
    """What models predict for decisions that they were not fitted to."""

    expected: Floats
    """Decisions x arms: the expected reward. It is minus infinity for an arm that has too few decisions or
    that may not be chosen, and NaN for decisions that are not judged."""
    single: Ints
    """For each decision, the arm with the greatest expected reward on average over the contexts that the
    decision's model was fitted to."""
    judged: Bools
    """Which decisions have a model."""

    @property
    def choice(self) -> Ints:
        """The arm with the greatest expected reward, for each decision."""
        return np.asarray(np.where(self.judged[:, None], self.expected, 0.0).argmax(axis=1))


def cross_fit(observed: Observed, way: Way = "crossed", choosable: Bools | None = None) -> CrossFit:
    """Fit models to parts of the decisions, and predict with each for a fold that it was not fitted to.

    Parameters
    ----------
    way : {"crossed", "forward", "in time"}
        "crossed": the model for a fold is fitted to all other folds.

        "forward": folds have a random order, and the model for a fold is fitted to the folds before it. The
        first two folds are not judged. This is for judging choices of the model itself. If two folds were
        fitted to each other, luck in each would choose what is judged in the other; their errors would be
        correlated, and an interval that takes them to be independent would be too short.

        "in time": folds are runs of decisions in the order in which they are given, and the model for a fold
        is fitted to the folds before it. This is for decisions of a bandit that learned from the earlier
        ones. What the bandit chose later depends on what a decision paid, so the model of a decision must
        not know the later ones.
    choosable : ndarray of bool, optional
        Which arms may be chosen; all unless given.

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
    crossed, count = way == "crossed", len(observed.arm)
    folds, begin = (FOLDS, 0) if crossed else (FORWARD, 2)
    fold = np.arange(count) * folds // max(count, 1)
    if way != "in time":
        fold = np.random.Generator(np.random.Philox(0)).permutation(count) % folds
    x = _standard(observed.x)
    sums = _sums(x, observed, fold, folds)
    made = np.bincount(fold * observed.arms + observed.arm, minlength=folds * observed.arms).reshape(
        folds, observed.arms
    )
    barred = np.zeros(observed.arms, np.bool_) if choosable is None else ~choosable
    expected = np.full((count, observed.arms), np.nan)
    single = np.zeros(count, np.int64)
    for k in range(begin, folds):
        known = np.arange(folds) != k if crossed else np.arange(folds) < k
        model = _fitted(sums, known, _best_penalty(sums, known))
        mine = fold == k
        expected[mine] = x[mine] @ model.T
        out = barred | (made[known].sum(axis=0) < LEAST)
        expected[np.ix_(mine, out)] = -np.inf
        # By the same model, so that arms are known equally well with contexts and without.
        single[mine] = np.where(out, -np.inf, x[known[fold]].mean(axis=0) @ model.T).argmax()
    return CrossFit(expected, single, fold >= begin)


def _standard(x: Floats) -> Floats:
    """Return contexts with mean 0 and variance 1, except for the constant, so that one penalty suits all."""
    mean, deviation = x.mean(axis=0), x.std(axis=0)
    mean[0], deviation[0] = 0.0, 1.0
    deviation[deviation < 1e-12] = 1.0
    return np.asarray((x - mean) / deviation)


def _sums(x: Floats, observed: Observed, fold: Ints, folds: int) -> _Sums:
    width = x.shape[1]
    made = _Sums(
        np.zeros((folds, observed.arms, width, width)),
        np.zeros((folds, observed.arms, width)),
        np.zeros((folds, observed.arms)),
    )
    cell = fold * observed.arms + observed.arm
    order = np.argsort(cell, kind="stable")
    ends = np.searchsorted(cell[order], np.arange(folds * observed.arms + 1))
    for place in range(folds * observed.arms):
        rows = order[ends[place] : ends[place + 1]]
        own, reward = x[rows], observed.reward[rows]
        k, a = divmod(place, observed.arms)
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
    """Return the penalty whose models err least in `known` folds that they were not fitted to."""
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


def scores(observed: Observed, found: CrossFit, arm: Ints) -> Floats:
    """Return the doubly robust score of choosing `arm` at each judged decision; their mean estimates its pay.

    The score is the model's expected reward. Where the log chose that arm too, the model's error divided by
    the propensity is added.
    """
    rows = np.flatnonzero(found.judged)
    expected = found.expected[rows, arm[rows]]
    wrong = (observed.reward[rows] - expected) / observed.propensity[rows]
    return np.asarray(expected + np.where(observed.arm[rows] == arm[rows], wrong, 0.0))
