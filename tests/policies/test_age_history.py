"""What AgePrior learns from old arms, and where new ones begin."""

import numpy as np
import pytest

from accrual.policies.age_prior import model
from accrual.policies.age_prior.history import ARMS_MOST, STEPS, with_history
from accrual.policies.age_prior.policy import AgePrior
from accrual.policies.catalog import parse, policy_text
from accrual.problems.spreads import as_spread


def old_arms(arms: int, decisions: int = 60, seed: int = 1) -> list[np.ndarray]:
    """Arms of mean 0.3 and standard deviation 0.1, whose decisions pay at a step drawn evenly, or nothing."""
    dice = np.random.default_rng(seed)
    rows = []
    for mean in np.clip(0.3 + 0.1 * dice.standard_normal(arms), 0.02, 0.98):
        pay = np.zeros((decisions, STEPS))
        paying = np.flatnonzero(dice.random(decisions) < mean)
        pay[paying, dice.integers(0, STEPS, len(paying))] = 1.0
        rows.append(pay)
    return rows


def test_what_is_learned_is_how_the_old_arms_were_drawn():
    """200 arms: the mean within 4 standard errors of 0.3, the variance of arms within a third of 0.01."""
    old = old_arms(200)
    policy = with_history(AgePrior(surprise=3.0), old)
    assert policy is not None
    mean, between, tilts, arms = policy.history
    assert mean == pytest.approx(0.3, abs=4 * 0.1 / 200**0.5)
    assert between == pytest.approx(0.01, rel=0.33)
    assert 0.0 < tilts < 0.005  # none is there; the guess that counts as four arms is
    assert arms == ARMS_MOST
    assert policy.surprise == 3.0
    pooled = sum(rows.sum(axis=0) for rows in old)
    shares = as_spread(policy.spread).pmf(STEPS)
    assert shares.cumsum() == pytest.approx(pooled.cumsum() / pooled.sum(), abs=0.03)


def test_it_can_be_written_and_read_back():
    policy = with_history(AgePrior(), old_arms(5, decisions=20))
    assert policy is not None
    assert policy.history[3] == 5.0
    text = policy_text(policy)
    assert text is not None
    assert parse(text) == policy


@pytest.mark.parametrize(
    "old", [[], old_arms(1), [np.zeros((30, STEPS))] * 3, [np.ones((2, STEPS)) / STEPS] * 3]
)
def test_old_arms_that_say_nothing(old):
    """None, a single one, some that never paid, and some with fewer than ten decisions in all."""
    assert with_history(AgePrior(), old) is None


def test_new_arms_begin_there():
    """After two decisions, which pay more than old arms ever did, an untried arm is still believed old."""
    old = with_history(AgePrior(buckets=2), [np.full((20, STEPS), mean / STEPS) for mean in (0.1, 0.12) * 10])
    assert old is not None
    believed = []
    for policy in (AgePrior(buckets=2), old):
        params = policy.params(np.ones(3), 4)
        stats = policy.stats(params)
        for _ in range(6):
            for arm in range(2):
                stats.pulls[arm] += 1
                policy.functions.decided(params, stats, arm)
                policy.functions.finished(params, stats, arm, 0, 0.0, 0.3)
                policy.functions.finished(params, stats, arm, 1, 0.3, 0.9)
        policy.functions.refresh(params, stats)
        believed.append(float(stats.mean[2]))
        assert stats.mean[0] > 0.6
        assert stats.shared[model.READY] == 1.0
    assert believed[0] > 0.8
    assert believed[1] < 0.3
