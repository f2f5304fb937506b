"""Looking at a bandit: what a state is computed from, and what is left of a bandit that is dropped."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest
from tests.live.open_rows import open_rows

import accrual as ac
from accrual.live import request_checks
from accrual.live.commit import Decide
from accrual.live.ledger import Ledger
from accrual.live.state import ledger_view
from accrual.store.base import CloseDecision, NewPiece, Store, StoreError
from accrual.store.memory import MemoryStore
from accrual.store.sqlite.store import SQLiteStore


def busy_ledger(policy: ac.Policy, seed: int = 8) -> Ledger:
    """A ledger after decisions with windows of their own, pieces of all ages, closings and a new arm."""
    chance = np.random.default_rng(seed)
    ledger = Ledger(policy, [1.0, 5.0, 1e3], window=60, windows=[60.0, 37.0, 7.5], seed=seed)
    now = 0.0
    for step in range(1500):
        now += float(chance.exponential(0.3))
        if step == 700:
            ledger.add_arm(2.0, 21.0)
        own = None if chance.random() < 0.7 else float(chance.uniform(0.5, 60.0))
        ledger.decide(now, window=own)
        for _ in range(int(chance.integers(0, 4))):
            id_ = int(chance.integers(max(0, ledger.decisions - 250), ledger.decisions))
            value = float(chance.choice([1e-3, 0.3, 1e9, -1e9, -0.1]))
            ledger.observe(id_, value, float(chance.uniform(0.0, 60.0)))
        if chance.random() < 0.2:
            id_ = int(chance.integers(max(0, ledger.decisions - 200), ledger.decisions))
            ledger.close_decision(id_, now)
    return ledger


@pytest.mark.parametrize("policy", [ac.AgePrior(), ac.DelayedUCB1()], ids=["groups", "totals"])
def test_the_sums_over_open_decisions_are_those_of_a_plain_recomputation(policy):
    """Counts exactly, sums of numbers to 1e-12 of the largest, whatever pieces came and went."""
    ledger = busy_ledger(policy)
    rows, sums, ends = open_rows(ledger.pending_decisions), ledger.pending_decisions.sums, ledger._ends
    assert len(rows) > 50
    for arm in range(len(ledger.arms)):
        own = rows[rows["arm"] == arm]
        assert sums.waiting[arm].tolist() == np.bincount(own["group"], minlength=len(ends)).tolist()
        whole = np.searchsorted(ends, own["window"], side="right")
        assert sums.windows[arm].tolist() == np.bincount(whole, minlength=len(ends) + 1).tolist()
        ages = np.append(0.0, ends)
        next_ = np.minimum(whole + 1, len(ends))
        length = np.where(next_ > whole, ages[next_] - ages[whole], 1.0)
        parts = np.bincount(whole, (own["window"] - ages[whole]) / length, minlength=len(ends) + 1)
        assert sums.parts[arm] == pytest.approx(parts, abs=1e-10)
        ahead = own["total"] - own["done"]
        assert float(sums.ahead[arm].sum()) == pytest.approx(
            float(np.sum(ahead, dtype=np.longdouble)), abs=1e-12 * max(float(np.abs(ahead).max(initial=0)), 1)
        )


def test_a_state_is_that_of_a_plain_recomputation_over_pending_decisions():
    """What is expected of pending decisions, and the pace, to 1e-9; what is counted, exactly."""
    clock = iter(np.cumsum(np.random.default_rng(3).exponential(1.0, 4000)) + 1e9)
    bandit = ac.Bandit(
        ["a", "b", "c"], "200s", floor=0.2, seed=5, clock=lambda: float(next(clock)), store=MemoryStore()
    )
    chance = np.random.default_rng(4)
    for _ in range(600):
        id_ = bandit.decide().id
        bandit.submit(
            [NewPiece(int(chance.integers(max(0, id_ - 150), id_ + 1)), float(chance.random() / 4))]
        )
        if chance.random() < 0.2:
            bandit.submit([CloseDecision(int(chance.integers(max(0, id_ - 150), id_ + 1)))])
    state, ledger = bandit.state(), bandit._follower.ledger
    rows = open_rows(ledger.pending_decisions)
    assert [arm.pending for arm in state.arms] == np.bincount(rows["arm"], minlength=3).tolist()
    assert state.pending == len(rows) > 50
    assert ledger_view(bandit._follower).oldest == rows["at"].min()
    ages = np.append(0.0, ledger.edges)
    for number, arm in enumerate(state.arms):
        own = rows[rows["arm"] == number]
        paid = np.append(0.0, np.cumsum(arm.spread))
        assert arm.estimate is not None
        assert arm.reached == 200.0  # so that the estimate is of the total
        share = np.interp(own["window"], ages, paid) - paid[own["group"]]
        plain = max(float(arm.estimate * share.sum() - (own["total"] - own["done"]).sum()), 0.0)
        assert arm.expected == pytest.approx(plain, rel=1e-9)


@pytest.mark.parametrize("policy", ["AgePrior", "UCB1"])
def test_decisions_go_on_while_a_state_is_computed(policy, monkeypatch):
    bandit = ac.Bandit(["a", "b"], 50, policy=policy)
    bandit.decide(n=10)
    first, go_on = threading.Event(), threading.Event()
    compute = bandit._state_reader._state

    def slow(*given: Any) -> Any:
        first.set()
        assert go_on.wait(60)
        return compute(*given)

    monkeypatch.setattr(bandit._state_reader, "_state", slow)
    states: list[Any] = []
    looking = threading.Thread(target=lambda: states.append(bandit.state()))
    looking.start()
    assert first.wait(60)
    deciding = threading.Thread(target=bandit.decide)
    deciding.start()
    deciding.join(30)
    decided = not deciding.is_alive()
    go_on.set()
    looking.join(60)
    assert decided
    assert states[0].decisions == 10  # as of the moment when it was asked for
    assert sum(arm.decisions for arm in states[0].arms) == 10
    assert bandit.state().decisions == 11


def test_a_state_reads_no_further_than_its_own_position():
    """A policy that does not learn every age has a second ledger: both are of one position of the log."""
    store = MemoryStore()
    bandit = ac.Bandit(["a", "b"], 50, policy="UCB1", store=store)
    bandit.decide(n=10)
    bandit.state()
    other = ac.Bandit.open(store)
    bandit.decide(n=5)
    other.catch_up()
    other.decide(n=5)  # which the first has not folded
    assert bandit.state().decisions == 15
    assert bandit._state_reader._second is not None
    assert bandit._state_reader._second.position == bandit.position


# What is left of a bandit that is dropped.


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("policy", ["AgePrior", "UCB1", "AgeLinTS"])
@pytest.mark.parametrize("where", ["memory", "sqlite"])
def test_a_dropped_bandit_is_freed_at_once(policy, where, tmp_path, no_collector):
    store = MemoryStore() if where == "memory" else SQLiteStore(str(tmp_path / "plays.db"))
    dropped(store, policy, "first")  # compiling leaves cycles behind, once
    assert [one() for one in dropped(store, policy, "second")] == [None] * 3
    store.close()


def dropped(store: Store, policy: str, name: str) -> list[weakref.ref[Any]]:
    """Make a bandit, use it and drop it; return references to its parts."""
    features: Any = {"features": {"new": bool}} if policy == "AgeLinTS" else {}
    bandit = ac.Bandit(["a", "b"], 50, policy=policy, store=store, name=name, floor=0.1, **features)
    bandit.submit([Decide(3)])
    bandit.submit([NewPiece(0, 0.5, 0.0)])
    bandit.state()
    bandit.explain(1)
    with pytest.raises(ac.InputError):
        bandit.submit([Decide(1, contexts=(b"x", b"y"))])
    bandit.close()
    return [weakref.ref(bandit), weakref.ref(bandit._follower.ledger), weakref.ref(bandit._state_reader)]


def test_a_bandit_whose_commit_failed_is_freed_at_once(no_collector, monkeypatch):
    bandit = ac.Bandit(["a", "b"], 50, store=MemoryStore())

    def fails(*_: Any) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(bandit._store, "append", fails)
    with pytest.raises(StoreError, match="disk is full"):
        bandit.submit([Decide(1)])
    ledger = weakref.ref(bandit._follower.ledger)
    del bandit
    assert ledger() is None


def test_a_bandit_that_cannot_be_opened_is_freed_at_once(no_collector, monkeypatch):
    store = MemoryStore()
    ac.Bandit(["a", "b"], 50, store=store).decide()
    made: list[weakref.ref[Ledger]] = []

    def fails(ledger: Ledger, *_: Any) -> None:
        made.append(weakref.ref(ledger))
        raise StoreError("damaged")

    monkeypatch.setattr(Ledger, "extend", fails)
    with pytest.raises(StoreError, match="damaged"):
        ac.Bandit.open(store)
    assert len(made) == 1
    assert made[0]() is None


def test_following_does_not_keep_a_bandit(no_collector):
    store = MemoryStore()
    bandit = ac.Bandit(["a", "b"], 50, store=store)
    bandit.follow()
    ledger = weakref.ref(bandit._follower.ledger)
    thread, _ = bandit._following or pytest.fail("it does not follow")
    del bandit
    thread._thread.join(30)  # which ends when it follows none
    assert not thread._thread.is_alive()
    assert ledger() is None


def test_one_thread_follows_all_bandits_of_a_store():
    store = MemoryStore()
    before = threading.active_count()
    bandits = [ac.Bandit(["a", "b"], 50, store=store, name=f"b{i}") for i in range(20)]
    for bandit in bandits:
        bandit.follow()
    assert threading.active_count() == before + 1
    other = ac.Bandit.open(store, "b7")
    other.decide()
    for _ in range(3000):
        if bandits[7].staleness.events == 0:
            break
        threading.Event().wait(0.01)
    assert bandits[7].position == store.head(bandits[7]._row.number)
    for bandit in bandits:
        bandit.close()


# How many arms.


def test_arms_have_a_limit(monkeypatch):
    assert request_checks.ARMS_MOST == 1000
    monkeypatch.setattr("accrual.live.request_checks.ARMS_MOST", 4)
    bandit = ac.Bandit(["a", "b"], 50)
    bandit.add_arm("c")
    bandit.retire_arm("a")
    bandit.add_arm("d")
    with pytest.raises(ac.InputError, match="at most 4 arms"):
        bandit.add_arm("e")
    bandit.add_arm("d")  # the same again is no new one
    with pytest.raises(ac.InputError, match="another cap"):
        bandit.add_arm("d", cap=2.0)
    assert bandit.arms == ["b", "c", "d"]
