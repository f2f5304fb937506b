"""A policy with a half-life: weights by hand, live as in simulation, and what forgetting is for."""

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import accrual as ac
from accrual.engine.recording import record
from accrual.live.ledger import Ledger
from accrual.policies.age_prior.forgetting import MADE, REFRESHED
from accrual.policies.catalog import parse, policy_text
from accrual.testing import PolicySuite

HALF_LIFE, WINDOW, ROUNDS = 30.0, 12, 150
POLICY = ac.AgePrior(buckets=5, half_life=HALF_LIFE)


def problem():
    laws = [ac.BetaLaw(1.0, b, spread="begin_middle") for b in (0.6, 2.0, 1.2)]
    return ac.Problem([1.0, 2.0, 1.5], WINDOW, 6, laws)


def check_weights(recording):
    """Every sum is over decisions, each with the weight of its own number, whatever bucket it is in."""
    stats, arms = recording.stats, recording.arms
    made, refreshed = stats.clock[MADE], stats.clock[REFRESHED]
    assert made == ROUNDS
    assert 0 <= made - refreshed <= max(HALF_LIFE / 32, 1)  # so no weight is much above 1
    weights = np.exp2((np.arange(ROUNDS) - refreshed) / HALF_LIFE)
    caps = np.array(problem().caps)
    edges = [0, *POLICY.edges(WINDOW)]
    for arm in range(3):
        np.testing.assert_allclose(stats.counted[arm], weights[arms == arm].sum(), rtol=1e-9)
        for g, (low, high) in enumerate(pairwise(edges)):
            done = (arms == arm) & (np.arange(ROUNDS) <= ROUNDS - high)
            pay = recording.pieces[done, low:high].sum(axis=1) / caps[arm]
            np.testing.assert_allclose(stats.seen[arm, g], weights[done].sum(), rtol=1e-9)
            np.testing.assert_allclose(stats.paid[arm, g], (weights[done] * pay).sum(), rtol=1e-9)
            np.testing.assert_allclose(stats.square[arm, g], (weights[done] * pay**2).sum(), rtol=1e-9)


def check_live(recording):
    """The same choices and the same sums, live."""
    bandit = ac.Bandit(dict(zip("abc", problem().caps, strict=True)), WINDOW, policy=POLICY)
    for t in range(ROUNDS):
        assert "abc".index(bandit.decide().arm) == recording.arms[t]
        for s in range(max(t - WINDOW + 1, 0), t + 1):
            bandit.observe(s, float(recording.pieces[s, t - s]), age=t - s)
    ledger = bandit._follower.ledger
    ledger.tick(ROUNDS + 1)
    for field, value in recording.stats._asdict().items():
        np.testing.assert_allclose(getattr(ledger.stats, field), value, rtol=1e-9, atol=1e-12, err_msg=field)


def cells(recording, late):
    """The cells of a ledger that is told the pieces of ages 0 and 1 when their decision is so old."""
    ledger = Ledger(POLICY, problem().caps, WINDOW)
    for t in range(ROUNDS + WINDOW):
        if t < ROUNDS:
            ledger.decide(t, arm=int(recording.arms[t]))
        for s in range(max(t - WINDOW + 1, 0), min(t + 1, ROUNDS)):
            for age in range(WINDOW):
                if t - s == (max(age, late) if age < 2 else age):
                    assert ledger.observe(s, float(recording.pieces[s, age]), age)
    ledger.tick(ROUNDS + 2 * WINDOW)
    return [getattr(ledger.stats, name) for name in ("counted", "seen", "paid", "growth", "square")]


def check_late(recording):
    """A piece out of order has the weight of its decision, not of when it comes."""
    for late, prompt in zip(cells(recording, 9), cells(recording, 0), strict=True):
        np.testing.assert_allclose(late, prompt, rtol=1e-9, atol=1e-12)


def check_all():
    recording = record(problem(), POLICY, ROUNDS)
    check_weights(recording)
    check_live(recording)
    check_late(recording)


def test_weights_by_hand_live_and_out_of_order():
    """In plain Python, which needs no compiling; tests/engine/test_cuda.py has that the bits are the same."""
    paths = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": paths}
    command = [sys.executable, "-c", "import test_forgetting; test_forgetting.check_all()"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_half_life_in_words():
    policy = parse("AgePrior(half_life=1000)")
    assert policy == ac.AgePrior(half_life=1000.0)
    assert policy.label == "AgePrior(half_life=1000)"
    assert parse(policy_text(policy) or "") == policy
    for wrong in (0.0, -3.0, float("nan")):
        with pytest.raises(ac.InputError, match="half_life must be a positive number"):
            ac.AgePrior(half_life=wrong)
    with pytest.raises(ac.InputError, match="half_life must be at least 1 decision"):
        ac.AgePrior(half_life=0.001)


@pytest.mark.slow
class TestForgetting(PolicySuite):
    def make_policy(self):
        return ac.AgePrior(half_life=5000)


@pytest.mark.slow
def test_forgetting_pays_where_the_best_arm_changes():
    """Halfway the best of three arms becomes the worst; seeds fixed, 10 runs, a factor of 2 between means."""

    before, after = (
        [ac.LumpLaw(p, "begin_middle") for p in chances] for chances in ((0.3, 0.5, 0.7), (0.3, 0.5, 0.1))
    )
    changing = ac.Problem([1.0] * 3, 20, 4, before, changes={10_001: after})
    result = ac.simulate(changing, [ac.AgePrior(), ac.AgePrior(half_life=1500)], 20_000, runs=10)
    remembering, forgetting = result.final_regret.mean(axis=1)
    assert forgetting < remembering / 2
