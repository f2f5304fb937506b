"""A day's batch on arms that come and go; what people do today; the filter with history."""

import numpy as np
import pytest

import accrual as ac
from accrual.engine.batches import Batches, play_batches
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


class Fixed:
    """Chooses arms in turn and keeps what it is told."""

    def __init__(self):
        self.chosen, self.told = [], []

    def choose(self, day, playing, batch):
        arms = np.resize(np.flatnonzero(playing), batch)
        self.chosen.append(arms)
        return arms

    def learn(self, arms, age, paid):
        self.told.append((len(self.chosen) - age, age, paid))


def small(days=12, batch=4) -> Batches:
    laws = [ac.LeavingLaw(stay=0.8, p=p) for p in (0.2, 0.9, 0.5)]
    return Batches(ac.Problem([5.0] * 3, 5, 5, laws), days, batch, comes=[0, 0, 6], goes=[days, 4, days])


def test_arms_come_and_go_and_regret_is_against_those_in_play():
    service = small()
    player = Fixed()
    regret = play_batches(service, {"": lambda *_: player}, 1)[0, 0]
    means = service.problem.means
    assert [sorted(set(arms)) for arms in player.chosen[2:8]] == [
        [0, 1],
        [0, 1],
        [0],
        [0],
        [0, 2],
        [0, 2],
    ]
    assert regret[0] == pytest.approx(2 * (means[1] - means[0]))
    assert regret[4] == 0.0
    assert regret[6] == pytest.approx(2 * (means[2] - means[0]))


def test_every_decision_grows_older_day_by_day_and_leaves():
    player = Fixed()
    play_batches(small(), {"": lambda *_: player}, 1)
    for made in range(7):
        ages = [(age, paid) for day, age, paid in player.told if day == made]
        assert [age for age, _ in ages] == [1, 2, 3, 4, 5]
        assert all(paid is ages[0][1] for _, paid in ages)
        assert (np.diff(ages[0][1], axis=1) >= 0).all()


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


def test_the_filter_is_the_posterior_of_a_gaussian():
    """Sums of innovations give what conditioning on every decision's seen days gives."""
    history = listening.ListeningHistory(3)
    service = listening.service(2, 5, 3, 5)
    it = listening.GaussianFilter(history, service, (0, 0))
    dice = np.random.default_rng(8)
    pay = (dice.random((3, listening.DAYS)) < 0.4).astype(float)
    ages = [4, 2, 1]
    for row, age in enumerate(ages):
        paid = np.concatenate([[0.0], pay[row].cumsum()])[None]
        for day in range(1, age + 1):
            it.learn(np.array([1]), day, paid)
    precision = np.linalg.inv(history.between)
    known = precision @ history.mean
    for row, age in enumerate(ages):
        inverse = np.linalg.inv(history.within[:age, :age])
        precision[:age, :age] += inverse
        known[:age] += inverse @ pay[row, :age]
    mean = np.linalg.solve(precision, known).sum()
    deviation = np.sqrt(np.linalg.inv(precision).sum())
    m, v = it.totals(np.array([0, 1]))
    assert m[1] == pytest.approx(mean, rel=1e-6)
    assert np.sqrt(v[1]) == pytest.approx(deviation, rel=1e-6)
    assert m[0] == pytest.approx(history.mean.sum(), rel=1e-6)


def test_old_arms_tell_how_arms_differ():
    """Mean and deviation of totals over the arms of the history, beside those of many arms (within 15 %)."""
    history = listening.ListeningHistory(11, 0.4)
    means = np.array([law.means(59).sum() * 59 for law in families.listeners(4000, 12, 59, 0.4)])
    assert history.mean.sum() == pytest.approx(means.mean(), rel=0.15)
    assert np.sqrt(history.between.sum()) == pytest.approx(means.std(), rel=0.15)
