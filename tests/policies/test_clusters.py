"""Clusters of arms: given, found, and none; each with numbers worked out by hand."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import chdtrc

import accrual as ac
from accrual.engine.recording import record
from accrual.live.ledger import Ledger
from accrual.policies.age import learning as age
from accrual.policies.age_cells import KAPPA_START
from accrual.policies.catalog import parse
from accrual.policies.clusters import Cluster, ClusteredTPUCBFRG, find_clusters
from accrual.testing import PolicySuite

ROOT = Path(__file__).parents[2]


class TestClusteredTPUCBFRG(PolicySuite):
    def make_policy(self):
        return ClusteredTPUCBFRG([Cluster((0, 2), 3, "begin", window=6), Cluster((1, 3), 4, "end")])


class TestClusteredAgeIMED(PolicySuite):
    def make_policy(self):
        return ac.AgeIMED(clusters=(0, 1, 0))


def assert_same(first, second):
    np.testing.assert_array_equal(first.arms, second.arms)
    for name, value in first.stats._asdict().items():
        np.testing.assert_array_equal(value, getattr(second.stats, name), err_msg=name)


# Given, for the paper's policy.


def test_each_arm_has_its_own_clusters_bonus():
    policy = ClusteredTPUCBFRG([Cluster((2, 0), 2, [0.75, 0.25], window=4), Cluster((1,), 4, "uniform")])
    params = policy.params(np.array([2.0, 3.0, 5.0]), 8)
    # phi is 2 in both: 4 / 2 and 8 / 4. E[Y] = 1.25 and 2.5; the coincidences are 10 / 16 and 1 / 4.
    np.testing.assert_allclose(params.owed, [2 * 2 * 1.25, 2 * 3 * 2.5, 2 * 5 * 1.25])
    np.testing.assert_allclose(params.coincidence, [0.625, 0.25, 0.625])


def test_one_cluster_is_tpucbfrg_to_the_bit():
    problem = ac.paper.setting1()
    one = ClusteredTPUCBFRG([Cluster(range(10), 20, "begin")])
    assert_same(record(problem, one, 5000), record(problem, ac.TPUCBFRG(20, "begin"), 5000))


def test_an_arm_that_is_added_must_have_been_named():
    ledger = Ledger(ClusteredTPUCBFRG([Cluster((0, 1), 4, "begin"), Cluster((2,), 2, "end")]), [1, 1], 12)
    assert ledger.add_arm(1.0) == 2
    with pytest.raises(ac.InputError, match="arm 3 is in no cluster; name it in one"):
        ledger.add_arm(1.0)
    assert {ledger.decide(now=t)[0].arm for t in range(4)} == {0, 1, 2}  # the refusal changed nothing


# Given, for the Age policies.


def filled(clusters, arms):
    """Two buckets; four decisions of each arm that all pay this share of the cap in the first."""
    policy = ac.AgeIMED(buckets=2, clusters=clusters)
    params = policy.params(np.full(len(arms), 4.0), 4)
    stats = policy.stats(params)
    for arm, early in enumerate(arms):
        for _ in range(4):
            stats.pulls[arm] += 1
            age.finished(params, stats, arm, 0, 0.0, 4.0 * early)
            age.finished(params, stats, arm, 1, 4.0 * early, 4.0)
    age.refresh(params, stats)
    return stats


@pytest.mark.parametrize(
    ("clusters", "spreads"),
    [
        # The prior (1/4 and 3/4 at edges 1 and 4) counts as one decision of the mean, which is 1:
        # alone (4 * 0.75 + 0.25) / 5 and (4 * 0.25 + 0.25) / 5; together (3 + 1 + 0.25) / 9.
        ((0, 1), [0.65, 0.35, 0.25, 0.75]),
        ((0, 0), [4.25 / 9, 4.75 / 9]),
        (None, [4.25 / 9, 4.75 / 9]),
    ],
)
def test_spreads_by_hand(clusters, spreads):
    np.testing.assert_allclose(filled(clusters, [0.75, 0.25]).spread, spreads)


@pytest.mark.parametrize("kind", [ac.AgeIMED, ac.AgeTS])
def test_one_cluster_is_none_to_the_bit(kind):
    problem = ac.paper.setting1()
    assert_same(record(problem, kind(clusters=(0,) * 10), 4000), record(problem, kind(), 4000))


def test_clusters_share_nothing_but_the_range():
    """What two clusters learn is what two policies with half of the arms each would, to the bit."""
    laws = [ac.BernoulliLaw(0.5, spread) for spread in ("begin", "end", "begin_middle", "end")]
    problem = ac.Problem([1.0] * 4, 100, 20, laws)
    both = ac.AgeTS(clusters=(0, 1, 0, 1))
    stats = record(problem, both, 3000).stats
    age.refresh(both.params(np.ones(4), 100), stats)
    half = ac.AgeTS()
    for cluster in range(2):
        params = half.params(np.ones(2), 100)
        alone = half.stats(params)
        for name in ("pulls", "seen", "paid", "growth", "square"):
            getattr(alone, name)[:] = getattr(stats, name)[cluster::2]
        for _ in range(60):  # a few sweeps each; on the same cells both come to the same spread
            age.refresh(params, alone)
            age.refresh(both.params(np.ones(4), 100), stats)
        mine = slice(cluster * len(alone.spread), (cluster + 1) * len(alone.spread))
        for name in ("spread", "spread2", "kappa"):
            np.testing.assert_allclose(getattr(stats, name)[mine], getattr(alone, name), rtol=1e-6)


def test_a_new_arm_joins_the_cluster_that_waits_for_it_or_is_its_own():
    ledger = Ledger(ac.AgeIMED(clusters=(0, 1, 1)), [1.0, 1.0], 12)
    for t in range(200):
        (decision,) = ledger.decide(now=t)
        ledger.observe(decision.id, 0.5, age=0)
    buckets = len(ledger.params.prior)
    learned = ledger.stats.spread.copy()
    assert learned[0] > ledger.params.prior[0]
    ledger.add_arm(1.0)
    ledger.add_arm(1.0)
    assert list(ledger.params.cell // buckets) == [0, 1, 1, 2]
    np.testing.assert_array_equal(ledger.stats.spread, [*learned, *ledger.params.prior])
    np.testing.assert_allclose(ledger.stats.inverse[2], 1 / ledger.stats.kappa[buckets : 2 * buckets])
    np.testing.assert_allclose(ledger.stats.inverse[3], 1 / KAPPA_START)
    assert ledger.decide(now=200, n=2)[1].arm == 3


def test_clusters_can_be_written_as_text():
    assert parse("AgeTS(clusters=(0, 0, 1))") == ac.AgeTS(clusters=[0, 0, 1])


# Found.


def test_the_tests_p_value_by_hand():
    """100 decisions that pay 0 or 1: 60 and 40 of one arm, 40 and 60 of the other."""
    paid = np.array([[60.0, 40.0], [40.0, 60.0]])
    stats = SimpleNamespace(seen=np.full((2, 2), 100.0), paid=paid, square=paid)
    # Both arms' noise is 48 / 99: 24 about the mean of each, over 99 * 0.6 + 99 * 0.4. Ten decisions
    # of that are added to each arm's own. In each of the four cells 50 are due, and 10 are astray.
    shared = 48 / 99
    often = (24 + 10 * 0.6 * shared) / (99 * 0.6 + 10 * 0.6)
    seldom = (24 + 10 * 0.4 * shared) / (99 * 0.4 + 10 * 0.4)
    p_value = chdtrc(1, 2 * 10**2 / (50 * often) + 2 * 10**2 / (50 * seldom))
    assert find_clusters(stats, level=0.99 * p_value) == (0, 0)
    assert find_clusters(stats, level=1.01 * p_value) == (0, 1)


def test_arms_of_one_spread_are_seldom_split():
    """Five arms, their buckets partly fractions of one payment: of 40 runs at most 2 are split at
    level 0.05, the number expected at most, and none at level 0.01; the seeds are fixed."""
    laws = [ac.BernoulliLaw(p, "begin") for p in (0.5, 0.45, 0.4, 0.5, 0.3)]
    problem = ac.Problem([1.0] * 5, 100, 20, laws)
    runs = [record(problem, ac.AgeIMED(), 2000, run=run).stats for run in range(40)]
    split = {level: sum(max(find_clusters(stats, level)) > 0 for stats in runs) for level in (0.05, 0.01)}
    assert split[0.05] <= 2
    assert split[0.01] == 0


def test_an_arm_of_which_nothing_is_known_agrees_with_all():
    paid = np.array([[60.0, 40.0], [0.0, 0.0], [10.0, 90.0]])
    seen = np.array([[100.0, 100.0], [0.0, 0.0], [100.0, 100.0]])
    found = find_clusters(SimpleNamespace(seen=seen, paid=paid, square=paid))
    assert found in {(0, 0, 1), (0, 1, 1)}


def test_the_example_finds_the_clusters_and_they_help(capsys):
    """20 runs: clusters take a tenth or more off AgeIMED's regret (measured: 22 %)."""
    done = runpy.run_path(str(ROOT / "examples" / "clusters.py"))
    assert "clusters found:" in capsys.readouterr().out
    assert done["found"] == (0,) * 10 + (1,) * 10
    regret = dict(zip(done["result"].labels, done["result"].final_regret.mean(axis=1), strict=True))
    assert regret["AgeIMED, clusters found"] < regret["AgeIMED"] * 0.9
    assert regret["AgeIMED, clusters found"] < 1.05 * regret["AgeIMED, each arm alone"]


# Refusals.


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: ac.AgeIMED(clusters=()), r"one number for each arm, such as \(0, 0, 1\), not \(\)"),
        (lambda: ac.AgeIMED(clusters="01"), "one number for each arm"),  # type: ignore[arg-type]
        (lambda: ac.AgeIMED(clusters=2), "one number for each arm"),  # type: ignore[arg-type]
        (lambda: ac.AgeIMED(clusters=(0, -1)), "a cluster's number must be a whole number of at least 0"),
        (lambda: ac.AgeIMED(clusters=(0, 2)), r"numbered 0, 1, 2, ...: 2 is used but not 1"),
        (lambda: ac.AgeIMED(clusters=(1, 1)), "1 is used but not 0"),
        (lambda: Cluster((), 4, "begin"), r"a cluster's arms must be numbers such as \(0, 2\), not \(\)"),
        (lambda: Cluster((0.5,), 4, "begin"), "an arm must be a whole number of at least 0, not 0.5"),  # type: ignore[arg-type]
        (lambda: Cluster((0,), 0, "begin"), "alpha must be a whole number of at least 1"),
        (lambda: Cluster((0,), 4, "begn"), "did you mean 'begin'"),
        (lambda: Cluster((0,), 4, "begin", window=0), "a cluster's window must be a whole number"),
        (lambda: ClusteredTPUCBFRG([]), "clusters must be Clusters"),
        (lambda: ClusteredTPUCBFRG([(0, 1)]), "clusters must be Clusters"),  # type: ignore[list-item]
        (lambda: two(Cluster((1,), 4, "end"), Cluster((1,), 4, "end")), "arm 1 is named twice"),
        (lambda: two(Cluster((0,), 4, "end")), "arm 1 is in no cluster"),
        (lambda: two(Cluster((0, 1), 4, "end", window=16)), "at most the problem's 12, not 16"),
        (lambda: two(Cluster((0, 1), 5, "end")), "alpha must divide the window: 5 does not divide 12"),
        (lambda: find_clusters(None), "needs the statistics of an Age policy"),
        (lambda: find_clusters(filled(None, [0.5]), level=1.0), "level must be between 0 and 1"),
    ],
)
def test_wrong_input_is_refused_in_one_clear_line(wrong, message):
    with pytest.raises(ac.InputError, match=message) as caught:
        wrong()
    assert "\n" not in str(caught.value)


def two(*clusters):
    return ClusteredTPUCBFRG(clusters).params(np.ones(2), 12)
