"""Policies of other papers: numbers checked by hand, and the published suite without its live part."""

import math

import numpy as np
import pytest

import accrual as ac
from accrual.core.jit import python_function
from accrual.engine.recording import record
from accrual.live.ledger import Ledger
from accrual.policies import gaussian_filter, otf_lin
from accrual.policies.base import Moment
from accrual.policies.baselines import QPMD, DelayedTsallisINF, PhasedElimination
from accrual.testing import PolicySuite


class Simulated(PolicySuite):
    """The suite, without the tests that need a live bandit."""

    test_arms_that_nothing_is_known_of_are_taken_in_turn = None  # type: ignore[assignment]
    test_a_new_arm_gets_its_share_of_a_batch = None  # type: ignore[assignment]
    test_the_estimate_of_closed_decisions_is_their_plain_mean = None  # type: ignore[assignment]


class TestPhasedElimination(Simulated):
    def make_policy(self):
        return PhasedElimination(horizon=6000)


class TestDelayedTsallisINF(Simulated):
    def make_policy(self):
        return DelayedTsallisINF(shift=0)


class TestQPMD(Simulated):
    def make_policy(self):
        return QPMD(ac.UCB1())


def called(function, *arguments):
    """Call a policy's function in plain Python, which compiles nothing."""
    return python_function(function)(*arguments)


ONCE = Moment(round=5, log=math.log(4), seed=1, run=0)


def test_gaussian_filter_of_one_group():
    """Four decisions of 0.7 on average: noise 0.2 / 4, so the prior's error is 4 / 9 of all variance."""
    policy = ac.GaussianFilter([0.5], [[0.04]], [[0.2]])
    params = policy.params(np.array([10.0]), 12)
    stats = policy.stats(params)
    for total in (6.0, 8.0, 7.0, 7.0):
        called(gaussian_filter.finished, params, stats, 0, 0, 0.0, total)
    called(gaussian_filter.amended, params, stats, 0, 0, 0.0, 7.0, 0.0, 0.0)
    gaussian_filter.survey(params, stats, ONCE)
    assert stats.mean[0] == pytest.approx(0.5 + 4 / 9 * 0.2)
    assert stats.variance[0] == pytest.approx(0.04 * 5 / 9)
    assert policy.terms(params, stats, 0, ONCE)["expected total"] == pytest.approx(10 * (0.5 + 4 / 9 * 0.2))


def test_gaussian_filter_conditions_on_the_averages_of_finished_groups():
    """As numpy solves it, with three decisions of ages 3, 2 and 1 of four groups."""
    dice = np.random.default_rng(3)
    roots = dice.normal(size=(2, 4, 4))
    between, within = roots @ roots.transpose(0, 2, 1) / 20
    mean = dice.random(4)
    policy = ac.GaussianFilter(mean, between, within)
    params = policy.params(np.ones(2), 8)
    stats = policy.stats(params)
    pay = dice.random((3, 4))
    for row, age in zip(pay, (3, 2, 1), strict=True):
        for group in range(age):
            called(
                gaussian_filter.finished, params, stats, 1, group, row[:group].sum(), row[: group + 1].sum()
            )
    gaussian_filter.survey(params, stats, ONCE)
    seen = np.array([3.0, 2.0, 1.0])
    average = np.array([pay[: int(n), group].mean() for group, n in enumerate(seen)])
    noisy = between[:3, :3] + within[:3, :3] / np.maximum.outer(seen, seen)
    reach = between[:3].sum(axis=1)
    assert stats.mean[1] == pytest.approx(mean.sum() + reach @ np.linalg.solve(noisy, average - mean[:3]))
    assert stats.variance[1] == pytest.approx(between.sum() - reach @ np.linalg.solve(noisy, reach))
    assert stats.mean[0] == pytest.approx(mean.sum())


def test_on_the_fly_models_count_a_decision_before_it_pays():
    """Two decisions, of which one has paid half its cap and is not in flight any more."""
    policy = ac.OTFLinUCB(alpha=2.0, buckets=1)
    params = policy.params(np.array([4.0]), 10, width=1)
    stats = policy.stats(params)
    x = np.ones(1)
    otf_lin.decided(params, stats, 0, x)
    otf_lin.decided(params, stats, 0, x)
    otf_lin.finished(params, stats, 0, 0, 0.0, 2.0, x)
    otf_lin.survey(params, stats, ONCE, x)
    width = math.sqrt(2 * math.log(10) + math.log(3)) + 1 + math.sqrt(1 / 3)
    assert stats.guess[0] == pytest.approx(0.5 / 3)
    assert stats.deviation[0] == pytest.approx(2 * width * math.sqrt(1 / 3))
    index = called(otf_lin.upper_index, params, stats, 0, ONCE, x)
    assert index == pytest.approx(4 * (0.5 / 3 + 2 * width * math.sqrt(1 / 3)))


def test_on_the_fly_models_learn_in_a_ledger():
    ledger = Ledger(ac.OTFLinUCB(alpha=0.1), caps=[1.0, 1.0], window=4)
    for now in range(100):
        (decision,) = ledger.decide(now)
        ledger.observe(decision.id, 0.2 + 0.6 * decision.arm, age=1)
    assert ledger.stats.pulls[1] > 80


def test_phased_elimination_ends_a_phase_when_all_arms_have_enough_totals():
    """With T = e^2, 16 * 2 * 4 = 128 totals; then the radius is sqrt(4 / 128) = 0.177 caps."""
    policy = PhasedElimination(horizon=round(math.e**2))
    functions = policy.functions
    params = policy.params(np.array([1.0, 1.0, 1.0]), 10)._replace(log=2.0)
    stats = policy.stats(params)
    stats.pulls[:] = 130
    stats.closed[:] = (128.0, 128.0, 127.0)
    stats.total[:] = stats.closed * (0.9, 0.5, 0.6)
    called(functions.survey, params, stats, ONCE)
    assert stats.phase[0] == 1.0
    assert functions.index(params, stats, 0, ONCE) == 0.0
    assert functions.index(params, stats, 2, ONCE) > 0.0
    functions.finished(params, stats, 2, 0, 0.0, 0.6)
    functions.survey(params, stats, ONCE)
    assert stats.out.tolist() == [0.0, 1.0, 0.0]
    assert stats.phase[0] == 2.0


def test_tsallis_probabilities_are_the_optimum():
    """The derivatives of what is minimised agree; one loss of 1 / (1 / 2) came, three are pending."""
    policy = DelayedTsallisINF(shift=0)
    functions = policy.functions
    params = policy.params(np.array([2.0, 1.0]), 4)
    stats = policy.stats(params)
    stats.chance[:] = 0.5
    for arm in (0, 1, 0, 1):
        stats.pulls[arm] += 2
        functions.decided(params, stats, arm)
    functions.finished(params, stats, 0, 0, 0.0, 0.5)
    assert stats.loss.tolist() == [0.75 / 0.5, 0.0]
    assert stats.counts.tolist() == [4.0, 1.0, 0 + 1 + 2 + 3]
    functions.survey(params, stats, ONCE)
    x = stats.chance
    slope = stats.loss - math.sqrt(5) / np.sqrt(x) + math.sqrt((6 + 3) / math.log(2)) * np.log(x)
    assert x.sum() == pytest.approx(1.0)
    assert slope[0] == pytest.approx(slope[1])


def test_qpm_feeds_its_base_one_total_for_each_request():
    """The choices are those of the algorithm as the paper writes it, around UCB1 in plain Python."""
    problem = ac.Problem([1.0] * 3, 7, 7, [ac.LumpLaw(p) for p in (0.4, 0.5, 0.6)])
    played = record(problem, QPMD(ac.UCB1()), 400, seed=5)
    totals = played.pieces.sum(axis=1)
    known: list[list[float]] = [[], [], []]
    queues: list[list[float]] = [[], [], []]

    def ask():
        fed = sum(map(len, known))
        indices = [
            np.mean(own) + math.sqrt(2 * math.log(fed) / len(own)) if own else math.inf for own in known
        ]
        return indices.index(max(indices))

    asked = 0
    chosen: list[int] = []
    for t in range(400):
        if t >= 7:
            queues[chosen[t - 7]].append(totals[t - 7])
        while queues[asked]:
            known[asked].append(queues[asked].pop(0))
            asked = ask()
        chosen.append(t if t < 3 else asked)
    assert played.arms.tolist() == chosen


def test_baselines_refuse_what_they_cannot_be():
    with pytest.raises(ac.InputError, match="lacks the function `amended`"):
        Ledger(DelayedTsallisINF(), caps=[1.0, 1.0], window=4)
    with pytest.raises(ac.InputError, match="must learn from totals"):
        QPMD(ac.AgeIMED())
    with pytest.raises(ac.InputError, match="shift must be 0 or more"):
        DelayedTsallisINF(shift=-1)
    with pytest.raises(ac.InputError, match="between must be a covariance"):
        ac.GaussianFilter([0.5, 0.5], [[1, 2], [2, 1]], [[1, 0], [0, 1]])
    with pytest.raises(ac.InputError, match="within must have a row and a column"):
        ac.GaussianFilter([0.5], [[1]], [[1, 0], [0, 1]])
    with pytest.raises(ac.InputError, match="delta must be between 0 and 1"):
        ac.OTFLinTS(delta=1.0)
    with pytest.raises(ac.InputError, match="at least two older arms"):
        gaussian_filter.filter_from([np.ones((5, 2))])
