"""What AgePrior learns from what is known about arms: the line against numpy, and what it is for."""

import numpy as np
import pytest

import accrual as ac
from accrual.core.jit import python_function
from accrual.policies.age_prior.arm_features import learn_line
from accrual.policies.age_prior.learning import _maximise
from accrual.policies.age_prior.model import BETWEEN, LEVEL, MIDDLE, SIGMA2, SLOPE, SLOPES, expected_level

ARMS, COLUMNS, NOISE, BETWEEN_TRUE = 200, 3, 0.2, 0.002
LINE = np.array([0.3, 0.0, -0.2])


def known_arms():
    """Arms whose levels are around a line, and what their pieces tell, of some much."""
    dice = np.random.default_rng(1)
    about = dice.random((ARMS, COLUMNS))
    level = 0.4 + (about - 0.5) @ LINE + np.sqrt(BETWEEN_TRUE) * dice.standard_normal(ARMS)
    policy = ac.AgePrior(about=about)
    params = policy.params(np.ones(ARMS), 12)
    stats = policy.stats(params)
    stats.information[:] = dice.choice([0.0, 1.0, 10.0, 300.0], ARMS)
    error = np.sqrt(NOISE / np.maximum(stats.information, 1e-9)) * dice.standard_normal(ARMS)
    stats.level[:] = np.where(stats.information > 0.0, level + error, 0.0)
    stats.shared[[LEVEL, BETWEEN, SIGMA2]] = 0.4, 0.01, NOISE
    return params, stats


def test_the_line_is_that_of_least_squares_with_a_penalty():
    params, stats = known_arms()
    stats.shared[SLOPE] = 0.7
    python_function(learn_line)(params, stats, 0.45)
    told = stats.information > 0.0
    x = params.about - params.about.mean(axis=0)
    weight = 1.0 / (0.01 + NOISE / stats.information[told])
    gram = (x[told].T * weight) @ x[told] + np.diag(x.var(axis=0) / (0.7 * 0.01))
    slopes = np.linalg.solve(gram, (x[told].T * weight) @ (stats.level[told] - 0.45))
    np.testing.assert_allclose(stats.line[SLOPES], slopes, rtol=1e-9)
    np.testing.assert_allclose(stats.line[MIDDLE], params.about.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(stats.line_covariance, np.linalg.inv(gram), rtol=1e-9)


def test_the_line_and_how_far_arms_are_from_it_are_found():
    """Slopes within 0.05 (4 standard errors of the fit), the variance around the line within a half."""
    params, stats = known_arms()
    for _ in range(10):
        python_function(_maximise)(params, stats, 0.01)
    assert stats.line[SLOPES] == pytest.approx(LINE, abs=0.05)
    assert stats.shared[BETWEEN] == pytest.approx(BETWEEN_TRUE, rel=0.5)
    said = [expected_level(params, stats, a) for a in range(ARMS)]
    assert said == pytest.approx(
        stats.shared[LEVEL] + (params.about - params.about.mean(axis=0)) @ LINE, abs=0.06
    )


def test_where_features_tell_nothing_they_are_hardly_believed():
    """The same arms, their features shuffled: a column tells less than a tenth of the variance."""
    params, stats = known_arms()
    params.about[:] = params.about[np.random.default_rng(2).permutation(ARMS)]
    for _ in range(10):
        python_function(_maximise)(params, stats, 0.01)
    assert 0.0 < stats.shared[SLOPE] < 0.1
    assert np.abs(stats.line[SLOPES]).max() < 0.15


def test_what_is_known_about_arms_lowers_regret():
    """50 arms, 2,000 rounds, 20 runs of fixed draws: at least a twelfth less (a seventh over 40)."""
    means = np.random.default_rng(3).uniform(0.1, 0.6, 50)
    problem = ac.Problem([1.0] * 50, 20, 4, [ac.BernoulliLaw(mean) for mean in means])
    policies = {"without": ac.AgePrior(), "with": ac.AgePrior(about=means[:, None])}
    without, known = ac.simulate(problem, policies, 2000, runs=20).final_regret.mean(axis=1)
    assert known < 11 / 12 * without


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ([[1.0], [2.0, 3.0]], "of one length"),
        ([[1.0], [float("nan")]], "of at most 1e50 in size"),
        ([[10**400], [1]], "of at most 1e50 in size"),
        (["12", "34"], "a row of numbers for each arm"),
        ([[], []], "not empty"),
        ([1.0, 2.0], "a row of numbers for each arm"),
    ],
)
def test_rows_that_cannot_be(about, said):
    with pytest.raises(ac.InputError, match=said):
        ac.AgePrior(about=about)


def test_a_row_for_each_arm():
    with pytest.raises(ac.InputError, match="a row for each of 3 arms, not 2 rows"):
        ac.AgePrior(about=[[1.0], [2.0]]).params(np.ones(3), 12)


def test_columns_in_which_arms_do_not_differ_and_scales_make_no_difference():
    """To the bit for constants, whatever they are; a column may be of any size."""
    means = np.random.default_rng(3).uniform(0.1, 0.6, 20)
    problem = ac.Problem([1.0] * 20, 20, 4, [ac.BernoulliLaw(mean) for mean in means])
    known = [np.c_[means, np.full((20, 5), constant)] for constant in (0.0, 0.3)]
    policies = {str(n): ac.AgePrior(about=rows) for n, rows in enumerate([*known, means[:, None] * 1e-6])}
    zero, other, small = ac.simulate(problem, policies, 1000, runs=2).final_regret
    np.testing.assert_array_equal(zero, other)
    np.testing.assert_allclose(zero, small, rtol=1e-6)
