"""Replay and compare with contexts: logs whose truth is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import accrual as ac
from accrual.core.errors import InputError
from accrual.core.features import Features
from accrual.evaluate.compare.by_context import check_model
from accrual.evaluate.replay.fixed_shares import fixed, judge
from accrual.evaluate.replay.judging import judge_all
from accrual.evaluate.replay.log import ReplayLog

WINDOW = 50.0
FEATURES = Features({"new": bool, "country": ["de", "us"]})
# By context (0 or 1 for new, 0 or 1 for country) and arm: arm 1 is the new visitors' best, arm 0 the others'.
MEANS = np.array([[[0.6, 0.2], [0.6, 0.3]], [[0.2, 0.7], [0.2, 0.8]]])


def made(n: int, seed: int, means: np.ndarray = MEANS) -> ReplayLog:
    """A log that shows arm 1 to the new with a chance of 0.7, and to others with 0.4."""
    dice = np.random.default_rng(seed)
    new, country = dice.integers(0, 2, n), dice.integers(0, 2, n)
    second = np.where(new == 1, 0.7, 0.4)
    arm = (dice.random(n) < second).astype(np.int64)
    pays = dice.random(n) < means[new, country, arm]
    age = dice.uniform(0, WINDOW, n)
    return ReplayLog(
        ("a", "b"), np.ones(2), WINDOW, 50, 1e9, arm, np.arange(float(n)),
        np.where(arm == 1, second, 1 - second), np.full(n, WINDOW), np.concatenate([[0], np.cumsum(pays)]),
        age[pays], np.ones(int(pays.sum())),
        features=FEATURES, contexts=np.stack([new, country], axis=1).astype(np.float64),
    )  # fmt: skip


def test_a_model_by_context_makes_doubly_robust_sharper_and_stays_right():
    """60 logs of 1,500: 95 % must hold the truth in at least 54, which chance misses once in 500."""
    truth, held, sharper = float(MEANS[..., 1].mean()), 0, 0
    for seed in range(60):
        log = made(1500, seed)
        policy = fixed("always b", log.arms)
        assert policy is not None
        ours = {one.method: one for one in judge(log, policy)}["doubly robust"]
        blind = {one.method: one for one in judge(replace(log, features=None, contexts=None), policy)}
        held += ours.reward.low <= truth <= ours.reward.high
        sharper += ours.reward.high - ours.reward.low < (
            blind["doubly robust"].reward.high - blind["doubly robust"].reward.low
        )
    assert held >= 54
    assert sharper >= 54


def test_a_policy_by_contexts_needs_them():
    log = replace(made(300, 1), features=None, contexts=None)
    with pytest.raises(InputError, match="say which columns they are"):
        judge_all(log, {"LinTS": ac.LinTS()})


def test_a_model_that_the_log_contradicts_is_refused():
    """Arm b pays the new in the US, and those who are neither: no sum of two effects says that."""
    crossed = np.array([[[0.1, 0.9], [0.1, 0.05]], [[0.1, 0.05], [0.1, 0.9]]])
    check_model(made(4000, 2))
    log = made(4000, 2, crossed)
    check_model(log)  # the model promises little, and keeps it
    boasting = replace(log)
    boasting.__dict__["expected"] = log.expected + np.array([0.0, 0.3])
    with pytest.raises(InputError, match="does not fit this log"):
        check_model(boasting)


@pytest.mark.slow
def test_policies_by_context_do_better_in_replay_and_comparison():
    """What choosing by context is worth here: 0.675 a decision against 0.5 for the best arm."""
    log = made(3000, 3)
    for method in ("rejection", "weighting", "doubly robust"):
        lines = judge_all(log, {"LinTS": ac.LinTS(), "AgeIMED": ac.AgeIMED()}, method)
        assert lines[1].reward.value > lines[2].reward.value + 0.05
        assert lines[1].reward.low < 0.675


@pytest.mark.slow
def test_a_comparison_by_context_finds_that_contexts_pay():
    import pandas as pd

    log = made(3000, 4)
    assert log.contexts is not None
    decisions = pd.DataFrame(
        {
            "id": np.arange(3000), "arm": np.array(log.arms)[log.arm], "at": log.at,
            "propensity": log.propensity, "new": log.contexts[:, 0] == 1.0,
            "country": np.array(["de", "us"])[log.contexts[:, 1].astype(int)],
        }
    )  # fmt: skip
    paid = np.repeat(np.arange(3000), np.diff(log.first))
    pieces = pd.DataFrame({"decision": paid, "value": log.value, "age": log.age})
    found = ac.compare_by_context((decisions, pieces), ["new", "country"], runs=4, horizon=3000)
    by_label = {line.policy: line for line in found.lines}
    assert by_label["AgeTS, no context"].more.low > 0.0
    assert by_label["AgeLinTS"].lost.value < by_label["AgeLinTS(waiting)"].lost.value
    assert "as true as that model" in found.summary()
    with pytest.raises(InputError, match="a replay needs the chances with which"):
        ac.compare_by_context((decisions.drop(columns="propensity"), pieces), ["country"])
