"""What each arm pays by context: a linear model, fitted so that it can be judged by what it has not seen.

An arm's coefficients are those of all arms together and its own deviation from them, which is drawn towards
nothing (ridge regression). By how much is found by cross-validation. Decisions are cut into folds; what the
model says of a decision comes from a model that was fitted without the decision's fold.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

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
        Decisions x arms: what each would pay; minus infinity for an arm with too few decisions, and not a
        number for decisions that are not judged.
    single : ndarray
        Of each decision, the arm that pays best on average in what its model was fitted to.
    judged : ndarray of bool
        Which decisions there is a model for.
    """

    expected: Floats
    single: Ints
    judged: npt.NDArray[np.bool_]

    @property
    def choice(self) -> Ints:
        """The arm of which most is expected, decision by decision."""
        return np.asarray(np.where(self.judged[:, None], self.expected, 0.0).argmax(axis=1))


def cross_fit(seen: Observed, forward: bool = False) -> CrossFit:
    """Fit models to parts of the decisions, and ask each about a fold that it was fitted without.

    Parameters
    ----------
    seen : Observed
    forward : bool
        Whether the model for a fold is fitted to the folds before it alone, in an order that chance made; the
        first two are then not judged. This is for judging choices of the model itself. If folds were fitted
        to each other, luck in one would choose what is judged in another, and the other way round; the two
        errors would be alike, and an interval that takes them for independent too short.

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
    folds = FORWARD if forward else FOLDS
    fold = np.random.Generator(np.random.Philox(0)).permutation(len(seen.arm)) % folds
    x = _standard(seen.x)
    sums = _sums(x, seen, fold, folds)
    count = np.bincount(fold * seen.arms + seen.arm, minlength=folds * seen.arms).reshape(folds, seen.arms)
    expected = np.full((len(seen.arm), seen.arms), np.nan)
    single = np.zeros(len(seen.arm), np.int64)
    for k in range(2 if forward else 0, folds):
        known = np.arange(folds) < k if forward else np.arange(folds) != k
        model = _fitted(sums, known, _best_penalty(sums, known))
        mine = fold == k
        expected[mine] = x[mine] @ model.T
        few = count[known].sum(axis=0) < LEAST
        expected[np.ix_(mine, few)] = -np.inf
        single[mine] = _best_on_average(seen, known[fold], few)
    return CrossFit(expected, single, fold >= (2 if forward else 0))


def _standard(x: Floats) -> Floats:
    """Give contexts with mean 0 and variance 1, but for the constant: so that one penalty suits all."""
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


def _fitted(sums: _Sums, folds: npt.NDArray[np.bool_], penalty: float) -> Floats:
    """Give the coefficients of each arm, arms x width."""
    gram, response = sums.gram[folds].sum(axis=0), sums.response[folds].sum(axis=0)
    width = gram.shape[-1]
    common = np.linalg.solve(gram.sum(axis=0) + np.eye(width), response.sum(axis=0))
    ridge = np.full(width, penalty)
    ridge[0] = 1.0  # arms' levels are their own
    left = response - gram @ common
    return np.asarray(common + np.linalg.solve(gram + np.diag(ridge), left[..., None])[..., 0])


def _best_penalty(sums: _Sums, known: npt.NDArray[np.bool_]) -> float:
    """Give the penalty whose models err least in those of the `known` folds that they were fitted without."""
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


def _best_on_average(seen: Observed, rows: npt.NDArray[np.bool_], few: npt.NDArray[np.bool_]) -> int:
    weight = 1.0 / seen.propensity[rows]
    total = np.bincount(seen.arm[rows], weight * seen.reward[rows], seen.arms)
    mass = np.bincount(seen.arm[rows], weight, seen.arms)
    return int(np.argmax(np.where(few | (mass == 0.0), -np.inf, total / np.maximum(mass, 1e-300))))


def scores(seen: Observed, found: CrossFit, arm: Ints) -> Floats:
    """Give the doubly robust score of a choice of `arm` at each judged decision: their mean is what it pays.

    The score is what the model expects and, where the log chose that arm, what it got wrong over the
    propensity.
    """
    rows = np.flatnonzero(found.judged)
    expected = found.expected[rows, arm[rows]]
    wrong = (seen.reward[rows] - expected) / seen.propensity[rows]
    return np.asarray(expected + np.where(seen.arm[rows] == arm[rows], wrong, 0.0))
