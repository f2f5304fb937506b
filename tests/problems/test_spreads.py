"""Spreads: known values, agreement with scipy and with exact fractions, regrouping, bad input."""

from __future__ import annotations

import math
import re
import warnings
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from accrual.core.errors import InputError
from accrual.problems.spreads import (
    FAMILIES,
    NAMES,
    BetaBinomial,
    Boltzmann,
    Continuous,
    Empirical,
    Hypergeometric,
    Spread,
    Uniform,
    Zipf,
    as_spread,
    named,
    parse,
    regroup,
)

shapes = st.floats(0.05, 200)
laws = st.one_of(
    st.just(Uniform()),
    st.builds(BetaBinomial, shapes, shapes),
    st.builds(Zipf, st.floats(0, 6)),
    st.builds(Boltzmann, st.floats(1e-3, 20)),
    st.builds(Hypergeometric, st.integers(400, 10**9)),
)
pmfs = (
    st.lists(st.floats(0, 1), min_size=1, max_size=30)
    .filter(lambda w: sum(w) > 0.01)
    .map(lambda w: np.array(w) / sum(w))
)


def centre(pmf: np.ndarray) -> float:
    """The mean age of the reward as a fraction of the window, each group standing for its middle."""
    return float((np.arange(len(pmf)) + 0.5) @ pmf) / len(pmf)


# --- known values ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "coincidence"), [("extreme_begin", 0.51), ("very_end", 0.14), ("begin", 0.05), ("end", 0.05)]
)
def test_the_papers_coincidences_at_50_groups(name, coincidence):
    assert round(named(name).coincidence(50), 2) == coincidence


@pytest.mark.parametrize("groups", [1, 2, 3, 20, 49, 1000])
def test_uniform_has_its_closed_forms(groups):
    assert Uniform().mean(groups) == (groups + 1) / 2
    assert Uniform().coincidence(groups) == 1 / groups
    assert Uniform().pmf(groups).tolist() == [1 / groups] * groups


def test_begin_over_three_groups_by_hand():
    # BetaBinom(2, 2, 8): C(2, k) B(k + 2, 10 - k) / B(2, 8)
    #   k = 0: (8 * 9) / (10 * 11) = 72 / 110;  k = 1: 2 * (2 * 8) / 110 = 32 / 110;  k = 2: (2 * 3) / 110
    pmf = named("begin").pmf(3)
    np.testing.assert_allclose(pmf, [72 / 110, 32 / 110, 6 / 110], rtol=1e-14)
    assert named("begin").mean(3) == pytest.approx((72 + 64 + 18) / 110, rel=1e-14)
    assert named("begin").coincidence(3) == pytest.approx((72**2 + 32**2 + 6**2) / 110**2, rel=1e-14)


def test_a_mean_by_the_beta_binomials_own_formula():
    # 1 + n a / (a + b) with n = groups - 1; at 50 groups "begin" has 1 + 49 * 2 / 10 = 10.8.
    assert named("begin").mean(50) == pytest.approx(10.8, rel=1e-13)
    for name, (a, b) in NAMES.items():
        assert named(name).mean(20) == pytest.approx(1 + 19 * a / (a + b), rel=1e-13)


def test_the_eight_names_in_the_papers_order_of_shapes():
    assert list(NAMES.values()) == [(1, 100), (1, 16), (2, 8), (2, 4), (5, 5), (4, 2), (8, 2), (16, 1)]


# --- against scipy, and against exact fractions where scipy itself rounds -------------------------

GROUPS = [1, 2, 5, 20, 50, 100]


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("shape", [*NAMES.values(), (0.3, 0.7), (60.5, 3)])
def test_beta_binomial_is_scipys(groups, shape):
    expected = stats.betabinom(groups - 1, *shape).pmf(np.arange(groups))
    np.testing.assert_allclose(BetaBinomial(*shape).pmf(groups), expected, rtol=1e-10)


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("s", [1, 2, 3, 4, 0.5])
def test_zipf_is_scipys(groups, s):
    expected = stats.zipfian(s, groups).pmf(np.arange(1, groups + 1))
    np.testing.assert_allclose(Zipf(s).pmf(groups), expected, rtol=1e-10)


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("decay", [1, 0.5, 0.25, 0.125])
def test_boltzmann_is_scipys(groups, decay):
    expected = stats.boltzmann(decay, groups).pmf(np.arange(groups))
    np.testing.assert_allclose(Boltzmann(decay).pmf(groups), expected, rtol=1e-10)


@pytest.mark.parametrize("population", [50, 100, 200, 300, 400, 500])
def test_hypergeometric_is_scipys(population):
    expected = stats.hypergeom(population, 19, 19).pmf(np.arange(20))
    np.testing.assert_allclose(Hypergeometric(population).pmf(20), expected, rtol=1e-9)


@pytest.mark.parametrize("population", [38, 39, 1000, 10**9, 10**15])
def test_hypergeometric_is_exact_for_any_population(population):
    exact = [Fraction(comb(19, k) * comb(population - 19, 19 - k), comb(population, 19)) for k in range(20)]
    np.testing.assert_allclose(Hypergeometric(population).pmf(20), np.array(exact, float), rtol=1e-12)


@pytest.mark.parametrize("shape", [(2, 8), (1, 100), (2 * 10**6, 8 * 10**6), (2 * 10**12, 8 * 10**12)])
def test_beta_binomial_is_exact_for_any_shape(shape):
    # For whole shapes: C(k + a - 1, k) C(n - k + b - 1, n - k) / C(n + a + b - 1, n).
    a, b = shape
    exact = [
        Fraction(comb(k + a - 1, k) * comb(49 - k + b - 1, 49 - k), comb(49 + a + b - 1, 49))
        for k in range(50)
    ]
    np.testing.assert_allclose(BetaBinomial(a, b).pmf(50), np.array(exact, float), rtol=1e-11)


# --- what holds for every spread ------------------------------------------------------------------


@given(law=laws, groups=st.integers(1, 200))
def test_a_pmf_is_one(law, groups):
    pmf = law.pmf(groups)
    assert pmf.shape == (groups,)
    assert (pmf >= 0).all()
    assert pmf.sum() == pytest.approx(1, abs=1e-12)


@given(law=laws, groups=st.integers(1, 200))
def test_mean_and_coincidence_are_those_of_the_pmf(law, groups):
    pmf = law.pmf(groups)
    assert law.mean(groups) == pytest.approx(sum((k + 1) * share for k, share in enumerate(pmf)), rel=1e-12)
    assert law.coincidence(groups) == pytest.approx(sum(share**2 for share in pmf), rel=1e-12)
    assert 1 - 1e-12 <= law.mean(groups) <= groups * (1 + 1e-12)
    assert (1 - 1e-12) / groups <= law.coincidence(groups) <= 1 + 1e-12


@given(a=shapes, b=shapes, groups=st.integers(1, 100))
def test_exchanging_the_shapes_mirrors_a_beta_binomial(a, b, groups):
    mirrored = BetaBinomial(b, a).pmf(groups)[::-1]
    np.testing.assert_allclose(BetaBinomial(a, b).pmf(groups), mirrored, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("groups", [1000, 4999, 100_000])
@pytest.mark.parametrize(
    "law",
    [*map(named, NAMES), Uniform(), Zipf(1), Zipf(4), Boltzmann(1), Boltzmann(0.001), Hypergeometric(10**6)],
    ids=str,
)
def test_thousands_of_groups_without_a_warning(law, groups):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pmf = law.pmf(groups)
    assert pmf.sum() == pytest.approx(1, abs=1e-12)
    assert (pmf >= 0).all()


@given(law=laws)
def test_a_label_reads_back_as_its_spread(law):
    assert parse(law.label) == law
    assert str(law) == law.label


@pytest.mark.parametrize("name", ["uniform", *NAMES])
def test_a_name_is_its_spreads_label(name):
    assert named(name).label == name
    assert as_spread(name) == named(name)


def test_a_spread_is_taken_as_it_is():
    law = Zipf(2)
    assert as_spread(law) is law


# --- regrouping -----------------------------------------------------------------------------------


@given(pmf=pmfs, groups=st.integers(1, 60))
def test_regrouping_keeps_the_mass(pmf, groups):
    new = regroup(pmf, groups)
    assert new.shape == (groups,)
    assert (new >= 0).all()
    assert new.sum() == pytest.approx(1, abs=1e-12)


@given(pmf=pmfs, times=st.integers(1, 8))
def test_refining_keeps_the_mean_and_coarsening_brings_back(pmf, times):
    fine = regroup(pmf, times * len(pmf))
    assert centre(fine) == pytest.approx(centre(pmf), abs=1e-12)
    np.testing.assert_allclose(fine.reshape(len(pmf), times).sum(axis=1), pmf, atol=1e-14)
    np.testing.assert_allclose(regroup(fine, len(pmf)), pmf, atol=1e-14)


@given(pmf=pmfs, times=st.integers(1, 8), groups=st.integers(1, 30))
def test_refining_first_changes_nothing(pmf, times, groups):
    np.testing.assert_allclose(
        regroup(regroup(pmf, times * len(pmf)), groups), regroup(pmf, groups), atol=1e-13
    )


def test_regrouping_three_to_two_by_hand():
    # Two new groups of 1.5 old ones: 0.6 + 0.3 / 2 and 0.3 / 2 + 0.1.
    np.testing.assert_allclose(regroup([0.6, 0.3, 0.1], 2), [0.75, 0.25], atol=1e-15)


def test_regrouping_to_the_same_number_is_a_copy():
    pmf = np.array([0.25, 0.75])
    same = regroup(pmf, 2)
    assert same.tolist() == [0.25, 0.75]
    assert not np.shares_memory(same, pmf)


# --- numbers and cdfs -----------------------------------------------------------------------------


def test_empirical_shares_are_kept_as_given():
    law = Empirical(np.array([0.5, 0.3, 0.2]))
    assert law.pmf(3).tolist() == [0.5, 0.3, 0.2]
    assert law.mean(3) == pytest.approx(1.7)
    assert law.coincidence(3) == pytest.approx(0.38)
    assert law == as_spread([0.5, 0.3, 0.2])
    assert hash(law) == hash(as_spread((0.5, 0.3, 0.2)))
    assert law.label == "[0.5, 0.3, 0.2]"
    np.testing.assert_allclose(law.pmf(6), [0.25, 0.25, 0.15, 0.15, 0.1, 0.1], atol=1e-15)


def test_an_empirical_spread_does_not_change_with_its_source():
    source = np.array([0.5, 0.5])
    law = Empirical(source)
    source[0] = 0.9
    assert law.pmf(2).tolist() == [0.5, 0.5]


def test_a_straight_cdf_is_uniform():
    law = Continuous(lambda age: age / 60, window=60)
    np.testing.assert_allclose(law.pmf(7), Uniform().pmf(7), rtol=1e-13)
    assert law.tail == 0


@pytest.mark.parametrize("groups", [1, 4, 12])
def test_an_exponential_cdf_is_a_boltzmann_spread(groups):
    # Groups of width w hold e^{-k w / scale} - e^{-(k + 1) w / scale}: each e^{-w / scale} times the last.
    law = Continuous(stats.expon(scale=10).cdf, window=24)
    np.testing.assert_allclose(law.pmf(groups), Boltzmann(24 / groups / 10).pmf(groups), rtol=1e-12)
    assert law.tail == pytest.approx(math.exp(-2.4), rel=1e-12)


@given(a=st.floats(0.2, 20), b=st.floats(0.2, 20), groups=st.integers(1, 12), times=st.integers(1, 6))
def test_a_continuous_spread_coarsens_exactly(a, b, groups, times):
    law = Continuous(stats.beta(a, b, scale=80).cdf, window=80)
    fine = law.pmf(groups * times)
    np.testing.assert_allclose(fine.reshape(groups, times).sum(axis=1), law.pmf(groups), atol=1e-12)


@pytest.mark.parametrize("window", [0.1, 0.7, 3.3, 1e-9, 80])
def test_a_cdf_is_never_asked_beyond_its_window(window):
    def cdf(age):
        assert age.max() <= window
        return age / window

    for groups in range(1, 60):
        Continuous(cdf, window).pmf(groups)


# --- bad input: one clear line --------------------------------------------------------------------

ALL_NAMES = ", ".join(["uniform", *NAMES, *(example for _, example in FAMILIES.values())])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Empirical([0.5, -0.1, 0.6]), "a spread must not be negative; group 2 is -0.1"),
        (lambda: Empirical([0.5, 0.4]), "a spread must sum to 1; it sums to 0.9 (divide by that)"),
        (lambda: Empirical([1e308, 1e308]), "a spread must sum to 1; it sums to inf (divide by that)"),
        (lambda: Empirical([0.5, math.nan]), "a spread must be finite; group 2 is nan"),
        (lambda: Empirical([math.inf]), "a spread must be finite; group 1 is inf"),
        (lambda: Empirical([]), "a spread must be a flat, non-empty list of numbers, one per group"),
        (lambda: Empirical([[1.0]]), "a spread must be a flat, non-empty list of numbers, one per group"),  # type: ignore[list-item]
        (lambda: as_spread(None), "a spread must be a list of numbers, not None"),  # type: ignore[arg-type]
        (lambda: Empirical(["a"]), "a spread must be a list of numbers, not ['a']"),  # type: ignore[list-item]
        (lambda: regroup([0.5, 0.4], 2), "a spread must sum to 1; it sums to 0.9 (divide by that)"),
        (lambda: regroup([1.0], 0), "groups must be a whole number from 1 to 1000000, not 0"),
        (lambda: named("begn"), f"unknown spread 'begn'; did you mean 'begin'? (one of: {ALL_NAMES})"),
        (lambda: as_spread("qqq"), f"unknown spread 'qqq' (one of: {ALL_NAMES})"),
        (
            lambda: parse("zip(2)"),
            f"unknown spread 'zip'; did you mean 'zipf'? (one of: {', '.join(FAMILIES)})",
        ),
        (lambda: parse("zipf(1, 2)"), "cannot read the spread 'zipf(1, 2)'; write for example 'zipf(2)'"),
        (lambda: Uniform().pmf(0), "groups must be a whole number from 1 to 1000000, not 0"),
        (lambda: Uniform().mean(0), "groups must be a whole number from 1 to 1000000, not 0"),
        (lambda: Uniform().coincidence(-1), "groups must be a whole number from 1 to 1000000, not -1"),
        (lambda: named("begin").pmf(2.5), "groups must be a whole number from 1 to 1000000, not 2.5"),  # type: ignore[arg-type]
        (lambda: named("begin").mean(math.nan), "groups must be a whole number from 1 to 1000000, not nan"),  # type: ignore[arg-type]
        (lambda: BetaBinomial(0, 1), "a beta-binomial's a must be a positive number, not 0"),
        (lambda: BetaBinomial(1, math.nan), "a beta-binomial's b must be a positive number, not nan"),
        (lambda: BetaBinomial("2", 8), "a beta-binomial's a must be a positive number, not '2'"),  # type: ignore[arg-type]
        (lambda: Zipf(-1), "a Zipf spread's s must be 0 or more, not -1"),
        (lambda: Zipf(None), "a Zipf spread's s must be 0 or more, not None"),  # type: ignore[arg-type]
        (lambda: Boltzmann(0), "a Boltzmann spread's decay must be a positive number, not 0"),
        (lambda: Boltzmann(math.inf), "a Boltzmann spread's decay must be a positive number, not inf"),
        (
            lambda: Hypergeometric(1.5),  # type: ignore[arg-type]
            "a hypergeometric spread's population must be a whole number of at least 1, not 1.5",
        ),
        (
            lambda: Hypergeometric(37).pmf(20),
            "a hypergeometric spread over 20 groups needs a population of at least 38, not 37",
        ),
        (lambda: Continuous(np.sqrt, 0), "a continuous spread's window must be a positive number, not 0"),
        (
            lambda: Continuous(0.5, 10),  # type: ignore[arg-type]
            "a continuous spread's cdf must be a function of the age, not 0.5",
        ),
        (lambda: Continuous(lambda age: -age, 10).pmf(2), "a continuous spread's cdf must not decrease"),
        (
            lambda: Continuous(np.zeros_like, 10).pmf(2),
            "a continuous spread's cdf must grow somewhere in [0, 10]",
        ),
        (
            lambda: Continuous(lambda age: age * np.nan, 10).pmf(2),
            "a continuous spread's cdf must give one finite number for each age",
        ),
        (
            lambda: Continuous(lambda age: 0.5, 10).pmf(2),
            "a continuous spread's cdf must give one finite number for each age",
        ),
    ],
)
def test_bad_input_gets_one_clear_line(make, message):
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        make()


# --- pictures -------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", [named("begin"), Empirical([0.8, 0.2])], ids=str)
def test_plot_writes_a_picture(law: Spread, tmp_path):
    path = tmp_path / "spread.png"
    ax = law.plot(20, path)
    assert path.read_bytes().startswith(b"\x89PNG\r\n")
    x, y = ax.lines[0].get_data()
    assert list(x) == list(range(1, 21))
    np.testing.assert_array_equal(y, law.pmf(20))
    assert ax.get_legend_handles_labels()[1] == [law.label]


def test_several_spreads_share_one_picture():
    ax = named("begin").plot(10)
    assert named("end").plot(10, ax=ax) is ax
    assert ax.get_legend_handles_labels()[1] == ["begin", "end"]
    assert ax.get_ylim()[1] > max(named("begin").pmf(10).max(), named("end").pmf(10).max())
