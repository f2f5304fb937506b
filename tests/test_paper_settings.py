"""The paper's experiments as data: ids, learners, printed figures."""

from __future__ import annotations

import math

import numpy as np
import pytest

import accrual as ac
from accrual.experiments import audit
from accrual.experiments.blocks import cut_block, make_policy, make_problem
from accrual.experiments.cells import checkpoints
from accrual.experiments.settings import BLOCKS, HORIZON, SETTINGS, Learner, select
from accrual.policy.base import Moment
from accrual.policy.klucb import KLUCB


def test_ids_are_those_that_people_have_written_down():
    expected = [f"setting1/alpha{alpha}" for alpha in (5, 10, 20, 25, 50)]
    expected += [f"setting2/c{c}/{s}" for c in (1, 2, 3, 4) for s in ("uniform", "late", "early")]
    expected += ["spotify", "zipf", "boltzmann", "hypergeometric", "audit/last", "audit/very_end"]
    assert list(SETTINGS) == expected


def test_the_34_printed_regrets_and_the_five_of_spotify():
    counts = {id: len(setting.printed) for id, setting in SETTINGS.items() if setting.printed}
    assert sum(n for id, n in counts.items() if id != "spotify") == 34
    assert counts["spotify"] == 5
    # Their sums, worked out by hand from the paper's four tables.
    one = sum(sum(s.printed.values()) for id, s in SETTINGS.items() if id.startswith("setting1"))
    two = sum(sum(s.printed.values()) for id, s in SETTINGS.items() if id.startswith("setting2"))
    assert one == pytest.approx(4.775e6 + 3.949e6)
    assert two == pytest.approx(3 * 1.04e6 + 2.154e6 + 8.81e6 + 7.32e6 + 2.78e6 + 1.395e6 + 5.93e6 + 3.80e6)


def test_every_setting_shows_learners_that_its_blocks_play():
    for setting in SETTINGS.values():
        played = [learner for block in setting.blocks for learner in BLOCKS[block].learners]
        assert set(setting.learners) <= set(played)
        assert set(setting.printed) <= set(setting.learners)
        assert len(set(played)) == len(played)


def test_no_learner_is_simulated_twice_on_the_same_problem():
    played = [(block.problem, learner) for block in BLOCKS.values() for learner in block.learners]
    assert len(set(played)) == len(played)
    assert len(played) == 52 + 14 + 12 * 12 + 12 + 2


def test_a_learners_label_is_its_policys():
    for block in BLOCKS.values():
        for learner in block.learners:
            assert make_policy(learner).label == learner.label


def test_every_block_can_be_played():
    problems = {block.problem: make_problem(block.problem) for block in BLOCKS.values()}
    for block in BLOCKS.values():
        for cell in cut_block(block, problems[block.problem], HORIZON, 3):
            for policy in cell.policies.values():
                policy.params(np.array(cell.problem.caps), cell.problem.window)


def test_select():
    assert len(select([])) == len(SETTINGS)
    assert [s.id for s in select(["setting2/c4", "zipf"])] == [
        "setting2/c4/uniform", "setting2/c4/late", "setting2/c4/early", "zipf",
    ]  # fmt: skip
    with pytest.raises(ac.InputError, match="did you mean 'boltzmann'"):
        select(["boltzman"])
    with pytest.raises(ac.InputError, match="empty"):
        select(["/"])


def test_checkpoints_end_at_the_horizon_and_serve_both_axes():
    rounds = checkpoints(HORIZON)
    assert rounds[0] == 1
    assert rounds[-1] == HORIZON
    assert {1000, 50_000, 99_000} <= set(rounds)
    assert sum(t < 1000 for t in rounds) > 15
    assert checkpoints(100)[-1] == 100


def test_the_audits_policy_is_kl_ucb_where_there_is_one_group():
    """With all reward in the last group a total is the one normalised group, so choices agree."""
    problem = audit.problem("last")
    policies = {"groups": audit.GroupKLUCB(20, "last"), "totals": KLUCB()}
    result = ac.simulate(problem, policies, horizon=1500, runs=4, seed=5)
    assert np.array_equal(result.pulls[0], result.pulls[1])


def test_the_audits_index_by_hand():
    """Two successes in four finished groups, ln t = 1: the q with 4 kl(1/2, q) = 1 has a closed form"""
    policy = audit.GroupKLUCB(2, "begin")
    params = policy.params(np.array([3.0]), 4)
    stats = policy.stats(params)
    stats.pulls[0] = 2
    for group, before, after in ((0, 0.0, 3 * params.group_cap[0]), (1, 3 * params.group_cap[0], 3.0)):
        audit.finished(params, stats, 0, group, before, after)
        audit.finished(params, stats, 0, group, before, before)
    assert stats.seen[0] == 4
    assert stats.paid[0] == pytest.approx(2.0)
    q = 0.5 + 0.5 * math.sqrt(1 - math.exp(-2 * 0.25))  # kl(1/2, q) = -ln(4 q (1 - q)) / 2
    assert audit.index(params, stats, 0, Moment(4, 1.0, 0, 0)) == pytest.approx(3 * q, rel=1e-9)


def test_the_audits_problems():
    last = audit.problem("last")
    assert last.group_means[0].tolist() == [0.0] * 19 + [0.6]
    assert audit.problem("very_end").means == pytest.approx([0.5, 0.35])
    # Theorem 1's factor for all mass in the last of 20 groups is 2 * 20**2 / 21; the corrected bound
    # counts one group where the alpha-smooth one counts 20.
    printed = ac.bounds.lower_printed(last, 1000, 20, audit.spread("last"))
    corrected = ac.bounds.lower(last, 1000, 20, audit.spread("last"))
    assert printed / corrected == pytest.approx(2 * 20 / 21)


def test_spotify_is_public_and_learners_are_data():
    assert ac.paper.spotify().groups == 20
    assert Learner("TPUCBFRG", 20, "zipf(1)").kind == "zipf(1)"
    assert Learner("UCB1").kind == "UCB1"
