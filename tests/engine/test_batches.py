"""A day's batch on arms that come and go; what people do today; older arms."""

import numpy as np
import pytest

import accrual as ac
from accrual.core.jit import njit
from accrual.engine.batches import Batches, play_batches
from accrual.policies.base import Functions
from accrual.policies.gaussian_filter import filter_from
from accrual.policies.ucb1 import UCB1
from accrual.problems import families
from accrual.studies.gallery import habits, listening
from accrual.testing import PolicySuite


class TestPiecesAsPulls(PolicySuite):
    def make_policy(self):
        return habits.PiecesAsPulls(4)


class TestEarlyReward(PolicySuite):
    def make_policy(self):
        return habits.EarlyReward(0.5)


def test_ten_pieces_are_learned_as_eleven_pulls():
    policy = habits.PiecesAsPulls(10)
    params = policy.params(np.array([1.0]), 10)
    stats = policy.stats(params)
    habits.decided(params, stats, 0)
    for group in range(10):
        habits.piece_counted(params, stats, 0, group, group / 10, (group + 1) / 10)
    assert stats.counted[0] == 11.0
    assert stats.total[0] == pytest.approx(1.0)


@njit
def by_turns(params, stats, arm, moment):
    return 1.0 if (arm > 0) == (moment.round % 2 == 0) else 0.0


class ByTurns(UCB1):
    """Arm 0 in decisions of odd number, another one in those of even number."""

    functions = Functions(index=by_turns)


def small(days=12, batch=4) -> Batches:
    laws = [ac.LeavingLaw(stay=0.8, p=p) for p in (0.2, 0.9, 0.5)]
    return Batches(ac.Problem([5.0] * 3, 5, 5, laws), days, batch, comes=[0, 0, 6], goes=[days, 4, days])


def test_arms_come_and_go_and_regret_is_against_those_in_play():
    service = small()
    regret = play_batches(service, {"": ByTurns()}, 1)[0, 0]
    means = service.problem.means
    assert regret[:4] == pytest.approx([2 * (means[1] - means[0])] * 4)
    assert regret[4:6] == pytest.approx([0.0, 0.0])
    # A new arm has the first decision of its first day, which arm 0 would have had.
    assert regret[6] == pytest.approx(means[2] - means[0])
    assert regret[7:] == pytest.approx([2 * (means[2] - means[0])] * 5)


def test_an_arm_that_comes_later_gets_its_share_of_a_batch_until_it_is_known():
    laws = [ac.BernoulliLaw(p) for p in (0.5, 0.5, 0.0)]
    service = Batches(ac.Problem([5.0] * 3, 5, 5, laws), 9, 30, comes=[0, 0, 8], goes=[9] * 3)
    gap = service.problem.gaps[2]
    for policy in (ac.IMED(), ac.DelayedUCB1(), ac.TPUCBEW(5), ac.AgeTS(), ac.AgeIMED()):
        regret = play_batches(service, {"": policy}, 1)[0, 0, 8]
        assert regret / gap == pytest.approx(10, abs=1), policy.label  # of 30, as with a live bandit


def test_a_policy_learns_and_new_arms_are_tried():
    laws = [ac.BernoulliLaw(p) for p in (0.1, 0.2, 0.9)]
    service = Batches(ac.Problem([5.0] * 3, 5, 5, laws), 60, 10, comes=[0, 0, 20], goes=[60] * 3)
    never = 10 * (service.problem.means[2] - service.problem.means[1])  # what a day costs without the new arm
    for policy in (ac.AgePrior(), ac.ThompsonSampling()):
        regret = play_batches(service, {"": policy}, 3).mean(axis=(0, 1))
        assert regret[50:].mean() < 0.1 * never, policy.label


def test_same_noise_for_everybody_and_any_split_of_the_runs():
    service = small()
    both = play_batches(service, {"a": ac.IMED(), "b": ac.AgePrior()}, 3, seed=2)
    alone = play_batches(service, {"b": ac.AgePrior()}, range(1, 3), seed=2)
    np.testing.assert_array_equal(both[1, 1:], alone[0])


def test_refuses_what_is_no_service():
    good = small()
    with pytest.raises(ac.InputError, match="a first and a last day"):
        play_batches(good._replace(comes=[0, 3, 2]), {"": ac.IMED()}, 1)
    with pytest.raises(ac.InputError, match="each day is a group"):
        play_batches(good._replace(problem=ac.Problem([1.0] * 3, 10, 5)), {"": ac.IMED()}, 1)
    with pytest.raises(ac.InputError, match="learns from single pieces"):
        play_batches(good, {"": ac.TPUCBFR(5)}, 1)


def test_old_arms_tell_how_arms_differ():
    """Mean and deviation of totals over the arms of the history, beside those of many arms (within 15 %)."""
    prior = filter_from(listening.old_listeners(11, 0.4))
    means = np.array([law.means(59).sum() for law in families.listeners(4000, 12, 59, 0.4)])
    assert np.sum(prior.mean) == pytest.approx(means.mean(), rel=0.15)
    assert np.sqrt(np.sum(prior.between)) == pytest.approx(means.std(), rel=0.15)


def test_a_new_arm_does_not_get_a_whole_batch_of_the_filter():
    """It is drawn from its prior as soon as something is known of other arms.

    The new arm is the worst by far; 50 decisions of it on its first day would cost 50 gaps.
    """
    laws = [ac.BernoulliLaw(p) for p in (0.9, 0.8, 0.0)]
    service = Batches(ac.Problem([1.0] * 3, 5, 5, laws), 25, 50, comes=[0, 0, 20], goes=[25] * 3)
    regret = play_batches(service, {"": ac.GaussianFilter.example(5)}, 4)[0]
    gap = service.problem.means[0] - service.problem.means[2]
    assert regret[:, 20].mean() < 25 * gap
