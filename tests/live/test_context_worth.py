"""What contexts are worth to a live bandit: read from its log, judged by its own propensities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import accrual as ac
from accrual.core.context_value import context_value
from accrual.core.features import Features
from accrual.core.interval import Interval
from accrual.core.reward_model import Observed, cross_fit
from accrual.live import context_worth
from accrual.live.context_worth import Bounds, read_closed
from accrual.live.watch.guardrails import Guardrail
from accrual.store.memory import MemoryStore

FEATURES = {"plan": ["free", "paid"], "visits": (0, 10)}
WINDOW = 20


def made(n, store=None, effect=0.4, seed=3, **options):
    """A bandit whose free visitors like arm a and whose paying ones like b, by `effect`; c is bad for all."""
    given: dict[str, Any] = {"floor": 0.3, "features": FEATURES} | options
    bandit = ac.Bandit(["a", "b", "c"], WINDOW, policy="UCB1", store=store or MemoryStore(), seed=1, **given)
    dice = np.random.default_rng(seed)
    rows = []
    for _ in range(n // 10):
        plans, visits = dice.integers(2, size=10), dice.integers(0, 11, 10)
        contexts = [
            {"plan": FEATURES["plan"][plan], "visits": int(visit)}
            for plan, visit in zip(plans, visits, strict=True)
        ]
        decisions = bandit.decide(10, context=contexts if bandit.features else None)
        for decision, plan, visit in zip(decisions, plans, visits, strict=True):
            arm = "abc".index(decision.arm)
            mean = 0.1 if arm == 2 else 0.5 + effect * (0.5 if arm == plan else -0.5)
            paid = float(dice.random() < mean)
            if paid:
                bandit.observe(decision.id, 1.0, age=0)
            rows.append((arm, paid, decision.propensity, plan, visit))
    return bandit, np.array(rows, float)


def numbers(told: Interval | None) -> tuple[float, float, float]:
    assert told is not None
    return told.value, told.low, told.high


def test_it_is_what_the_same_decisions_say_when_they_are_written_down_by_hand():
    bandit, rows = made(3000)
    worth = bandit.context_worth()
    kept = rows[: 3000 - WINDOW]  # those whose windows are over
    arm, paid, propensity, plan, visits = kept.T
    x = np.stack([np.ones(len(kept)), plan == 0, plan == 1, visits / 10], axis=1)
    plain = context_value(
        Observed(x, arm.astype(np.int64), paid, propensity, 3), ("a", "b", "c"), Features(FEATURES), True
    )
    for told, by_hand in (
        (worth.more, plain.more), (worth.with_contexts, plain.chosen), (worth.without, plain.pays),
        *((one.more, other.more) for one, other in zip(worth.winners, plain.winners, strict=True)),
    ):  # fmt: skip
        assert numbers(told) == pytest.approx(numbers(by_hand))
    assert (worth.decisions, worth.closed) == (2980, 2980)
    _, low, high = numbers(worth.more)
    assert 0.0 < low < 0.2 < high  # half of the visitors gain 0.4
    assert worth.sentence.startswith("Contexts are worth 0.")
    assert {one.part for one in worth.winners} <= {"plan=free", "plan=paid"}
    assert worth.winners


def test_no_sign_where_the_best_arm_is_the_same_for_all():
    worth = made(2000, effect=0.0)[0].context_worth()
    _, low, high = numbers(worth.more)
    assert low <= 0.0 <= high
    assert worth.sentence.startswith("No sign that contexts are worth anything")
    assert worth.winners == ()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"floor": 0.0}, "there is no floor, so the chance with which an arm was chosen is not known"),
        ({"floor": 0.0, "shares": {"a": (0.2, 1.0)}}, "a bandit with floor=0.05, for example, can tell"),
        ({"features": None}, "the bandit has no features"),
        ({}, "fewer than two arms have 40 decisions"),
    ],
)
def test_where_it_cannot_be_told_it_says_why(options, words):
    worth = made(100, **options)[0].context_worth()
    assert worth.more is None
    assert words in worth.reason
    assert worth.sentence == f"What contexts are worth cannot be told: {worth.reason}."


def test_before_anything_has_closed():
    assert "no decision with a known propensity has closed yet" in made(10)[0].context_worth().reason


def test_only_the_last_decisions_are_read(monkeypatch):
    bandit, _ = made(2000)
    for bounds, least, most in ((Bounds(1000, 10**9), 1000, 1000), (Bounds(10**9, 1500), 900, 1200)):
        monkeypatch.setattr(context_worth, "BOUNDS", bounds)
        worth = bandit.context_worth()
        assert least <= worth.decisions <= most
        assert worth.closed == 1980


def test_an_arm_that_has_retired_is_not_chosen():
    """Arm a, liked by half, has retired: what is left is b for all."""
    bandit, _ = made(2000)
    bandit.retire_arm("a")
    worth = bandit.context_worth()
    assert worth.single == "b"
    assert numbers(worth.more)[2] < 0.1


def test_totals_are_what_the_ledger_counted():
    """With late pieces, closings, pieces of a guardrail and an arm with a window of its own."""
    store = MemoryStore()
    bandit = ac.Bandit(
        {"a": 9.0, "b": 9.0}, WINDOW, policy="UCB1", store=store, floor=0.5, features=FEATURES, seed=2,
        streams={"refunds": Guardrail(cap=9.0)},
    )  # fmt: skip
    bandit.add_arm("short", 9.0, window=5)
    dice = np.random.default_rng(4)
    for i in range(400):
        bandit.decide(context={"plan": "free"})
        for id in dice.integers(max(i - 25, 0), i + 1, 2).tolist():
            stream = "refunds" if dice.random() < 0.2 else None
            bandit.observe(id, 1.0, stream=stream)
        if dice.random() < 0.1:
            bandit.close_decision(int(dice.integers(max(i - 5, 0), i + 1)))
    bandit.decide(WINDOW, context=[{}] * WINDOW)
    (number,) = (row.number for row in [store.find("bandit")] if row)
    log = read_closed(store, number, range(400 + WINDOW), WINDOW, 2, Bounds(10**9, 10**9))
    assert len(log.arm) == 400
    observed = np.bincount(log.arm, log.total, 3)
    assert bandit.state().late > 0
    assert observed.tolist() == [arm.observed for arm in bandit.state().arms]
    later = read_closed(store, number, range(400 + WINDOW), WINDOW, 2, Bounds(50, 10**9))
    assert later.total.tolist() == log.total[-50:].tolist()


def test_judged_in_time_a_model_knows_nothing_of_what_comes_after():
    dice = np.random.default_rng(5)
    x = np.stack([np.ones(1000), dice.random(1000)], axis=1)
    seen = Observed(x, dice.integers(0, 2, 1000), dice.random(1000), np.full(1000, 0.5), 2)
    changed = seen._replace(reward=np.where(np.arange(1000) < 500, seen.reward, 7.0))
    before, after = cross_fit(seen, "in time"), cross_fit(changed, "in time")
    np.testing.assert_array_equal(before.expected[:600], after.expected[:600])
    np.testing.assert_array_equal(before.judged, np.arange(1000) >= 200)
    assert not np.array_equal(before.expected[600:], after.expected[600:])
