"""The library's laws pass the published suite, and pay as their docstrings say."""

import numpy as np
import pytest
from own_law import TipLaw

import accrual as ac
from accrual.engine.feed import RunFeed
from accrual.engine.law_kernels import pack
from accrual.problems import laws
from accrual.problems.laws import Law
from accrual.testing import LawSuite

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
    "own": TipLaw(0.6, 0.5),
    "scaled twice": ac.ScaledLaw(ac.ScaledLaw(ac.UniformLaw(), 0.5), 0.5),
}


class TestLaws(LawSuite):
    def make_laws(self):
        return list(LAWS.values())


def test_the_suite_is_given_every_law():
    assert {type(law) for law in LAWS.values()} > set(laws.LAWS.values())


def group_pay(law: Law, rounds: int, seed: int = 5, run: int = 2) -> np.ndarray:
    """What each group of each round's decision pays, rounds x groups."""
    given = ac.Problem([1.0], window=2 * GROUPS, groups=GROUPS, laws=law)
    feed = RunFeed(given, pack(given), seed, run)
    spans = (feed.read(250).paid[given.window : given.window + 250, 0] for _ in range(rounds // 250))
    return np.concatenate([np.diff(span, axis=1) for span in spans])


def test_draws_depend_on_seed_run_and_round():
    first = group_pay(LAWS["beta"], 250)
    assert (first != group_pay(LAWS["beta"], 250, seed=6)).any()
    assert (first != group_pay(LAWS["beta"], 250, run=3)).any()
    assert (first[0] != first[1]).any()


def test_a_lump_falls_in_one_group():
    drawn = group_pay(LAWS["lump"], 40_000)
    paid = drawn > 0
    assert set(paid.sum(axis=1)) == {0, 1}
    assert not paid[:, 1].any()  # the spread gives this group nothing
    assert set(np.unique(drawn.sum(axis=1))) == {0.0, 1.0}
    # 40,000 decisions, 60 % of which pay: four standard errors are 0.0098.
    assert paid.any(axis=1).mean() == pytest.approx(0.6, abs=0.0098)


def test_who_has_left_pays_nothing_more():
    law = ac.LeavingLaw(stay=[1.0, 0.5, 0.5, 0.5])  # pays in every group while there
    given = ac.Problem([1.0], 4, 4, law)
    source = RunFeed(given, pack(given), 0, 0)
    feed = source.read(4000)
    there = np.diff(feed.paid[4:4004, 0], axis=1) > 0
    assert there[:, 0].all()
    assert (there[:, 1:] <= there[:, :-1]).all()
    # Leaving after g groups: 1/2, 1/4, 1/8, 1/8; four standard errors of 4000 are at most 0.032.
    stayed = np.bincount(there.sum(axis=1), minlength=5)[1:] / 4000
    np.testing.assert_allclose(stayed, [0.5, 0.25, 0.125, 0.125], atol=0.032)


def test_skipping_a_group_is_not_leaving():
    drawn = group_pay(LAWS["leaving"], 1000)
    assert ((drawn[:, 1] == 0) & (drawn[:, 2] > 0)).any()


def test_staying_for_certain_is_bernoulli():
    stays = ac.LeavingLaw(stay=1.0, p=0.3, spread="begin")
    coin = ac.BernoulliLaw(0.3, "begin")
    given = ac.Problem([1.0, 1.0], 8, 4, [stays, coin])
    feed = RunFeed(given, pack(given), 1, 1).read(300)
    np.testing.assert_array_equal(feed.paid[8:308, 0], feed.paid[8:308, 1])


class _Bare(ac.UniformLaw):
    def params(self, groups, scale):
        return (1.0,)


class _Empty(ac.UniformLaw):
    def params(self, groups, scale):
        return super().params(groups, scale)._replace(caps=0.5)  # type: ignore[arg-type]


def test_arrays_of_laws_that_share_them_are_packed_once():
    shared = [ac.BetaLaw(2.0, 3.0, spread) for spread in ("begin", "end", "uniform")]
    arrays = pack(ac.Problem([1.0] * 3, 8, 4, shared)).arrays
    assert len(arrays.params[0].tables) == 1
    assert len(arrays.params[0].caps) == 12


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: ac.LumpLaw(1.5), "between 0 and 1, not 1.5"),
        (lambda: ac.LumpLaw(float("nan")), "must be a number, not nan"),
        (lambda: ac.LumpLaw("often"), "p must be a number, not 'often'"),  # type: ignore[arg-type]
        (lambda: ac.LeavingLaw(1.1).means(4), "stay must be between 0 and 1"),
        (lambda: ac.LeavingLaw(0.9, [0.1, 0.2]).means(4), r"p must be one number or 4 \(one per group\)"),
        (lambda: ac.ScaledLaw(ac.UniformLaw(), 0.0), "above 0 and at most 1, not 0.0"),
        (lambda: ac.Problem([1.0], 4, 2, laws=[0.2]), r"laws must be reward laws .*, not 0.2$"),  # type: ignore[list-item]
        (lambda: ac.Problem([1.0], 4, 2, laws=0.2), r"laws must be reward laws .*, not 0.2$"),  # type: ignore[arg-type]
        (lambda: pack(ac.Problem([1.0], 4, 2, _Bare())), "params of _Bare must be a named tuple of arrays"),
        (lambda: pack(ac.Problem([1.0], 4, 2, _Empty())), "caps in the params of _Empty must be an array"),
        (lambda: ac.ScaledLaw(0.5, 0.5), "needs a law to scale, not 0.5"),  # type: ignore[arg-type]
    ],
)
def test_bad_settings(make, says):
    with pytest.raises(ac.InputError, match=says):
        make()
