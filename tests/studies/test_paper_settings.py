"""The paper's experiments as data: ids, learners, printed figures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import accrual as ac
from accrual import BernoulliLaw, Problem
from accrual.policies.base import Moment
from accrual.policies.scalars import kl_upper
from accrual.runs.cells import checkpoints
from accrual.studies.paper import audit
from accrual.studies.paper.runner import _lower, cut_block, make_policy, make_problem
from accrual.studies.paper.settings import BLOCKS, HORIZON, PAPER_SETTINGS, PaperLearner, select


def test_ids_are_those_that_people_have_written_down():
    expected = [f"setting1/alpha{alpha}" for alpha in (5, 10, 20, 25, 50)]
    expected += [f"setting2/c{c}/{s}" for c in (1, 2, 3, 4) for s in ("uniform", "late", "early")]
    expected += ["spotify", "zipf", "boltzmann", "hypergeometric", "audit/last", "audit/very_end"]
    assert list(PAPER_SETTINGS) == expected


def test_the_34_printed_regrets_and_the_five_of_spotify():
    counts = {id: len(setting.printed) for id, setting in PAPER_SETTINGS.items() if setting.printed}
    assert sum(n for id, n in counts.items() if id != "spotify") == 34
    assert counts["spotify"] == 5
    # Their sums, worked out by hand from the paper's four tables.
    one = sum(sum(s.printed.values()) for id, s in PAPER_SETTINGS.items() if id.startswith("setting1"))
    two = sum(sum(s.printed.values()) for id, s in PAPER_SETTINGS.items() if id.startswith("setting2"))
    assert one == pytest.approx(4.775e6 + 3.949e6)
    assert two == pytest.approx(3 * 1.04e6 + 2.154e6 + 8.81e6 + 7.32e6 + 2.78e6 + 1.395e6 + 5.93e6 + 3.80e6)


def test_every_setting_shows_learners_that_its_blocks_play():
    for setting in PAPER_SETTINGS.values():
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
    assert len(select([])) == len(PAPER_SETTINGS)
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


def counted(policy: audit.GroupKLUCB, seen: Any, paid: Any) -> tuple[audit.Params, audit.Stats]:
    """One arm of cap 3, with so many finished groups of which so many paid their cap."""
    params = policy.params(np.array([3.0]), policy.alpha)
    stats = policy.stats(params)
    for group in np.flatnonzero(params.share):
        for one in range(seen[group]):
            most = 3 * params.share[group] if one < paid[group] else 0.0
            audit.finished(params, stats, 0, int(group), 1.0, 1.0 + most)
    return params, stats


@pytest.mark.parametrize(("seen", "paid"), [(7, 3), (40, 1), (5, 0), (5, 5), (2000, 700)])
def test_the_audits_index_is_kl_ucbs_where_there_is_one_group(seen, paid):
    params, stats = counted(audit.GroupKLUCB(20, "last"), [seen] * 20, [paid] * 20)
    assert stats.counts[0].tolist() == [0] * 19 + [seen]
    for log in (1.0, 5.0, 12.0):
        expected = 3 * kl_upper(paid / seen, log / seen)
        assert audit.index(params, stats, 0, Moment(4, log, 0, 0)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("spread", ["very_end", "middle", "extreme_begin"])
@pytest.mark.parametrize("log", [1.0, 11.5])
def test_the_audits_index_is_the_greatest_mean_within_reach(spread, log):
    """By a general optimiser: the greatest sum share_k q_k with sum n_k kl(p_k, q_k) <= ln t."""
    rng = np.random.default_rng(3)
    seen = rng.integers(20, 60, 6)
    paid = rng.integers(1, seen)
    params, stats = counted(audit.GroupKLUCB(6, spread), seen, paid)
    p = paid / seen
    found = minimize(
        lambda q: -params.share @ q, p, jac=lambda q: -params.share, bounds=[(1e-9, 1 - 1e-9)] * 6,
        constraints={
            "type": "ineq",
            "fun": lambda q: log - seen @ (p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))),
            "jac": lambda q: -seen * (q - p) / (q * (1 - q)),
        },
        method="SLSQP", options={"ftol": 1e-13, "maxiter": 1000},
    )  # fmt: skip
    assert audit.index(params, stats, 0, Moment(4, log, 0, 0)) == pytest.approx(-3 * found.fun, rel=1e-6)


def test_the_audits_policy_takes_untried_arms_in_turn():
    policies = [audit.GroupKLUCB(20, "very_end")]
    result = ac.simulate(audit.problem("very_end"), policies, horizon=20, runs=1)
    assert result.pulls[0, 0].tolist() == [10, 10]


def test_the_audits_policy_learns_where_the_groups_chances_differ():
    """It is efficient on its whole class: a policy that counted all groups alike would choose arm 1 for ever.

    Arm 0 pays 0.52 on average, though the mean of its groups' chances is 0.15; arm 1 pays 0.32, and has 0.86.
    """
    shares = np.array(audit.spread("very_end").pmf(20))
    late = np.arange(20) >= 17
    laws = [BernoulliLaw(np.where(late, a, b).tolist(), "very_end") for a, b in ((0.6, 0.07), (0.2, 0.98))]
    problem = Problem(caps=[1.0, 1.0], window=20, groups=20, laws=laws)
    assert problem.means[0] > problem.means[1] + 0.1
    assert shares[late].sum() > 0.7
    result = ac.simulate(problem, [audit.GroupKLUCB(20, "very_end")], horizon=4000, runs=8, seed=2)
    assert (result.pulls[0, :, 1] < 400).all()


def test_the_audits_problems():
    last, late = audit.problem("last"), audit.problem("very_end")
    assert last.group_means[0].tolist() == [0.0] * 19 + [0.5]
    assert late.means == pytest.approx([0.5, 0.35])
    # Theorem 1's factor for all mass in the last of 20 groups is 2 * 20**2 / 21. With one group both classes
    # have Lai and Robbins' constant, where the alpha-smooth bound has a twentieth of it.
    printed, free, common = (curve.per_log for curve in _lower("audit/last", last, np.array([10.0, 1000.0])))
    assert printed / common == pytest.approx(2 * 20 / 21)
    assert free == pytest.approx(common, rel=1e-12)
    lines = _lower("audit/very_end", late, np.array([1000.0]))
    assert [curve.per_log for curve in lines] == pytest.approx([1.777, 0.986, 0.164], abs=5e-4)


def test_spotify_is_public_and_learners_are_data():
    assert ac.paper.spotify().groups == 20
    assert PaperLearner("TPUCBFRG", 20, "zipf(1)").kind == "zipf(1)"
    assert PaperLearner("UCB1").kind == "UCB1"
