"""Problems with contexts: drawn as they say, the same for every split, and worth something."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

import accrual as ac
from accrual.core.errors import InputError
from accrual.engine.general_feed import GeneralRunFeed, age_of, count_pieces, power_of, world_of
from accrual.policies.catalog import CATALOG, CONTEXTUAL
from accrual.problems.gallery import generate
from accrual.studies.gallery.habits import EarlyLinTS, PiecesLinTS

SPEEDS = [-0.5, 0.2, 0, 0, 0, 0, 0]
PROBLEM = ac.Problem(
    [6.4, 6.4],
    window=50,
    laws=[
        ac.LinearLaw([0.6, 0.1, 0.0, 0.2, 0.1, 0.0, -0.1], SPEEDS),
        ac.LinearLaw([0.5, 0.0, 0.1, 0.0, 0.0, 0.3, 0.0], [0.5, 0, 0.2, 0, 0, 0, 0]),
    ],
    contexts=ac.Contexts(numbers=2, flags=[0.2], levels=[[0.5, 0.3, 0.2]]),
)


def test_contexts_and_pay_are_as_declared():
    """Means of 20,000 draws lie within four standard errors of what the problem says."""
    world = world_of(PROBLEM)
    source = GeneralRunFeed(world, (3, 0), 20_000)
    feed, means = source.read(20_000), source.means
    x = feed.x[50:]
    n = len(x)
    for column, (mean, deviation) in enumerate(
        [(1, 0), (0, 1), (0, 1), (0.2, 0.4), (0.5, 0.5), (0.3, 0.46), (0.2, 0.4)]
    ):
        assert abs(x[:, column].mean() - mean) <= 4 * deviation / np.sqrt(n)
    np.testing.assert_array_equal(x[:, 4:].sum(axis=1), 1.0)
    np.testing.assert_allclose(means, PROBLEM.means_in(x))
    counts = np.array([count_pieces(world.arrays, world.caps, 0, means[i, 0], feed.u[i]) for i in range(n)])
    totals = 0.1 * counts
    assert abs((totals - means[:, 0]).mean()) <= 4 * totals.std() / np.sqrt(n)
    ages = np.array([age_of(50, power_of(world.arrays, 0, x[i]), feed.u[i, 2]) for i in range(n)])
    assert ages.min() == 0
    assert ages.max() == 49
    # The median of u ** power is 2 ** -power: half of the ages lie below it.
    medians = 50 * 0.5 ** np.exp(-(x @ np.array(SPEEDS)))
    assert abs((ages < np.floor(medians)).mean() - 0.5) < 0.05


def test_a_binary_problem_pays_its_rate():
    problem = generate(2, 2, link="logistic", pay="once", seed=1)
    world = world_of(problem)
    source = GeneralRunFeed(world, (3, 0), 20_000)
    u, means = source.read(20_000).u, source.means[:, 1]
    paid = np.array([count_pieces(world.arrays, world.caps, 1, means[i], u[i]) for i in range(20_000)])
    assert set(paid) == {0, 1}
    assert abs(paid.mean() - means.mean()) < 4 * 0.5 / np.sqrt(20_000)


def test_same_result_for_any_split():
    """Threads, the split of the runs, the order of the policies and where spans end change nothing."""
    policies = {"age": ac.AgeLinTS(), "plain": ac.AgeTS(), "lin": ac.LinTS()}
    whole = ac.simulate(PROBLEM, policies, 1300, runs=3, seed=4, threads=1)
    turned = dict(reversed(list(policies.items())))
    parts = [ac.simulate(PROBLEM, turned, 1300, runs=r, seed=4, threads=2) for r in (range(1), range(1, 3))]
    joined = np.concatenate([part.regret for part in parts], axis=1)[::-1]
    np.testing.assert_array_equal(whole.regret, joined)


def test_regret_is_the_sum_of_gaps():
    result = ac.simulate(PROBLEM, [ac.LinTS()], 200, runs=1, seed=1, checkpoints=200)
    steps = np.diff(result.regret[0, 0], prepend=0.0)
    source = GeneralRunFeed(world_of(PROBLEM), (1, 0), 512)
    source.read(200)
    means = source.means[:200]
    gaps = means.max(axis=1, keepdims=True) - means
    assert all(np.isclose(step, row).any() for step, row in zip(steps, gaps, strict=True))
    assert result.pulls.sum() == 200


def test_contexts_are_worth_something_and_so_are_pieces():
    """Beside policies without contexts, waiting and habits. Differences are many standard errors."""
    problem = generate(4, 4, strength=0.15, seed=7)
    policies = {
        "age": ac.AgeLinTS(),
        "waiting": ac.AgeLinTS(buckets=1),
        "floor": ac.AgeLinTS(immediate=True),
        "plain": ac.AgeTS(),
        "early": EarlyLinTS(),
        "pieces": PiecesLinTS(),
    }
    regret = dict(
        zip(policies, ac.simulate(problem, policies, 8000, runs=6, seed=2).final_regret.mean(1), strict=True)
    )
    assert regret["floor"] < regret["waiting"]
    assert regret["age"] < 0.8 * regret["waiting"]
    assert regret["age"] < 0.4 * regret["plain"]
    assert regret["age"] < regret["early"]
    assert regret["age"] < 0.5 * regret["pieces"]


def test_every_policy_plays_that_does_not_learn_from_single_pieces():
    """Also those whose params have no cap, such as TPUCBEW."""
    policies = {**CATALOG, **CONTEXTUAL}
    playing = {name: kind.example(5) for name, kind in policies.items() if kind.feedback != "pieces"}
    result = ac.simulate(PROBLEM, playing, 60, runs=1, seed=2)
    assert (result.pulls.sum(axis=2) == 60).all()
    assert (result.pulls > 0).all()


def test_what_does_not_fit_is_refused():
    with pytest.raises(InputError, match="chooses by contexts"):
        ac.simulate(ac.paper.setting1(), [ac.AgeLinTS()], 100)
    with pytest.raises(InputError, match="single pieces"):
        ac.simulate(PROBLEM, [ac.TPUCBFR(10)], 100)
    with pytest.raises(InputError, match="effects must be 7 numbers"):
        ac.Problem([1.0], 10, laws=ac.LinearLaw([1.0, 2.0]), contexts=PROBLEM.contexts)
    with pytest.raises(InputError, match="with contexts, laws must be such as LinearLaw"):
        ac.Problem([1.0], 10, laws=ac.LumpLaw(0.5), contexts=PROBLEM.contexts)
    with pytest.raises(InputError, match="laws must be reward laws such as BernoulliLaw"):
        ac.Problem([1.0], 10, 5, ac.LinearLaw([1.0, 2.0]))
    with pytest.raises(InputError, match="neither groups nor changes"):
        ac.Problem([1.0], 10, 5, ac.LinearLaw([1.0]), contexts=ac.Contexts())
    with pytest.raises(InputError, match="effects must be a list of finite numbers"):
        ac.LinearLaw(cast(Any, [[1.0]]))
    with pytest.raises(InputError, match="has contexts, and means that depend on them"):
        _ = PROBLEM.means
    with pytest.raises(InputError, match="add up to 1"):
        ac.Contexts(levels=[[0.5, 0.4]])
