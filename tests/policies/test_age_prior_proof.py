"""Steps of the proofs in docs/proofs.md, on drawn numbers."""

import math

import numpy as np
import numpy.typing as npt
import pytest

import accrual as ac
from accrual.policies.age_prior import model
from accrual.policies.age_prior.model import estimate
from accrual.policies.age_prior.policy import AgePrior, _cost, _larger
from accrual.policies.base import Moment
from accrual.policies.scalars import kl


def spreads(dice: np.random.Generator, count: int) -> list[npt.NDArray[np.float64]]:
    """Shares from even to all in one bucket, of two buckets to twenty."""
    return [
        dice.dirichlet(np.full(dice.integers(2, 21), 10.0 ** dice.uniform(-2.5, 1))) + 1e-12
        for _ in range(count)
    ]


def lateness(p: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return 2.0 * (p.cumsum() - p) + p - 1.0


def test_step_4_of_lemma_1():
    dice = np.random.default_rng(4)
    drawn = [p / p.sum() for p in spreads(dice, 2000)]
    two = [np.array([1.0 - q, q]) for q in np.geomspace(1e-9, 0.5, 50)]
    worst = 0.0
    for p in drawn + two:
        z = lateness(p)
        assert p @ z == pytest.approx(0.0, abs=1e-12)
        assert p @ z**2 == pytest.approx((1.0 - (p**3).sum()) / 3.0, rel=1e-6, abs=1e-15)
        worst = max(worst, float((p @ np.abs(z)) / (p @ z**2)))
    assert 1.9 < worst <= 8.0  # two unequal shares come near 2


def drawn_arm(dice: np.random.Generator, window: int):
    """An arm whose pay is spread otherwise than the pool's, with open decisions; its totals too."""
    policy = AgePrior()
    params = policy.params(np.ones(2), 100)
    stats = policy.stats(params)
    buckets = len(params.spread)
    count = int(dice.integers(2 * window, 40 * window))
    pay = dice.dirichlet(np.full(buckets, 0.1), count) * dice.random((count, 1))
    done = np.full(count, buckets)
    done[count - window :] = np.sort(dice.integers(1, buckets + 1, window))[::-1]
    seen = np.arange(buckets) < done[:, None]
    at = np.concatenate([np.zeros((count, 1)), pay.cumsum(axis=1)], axis=1)
    stats.pulls[0] = stats.counted[0] = count
    stats.seen[0] = seen.sum(axis=0)
    stats.paid[0], stats.square[0] = (pay * seen).sum(axis=0), (pay**2 * seen).sum(axis=0)
    stats.growth[0] = ((at[:, 1:] ** 2 - at[:, :-1] ** 2) * seen).sum(axis=0)
    p = dice.dirichlet(np.full(buckets, 10.0 ** dice.uniform(-2, 1))) + 1e-9
    stats.spread[:] = stats.spread2[:] = p / p.sum()
    stats.late[:] = lateness(stats.spread)
    stats.noise[:] = 10.0 ** dice.uniform(-1, 1, buckets)
    sh = stats.shared
    sh[model.REACH], sh[model.PART], sh[model.READY] = buckets, 1.0, 1.0
    sh[model.KAPPA], sh[model.SIGMA2] = 10.0 ** dice.uniform(-0.3, 4), 10.0 ** dice.uniform(-6, 0)
    sh[model.BETWEEN], sh[model.TILT] = 10.0 ** dice.uniform(-6, 0, 2)
    sh[model.LEVEL] = dice.random()
    return params, stats, pay.sum(axis=1)


def test_lemma_1():
    """The constant of the proof is huge; among 300 drawn arms none needs a hundred."""
    dice = np.random.default_rng(1)
    needed = []
    for _ in range(300):
        window = int(dice.integers(1, 30))
        params, stats, totals = drawn_arm(dice, window)
        estimate(params, stats, 0)
        needed.append(abs(stats.own[0] - totals.mean()) * len(totals) / window)
        assert stats.weight[0] > 0.0
    assert 0.1 < max(needed) < 100.0


def test_lemma_3():
    """A hopeless arm, which is hardly tried by itself, has the decisions that are demanded of each arm.

    Demands begin at 1,000 decisions an arm here, a hundred times as early as they do.
    """

    class Early(AgePrior):
        def params(self, *given, **named):
            return super().params(*given, **named)._replace(forced=1000.0)

    problem = ac.Problem([1.0] * 2, 10, 5, [ac.ScaledLaw(ac.BernoulliLaw(1.0), m) for m in (0.9, 0.05)])
    result = ac.simulate(problem, [Early(surprise=1000.0)], 2_000_000, 1, checkpoints=1)
    log = math.log(2_000_000 / 2000)
    demanded = log * math.log(math.e + log)
    assert 15.0 < demanded <= result.pulls[0, 0, 1] < 18


def test_lemma_4():
    """One decision of a coin says kl against a higher mean, to rounding: no other part is greater."""
    dice = np.random.default_rng(3)
    for mean in [*dice.uniform(0.001, 0.999, 500), *np.geomspace(1e-6, 0.33, 100)]:
        for gap in (1.0 - mean) * dice.uniform(1e-3, 0.999, 10):
            divergence = kl(mean, mean + gap)
            assert _cost(gap, mean, mean * (1.0 - mean)) == pytest.approx(divergence, rel=1e-7)
            assert -math.log(1.0 - gap / (1.0 - mean)) >= divergence


def test_the_costs_of_step_3():
    """At least d^2 / 8 a decision, and n d where larger totals are hidden, whatever mean and variance are."""
    dice = np.random.default_rng(5)
    for _ in range(300):
        params, stats, _ = drawn_arm(dice, 3)
        estimate(params, stats, 0)
        gap, count = (1.0 - stats.own[0]) * dice.random(), 10.0 ** dice.uniform(0, 5)
        assert _larger(params, stats, 0, gap, count) >= count * gap
        mean, variance = dice.random(), 2.0 * dice.random() ** 4
        gap = (1.0 - mean) * dice.random()
        assert _cost(gap, mean, variance) >= gap * gap / 8.0


def test_two_facts_about_the_index():
    """The leader's is 0, and no arm's is above the logarithm of all decisions over its own."""
    problem = ac.Problem([1.0] * 4, 10, 5, [ac.BernoulliLaw(p) for p in (0.2, 0.4, 0.5, 0.6)])
    policy = AgePrior()
    params = policy.params(np.ones(4), problem.window)
    dice = np.random.default_rng(2)
    for _ in range(20):
        stats = policy.stats(params)
        edges = policy.edges(problem.window)
        for arm in range(4):
            count = int(dice.integers(1, 60))
            stats.pulls[arm] = stats.counted[arm] = count
            for _ in range(count):
                total = 0.0
                for group in range(len(edges)):
                    paid = float(dice.random() < 0.2 + 0.1 * arm) / len(edges)
                    policy.functions.finished(params, stats, arm, group, total, total + paid)
                    total += paid
        policy.functions.refresh(params, stats)
        moment = Moment(100, math.log(99), 0, 0)
        policy.functions.survey(params, stats, moment)
        if stats.shared[model.READY] == 0.0:
            continue
        indices = [policy.functions.index(params, stats, arm, moment) for arm in range(4)]
        lead = int(stats.shared[model.LEAD])
        assert indices[lead] == pytest.approx(0.0, abs=1e-12)
        for arm in range(4):
            prior = stats.log_count[lead] - math.log(stats.counted[lead])
            assert indices[arm] <= prior + math.log(stats.counted.sum() / stats.counted[arm]) + 1e-12


def test_decisions_of_a_worse_arm_stay_below_the_line():
    """Two coins, 0.5 and 0.3, 20 runs: at most ln T / kl and a window's decisions, in the mean."""
    problem = ac.Problem([1.0] * 2, 20, 4, [ac.LumpLaw(0.5), ac.LumpLaw(0.3)])
    assert _cost(0.2, 0.3, 0.21) == pytest.approx(0.3 * math.log(0.6) + 0.7 * math.log(1.4))
    result = ac.simulate(problem, [AgePrior()], 30_000, 20, seed=11, checkpoints=[300, 3000, 30_000])
    made = result.regret[0].mean(axis=0) / 0.2
    assert (made <= np.log(result.rounds) / _cost(0.2, 0.3, 0.21) + 20).all(), made
    assert made[2] > made[1] > made[0]  # and it never stops
