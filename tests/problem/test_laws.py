"""Every law pays what its `means` say, never above its cap, and the same in any span."""

import numpy as np
import pytest

import accrual as ac
from accrual.environment.feed import Feed, Source
from accrual.environment.laws import pack
from accrual.laws import Law

GROUPS = 4
ROWS = [[0.5, 0.0, 0.25, 0.25], [0.0, 0.0, 0.0, 0.1], [0.0, 0.3, 0.0, 0.0]]
LAWS: dict[str, Law] = {
    "uniform": ac.UniformLaw("begin"),
    "beta": ac.BetaLaw([0.5, 1, 2, 30], [3, 1, 0.5, 10], "end"),
    "bernoulli": ac.BernoulliLaw([0.0, 0.2, 0.7, 1.0], [0.4, 0.3, 0.2, 0.1]),
    "empirical": ac.EmpiricalLaw(ROWS),
    "lump": ac.LumpLaw(0.6, [0.5, 0.0, 0.2, 0.3]),
    "sparse": ac.LumpLaw(0.01),
    "leaving": ac.LeavingLaw([0.9, 0.8, 1.0, 0.5], [1.0, 0.7, 0.5, 0.9], "middle"),
    "scaled lump": ac.ScaledLaw(ac.LumpLaw(0.6), 0.25),
    "scaled leaving": ac.ScaledLaw(ac.LeavingLaw(0.9), 0.5),
    "scaled empirical": ac.ScaledLaw(ac.EmpiricalLaw(ROWS), 0.5),
    "scaled twice": ac.ScaledLaw(ac.ScaledLaw(ac.UniformLaw(), 0.5), 0.5),
}


def problem() -> ac.Problem:
    """One arm for each law; caps of 1, so that pay and shares are the same."""
    return ac.Problem([1.0] * len(LAWS), window=2 * GROUPS, groups=GROUPS, laws=list(LAWS.values()))


def group_pay(rounds: int, span: int, seed: int = 5, run: int = 2) -> np.ndarray:
    """What each group of each round's decision pays, rounds x laws x groups."""
    given = problem()
    source = Source(given, pack(given), seed, run)
    parts = []
    for start in range(0, rounds, span):
        length = min(span, rounds - start)
        feed: Feed = source.read(length)
        parts.append(np.diff(feed.paid[given.window : given.window + length], axis=2))
    return np.concatenate(parts)


@pytest.fixture(scope="module")
def pay() -> np.ndarray:
    return group_pay(rounds=40_000, span=256)


@pytest.mark.parametrize("name", LAWS)
def test_mean_of_many_draws(pay, name):
    """Within four standard errors; 44 comparisons, each of which errs with probability 6e-5."""
    drawn = pay[:, list(LAWS).index(name)]
    error = drawn.std(axis=0, ddof=1) / np.sqrt(len(drawn))
    means = LAWS[name].means(GROUPS)
    assert (np.abs(drawn.mean(axis=0) - means) <= 4 * error + 1e-12).all()


@pytest.mark.parametrize("name", LAWS)
def test_mean_of_the_total(pay, name):
    """The same for totals, whose standard error knows how the groups depend on each other."""
    total = pay[:, list(LAWS).index(name)].sum(axis=1)
    mean = problem().means[list(LAWS).index(name)]
    assert abs(total.mean() - mean) <= 4 * total.std(ddof=1) / np.sqrt(len(total))


@pytest.mark.parametrize("name", LAWS)
def test_totals_stay_within_the_cap(pay, name):
    drawn = pay[:, list(LAWS).index(name)]
    most = {"scaled lump": 0.25, "scaled leaving": 0.5, "scaled empirical": 0.5, "scaled twice": 0.25}
    assert drawn.min() >= 0.0
    assert drawn.sum(axis=1).max() <= most.get(name, 1.0) + 1e-12


def test_draws_do_not_depend_on_the_span():
    whole = group_pay(rounds=500, span=250)
    for span in (1, 7, 64, 100):
        np.testing.assert_array_equal(group_pay(rounds=500, span=span), whole)


def test_draws_depend_on_seed_run_and_round():
    first = group_pay(rounds=50, span=50)
    assert (first != group_pay(rounds=50, span=50, seed=6)).any()
    assert (first != group_pay(rounds=50, span=50, run=3)).any()
    assert (first[0] != first[1]).any()


def test_a_lump_falls_in_one_group(pay):
    drawn = pay[:, list(LAWS).index("lump")]
    paid = drawn > 0
    assert set(paid.sum(axis=1)) == {0, 1}
    assert not paid[:, 1].any()  # the spread gives this group nothing
    assert set(np.unique(drawn.sum(axis=1))) == {0.0, 1.0}
    # 40,000 decisions, 60 % of which pay: four standard errors are 0.0098.
    assert paid.any(axis=1).mean() == pytest.approx(0.6, abs=0.0098)


def test_who_has_left_pays_nothing_more():
    law = ac.LeavingLaw(stay=[1.0, 0.5, 0.5, 0.5])  # pays in every group while there
    given = ac.Problem([1.0], 4, 4, law)
    source = Source(given, pack(given), 0, 0)
    feed = source.read(4000)
    there = np.diff(feed.paid[4:4004, 0], axis=1) > 0
    assert there[:, 0].all()
    assert (there[:, 1:] <= there[:, :-1]).all()
    # Leaving after g groups: 1/2, 1/4, 1/8, 1/8; four standard errors of 4000 are at most 0.032.
    stayed = np.bincount(there.sum(axis=1), minlength=5)[1:] / 4000
    np.testing.assert_allclose(stayed, [0.5, 0.25, 0.125, 0.125], atol=0.032)


def test_skipping_a_group_is_not_leaving(pay):
    drawn = pay[:, list(LAWS).index("leaving")]
    assert ((drawn[:, 1] == 0) & (drawn[:, 2] > 0)).any()


def test_staying_for_certain_is_bernoulli():
    stays = ac.LeavingLaw(stay=1.0, p=0.3, spread="begin")
    coin = ac.BernoulliLaw(0.3, "begin")
    given = ac.Problem([1.0, 1.0], 8, 4, [stays, coin])
    feed = Source(given, pack(given), 1, 1).read(300)
    np.testing.assert_array_equal(feed.paid[8:308, 0], feed.paid[8:308, 1])


def test_scaling_scales_every_draw():
    given = ac.Problem([1.0, 1.0], 8, 4, [ac.UniformLaw(), ac.ScaledLaw(ac.UniformLaw(), 0.25)])
    feed = Source(given, pack(given), 1, 1).read(300)
    np.testing.assert_allclose(feed.paid[8:308, 1], feed.paid[8:308, 0] / 4, rtol=1e-13)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: ac.LumpLaw(1.5), "between 0 and 1, not 1.5"),
        (lambda: ac.LumpLaw(float("nan")), "between 0 and 1, not nan"),
        (lambda: ac.LumpLaw("often"), "p must be a number, not 'often'"),  # type: ignore[arg-type]
        (lambda: ac.LeavingLaw(1.1).means(4), "stay must be between 0 and 1"),
        (lambda: ac.LeavingLaw(0.9, [0.1, 0.2]).means(4), r"p must be one number or 4 \(one per group\)"),
        (lambda: ac.ScaledLaw(ac.UniformLaw(), 0.0), "above 0 and at most 1, not 0.0"),
        (lambda: ac.ScaledLaw(0.5, 0.5), "needs a law to scale, not 0.5"),  # type: ignore[arg-type]
    ],
)
def test_bad_settings(make, says):
    with pytest.raises(ac.InputError, match=says):
        make()
