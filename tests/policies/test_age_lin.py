"""AgeLinTS against a plain numpy version of docs/contexts.md, and in plain Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import accrual as ac
from accrual.core.dense import invert, length, take_root, times_lower
from accrual.core.errors import InputError
from accrual.engine.general_feed import GeneralRunFeed, world_of
from accrual.engine.general_loop import GeneralChain
from accrual.policies.age_lin.refresh import SHUT
from accrual.policies.age_lin.sums import FREEDOM, NOISE, READY
from accrual.policies.catalog import make
from accrual.problems.gallery import generate


def played(policy, problem, rounds, key=(5, 0)):
    """Statistics and arms after so many rounds."""
    world, span = world_of(problem), max(rounds, problem.window)
    chain = GeneralChain(policy, world, span, key)
    chain.play_arms(np.ones(len(problem.caps), np.bool_))
    arms = chain.advance(GeneralRunFeed(world, key, span).read(rounds), 1, rounds)
    return chain.params, chain.stats, arms.tolist()


def small_problem():
    contexts = ac.Contexts(numbers=1, flags=[0.3], levels=[[0.5, 0.3, 0.2]])
    dice = np.random.default_rng(3)
    effects = np.abs(dice.normal(0.4, 0.2, size=(3, contexts.width)))
    speeds = 0.3 * dice.normal(size=effects.shape)
    laws = [ac.LinearLaw(*rows) for rows in zip(effects, speeds, strict=True)]
    return ac.Problem([6.4] * 3, 40, laws=laws, contexts=contexts)


def taught(policy, decisions=1000):
    """Params and statistics after decisions that were told to choose each arm in turn.

    What arm 0 pays has a hump over the number, what arm 1 pays depends on the number and the flag together.
    """
    contexts = ac.Contexts(numbers=1, flags=[0.3], levels=[[0.5, 0.3, 0.2]])
    params = policy.params(np.ones(3), 64, contexts.width, contexts.layout)
    stats, functions, dice = policy.stats(params), policy.functions, np.random.default_rng(2)
    for i in range(decisions):
        arm, level = i % 3, dice.integers(3)
        x = np.array([1.0, dice.uniform(-1.7, 1.7), dice.uniform() < 0.3, *(level == np.arange(3))])
        more = [1.0 - x[1] ** 2, x[1] * (2.0 * x[2] - 1.0), 0.0][arm]
        pay = np.cumsum(0.05 * (1.0 + 0.3 * x[4] + 0.5 * more) * dice.uniform(0.5, 1.5, 8))
        stats.pulls[arm] += 1
        functions.decided(params, stats, arm, x)
        for g in range(8):
            functions.finished(params, stats, arm, g, pay[g - 1] if g else 0.0, pay[g], x)
        if i % 50 == 49:
            functions.refresh(params, stats)
    return params, stats


def full(lower):
    return np.tril(lower) + np.swapaxes(np.tril(lower, -1), -1, -2)


def reference(params, stats):
    """One refresh in numpy, straight from the formulas, in centred features.

    Returns the coefficients and covariances for contexts as they are.
    """
    B, b = full(stats.gram), stats.response
    arms, buckets, width = b.shape
    numbers = params.numbers
    P = full(stats.all_gram)
    made = P[:, 0, 0].sum()
    m = P.sum(axis=0)[:, 0] / made
    m[0] = 0.0
    T = np.eye(width)
    T[1:, 0] = -m[1:]
    Pj = np.einsum("ajj->j", P)
    nz = stats.nonzero
    r = (Pj - m * (2 * made * m - nz * m)) / nz
    r[0] = 1.0
    old = np.eye(width)
    old[0, 1:] = m[1:] - stats.centre[1:]  # the coefficients of before, for the new centre
    t = stats.total @ old.T
    e = stats.speed @ old.T
    B = np.einsum("ij,agjk,lk->agil", T, B, T)
    b, F = (np.einsum("ij,agj->agi", T, sums) for sums in (b, stats.earlier))
    xs, n = B[:, :, 0], B[:, :, 0, 0]
    ng, Sg, qg, vg = n.sum(0), b[:, :, 0].sum(0), stats.growth.sum(0), stats.square.sum(0)
    p = stats.spread.copy()
    avg = Sg.sum() / (p @ ng)
    bottom = np.maximum(np.einsum("agj,aj->g", xs, t), avg * ng / 10)
    p = (np.maximum(Sg, 0) + avg * params.prior) / (bottom + avg)
    p /= p.sum()
    R = ng > 0
    Pr, N = p[R].sum(), (p * ng)[R].sum()
    E1, E2 = (Sg[R] / ng[R]).sum() / Pr, (qg[R] / ng[R]).sum() / Pr
    fit = np.einsum("ai,aij,aj->", stats.estimate, P, stats.estimate) / made
    dof = min(stats.shared[FREEDOM], N / 2)
    s2 = ((E2 / E1) ** 2 + N * max(E2 - fit, E2 / 20)) / (1 + N - dof)
    many = ng > 10
    apart = (vg[many] / ng[many] - (Sg[many] / ng[many]) ** 2).sum() / s2
    rho = np.clip(apart / Pr, 0.02, 1)
    squares = (p[many] ** 2).sum()
    own_noise = np.clip((apart - squares) / (p[many].sum() - squares), 0.1, 1)
    # The noise of the buckets, and what is new in each: the triangular factor of its covariance says it all.
    noise = np.diag(own_noise * p) + (1 - own_noise) * np.outer(p, p)
    root = np.linalg.cholesky(noise)
    lower = root / np.diag(root)  # pay = lower @ news
    h, v, worth = np.linalg.solve(lower, p), np.diag(root) ** 2, lower.sum(0)
    b = b - np.einsum("g,agj->agj", (1 - own_noise) * p / (own_noise + (1 - own_noise) * (p.cumsum() - p)), F)
    for g in range(buckets):
        if ng[g] > numbers:
            right = sum(b[a, g] - h[g] * B[a, g] @ t[a] for a in range(arms))
            e[g] = np.linalg.solve(
                B[:, g].sum(0) + np.diag(r * np.where(np.arange(width) < numbers, 10.0, SHUT)), right
            )
    Q, L = np.diag(stats.kappa * r), np.diag(stats.weight * r)
    M = np.linalg.inv(B + Q)
    own = b - np.einsum("agij,gj->agi", B, e)
    A = sum(h[g] ** 2 / v[g] * Q @ M[:, g] @ B[:, g] for g in range(buckets))
    y = np.einsum("ij,g,agjk,agk->ai", Q, h / v, M, own)
    Ci = np.linalg.inv(A + L)
    W = (L - L @ Ci @ L).sum(0)
    told, L0 = np.einsum("ij,ajk,ak->i", L, Ci, y), np.diag(stats.common * r)
    mu = np.linalg.solve(W + L0, told)
    t = np.einsum("aij,aj->ai", Ci, L @ mu + y)

    def limits(weight):
        return np.clip(weight, 0.05, 1e5)

    known = (n[:, 0] > 0).sum()
    shy = np.clip(made / (8 * numbers), 1, 200)
    c = (1 - 1 / known) * np.maximum(1 - np.diag(L) * np.einsum("ajj->aj", Ci), 0).sum(0)
    s = r * ((t - mu) ** 2).sum(0) / s2
    alone, own_columns = (1 + c[0]) / (1 / numbers + s[0]), slice(1, numbers)
    common = limits((1 + c[own_columns].sum()) / (1 / (shy * numbers) + s[own_columns].sum()))
    weight = np.append(limits((1 + c) / (1 / common + s)), [])
    weight[0] = limits((1 + c[0]) / (1 / alone + s[0]))
    means = stats.common.copy()
    for group in np.unique(params.basis.group):
        columns = numbers + np.flatnonzero(params.basis.group == group)
        each = [left_out(A[a], y[a] - A[a] @ mu, L, j, r, s2) for a in range(arms) for j in columns]
        weight[columns] = earned(np.array(each), 1 - 1 / known)
        means[columns] = earned(np.array([left_out(W, told, L0, j, r, s2) for j in columns]), 1.0)
    u = np.einsum("agij,agj->agi", M, own - h[None, :, None] * np.einsum("agij,aj->agi", B, t))
    kappa = np.full(width, SHUT)
    kappa[:numbers] = (
        (1 + np.einsum("agj->j", (1 - np.diag(Q) * np.einsum("agjj->agj", M))))
        / (
            1 / np.array([50] + [50 * shy] * (width - 1))
            + np.einsum("agj,j,g->j", u**2, r, 1 / v) / (rho * s2)
        )
    )[:numbers].clip(0.5, 1e5)
    est = t + worth @ e + np.einsum("g,agj->aj", worth, u)
    D = np.einsum("g,agij->aij", worth * h, M) @ Q
    C = np.einsum("g,agij->aij", worth**2 * v, M) + D @ Ci @ np.swapaxes(D, 1, 2)
    return {
        "spread": p,
        "noise": s2,
        "weight": weight,
        "common": means,
        "kappa": kappa,
        "estimate": est @ T,
        "covariance": np.swapaxes(T[None], 1, 2) @ C @ T,
    }


def left_out(A, y, prior, j, r, s2):
    """How many decisions tell of column j in a model without it, and its squared score over the noise."""
    rest = np.arange(len(A)) != j
    take = np.linalg.solve((A + prior)[np.ix_(rest, rest)], A[rest, j])
    return (A[j, j] - take @ A[rest, j]) / r[j], (y[j] - take @ y[rest]) ** 2 / (s2 * r[j])


def earned(each, less):
    told, score = each.T
    clear = score.sum() - less * told.sum() - 5 * np.sqrt(2 * (told**2).sum())
    return np.clip((told**2).sum() / clear, 0.05, SHUT) if clear > 0 else SHUT


@pytest.mark.parametrize(
    ("learned", "opened"),
    [
        (lambda: played(ac.AgeLinTS(columns=0), small_problem(), 400)[:2], 0),
        (lambda: taught(ac.AgeLinTS()), 4),  # three columns of bends, and the pair of the number and the flag
    ],
)
def test_a_refresh_equals_the_formulas(learned, opened):
    params, stats = learned()
    assert np.count_nonzero(stats.weight[params.numbers :] < SHUT) == opened
    expected = reference(params, stats)
    ac.AgeLinTS.functions.refresh(params, stats)
    np.testing.assert_allclose(stats.spread, expected["spread"], rtol=1e-9)
    np.testing.assert_allclose(stats.shared[NOISE], expected["noise"], rtol=1e-9)
    np.testing.assert_allclose(stats.weight, expected["weight"], rtol=1e-5)
    np.testing.assert_allclose(stats.common, expected["common"], rtol=1e-5)
    np.testing.assert_allclose(stats.kappa, expected["kappa"], rtol=1e-7)
    np.testing.assert_allclose(stats.estimate, expected["estimate"], rtol=1e-7, atol=1e-9)
    covariance = stats.root @ np.swapaxes(stats.root, 1, 2)
    np.testing.assert_allclose(covariance, expected["covariance"], rtol=1e-6, atol=1e-9)


def test_an_offset_and_a_unit_of_a_feature_change_nothing():
    """Centring and the feature's own size make 1,000 + 100 x as good as x: the guesses are the same."""
    dice = np.random.default_rng(1)
    x = np.concatenate([np.ones((300, 1)), dice.normal(size=(300, 3))], axis=1)
    moved = x.copy()
    moved[:, 2] = 1000.0 + 100.0 * x[:, 2]
    guesses = []
    for contexts in (x, moved):
        policy = ac.AgeLinTS()
        params = policy.params(np.ones(2), 64, 4)
        stats = policy.stats(params)
        functions = policy.functions
        for i in range(300):
            arm = i % 2
            stats.pulls[arm] += 1
            functions.decided(params, stats, arm, contexts[i])
            for g in range(8):
                pay = 0.05 * (1.0 + 0.5 * x[i, 1 + arm]) * (1.0 + 0.1 * g)
                functions.finished(params, stats, arm, g, g * pay, (g + 1) * pay, contexts[i])
            if i % 20 == 19:
                functions.refresh(params, stats)
        functions.survey(params, stats, None, contexts[7])
        guesses.append([stats.guess.copy(), stats.deviation.copy()])
    np.testing.assert_allclose(guesses[0], guesses[1], rtol=1e-5)


def test_amending_equals_having_known():
    """A piece out of order leaves the same sums as one in order, but for rounding."""
    policy = ac.AgeLinTS()
    params = policy.params(np.array([2.0]), 64, 2)
    late, known = policy.stats(params), policy.stats(params)
    x = np.array([1.0, 0.3])
    functions = policy.functions
    functions.finished(params, late, 0, 0, 0.0, 0.5, x)
    functions.finished(params, late, 0, 1, 0.5, 0.6, x)
    functions.amended(params, late, 0, 0, 0.0, 0.5, 0.0, 0.2, x)
    functions.amended(params, late, 0, 1, 0.5, 0.6, 0.2, 0.2, x)
    functions.finished(params, known, 0, 0, 0.0, 0.7, x)
    functions.finished(params, known, 0, 1, 0.7, 0.8, x)
    for name in ("gram", "response", "earlier", "growth", "square"):
        np.testing.assert_allclose(getattr(late, name), getattr(known, name), rtol=1e-12, err_msg=name)


def test_choosing_and_learning_touch_what_they_say():
    """`kept` is the end of the statistics; learning touches nothing else, choosing none of it."""
    policy = ac.AgeLinTS()
    params, stats, _ = played(policy, small_problem(), 300)
    learning = policy.functions.hooks.learning_fields
    assert stats._fields[-len(learning) :] == learning
    before = {name: array.copy() for name, array in stats._asdict().items()}
    x = np.array([1.0, 0.3, 1.0, 0.0, 1.0, 0.0])
    policy.functions.survey(params, stats, None, x)
    for name in learning:
        np.testing.assert_array_equal(getattr(stats, name), before[name])
    before = {name: array.copy() for name, array in stats._asdict().items()}
    policy.functions.decided(params, stats, 1, x)
    policy.functions.finished(params, stats, 1, 2, 0.1, 0.4, x)
    policy.functions.amended(params, stats, 1, 2, 0.1, 0.4, 0.0, 0.1, x)
    for name in set(stats._fields) - set(learning):
        np.testing.assert_array_equal(getattr(stats, name), before[name])


def test_an_arm_that_is_added_starts_from_what_the_others_have_in_common():
    policy, problem = ac.AgeLinTS(), generate(3, 6, seed=1)
    assert problem.contexts is not None
    _, stats, _ = played(policy, problem, 3000)
    params = policy.params(np.full(7, 6.4), 2000, 4, problem.contexts.layout)
    grown = policy.grow(stats, params)
    assert grown.due[0] == 0
    policy.functions.refresh(params, grown)
    old = grown.estimate[:6, 0]
    assert old.min() < grown.estimate[6, 0] < old.max()


def fingerprint():
    """Choices and statistics of short runs, as plain data."""
    found = {}
    for policy in (ac.AgeLinTS(), ac.LinTS(), ac.LinUCB(immediate=True)):
        _, stats, arms = played(policy, small_problem(), 90)
        found[policy.label] = [arms, stats]
    found["bends and pairs"] = [[], taught(ac.AgeLinTS(), 150)[1]]
    return {
        label: [arms, [[float(x).hex() for x in np.ravel(array)] for array in stats]]
        for label, (arms, stats) in found.items()
    }


def test_same_choices_in_plain_python():
    """Compiled and interpreted, choices and statistics are the same to the bit."""
    command = (
        "import json; from tests.policies.test_age_lin import fingerprint; print(json.dumps(fingerprint()))"
    )
    paths = os.pathsep.join(path for path in (*sys.path, os.getcwd()) if path)
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": paths}
    done = subprocess.run(
        [sys.executable, "-c", command], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == fingerprint()


def test_draws_are_wider_where_there_is_little_to_learn():
    """Up to 1.4 times for few numbers and few arms: sqrt(9 / 6) = 1.22 for six numbers."""
    found = {
        (arms, width): ac.AgeLinTS(alpha=1.0).params(np.ones(arms), 64, width).alpha
        for arms, width in [(5, 1), (5, 4), (5, 6), (5, 9), (2, 30), (50, 4), (20, 3)]
    }
    np.testing.assert_allclose([*found.values()], [1.4, 1.4, 1.5**0.5, 1.0, 1.0, 1.0, (4 / 3) ** 0.5])


def test_before_anything_is_known_arms_take_turns():
    _, stats, arms = played(ac.AgeLinTS(), generate(2, 3), 30)
    assert stats.shared[READY] == 0.0
    assert arms == [0, 1, 2] * 10


def test_dense():
    dice = np.random.default_rng(0)
    root = dice.normal(size=(7, 7))
    matrix = root @ root.T + np.eye(7)
    x = dice.normal(size=7)
    lower, out = np.tril(matrix), np.zeros(7)
    times_lower(lower, x, out)
    np.testing.assert_allclose(out, matrix @ x)
    factor = np.zeros((7, 7))
    take_root(matrix.copy(), factor)
    np.testing.assert_allclose(factor @ factor.T, matrix)
    np.testing.assert_allclose(length(factor, x, out), np.sqrt(x @ matrix @ x))
    inverse = matrix.copy()
    invert(inverse)
    np.testing.assert_allclose(inverse, np.linalg.inv(matrix))
    np.testing.assert_array_equal(inverse, inverse.T)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("AgeLinTS", {"buckets": 0}),
        ("AgeLinTS", {"alpha": -1}),
        ("AgeLinTS", {"columns": 102}),
        ("LinTS", {"ridge": 0}),
        ("LinUCB", {"alpha": np.nan}),
    ],
)
def test_settings_that_are_refused(name, settings):
    with pytest.raises(InputError):
        make(name, **settings)
