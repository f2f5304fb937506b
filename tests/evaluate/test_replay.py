"""Replay: nothing is known before it arrives, and the figures are right where the truth is known."""

from __future__ import annotations

from dataclasses import replace

import course_log
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import accrual as ac
from accrual.cli.app import run
from accrual.core.features import Features
from accrual.core.jit.compiler import njit
from accrual.evaluate.replay.judging import LEAST, judge_all, walk
from accrual.evaluate.replay.log import ReplayLog, from_log
from accrual.live.ledger import Ledger
from accrual.logs.fit import fit_log
from accrual.logs.open_log import open_log
from accrual.policies.base import Functions
from accrual.policies.ucb1 import DelayedUCB1

WINDOW = 30
MEANS = np.array([0.2, 0.35, 0.5])


def made(
    decisions: int, seed: int, propensity=(1 / 3,) * 3, means=MEANS, end: float | None = None
) -> ReplayLog:
    """A log of Bernoulli totals, each in two equal pieces, of which the second comes late."""
    dice = np.random.default_rng(seed)
    arm = dice.choice(len(means), size=decisions, p=propensity)
    at = np.sort(dice.uniform(0, decisions, decisions))
    pays = dice.random(decisions) < np.asarray(means)[arm]
    age = np.stack([dice.uniform(0, 10, decisions), dice.uniform(10, WINDOW, decisions)], axis=1)[pays]
    return ReplayLog(
        arms=tuple("abcdefgh"[: len(means)]),
        caps=np.ones(len(means)),
        window=WINDOW,
        steps=WINDOW,
        end=at[-1] if end is None else end,
        arm=arm,
        at=at,
        propensity=np.asarray(propensity)[arm],
        own=np.full(decisions, float(WINDOW)),
        first=np.concatenate([[0], 2 * np.cumsum(pays)]),
        age=age.ravel(),
        value=np.full(age.size, 0.5),
    )


def simulated(decisions: int, gap: float, seed: int) -> float:
    """The mean reward of AgeIMED itself, deciding once in `gap`, on the problem of `made`."""
    log = made(decisions, seed, (1.0,), (1.0,))  # when pieces come; who gets them is drawn here
    dice = np.random.default_rng([seed, 1])
    ledger = Ledger(ac.AgeIMED(), [1.0] * 3, WINDOW)
    at = np.cumsum(dice.exponential(gap, decisions))
    coming: list[tuple[float, int, float]] = []
    earned = 0.0
    for i, now in enumerate(at):
        for _, id_, age in sorted(piece for piece in coming if piece[0] < now):
            ledger.observe(id_, 0.5, age)
        coming = [piece for piece in coming if piece[0] >= now]
        (decision,) = ledger.decide(now)
        earned += MEANS[decision.arm]
        if dice.random() < MEANS[decision.arm]:
            coming += [(now + age, decision.id, age) for age in log.age[2 * i : 2 * i + 2]]
    return earned / decisions


# Nothing is known before it arrives.


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.sampled_from(["rejection", "weighting"]), st.floats(0.1, 0.9))
def test_what_has_not_arrived_changes_nothing(seed, method, part):
    log = made(150, seed)
    moment = log.at[int(part * 150)]
    arrives = np.repeat(log.at, np.diff(log.first)) + log.age
    other = replace(log, value=np.where(arrives < moment, log.value, 1.0 - log.value / 7))
    before = log.at <= moment
    for one, two in zip(
        walk(log, ac.AgeIMED(), method, (3, 0)), walk(other, ac.AgeIMED(), method, (3, 0)), strict=True
    ):
        assert (one[before] == two[before]).all()


def test_where_peeking_would_pay_it_does_not_happen():
    """All pay arrives after the last decision. A replay that showed a decision's pay with the
    decision, as the same log with ages of 0 does, would find the best arm."""
    log = made(900, seed=1)
    late = replace(
        log, window=2000, steps=2000, own=np.full(900, 2000.0), end=3000.0, age=np.full(len(log.age), 1500.0)
    )
    honest, peeking = (
        judge_all(one, {"AgeIMED": ac.AgeIMED()})[1]
        for one in (late, replace(late, age=np.zeros(len(log.age))))
    )
    assert honest.shares == pytest.approx([1 / 3] * 3, abs=0.05)
    assert honest.reward.low < MEANS.mean() < honest.reward.high
    assert peeking.shares[2] > 0.6
    assert peeking.reward.low > MEANS.mean()


def test_a_piece_counts_from_its_own_time_on_and_not_at_it():
    """Two arms, one decision each; b's pay arrives at the very moment of the third decision."""
    log = ReplayLog(
        ("a", "b"), np.ones(2), 10, 10, 100.0, arm=np.array([0, 1, 0, 1]),
        at=np.array([0.0, 1.0, 4.0, 5.0]), propensity=np.full(4, 0.5), own=np.full(4, 10.0),
        first=np.array([0, 0, 1, 1, 1]), age=np.array([3.0]), value=np.array([1.0]),
    )  # fmt: skip
    chosen, _ = walk(log, ac.TPUCBFR(1), "weighting", (0, 0))
    sooner, _ = walk(replace(log, age=np.array([2.9])), ac.TPUCBFR(1), "weighting", (0, 0))
    assert chosen.tolist() == [0, 1, 0, 1]  # at 4.0 the arms look alike, and the lower one is taken
    assert sooner.tolist() == [0, 1, 1, 1]


# The figures, where the truth is known.


def test_rejection_is_the_policy_itself_at_a_third_of_the_traffic():
    """Three equal propensities: every third decision is accepted. 60 logs of 900 decisions against
    60 simulations; both means have a standard error near 0.004, so 0.02 is more than three of
    their difference. At another pace the policy knows less at each decision and earns
    less: the control, at fifty decisions in a unit of time, must differ."""
    found = [replay_once(made(900, seed)) for seed in range(60)]
    truth = [simulated(300, gap=3.0, seed=seed) for seed in range(60)]
    hurried = [simulated(300, gap=0.02, seed=seed) for seed in range(60)]
    assert np.mean(found) == pytest.approx(np.mean(truth), abs=0.02)
    assert np.mean(hurried) < np.mean(truth) - 0.02


def replay_once(log: ReplayLog) -> float:
    chosen, accepted = walk(log, ac.AgeIMED(), "rejection", (0, 0))
    return float(MEANS[chosen[accepted & log.closed]].mean())


def test_uneven_propensities_are_evened_out():
    """The log prefers the worst arm; the same policy on an even log, thinned alike, is the truth."""
    uneven = [made(1500, seed, propensity=(0.6, 0.2, 0.2)) for seed in range(40)]
    found = [replay_once(log) for log in uneven]
    assert np.mean([log.arm.mean() for log in uneven]) < 0.65
    assert np.mean(found) == pytest.approx(np.mean([simulated(300, 5.0, s) for s in range(40)]), abs=0.02)


def test_intervals_of_a_learning_policy_hold_the_truth():
    """The truth is the mean over simulations, so that an interval must allow for another path of
    the policy too. Of 20 intervals of 95 %, 15 or more hold it but once in a thousand times."""
    truth = np.mean([simulated(290, gap=3.0, seed=seed) for seed in range(100)])
    lines = [judge_all(made(900, seed), {"AgeIMED": ac.AgeIMED()}, seed=seed)[1] for seed in range(20)]
    assert sum(line.reward.low < truth < line.reward.high for line in lines) >= 15
    assert (
        sum(line.reward.low < truth + 0.15 < line.reward.high for line in lines) < 10
    )  # they are not just wide


class Last(DelayedUCB1):
    """Always chooses the last arm, once each has been chosen."""

    functions = Functions(index=njit(lambda params, stats, arm, moment: float(arm)))


def test_weighting_of_a_fixed_choice_is_that_arms_mean():
    """Of 20 intervals of 95 %, 15 or more hold the truth but once in a thousand times."""
    held = 0
    for seed in range(20):
        line = judge_all(made(800, seed, (0.3, 0.5, 0.2)), {"last": Last()}, "weighting")[1]
        assert line.shares[2] > 0.95
        held += line.reward.low < MEANS[2] < line.reward.high
    assert held >= 15


def test_the_effective_sample_is_counted_by_hand():
    log = made(4000, 5, (0.8, 0.1, 0.1))
    line = judge_all(log, {"last": Last()}, "weighting")[1]
    chosen, accepted = walk(log, Last(), "weighting", (0, 0))
    weight = 1 / log.propensity[accepted & log.closed]
    assert line.used == len(weight)
    assert line.effective == pytest.approx(weight.sum() ** 2 / (weight**2).sum())
    assert line.shares == pytest.approx(np.bincount(chosen[log.closed]) / log.closed.sum())


def test_open_decisions_are_not_judged():
    log = made(900, seed=2)
    open_too = replace(log, value=np.where(np.repeat(log.closed, np.diff(log.first)), log.value, 0.0))
    assert (
        judge_all(open_too, {"p": ac.AgeIMED()})[1].reward.value
        == judge_all(log, {"p": ac.AgeIMED()})[1].reward.value
    )


# What is refused, and why.


def test_too_little_to_judge_by():
    with pytest.raises(
        ac.InputError, match=rf"too little to judge AgeIMED by: \d+ of \d+ .* {LEAST} are needed"
    ):
        judge_all(made(240, 0), {"AgeIMED": ac.AgeIMED()})


def test_propensities_that_the_log_contradicts():
    log = made(900, 0, (0.6, 0.2, 0.2))
    with pytest.raises(
        ac.InputError, match=r"do not fit the log: arm 'a' has 58.2 % .* where they promise 33"
    ):
        judge_all(replace(log, propensity=np.full(900, 1 / 3)), {"AgeIMED": ac.AgeIMED()})


@pytest.mark.parametrize(
    ("log", "method", "message"),
    [
        (made(300, 0, (1.0,), (0.5,)), "rejection", "at least two arms"),
        (made(300, 0, end=5.0), "rejection", "no decision of the log is closed"),
        (made(300, 0), "guessing", "unknown method 'guessing'"),
    ],
)
def test_wrong_input(log, method, message):
    with pytest.raises(ac.InputError, match=message):
        judge_all(log, {"AgeIMED": ac.AgeIMED()}, method)


def test_policies_that_see_the_future_are_refused():
    with pytest.raises(ac.InputError, match="sees totals before they are paid"):
        judge_all(made(900, 0), {"UCB1": ac.UCB1()})


# From a log's own tables.


def frames(log: ReplayLog) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tables that `log` would have been read from."""
    names = np.array(log.arms)[log.arm]
    decisions = {"id": np.arange(len(log.at)), "arm": names, "at": log.at, "propensity": log.propensity}
    decision = np.repeat(np.arange(len(log.at)), np.diff(log.first))
    return pd.DataFrame(decisions), pd.DataFrame({"decision": decision, "value": log.value, "age": log.age})


def test_a_log_is_walked_through_as_it_was_written():
    log = made(400, 3, (0.5, 0.3, 0.2))
    decisions, pieces = frames(log)
    decisions["window"] = np.where(np.arange(400) % 2, 12.0, 30.0)
    with open_log(decisions, pieces, end=log.at[-1] + WINDOW) as opened:
        found = from_log(opened, fit_log(opened, window=30), uniform=False)
    assert found.arms == log.arms
    for name in ("arm", "at", "propensity"):
        assert getattr(found, name) == pytest.approx(getattr(log, name))
    assert found.own == pytest.approx(decisions["window"])
    inside = log.age < np.repeat(decisions["window"].to_numpy(), np.diff(log.first))
    assert found.value.sum() == pytest.approx(log.value[inside].sum())
    assert found.steps == 30


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ([], "needs the chances with which the log chose"),
        (["--uniform", "--policy=UCB1"], "sees totals before they are paid"),
        (["--uniform", "--method=magic"], "unknown method 'magic'"),
        (["--uniform", "--policy=AgeIMED", "--policy=AgeIMED"], "policy AgeIMED is given twice"),
        (["--uniform", "--policy=TPUCBFR(7)"], "alpha must divide the window"),
        (["--uniform", "--window=290d"], "too little to judge AgePrior by"),
    ],
)
def test_bad_input_is_one_line(tmp_path, capsys, more, message):
    course_log.write(tmp_path, visits=300)
    line = ["replay", str(tmp_path / "decisions.csv"), str(tmp_path / "pieces.csv")]
    columns = ["--column=arm=course", "--column=value=minutes", "--groups=8"]
    window = [] if any("window" in word for word in more) else ["--window=56d"]
    assert run([*line, *columns, *window, *more]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("accrual: ")
    assert message in printed.err
    assert printed.err.count("\n") == 1


def test_what_was_fitted_is_no_log(tmp_path, capsys):
    assert run(["replay", str(tmp_path / "problem.json")]) == 2
    assert "a replay needs the log itself" in capsys.readouterr().err


def test_a_plain_policy_is_judged_doubly_robust_with_contexts():
    """Of all three arms the log says what they pay; 2,000 decisions have a standard error near 0.02."""
    log = made(2000, seed=5)
    stored = np.random.default_rng(5).integers(0, 2, (2000, 1)).astype(np.float64)
    log = replace(log, features=Features({"new": bool}), contexts=stored)
    line = judge_all(log, {"AgeIMED": ac.AgeIMED()}, "doubly robust")[1]
    chosen, _ = walk(log, ac.AgeIMED(), "doubly robust", (0, 0))
    assert line.reward.value == pytest.approx(float(MEANS[chosen].mean()), abs=0.08)
    assert line.reward.low < line.reward.value < line.reward.high
