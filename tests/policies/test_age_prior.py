"""AgePrior: its estimates by hand, what limits them, and problems that the older Age policies failed."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

import accrual as ac
from accrual.engine.recording import record
from accrual.live.ledger import Ledger
from accrual.policies.age_prior import learning, model
from accrual.policies.age_prior.policy import AgePrior, _larger, weigh
from accrual.policies.base import Moment
from accrual.policies.catalog import parse
from accrual.problems import families
from accrual.problems.laws import EmpiricalLaw

MOMENT = Moment(10, math.log(9), 0, 0)


def two_buckets(decisions: Sequence[Sequence[tuple[float, float | None]]], cap: float = 2.0):
    """Statistics of arms with this cap, whose decisions paid so much by each edge; None where it is open."""
    policy = AgePrior(buckets=2)
    params = policy.params(np.full(len(decisions), cap), 4)
    stats = policy.stats(params)
    for arm, made in enumerate(decisions):
        for first, last in made:
            stats.pulls[arm] += 1
            model.decided(params, stats, arm)
            model.finished(params, stats, arm, 0, 0.0, first)
            if last is not None:
                model.finished(params, stats, arm, 1, first, last)
    return params, stats


CLOSED = [(0.0, 2.0), (1.0, 1.0), (0.5, 1.5), (0.0, 0.0), (0.2, 0.3)]


@pytest.mark.parametrize("kappa", [0.5, 7.0, 1e4])
def test_closed_decisions_have_the_plain_mean(kappa):
    """Whatever kappa, spread and prior say; so does the second moment."""
    params, stats = two_buckets([CLOSED, [(0.1, 0.4)] * 8])
    learning.refresh(params, stats)
    stats.shared[model.KAPPA] = kappa
    model.estimate(params, stats, 0)
    totals = np.array([last for _, last in CLOSED]) / 2.0
    assert stats.own[0] == pytest.approx(totals.mean())
    assert stats.second[0] == pytest.approx((totals**2).mean())
    # Full decisions that it stands on: all five, but for how the two buckets' noises average.
    assert stats.weight[0] == pytest.approx(5.0 / (stats.spread @ stats.noise))


def test_open_decisions_are_filled_in_by_the_arms_own_level():
    """By hand, with one level for both buckets (no tilt): S, and what the open ones are expected to pay."""
    params, stats = two_buckets([[(0.4, 1.6), (0.8, 1.2), (0.6, None)], [(0.1, 0.4)] * 20])
    learning.refresh(params, stats)
    stats.shared[[model.KAPPA, model.TILT]] = 3.0, 1e-12
    stats.noise[:] = stats.quiet[:] = 1.0
    model.estimate(params, stats, 0)
    p, kappa = stats.spread, 3.0
    paid, seen = np.array([0.9, 0.8]), np.array([3.0, 2.0])  # in caps
    level = (paid / (seen + kappa)).sum() / (p * seen / (seen + kappa)).sum()
    late = (paid[1] + kappa * p[1] * level) / (seen[1] + kappa)  # the late bucket: own and model, 2 to 3
    assert stats.own[0] == pytest.approx((paid.sum() + late) / 3.0, rel=1e-6)


def test_an_unseen_late_age_makes_an_estimate_less_sure():
    weights = []
    for closed in (4, 2, 0):
        made: list[tuple[float, float | None]] = [(0.4, 1.0)] * closed + [(0.4, None)] * (4 - closed)
        params, stats = two_buckets([made, [(0.1, 0.4), (0.3, 0.3)] * 10])
        learning.refresh(params, stats)
        stats.shared[model.KAPPA] = 2.0
        model.estimate(params, stats, 0)
        weights.append(stats.weight[0])
    assert weights[0] > weights[1] > weights[2] > 0.0


def half_closed(kappa: float):
    """400 decisions that have begun, of which 200 have closed and the others are on their way."""
    policy = AgePrior(buckets=20)
    params = policy.params(np.ones(2), 400)
    stats = policy.stats(params)
    buckets = len(params.spread)
    stats.seen[0] = np.linspace(400, 200, buckets)
    stats.spread[:] = stats.spread2[:] = 1.0 / buckets
    stats.late[:] = 2.0 * (np.arange(buckets) + 0.5) / buckets - 1.0
    sh = stats.shared
    sh[[model.REACH, model.PART, model.READY]] = buckets, 1.0, 1.0
    sh[[model.KAPPA, model.SIGMA2, model.BETWEEN, model.TILT, model.LEVEL]] = kappa, 0.01, 0.01, 0.01, 0.5
    return params, stats


@pytest.mark.parametrize("kappa", [5.0, 500.0, 1e4])
def test_the_weight_is_that_of_the_errors_of_the_models_own_draws(kappa):
    """The model is drawn 4,000 times: `own` is off with variance SIGMA2 / weight, to 7 % (three errors)."""
    params, stats = half_closed(kappa)
    dice = np.random.default_rng(9)
    sh, p, z, n = stats.shared, stats.spread, stats.late, stats.seen[0]
    off = []
    for _ in range(4000):
        tilt = dice.normal(0.0, math.sqrt(sh[model.TILT]))
        means = p * (0.5 + tilt * z) + dice.normal(0.0, np.sqrt(p * sh[model.SIGMA2] / kappa))
        stats.paid[0] = n * means + dice.normal(0.0, np.sqrt(n * p * sh[model.SIGMA2]))
        model.estimate(params, stats, 0)
        off.append(stats.own[0] - means.sum())
    assert sh[model.SIGMA2] / np.mean(np.square(off)) == pytest.approx(stats.weight[0], rel=0.07)


def test_an_arm_does_not_stand_on_more_full_decisions_than_it_has_had():
    params, stats = half_closed(1e4)
    stats.paid[0] = 0.5 * stats.seen[0] * stats.spread
    model.estimate(params, stats, 0)
    assert stats.weight[0] == pytest.approx(287.8, abs=0.1)  # 443 if what is filled in counted as news


def test_the_prior_moves_an_estimate_by_a_few_standard_errors_at_most():
    params, stats = two_buckets([[(0.9, 1.9), (1.0, 2.0)] * 20, *[[(0.1, 0.4), (0.0, 0.3)] * 5] * 6])
    learning.refresh(params, stats)
    error = np.sqrt(stats.variance / stats.weight)
    assert (np.abs(stats.mean - stats.own) <= params.pull * error * (1 + 1e-12)).all()
    assert stats.mean[0] < stats.own[0]  # towards the others
    assert stats.mean[0] > 0.9


def test_estimates_are_continuous_at_the_cap():
    """A mean a hair above the cap halved everything in the older Age policies."""
    seen = []
    for over in (-1e-7, 0.0, 1e-7):
        params, stats = two_buckets([[(1.0, 2.0 + over)] * 8, [(0.5, 1.0)] * 8])
        learning.refresh(params, stats)
        seen.append(stats.mean.copy())
    np.testing.assert_allclose(seen[0], seen[2], atol=1e-6)


def test_an_arm_that_paid_nothing_keeps_a_wide_variance_and_an_untried_one_the_usual():
    regular = [(0.2, 0.4), (0.22, 0.42)] * 10
    params, stats = two_buckets([regular, [(0.0, 0.0)] * 10, []])
    learning.refresh(params, stats)
    assert stats.variance[1] > 20 * stats.variance[0]
    assert stats.variance[2] == pytest.approx(stats.shared[model.SIGMA2])
    assert stats.mean[2] == pytest.approx(stats.shared[model.LEVEL])


def test_arms_are_judged_as_if_some_decisions_had_paid_what_totals_are_in_size():
    """Five for few arms; by hand, for one of 100 arms that paid and for one that paid nothing."""
    params, stats = two_buckets([*[[(0.02, 0.04), (0.01, 0.06)] * 3] * 99, [(0.0, 0.0)] * 5])
    learning.refresh(params, stats)
    totals = np.array([0.02, 0.03])  # in caps
    size = (totals**2).mean() / totals.mean()
    assert model.size(params, stats, 0) == pytest.approx(size) == pytest.approx(stats.shared[model.SIZE] / 2)
    assert params.share == pytest.approx(100 / 110)
    noise = stats.shared[model.SIGMA2]
    usual = [max(totals.var(), min(noise, (totals**2).mean())), noise]
    lumps = 5 * (10 / 110) ** 2
    larger = [lumps * (size**2 - totals.mean() ** 2), lumps + params.share * size**2]
    for arm, spare, one, more in zip((0, 99), (totals.var(), 0.0), usual, larger, strict=True):
        weight = stats.weight[arm]
        by_hand = (weight * spare + 2.0 * one + more * weight / (1.0 + weight)) / (weight + 2.0)
        assert stats.variance[arm] == pytest.approx(by_hand)


def test_the_odds_that_an_arm_is_like_no_other():
    """By hand: two Gaussians of its own estimate; one that has not paid is as rare as arms are many."""
    coin, sure = [(0.0, 2.0)] * 18 + [(0.0, 0.0)] * 2, [(0.4, 0.8), (0.5, 0.9)] * 10
    params, stats = two_buckets([coin, *[sure] * 18, []])
    learning.refresh(params, stats)
    sh = stats.shared
    expected, own = sh[model.LEVEL], 18 / 20
    assert stats.own[0] == pytest.approx(own)
    narrow = stats.variance[0] / stats.weight[0] + sh[model.BETWEEN]
    assert stats.mean[0] < own  # it is not lifted, so its variance is as it was
    densities = [
        math.exp(-((own - expected) ** 2) / (2 * v)) / math.sqrt(v) for v in (narrow + expected**2, narrow)
    ]
    rarer = 21 ** (20 / 30)
    odds = densities[0] / densities[1] / rarer
    assert math.exp(stats.price[0]) == pytest.approx(1 + 1 / odds, rel=1e-3)
    assert stats.share[0] == pytest.approx(params.share / (1 + odds), rel=1e-3)
    assert stats.price[1] > stats.price[19] == pytest.approx(math.log(1 + rarer))


def test_the_size_of_a_retired_arms_totals_is_its_own():
    """While it is retired its cap is 0, and late pieces may still come."""
    params, stats = two_buckets([[(0.2, 0.4)] * 8, [(0.5, 1.0)] * 8])
    learning.refresh(params, stats)
    caps = np.array([0.0, 2.0])
    with np.errstate(divide="ignore"):
        retired = params._replace(cap=caps, inverse_cap=1.0 / caps)
    assert model.size(params, stats, 0) == pytest.approx((0.2 + 0.5) / 2)
    assert model.size(retired, stats, 0) == pytest.approx(0.2)


def test_a_late_piece_is_as_good_as_one_in_time():
    params, late = two_buckets([[(0.4, 1.0), (0.2, 0.8)], [(0.1, 0.5)] * 9])
    _, prompt = two_buckets([[(0.4, 1.0), (0.5, 1.1)], [(0.1, 0.5)] * 9])
    model.amended(
        params, late, 0, 0, 0.0, 0.2, 0.0, 0.3
    )  # 0.3 more in the first bucket of the second decision
    model.amended(params, late, 0, 1, 0.2, 0.8, 0.3, 0.3)
    for stats in (late, prompt):
        learning.refresh(params, stats)
    for name, value in prompt._asdict().items():
        np.testing.assert_allclose(getattr(late, name), value, rtol=1e-9, atol=1e-12, err_msg=name)


def test_costs_by_hand():
    """An arm whose totals are 0 or the cap, known by many decisions: kl of coins, and its kind's price."""
    params, stats = two_buckets(
        [[(0.0, 2.0)] * 60 + [(0.0, 0.0)] * 40, [(0.0, 2.0)] * 30 + [(0.0, 0.0)] * 70]
    )
    learning.refresh(params, stats)
    AgePrior.functions.survey(params, stats, MOMENT)
    stats.shared[model.TARGET] = 2.0 * 0.6
    divergence = 0.3 * math.log(0.5) + 0.7 * math.log(0.7 / 0.4)
    share = 2 / (2 + 10)  # of two arms, how far they are treated as very many
    params, found = params._replace(surprise=1000.0), []
    for chance in (1e-13, 0.6):  # that the arm is like no other
        stats.own[1], stats.mean[1], stats.variance[1] = 0.3, 0.3, 0.21
        stats.price[1], stats.share[1] = -math.log(chance), share * (1 - chance)
        stats.variance[1] -= model.lumps(params, stats, 1, share * (1 - chance))
        stats.variance[1] += model.lumps(params, stats, 1, share)
        weigh(params, stats, 1)
        held = 101**2 / (101 + 2 * (1 - share * (1 - chance)))  # 101 decisions count as so many
        assert stats.cost_alone[1] == pytest.approx(held * divergence - math.log(chance))
        found.append(stats.cost[1])
    held = 101**2 / (101 + 2 * (1 - share))
    assert found[0] == pytest.approx(held * divergence)  # the prior counts as one decision as well


def test_a_try_of_an_arm_like_no_other_is_worth_what_it_is_among_few():
    """Of 20 arms one is unlike the others for sure: the logarithm of the leader's decisions over its own."""
    params, stats = two_buckets([[(0.9, 1.8), (1.0, 1.7)] * 40, *[[(0.5, 1.0), (0.4, 0.9)] * 5] * 19])
    learning.refresh(params, stats)
    AgePrior.functions.survey(params, stats, MOMENT)
    stats.cost[1], stats.cost_alone[1] = 100.0, 0.25
    behind = stats.log_count[0] - stats.log_alone[1]
    for share, worth in ((0.0, behind), (20 / 30, (1 - 0.65 * 20 / 30) * behind)):
        stats.share[1] = share
        assert AgePrior.functions.index(params, stats, 1, MOMENT) == pytest.approx(worth - 0.25)


def test_the_cost_of_larger_totals_by_hand():
    """100 totals of a hundredth of the cap: what speaks against a mean of 0.012, by rare totals near b."""
    params, stats = two_buckets([[(0.01, 0.02)] * 100, [(0.01, 0.02), (0.0, 0.02)] * 50])
    learning.refresh(params, stats)
    params = params._replace(surprise=2.0)
    power = 2.0 * 100 / 101  # in full, were the size of totals known for sure
    chance = [
        power * math.log(b / 0.01) - 100 * math.log(1 - 0.002 / (b - 0.01))
        for b in np.geomspace(0.013, 1, 4000)
    ]
    found = _larger(params, stats, 0, 0.002, 100.0)
    assert min(chance) <= found <= min(chance) + 0.02  # it takes nearly the likeliest b
    facts = params._replace(surprise=0.0)
    assert _larger(facts, stats, 0, 0.002, 100.0) == pytest.approx(-100 * math.log(1 - 0.002 / 0.99))
    assert _larger(params, stats, 0, 0.995, 100.0) == math.inf  # beyond the cap


def test_larger_caps_change_nothing_in_estimates_and_in_costs():
    """Caps 20 times as large: the same means and variances in rewards, and the same evidence."""
    made = [
        [(0.2, 0.6), (0.1, 0.3), (0.4, 0.4), (0.0, 0.2)] * 5,
        [(0.1, 0.9), (0.3, 1.0), (0.2, 0.7)] * 5,
        [(first / 2.0, last / 2.0) for first, last in CLOSED],
    ]
    found = []
    for cap in (2.0, 40.0):
        params, stats = two_buckets(made, cap)
        learning.refresh(params, stats)
        params = params._replace(surprise=1000.0)  # larger totals, up to the cap, are another matter
        AgePrior.functions.survey(params, stats, MOMENT)
        rewards = [cap * stats.own, cap * stats.mean, cap * np.sqrt(stats.variance)]
        found.append([*rewards, stats.weight, stats.price, stats.cost, stats.cost_alone])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9, atol=1e-12)


def test_a_noisy_arm_among_sure_ones_keeps_its_own_variance():
    params, stats = two_buckets([[(0.0, 2.0)] * 3 + [(0.0, 0.0)] * 5, *[[(0.4, 0.8)] * 8] * 9])
    learning.refresh(params, stats)
    assert stats.variance[0] >= 15 / 64
    assert stats.shared[model.SIGMA2] < 0.1


def test_totals_as_large_as_those_of_other_arms_are_no_surprise():
    """Four totals of a twentieth: what other arms pay in size counts, by its mean."""
    params, stats = two_buckets([[(0.05, 0.1)] * 4, [(0.4, 0.8)] * 20, [(0.4, 0.8)] * 20])
    learning.refresh(params, stats)
    params = params._replace(surprise=2.5)
    size = (0.05 + 0.4 + 0.4) / 3
    assert stats.shared[model.SIZE] == pytest.approx(2.0 * size)  # the cap is 2
    power = 0.8 * params.surprise  # four payments
    largest = 0.05 + 5.0 * 0.35 / power  # nearly the likeliest b
    expected = power * math.log(largest / size) - 5.0 * math.log(1 - 0.35 / (largest - 0.05))
    assert _larger(params, stats, 0, 0.35, 5.0) == pytest.approx(expected)


def test_refunds_do_not_make_totals_larger_than_caps():
    """Totals of the cap and of nearly minus the cap: the mean is a hundredth of what one pays in size."""
    params, stats = two_buckets([[(2.0, 2.0), (-1.0, -1.96)] * 10, [(0.1, 0.4)] * 20])
    learning.refresh(params, stats)
    assert stats.own[0] == pytest.approx(0.01)
    assert stats.shared[model.SIZE] == pytest.approx((2.0 + 0.4) / 2)


def test_quiet_arms_keep_what_they_have_shown():
    """Arms that always pay the same at early ages, and lumps of their own size late.

    The model may not fill in what a quiet arm's open decisions will pay from what the noisy arm pays late.
    """
    late = np.zeros(20)
    late[-3:] = 1 / 3

    def law(low, high):
        return EmpiricalLaw(np.array([np.full(20, low / 20), np.full(20, low / 20) + (high - low) * late]))

    laws = [law(0.3, 0.5), law(0.42, 0.46), law(0.05, 0.9), law(0.35, 0.45)]
    problem = ac.Problem([1.0] * 4, 100, 20, laws)
    for seed in range(4):
        stats = record(problem, AgePrior(), 1600, seed=seed).stats
        assert stats.shared[model.KAPPA] < 100  # it was 600 to 2,300 where rounding was taken for noise
        assert stats.quiet[1] < 0.1
        assert stats.quiet[2] > 0.6
        assert stats.own[1] == pytest.approx(0.44, abs=0.006)


def late_lumps_beside_sure_arms():
    """A coin whose whole reward comes last, beside arms that pay the same each time, early."""
    sure = [ac.ScaledLaw(ac.BernoulliLaw(1.0, "very_begin"), m) for m in (0.2, 0.24, 0.28)]
    return families.plain(200, [ac.LumpLaw(0.36, "very_end"), *sure])


def test_kappa_is_where_pearsons_statistic_equals_its_degrees_of_freedom():
    stats = record(late_lumps_beside_sure_arms(), AgePrior(), 1600).stats
    for _ in range(10):  # it starts from where it was
        learning._learn_kappa(stats, 20)
    sh, seen, level = stats.shared, stats.seen, stats.mean
    expected = (level[:, None] + stats.tilt[:, None] * stats.late) * stats.spread
    noise = stats.scratch[0]
    theta = noise[0] / stats.noise[0] / sh[model.KAPPA]
    cells = (seen >= 2) & (stats.scratch[1] > 0) & (expected > 0)
    off = (stats.paid / seen - expected) ** 2 / expected / (stats.quiet[:, None] * noise / seen + theta)
    freedom = (cells.sum(axis=1) - 2).sum() - (stats.scratch[1].sum() - 1)
    assert 0.5 < sh[model.KAPPA] < 1e4
    assert off[cells].sum() == pytest.approx(freedom, rel=1e-4)


def test_a_noisy_arm_that_pays_in_its_own_way_is_not_filled_in_by_how_sure_arms_pay():
    """Kappa was 56 to 213 after two windows, from the sure arms alone, and the best arm had 86 of 400."""
    runs = [record(late_lumps_beside_sure_arms(), AgePrior(), 400, seed=seed).stats for seed in range(10)]
    assert max(stats.shared[model.KAPPA] for stats in runs) < 20
    assert np.mean([stats.pulls[0] for stats in runs]) > 120


def test_arms_with_one_decision_do_not_blur_kappa():
    """Of 600 arms that pay at the same ages few have two decisions; kappa was below 12 here."""
    problem = families.plain(100, families.lumps(*np.linspace(0.02, 0.5, 600).round(3)))
    stats = record(problem, AgePrior(), 1000).stats
    assert (stats.seen[:, 0] == 1).sum() > 400
    assert stats.shared[model.KAPPA] > 20


def test_an_arm_that_is_noisier_than_the_leader_is_tried_sooner():
    """By the ratio of deviations, by hand; at most as if the leader had all decisions."""
    sure, coin = [(0.5, 0.8), (0.7, 1.3)] * 20, [(0.0, 2.0)] * 4 + [(0.0, 0.0)] * 8
    params, stats = two_buckets([sure, coin, *[[(0.5, 1.0), (0.5, 0.9)] * 6] * 2])
    learning.refresh(params, stats)
    AgePrior.functions.survey(params, stats, MOMENT)
    assert stats.shared[model.LEAD] == 0
    noise = stats.variance / (stats.mean * (1.0 - stats.mean))
    shift = np.log(stats.counted + 1.0) - stats.log_alone
    assert shift[2] == pytest.approx(0.5 * math.log(noise[2] / noise[0]))
    assert 0.0 < shift[2] < shift[1] == pytest.approx(math.log(76 / 40))
    assert 0.5 * math.log(noise[1] / noise[0]) > shift[1]
    params, stats = two_buckets([coin[:4] * 6 + coin, sure])
    learning.refresh(params, stats)
    AgePrior.functions.survey(params, stats, MOMENT)
    assert stats.shared[model.LEAD] == 0
    assert stats.log_alone[1] == math.log(41)


def test_each_arm_is_tried_a_slowly_growing_number_of_times():
    """ln(t / 100,000 K) ln(e + ...), by hand; an arm with fewer decisions comes first, whatever it paid."""
    params, stats = two_buckets([[(0.9, 1.8), (1.0, 1.7)] * 40, [(0.0, 0.01)] * 5])
    stats.pulls[0] = 10_000_000
    learning.refresh(params, stats)
    AgePrior.functions.survey(params, stats, MOMENT)
    log = math.log(10_000_005 / 200_000)
    assert stats.shared[model.LEAST] == pytest.approx(log * math.log(math.e + log))
    assert 5 < stats.shared[model.LEAST] < 8
    indices = [AgePrior.functions.index(params, stats, arm, MOMENT) for arm in range(2)]
    assert indices[1] > 1e8 > indices[0]
    stats.pulls[1] = 8
    assert AgePrior.functions.index(params, stats, 1, MOMENT) < 0.0


def test_a_new_arm_starts_from_the_prior():
    policy = AgePrior(buckets=2)
    params, stats = two_buckets([[(0.5, 1.0), (0.6, 1.2)] * 20, [(0.4, 0.8), (0.3, 0.6)] * 20])
    learning.refresh(params, stats)
    more = policy.params(np.array([2.0, 2.0, 4.0]), 4)
    grown = policy.grow(stats, more)
    policy.functions.survey(more, grown, MOMENT)
    assert grown.mean[2] == pytest.approx(grown.shared[model.LEVEL])
    assert 0.0 < grown.variance[2] < 0.1
    assert np.isfinite([policy.functions.index(more, grown, arm, MOMENT) for arm in range(3)]).all()


def test_history_is_where_the_prior_starts():
    """A hundred older arms of mean 0.8 outweigh two new ones; four numbers, in caps."""
    made: list[list[tuple[float, float | None]]] = [[(0.2, 0.4), (0.3, 0.5)], [(0.3, 0.4), (0.1, 0.2)]] * 3
    levels = []
    for history in ((), (0.8, 0.01, 0.001, 100.0)):
        policy = AgePrior(buckets=2, history=history)
        params, stats = two_buckets(made)
        params = params._replace(history=policy.params(np.full(6, 2.0), 4).history)
        learning.refresh(params, stats)
        levels.append(stats.shared[model.LEVEL])
    assert levels[0] < 0.3
    assert levels[1] > 0.7


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"surprise": -1}, "surprise must be 0 or more, not -1"),
        ({"surprise": math.nan}, "surprise must be 0 or more, not nan"),
        ({"history": (1, 2)}, "history must be four numbers"),
        ({"history": (0.1, 0.1, -0.1, 5)}, "history must be four numbers"),
        ({"buckets": 0}, "buckets"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ac.InputError, match=message):
        AgePrior(**settings)


def test_text_reads_back():
    assert parse("AgePrior(surprise=20)") == AgePrior(surprise=20)
    assert parse("AgePrior(history=(0.1, 0.01, 0, 30))") == AgePrior(history=(0.1, 0.01, 0.0, 30.0))


def test_where_nothing_is_paid_arms_take_turns():
    problem = ac.Problem([1.0] * 3, 10, 5, ac.ScaledLaw(ac.LumpLaw(0.0), 1.0))
    pulls = record(problem, AgePrior(), 300).stats.pulls
    assert pulls.tolist() == [100, 100, 100]


def test_late_surprises_and_caps_do_not_mislead():
    """Where AgeIMED had several times the regret of IMED that waits (fixed seed; the margins are wide)."""
    for problem in (
        families.late_surprise([0.3, 0.3, 0.3, 0.5], 0.3),
        families.plain(100, families.lumps(0.7, 0.8, 0.9, 1.0)),
    ):
        final = ac.simulate(problem, [AgePrior(), ac.IMED()], 6000, 12, seed=3).final_regret.mean(axis=1)
        assert final[0] < 1.2 * final[1]


def test_a_hidden_jackpot_is_found_where_caps_are_facts():
    """Its regret stops growing; where totals are not taken to be larger it is linear (fixed seed)."""
    problem = families.hidden_jackpot([0.03, 0.034, 0.032], base=0.028, one_in=50)
    policies = {"facts": AgePrior(surprise=0.0), "never": AgePrior(surprise=1000.0)}
    result = ac.simulate(problem, policies, 20_000, 10, seed=4, checkpoints=2)
    half, end = result.regret.mean(axis=1).T
    assert end[0] < 1.3 * half[0]
    assert end[1] > 3.0 * end[0]


def test_caps_that_are_too_large_cost_little():
    """Twenty times: at most twice AgeIMED's regret, and a third of that of caps as facts (fixed seed)."""
    laws = [ac.ScaledLaw(ac.BernoulliLaw(p), 1 / 20) for p in (0.3, 0.4, 0.5, 0.6)]
    policies = {"default": AgePrior(), "facts": AgePrior(surprise=0.0), "AgeIMED": ac.AgeIMED()}
    final = ac.simulate(families.plain(100, laws), policies, 10_000, 10, seed=5).final_regret.mean(axis=1)
    assert final[0] < min(2.0 * final[2], final[1] / 3.0)


def test_arms_that_paid_nothing_do_not_starve_a_clear_winner():
    """Half of 60 arms pay nothing, and one far more than the others; caps are 20 times too large.

    After an unlucky start it is found late, in 2 or 3 of 60 runs. It had been in every fourth, which would
    fail here with a probability of 0.96.
    """
    found = []
    for seed in range(24):
        dice = np.random.default_rng(seed)
        ledger = Ledger(AgePrior(), [100.0] * 60, 10)
        chosen = []
        for now in range(1, 1501):
            (decision,) = ledger.decide(now=now)
            most = 5.0 if decision.arm == 7 else float(decision.arm % 2)
            ledger.observe(decision.id, most * dice.random(), age=0)
            chosen.append(decision.arm)
        found.append(chosen.count(7) > 300)  # or 1 or 2, where it is given up
    assert sum(found) >= 22
