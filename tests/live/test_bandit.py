"""The live bandit: the same on a store in memory and in SQLite, and the same as the simulator."""

import math
import os
import re
import runpy
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import accrual as ac
from accrual.core.errors import InputError
from accrual.engine.recording import record
from accrual.live.commit import Call, Decide, salt_of
from accrual.live.copying import copy_bandit
from accrual.live.log_follower import LogFollower
from accrual.policies.base import Policy
from accrual.policies.catalog import CATALOG, policy_text
from accrual.store.backends import open_store
from accrual.store.base import (
    AddArm,
    CloseDecision,
    NewDecisions,
    NewPiece,
    RetireArm,
    Status,
    Store,
    StoreError,
)
from accrual.store.memory import MemoryStore
from accrual.store.sqlite.store import SQLiteStore

WINDOW = 12
ARMS = ["jazz", "rock", "talk"]


def policy_of(name: str) -> Policy:
    return CATALOG[name].example()


class Clock:
    """A clock that is set by hand."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def test_a_bandit_and_its_state_are_short_in_a_console_and_a_table_in_a_notebook():
    clock = Clock()
    arms = {"<i>": 1.0, "rock": 2.0, "talk": 1.0}
    bandit = ac.Bandit(arms, "36h", policy="UCB1", name="plays", clock=clock)
    assert repr(bandit) == "Bandit('plays': 3 arms, window 36h, UCB1(), 0 decisions)"
    assert repr(bandit.state()) == "BanditState('plays': 0 decisions, 0 pending, 3 arms)"
    for one in bandit.decide(n=3):
        bandit.observe(one.id, 0.5 if one.arm == "rock" else 0.25, age=0)
    clock.now += 40 * 3600
    bandit.retire_arm("talk")
    assert repr(bandit.state()).endswith("3 decisions, 0 pending, 3 arms; highest estimate rock, 0.5)")
    html = bandit._repr_html_()
    assert html.index("<td>rock</td><td>0.5</td>") < html.index("<td>&lt;i&gt;</td>")
    assert "talk (retired)" in html
    crowd = ac.Bandit([f"arm {i}" for i in range(120)], 80, policy="UCB1").state()._repr_html_()
    assert crowd.count("<tr>") == 1 + 20 + 1
    assert "and 100 more arms" in crowd


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    if request.param == "memory":
        yield MemoryStore()
    else:
        store = SQLiteStore(str(tmp_path / "plays.db"))
        yield store
        store.close()


def arrays(bandit: ac.Bandit) -> dict[str, Any]:
    """All that the ledger is."""
    return {name: array.copy() for name, array in bandit._follower.ledger.arrays().items()}


def assert_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    """To the bit, but for memory that nobody is using."""
    for name, array in one.items():
        if name.startswith("stats.") or name in ("caps", "windows", "playing", "recent", "pending.counts"):
            assert array.tobytes() == other[name].tobytes(), name
    assert_same_pending(one, other)


def assert_same_pending(one: dict[str, Any], other: dict[str, Any]) -> None:
    def rows(of: dict[str, Any]) -> list[Any]:
        numbers = of["pending.where"][of["pending.where"] >= 0]
        numbers = numbers[np.argsort(of["pending.queues.rows"]["id"][numbers])]
        fields = ["id", "arm", "group", "at", "window", "due", "done"]
        return [*(of["pending.queues.rows"][field][numbers] for field in fields), of["pending.paid"][numbers]]

    for a, b in zip(rows(one), rows(other), strict=True):
        assert a.tobytes() == b.tobytes()


def refolded(bandit: ac.Bandit, store: Store) -> dict[str, Any]:
    """The ledger, from the log alone."""
    number = bandit._row.number
    log: Any = store

    class Forgetful:
        def __getattr__(self, name: str) -> Any:
            return getattr(log, name)

        def load_snapshot(self, bandit: int, form: str) -> None:
            return None

    follower = LogFollower(Forgetful(), number, bandit._config.ledger)
    return {name: array.copy() for name, array in follower.ledger.arrays().items()}


def play(bandit: ac.Bandit, rounds: int, seed: int = 0) -> list[str]:
    """Decisions and pieces of all sorts."""
    dice = np.random.default_rng(seed)
    arms = []
    for _ in range(rounds):
        d = bandit.decide()
        arms.append(d.arm)
        for back in dice.integers(0, 15, 2):
            if d.id - back >= 0:
                age = int(dice.integers(0, back + 1))
                bandit.observe(int(d.id - back), float(dice.random() / 4), age=age)
        if d.id % 7 == 3:
            bandit.close_decision(d.id - 2)
    return arms


# The simulator and the live bandit are the same thing.


# test_ledger.py replays all policies every time; compiling each for a bandit as well takes long.
EVERY_TIME = ("AgeIMED", "TPUCBFR", "ThompsonSampling")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in EVERY_TIME else pytest.mark.slow) for name in CATALOG]
)
def test_a_recorded_run_replayed_makes_the_same_choices(name):
    """Where totals are seen at once in the simulation, they are here too: in a window of one round.
    Chosen by a copy, as with every store that can fail; memory's short cut is compared with
    that below. Not to the bit: the engine adds rates where the ledger adds pieces."""
    problem = ac.Problem(
        caps=[1.0, 2.0, 1.5, 1.8],
        window=WINDOW,
        groups=6,
        laws=[ac.BetaLaw(1.0, b, spread="begin_middle") for b in (0.6, 2.0, 1.2, 1.5)],
    )
    policy, horizon = policy_of(name), 600
    recording = record(problem, policy, horizon, seed=4, run=salt_of("bandit", shared=False))
    names = ["a", "b", "c", "d"]
    window = 1 if policy.immediate else WINDOW
    bandit = ac.Bandit(dict(zip(names, problem.caps, strict=True)), window=window, policy=policy, seed=4)
    bandit._volatile = False
    for t in range(horizon):
        d = bandit.decide()
        assert (d.id, d.arm, d.at) == (t, names[recording.arms[t]], t + 1)
        if policy.immediate:
            bandit.observe(d.id, recording.pieces[t].sum(), age=0)
            continue
        back = range(max(t - WINDOW + 1, 0), t + 1)
        paying = [s for s in back if recording.pieces[s, t - s] > 0.0]
        answers = bandit.observe_many(
            paying, [recording.pieces[s, t - s] for s in paying], ages=[t - s for s in paying]
        )
        assert all(a.status is Status.STORED and not a.late for a in answers)
    ledger = bandit._follower.ledger
    ledger.tick(horizon + 1)
    for field, value in recording.stats._asdict().items():
        np.testing.assert_allclose(getattr(ledger.stats, field), value, rtol=1e-9, atol=1e-12, err_msg=field)


def test_arms_added_one_after_the_other_have_their_turns():
    """Each of the two has one of any four decisions, however many the older one has had."""
    bandit = ac.Bandit(["a", "b"], window="60d", clock=lambda: 0.0)
    bandit.decide(n=100)
    bandit.add_arm("c")
    bandit.decide(n=300)
    bandit.add_arm("d")
    arms = [decision.arm for decision in bandit.decide(n=400)]
    assert (arms.count("c"), arms.count("d")) == (100, 100)


def test_what_differs_names_no_arm_that_does_not(store):
    ac.Bandit(["a", "b"], window=80, store=store)
    with pytest.raises(ac.InputError) as error:
        ac.Bandit(["a", "b"], window=81, store=store)
    assert "differs: window is 80 rounds, not 81 rounds; groups is 80, not 81;" in str(error.value)
    with pytest.raises(ac.InputError, match=r"not \[a \(cap 1\), b \(cap 1\.0000001\)\]"):
        ac.Bandit({"a": 1.0, "b": 1.0000001}, window=80, store=store)


def test_a_grandchild_refuses_what_its_parent_opened():
    """A bandit of the first process must not keep one of the second from being refused in the third."""
    code = """
import os, accrual as ac
first = [ac.Bandit(["a", "b"], 10) for _ in range(20)]
if os.fork() == 0:
    second = ac.Bandit(["a", "b"], 10)
    if os.fork() == 0:
        try:
            print("used", second.decide(), flush=True)
        except ac.InputError as error:
            print("refused", flush=True)
        os._exit(0)
    os.wait()
    os._exit(0)
os.wait()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("refused\n", "")


# The fold: whichever way the events come, the same bits.


@pytest.mark.parametrize("name", CATALOG)
def test_a_snapshot_and_its_tail_equal_the_refold_to_the_bit(name):
    store = MemoryStore()
    bandit = ac.Bandit(ARMS, window=WINDOW, policy=policy_of(name), store=store, seed=2)
    play(bandit, 120)
    bandit._follower.save_snapshot(now=True)
    ((seq, _),) = store._snapshots.values()
    assert seq == store.head(0)
    bandit.add_arm("news", cap=2.0, window=5)
    play(bandit, 80, seed=1)
    again = ac.Bandit.open(store)
    assert again._follower._snapshot_position == seq  # it did start there
    live = arrays(bandit)
    assert_same(live, arrays(again))
    assert_same(live, refolded(bandit, store))
    one, other = bandit._follower.ledger, again._follower.ledger
    assert one.choose(one.now + 1, 30, 1.0) == other.choose(other.now + 1, 30, 1.0)


def test_memory_and_sqlite_choose_and_fold_the_same_to_the_bit(tmp_path):
    one = ac.Bandit(ARMS, window=WINDOW, groups=6)
    with ac.Bandit(ARMS, window=WINDOW, groups=6, store=f"sqlite:///{tmp_path}/plays.db") as other:
        assert play(one, 100) == play(other, 100)
        batch = one.decide(n=40), other.decide(n=40)
        assert batch[0] == batch[1]
        assert_same(arrays(one), arrays(other))
        assert_same(arrays(other), refolded(other, other._store))
        assert one.state() == other.state()
        last = arrays(other)
    with ac.Bandit.open(f"sqlite:///{tmp_path}/plays.db") as other:
        assert_same(last, arrays(other))


def test_two_bandit_objects_on_one_store_in_memory_fold_the_same_log():
    store = MemoryStore()
    bandits = [ac.Bandit(ARMS, window=WINDOW, store=store), ac.Bandit.open(store)]
    ids = []
    for step in range(20):
        bandit = bandits[step % 3 % 2]
        ids += [one.id for one in bandit.decide(n=1 + step % 2)]
        bandit.observe(ids[-1], 0.5)
    assert ids == list(range(30))
    for bandit in bandits:
        bandit.catch_up()
        assert_same(arrays(bandit), refolded(bandit, store))


def test_a_batch_in_rounds_is_as_many_rounds_without_news():
    together, apart = (ac.Bandit(ARMS, window=WINDOW, policy=ac.AgeTS(), seed=1) for _ in range(2))
    together._volatile = False
    for i in range(30):
        batch = together.decide(n=20)  # more than the window: some close on the way
        assert batch == [apart.decide() for _ in range(20)]
        for bandit in (together, apart):
            bandit.observe(20 * i + 15, 0.1 * (i % 5), age=2)
    assert_same(arrays(together), arrays(apart))


def test_choosing_changes_nothing():
    bandit = ac.Bandit(ARMS, window=WINDOW)
    play(bandit, 60)
    before, ledger = arrays(bandit), bandit._follower.ledger
    first = ledger.choose(ledger.now + 1, 30, 1.0)
    assert first == ledger.choose(ledger.now + 1, 30, 1.0)
    assert_same(before, arrays(bandit))


def test_late_is_the_same_to_the_store_and_to_the_ledger(store):
    """The store says late when it accepts a piece; the ledger counts late pieces by its own rule."""
    clock = Clock()
    bandit = ac.Bandit(ARMS, window="60s", groups=60, store=store, clock=clock)
    bandit.add_arm("short", window="7s")
    dice = np.random.default_rng(5)
    late = 0
    for _ in range(300):
        clock.now += dice.choice([0.0, 0.1, 1.0, 3.0])
        made = bandit.decide(n=2)[1].id
        for _ in range(3):
            id_ = int(dice.integers(max(made - 60, 0), made + 1))
            if dice.integers(4) == 0:
                bandit.close_decision(id_)
            row = store.decision(bandit._row.number, id_)
            when = clock.now - float(dice.integers(0, 3))
            answer = bandit.observe(id_, 0.1, at=when if when >= row.at else None)
            late += answer.late and answer.status is Status.STORED
    assert late > 50
    assert bandit.state().late == late
    assert_same(arrays(bandit), refolded(bandit, store))


# What is said of a piece, and what becomes of it.


def test_the_same_key_and_piece_is_answered_like_the_first_time(store):
    bandit = ac.Bandit(ARMS, window=WINDOW, store=store)
    d = bandit.decide()
    first = bandit.observe(d.id, 0.7, age=0, key="play-991")
    assert first.status is Status.STORED
    again = bandit.observe(d.id, 0.7, age=0, key="play-991")
    assert again == first._replace(status=Status.AGAIN)
    with pytest.raises(ac.InputError, match="the key 'play-991' was used for another piece of decision 0"):
        bandit.observe(d.id, 0.8, age=0, key="play-991")
    other = bandit.decide()
    assert (
        bandit.observe(other.id, 0.8, age=0, key="play-991").status is Status.STORED
    )  # keys are a decision's
    assert bandit.state().arms[0].observed == 0.7


def test_without_a_key_a_stated_age_makes_one(store):
    bandit = ac.Bandit(ARMS, window=WINDOW, store=store)
    bandit.decide(n=5)
    assert bandit.observe(0, 0.25, age=3).status is Status.STORED
    assert bandit.observe(0, 0.25, age=3).status is Status.AGAIN
    assert bandit.observe(0, 0.25, at=4).status is Status.AGAIN  # decided in round 1, so of age 3
    assert bandit.observe(0, 0.25, age=2).status is Status.STORED
    assert bandit.observe(0, 0.25).status is Status.STORED  # now: each call is a piece
    assert bandit.observe(0, 0.25).status is Status.STORED
    assert bandit.state().arms[0].observed == 1.0


def test_a_piece_past_the_window_is_stored_and_counted_and_not_learned(store):
    bandit = ac.Bandit(ARMS, window=WINDOW, store=store)
    bandit.decide(n=WINDOW)
    assert not bandit.observe(0, 0.5, age=11).late
    bandit.decide()
    answer = bandit.observe(0, 0.5, key="late")
    assert answer.status is Status.STORED
    assert answer.late
    assert bandit.observe(0, 0.5, key="late") == answer._replace(status=Status.AGAIN)
    bandit.close_decision(5)
    assert bandit.observe(5, 0.5, age=0).late
    state = bandit.state()
    assert state.late == 2
    assert sum(arm.observed for arm in state.arms) == 0.5


def test_time_by_the_clock(store):
    clock = Clock(5000.0)
    bandit = ac.Bandit(ARMS, window="1h", groups=60, store=store, clock=clock)
    d = bandit.decide()
    assert d.at == 5000.0
    clock.now += 600
    assert bandit.observe(d.id, 0.1).age == 600
    assert bandit.observe(d.id, 0.1, at=5060.0).age == 60
    assert bandit.observe(d.id, 0.1, age=604).age == 604  # ahead by no more than the skew
    assert bandit.observe(d.id, 0.1, at=4997.0).age == 0  # before the decision, by no more than the skew
    with pytest.raises(ac.InputError, match="decision 0 has not reached the age of that piece"):
        bandit.observe(d.id, 0.1, age=606)
    with pytest.raises(ac.InputError, match="from before decision 0 was made"):
        bandit.observe(d.id, 0.1, at=4994.0)
    clock.now = 100.0  # a clock that goes back does not take the log with it
    assert bandit.decide().at == 5600.0
    clock.now = 5000.0 + 3600
    assert bandit.observe(d.id, 0.1).late
    assert len(store.read(bandit._row.number, 0, 100).seq) == 3 + 1 + 4 + 1 + 1


def test_rounds_have_no_skew(store):
    bandit = ac.Bandit(ARMS, window=WINDOW, store=store)
    bandit.decide(n=3)
    assert bandit.observe(0, 0.1, age=2).status is Status.STORED
    with pytest.raises(ac.InputError, match="has not reached the age"):
        bandit.observe(0, 0.1, age=3)


def test_refunds_and_corrections(store):
    bandit = ac.Bandit(ARMS, window=WINDOW, store=store, name="plain")
    bandit.decide()
    with pytest.raises(
        ac.InputError, match=r"must not be negative, as -0.5 is, unless .* allow_negative=True"
    ):
        bandit.observe(0, -0.5, age=0)
    bandit = ac.Bandit(ARMS, window=WINDOW, store=store, name="refunds", allow_negative=True)
    bandit.decide()
    bandit.observe(0, 0.75, age=0, key="sale")
    bandit.observe(0, -0.75, age=0, key="sale reversed")
    bandit.observe(0, 0.5, age=0, key="sale corrected")
    assert bandit.state().arms[0].observed == 0.5


def test_decisions_with_a_key(store):
    bandit = ac.Bandit(ARMS, window=WINDOW, store=store)
    first = bandit.decide(key="visit-1")
    assert bandit.decide(key="visit-1") == first
    batch = bandit.decide(n=3, key="visit-2")
    assert bandit.decide(n=3, key="visit-2") == batch
    with pytest.raises(
        ac.InputError, match="the key 'visit-2' was used for another number of decisions than 2"
    ):
        bandit.decide(n=2, key="visit-2")
    assert bandit.state().decisions == 4


def test_many_pieces_have_an_answer_each(store):
    bandit = ac.Bandit(ARMS, window=WINDOW, store=store)
    bandit.decide(n=2)
    answers = bandit.observe_many(
        [0, 0, 7, 1, 0], [0.1, 0.2, 0.3, 0.4, 0.1], ages=[0, 0, 0, 5, None], keys=["a", "a", None, None, "a"]
    )
    assert [a.status.value for a in answers] == ["stored", "conflict", "unknown", "future", "conflict"]
    assert bandit.observe_many([], []) == []
    head = store.head(bandit._row.number)
    with pytest.raises(ac.InputError, match="finite"):
        bandit.observe_many([0, 0], [0.1, math.nan])
    with pytest.raises(ac.InputError, match="of one length"):
        bandit.observe_many([0, 0], [0.1])
    assert store.head(bandit._row.number) == head


def test_a_mixed_batch(store):
    bandit = ac.Bandit(ARMS, window=WINDOW, store=store)
    answers = bandit.submit(
        [
            Decide(2),
            NewPiece(0, 0.5, 0.0),
            CloseDecision(1),
            NewPiece(1, 0.5),
            Decide(1, "k"),
            AddArm("news", 1.0, 12.0),
            RetireArm(0),
        ]
    )
    assert [a.status for a in answers] == [Status.STORED] * 7
    assert [a.arms for a in answers][::4] == [(0, 1), (2,)]
    assert answers[3].late
    assert bandit.arms == ["rock", "talk", "news"]
    assert bandit.decide().arm == "news"
    assert bandit.submit([]) == []
    assert_same(arrays(bandit), refolded(bandit, store))


@pytest.mark.parametrize(
    ("ask", "wrong"),
    [
        (AddArm("news", 1e60, 12.0), "the cap of arm .* must be a number from 1e-50 to 1e\\+50, not 1e\\+60"),
        (AddArm("news", "much", 12.0), "the cap of arm .* must be a number from .* not 'much'"),  # type: ignore[arg-type]
        (AddArm("news", 1.0, "long"), "a window must be a positive number, not 'long'"),  # type: ignore[arg-type]
        (AddArm("news", 1.0, 13.0), "a window must be at most"),
        (RetireArm("jazz"), "an arm is retired by its number, from 0 on, not 'jazz'"),  # type: ignore[arg-type]
        ("news", "submit takes Decide, NewPiece, .* not 'news'"),
        (None, "submit takes Decide, NewPiece, .* not None"),
    ],
)
def test_a_wrong_ask_is_refused_in_one_line_and_nothing_is_stored(store, ask, wrong):
    bandit = ac.Bandit(ARMS, window=WINDOW, store=store)
    head = store.head(bandit._row.number)
    with pytest.raises(ac.InputError, match=wrong):
        bandit.submit([Decide(), ask])
    assert store.head(bandit._row.number) == head
    assert bandit.submit([RetireArm(99), RetireArm(-1), RetireArm(2**70)])[2].status is Status.UNKNOWN


@pytest.mark.parametrize("change", [AddArm("news", 1.0, 12.0), RetireArm(0)])
def test_a_decision_does_not_follow_an_arm_that_changes_in_the_same_call(store, change):
    """It would be chosen before the arm changes, and so by other arms than the order says."""
    bandit = ac.Bandit(ARMS, window=WINDOW, store=store)
    head = store.head(bandit._row.number)
    with pytest.raises(ac.InputError, match="a decision cannot follow an arm that is added or retired"):
        bandit.submit([change, NewPiece(0, 0.5, 0.0), Decide()])
    assert store.head(bandit._row.number) == head
    bandit.submit([change])
    assert bandit.submit([Decide()])[0].status is Status.STORED


# Arms.


def test_arms_come_and_go(store):
    bandit = ac.Bandit({"jazz": 1.0, "rock": 2.0}, window=WINDOW, store=store)
    bandit.decide(n=2)
    bandit.add_arm("talk", cap=3.0, window=6)
    bandit.add_arm("talk", cap=3.0, window=6)  # once more is no other arm
    assert [d.arm for d in bandit.decide(n=3)].count("talk") == 1  # its share of a batch
    bandit.retire_arm("jazz")
    assert bandit.arms == ["rock", "talk"]
    assert "jazz" not in {d.arm for d in bandit.decide(n=30)}
    with pytest.raises(
        ac.InputError, match="an arm 'talk' already exists, with another cap, window or features"
    ):
        bandit.add_arm("talk")
    with pytest.raises(ac.InputError, match="unknown arm 'rok'; did you mean 'rock'"):
        bandit.retire_arm("rok")
    again = ac.Bandit.open(store)
    assert again.arms == ["rock", "talk"]
    assert [arm.retired for arm in again.state().arms] == [True, False, False]
    again.retire_arm("rock")
    again.retire_arm("talk")
    with pytest.raises(ac.InputError, match="every arm has retired"):
        again.decide()
    assert again.submit([NewPiece(0, 0.1, 0.0)])[0].status is Status.STORED


def test_a_policy_may_refuse_an_arm_and_nothing_is_stored(store):
    clusters = [ac.Cluster(arms=(0, 1), alpha=4, spread="begin")]
    bandit = ac.Bandit(["a", "b"], window=WINDOW, policy=ac.ClusteredTPUCBFRG(clusters), store=store)
    head = store.head(bandit._row.number)
    with pytest.raises(ac.InputError, match="arm 2 is in no cluster"):
        bandit.add_arm("c")
    with pytest.raises(ac.InputError, match="at most the ledger's 12"):
        bandit.add_arm("c", window=13)
    assert store.head(bandit._row.number) == head


# Opening again.


def test_what_differs_is_said_in_one_line(store):
    ac.Bandit(ARMS, window=80, groups=20, store=store, name="plays", seed=0)
    ac.Bandit(ARMS, window=80, groups=20, store=store, name="plays")  # no seed is no other seed
    cases: list[tuple[dict[str, Any], str]] = [
        ({"window": 60}, "window is 80 rounds, not 60 rounds"),
        ({"window": "80s", "groups": None}, "window is 80 rounds, not 80s"),
        ({"window": "60d", "groups": None}, "window is 80 rounds, not 60d"),
        ({"groups": 40}, "groups is 20, not 40"),
        ({"policy": ac.AgeTS()}, "spread=uniform, history=(), about=(), half_life=None), not AgeTS("),
        (
            {"arms": ["jazz", "rock"]},
            "arms is [jazz (cap 1), rock (cap 1), talk (cap 1)], not [jazz (cap 1), rock (cap 1)]",
        ),
        ({"seed": 3}, "seed is 0, not 3"),
        ({"allow_negative": True}, "allow_negative is False, not True"),
    ]
    for changes, text in cases:
        given = {"arms": ARMS, "window": 80, "groups": 20, **changes}
        with pytest.raises(ac.InputError) as error:
            ac.Bandit(**given, store=store, name="plays")
        assert "there is a bandit 'plays' in this store already, and it differs: " in str(error.value)
        assert text in str(error.value)
        assert "\n" not in str(error.value)
    assert store.names() == ["plays"]


def test_arms_may_be_given_as_they_were_or_as_they_are(store):
    bandit = ac.Bandit(ARMS, window=80, store=store)
    bandit.add_arm("news", cap=2.0)
    bandit.retire_arm("talk")
    for arms in (ARMS, {"jazz": 1.0, "rock": 1.0, "news": 2.0}):
        assert ac.Bandit(arms, window=80, store=store).arms == ["jazz", "rock", "news"]


def test_open(store, tmp_path):
    bandit = ac.Bandit(
        ARMS, window=timedelta(days=2), policy="TPUCBFRG(alpha=20, spread=begin)", store=store, name="x"
    )
    bandit.decide()
    again = ac.Bandit.open(store, "x")
    assert again.policy == ac.TPUCBFRG(alpha=20, spread="begin")
    assert again.state() == bandit.state()
    with pytest.raises(ac.InputError, match="unknown bandit 'y'"):
        ac.Bandit.open(store, "y")
    with pytest.raises(ac.InputError, match=r"unknown database 'plays\.db'"):
        ac.Bandit(ARMS, window=80, store="plays.db")


@dataclass(frozen=True)
class Mine(ac.AgeTS):
    """A policy of one's own."""

    @property
    def label(self) -> str:
        return "Mine"


def test_a_policy_of_one_s_own(store):
    bandit = ac.Bandit(ARMS, window=WINDOW, policy=Mine(k0=3.0), store=store)
    play(bandit, 20)
    with pytest.raises(ac.InputError, match=r"has a policy of its own; pass it: policy=Mine\(.*k0=3.0"):
        ac.Bandit.open(store)
    again = ac.Bandit.open(store, policy=Mine(k0=3.0))
    assert_same(arrays(bandit), arrays(again))
    assert ac.Bandit(ARMS, window=WINDOW, policy=Mine(k0=3.0), store=store).arms == ARMS
    with pytest.raises(ac.InputError, match="policy is Mine"):
        ac.Bandit(ARMS, window=WINDOW, policy=Mine(k0=2.0), store=store)


@pytest.mark.parametrize("name", CATALOG)
def test_every_policy_of_the_catalog_reads_back(name):
    policy = policy_of(name)
    text = policy_text(policy)
    assert text is not None
    assert ac.Bandit(ARMS, window=WINDOW, policy=text).policy == policy


def test_spreads_given_as_shares_read_back():
    policy = ac.TPUCBFRG(alpha=4, spread=[0.1, 0.2, 0.3, 0.4])
    assert policy_text(policy) == "TPUCBFRG(alpha=4, spread=[0.1, 0.2, 0.3, 0.4])"


# Why, and how things stand.


@pytest.mark.parametrize("name", CATALOG)
def test_an_explanation_is_of_the_moment_of_its_decision(name):
    """The largest index is the arm that was chosen, for every decision, alone or in a batch. Where the
    policy is an upper confidence bound, its terms add up to the index."""
    bandit = ac.Bandit(ARMS, window=WINDOW, policy=policy_of(name))
    bandit._volatile = False
    play(bandit, 40)
    bandit.decide(n=5)
    bandit.retire_arm("talk")
    bandit.decide(n=2)
    for id_ in [0, 1, 2, 3, 17, 39, 40, 42, 44, 45, 46]:
        why = bandit.explain(id_)
        assert why.exact
        assert why.first or id_ >= 3
        assert why.first == any(reason.arm == why.arm and reason.index is None for reason in why.reasons)
        assert [reason.arm for reason in why.reasons] == (ARMS if id_ < 45 else ["jazz", "rock"])
        if not why.first:
            most = max(reason.index or 0.0 for reason in why.reasons if reason.index is not None)
            assert why.arm == next(reason.arm for reason in why.reasons if reason.index == most)
        if name in ("UCB1", "DelayedUCB1", "TPUCBEW", "TPUCBFR", "TPUCBFRG"):
            for reason in why.reasons:
                assert reason.index is None or sum(reason.terms.values()) == pytest.approx(reason.index)
    with pytest.raises(ac.InputError, match="no decision has the id 47"):
        bandit.explain(47)


def test_an_explanation_starts_from_the_nearest_resting_place(monkeypatch):
    monkeypatch.setattr("accrual.live.log_follower._COPY_EVERY", 50)
    monkeypatch.setattr("accrual.live.log_follower._BYTES_PER_EVENT", 10**9)
    bandit = ac.Bandit(ARMS, window=WINDOW)
    play(bandit, 200)
    assert len(bandit._follower._copies) == 3
    assert all(bandit.explain(id_).exact for id_ in range(0, 200, 9))


def test_large_ledgers_are_not_kept_many_times_over(monkeypatch):
    monkeypatch.setattr("accrual.live.log_follower._COPY_EVERY", 50)
    monkeypatch.setattr("accrual.live.log_follower._BYTES_PER_EVENT", 10**9)
    monkeypatch.setattr("accrual.live.log_follower._COPY_MOST", 1000)
    bandit = ac.Bandit(["jazz", "rock"], 8, groups=4)
    for _ in range(300):
        bandit.decide()
    assert not bandit._follower._copies
    assert bandit.explain(280).id == 280


def test_an_explanation_holds_up_no_commit():
    """It comes while another thread is in the middle of one, so it cannot be what that waits for."""
    bandit = ac.Bandit(ARMS, window=WINDOW)
    play(bandit, 20)
    found = []
    asking = threading.Thread(target=lambda: found.append(bandit.explain(11)), daemon=True)
    with bandit.queue.lock:
        asking.start()
        asking.join(60)
    assert [why.id for why in found] == [11]


@pytest.mark.parametrize("policy", [ac.AgeIMED(), ac.DelayedUCB1()])
def test_state_by_hand(store, policy):
    clock = Clock()
    caps = {"jazz": 1.0, "rock": 2.0}
    bandit = ac.Bandit(caps, window="4s", groups=4, policy=policy, store=store, clock=clock)
    bandit.decide(n=2)
    assert [arm.estimate for arm in bandit.state().arms] == [None, None]
    assert [arm.expected for arm in bandit.state().arms] == [None, None]
    bandit.observe(0, 0.5, age=0)
    bandit.observe(1, 0.75, age=0)
    bandit.close_decision(1)
    clock.now += 4.0
    assert bandit.observe(0, 0.25).late  # time has passed
    state = bandit.state()
    assert (state.name, state.decisions, state.pending, state.late) == ("bandit", 2, 0, 1)
    jazz, rock = state.arms
    assert (jazz.decisions, jazz.pending, jazz.observed, jazz.share) == (1, 0, 0.5, 0.5)
    assert (jazz.expected, jazz.reached, jazz.above_cap) == (0.0, 4.0, 0)
    # One decision each, all paid at age 0: what it paid is the estimate.
    assert jazz.estimate == pytest.approx(0.5)
    assert rock.estimate == pytest.approx(0.75)
    assert jazz.interval is not None
    assert 0.0 <= jazz.interval[0] < 0.5 < jazz.interval[1] <= 1.0
    assert state.ages == [1.0, 2.0, 3.0, 4.0]
    assert sum(jazz.spread) == pytest.approx(1.0)
    assert np.argmax(jazz.spread) == 0
    bandit.decide(n=3)
    assert bandit.state().pending == 3


def test_intervals_hold_the_truth_about_as_often_as_they_say():
    """300 arms with 60 closed decisions each, whose totals are uniform on [0, 0.8] in two pieces. Of
    95 % intervals that hold independently, fewer than 90 % or all of 300 would be a 4 sigma event."""
    dice = np.random.default_rng(0)
    store = MemoryStore()
    bandit = ac.Bandit([str(i) for i in range(300)], window=4, store=store)
    items: list[Any] = []
    for id_ in range(60 * 300):
        items.append(NewDecisions((id_ % 300,), (4.0,)))
        items += [
            NewPiece(id_, value, 0.0, None, str(i))
            for i, value in enumerate(dice.uniform(0, 0.4, 2).tolist())
        ]
    store.append(0, items, 0.0)
    bandit.catch_up()
    inside = [arm.interval[0] <= 0.4 <= arm.interval[1] for arm in bandit.state().arms if arm.interval]
    assert len(inside) == 300
    assert 0.90 <= np.mean(inside) < 1.0


@pytest.mark.parametrize("policy", ["AgeIMED", "TPUCBFR(alpha=80)"])
def test_what_is_still_expected_counts_all_ages(policy):
    """Two arms that pay 0.01 and 0.005 in each of 80 rounds, surely and evenly. After ten rounds the five
    decisions of each arm are to pay that for every round that each has left, ages beyond ten too."""
    bandit = ac.Bandit(["jazz", "rock"], window=80, policy=policy)
    pay = {"jazz": 0.01, "rock": 0.005}
    made: list[Any] = []
    for _ in range(10):
        made.append(bandit.decide())
        for d in made:
            bandit.observe(d.id, pay[d.arm], age=made[-1].at - d.at)
    left = dict.fromkeys(pay, 0.0)
    for d in made:
        left[d.arm] += pay[d.arm] * (79 - (made[-1].at - d.at))
    for arm in bandit.state().arms:
        assert arm.expected == pytest.approx(left[arm.name], rel=0.01)
        assert arm.estimate == pytest.approx(pay[arm.name] * arm.reached, rel=0.01)
    for d in made[:6]:
        bandit.close_decision(d.id)
    open_ = {arm: sum(79 - (made[-1].at - d.at) for d in made[6:] if d.arm == arm) for arm in pay}
    for arm in bandit.state().arms:  # nothing more comes of those that were closed
        assert arm.expected == pytest.approx(pay[arm.name] * open_[arm.name], rel=0.01)


def test_a_decision_is_explained_by_the_estimates_of_the_state():
    bandit = ac.Bandit(ARMS, window=80, policy="AgeIMED")
    play(bandit, 30)
    before = {arm.name: arm.estimate for arm in bandit.state().arms}
    bandit._follower.ledger.tick(31)  # as the next decision finds it
    before = {arm.name: arm.estimate for arm in bandit.state().arms}
    why = bandit.explain(bandit.decide().id)
    assert {reason.arm: reason.estimate for reason in why.reasons} == pytest.approx(before)
    assert all(reason.terms["expected total"] > reason.estimate for reason in why.reasons if reason.estimate)


# Totals above the cap.


def test_a_total_above_its_cap_is_counted_and_answered_with_a_warning(store):
    bandit = ac.Bandit({"jazz": 1.0, "rock": 2.0}, window=80, store=store, allow_negative=True)
    bandit.decide(n=2)
    for key in "abcdefghij":
        assert not bandit.observe(0, 0.1, age=0, key=key).warning  # 1.0000000000000002 is no more than 1
    text = "paid more in all than its arm's cap of 1"
    with pytest.warns(UserWarning, match=text):
        answer = bandit.observe(0, 0.5, age=0)
    assert text in answer.warning
    assert "; 2 would be enough for this decision" in answer.warning
    with pytest.warns(UserWarning, match=text):
        assert bandit.observe(0, 0.5, age=0) == answer._replace(status=Status.AGAIN)
    assert not bandit.observe(1, 1.5, age=0).warning
    assert [arm.above_cap for arm in bandit.state().arms] == [1, 0]
    with pytest.warns(UserWarning, match="cap of 2: .*; 5 would be enough"):
        told = bandit.observe_many([1, 1, 7], [0.25, 0.5, 1.0], ages=[0, 0, 0])
    assert [bool(one.warning) for one in told] == [True, True, False]
    told = bandit.submit([NewPiece(0, -0.75, 0.0), Decide(1), NewPiece(1, 0.1, 0.0)])
    assert [bool(one.warning) for one in told] == [False, False, True]  # a refund brings it down again
    assert [arm.above_cap for arm in bandit.state().arms] == [0, 1]
    assert_same(arrays(bandit), refolded(bandit, store))


@pytest.mark.parametrize("policy", ["AgeIMED", "IMED"])
def test_estimates_are_the_plain_means_of_what_was_paid_however_low_the_cap(policy):
    """Every decision pays at once, so the means of those whose window is over are plain ones."""
    pay = {"jazz": 3.0, "rock": 280.0, "talk": 0.5}
    clock = Clock()
    bandit = ac.Bandit(list(pay), window="10s", policy=policy, clock=clock)
    for _ in range(20):
        made = bandit.decide(n=3)
        bandit.submit([NewPiece(d.id, pay[d.arm], 0.0) for d in made])
        clock.now += 11.0
    bandit.observe(0, 0.0)
    state = bandit.state()
    for arm in state.arms:
        assert arm.estimate == pytest.approx(pay[arm.name], rel=1e-6)
        assert arm.interval is not None
        assert arm.interval[0] <= pay[arm.name] <= arm.interval[1]
        assert arm.above_cap == (arm.decisions if pay[arm.name] > 1 else 0)
    assert max(state.arms, key=lambda arm: arm.estimate or 0.0).name == "rock"


@pytest.mark.parametrize("name", CATALOG)
def test_no_policy_comes_to_no_number_above_the_cap(name):
    bandit = ac.Bandit(ARMS, window=WINDOW, policy=policy_of(name))
    pay = {"jazz": 0.5, "rock": 3.0, "talk": 28_000.0}
    for _ in range(60):
        made = bandit.decide(n=2)
        bandit.submit([NewPiece(d.id, pay[d.arm], 0.0) for d in made])
    ledger = bandit._follower.ledger
    for field, value in ledger.stats._asdict().items():
        assert not np.isnan(value).any(), field
    why = bandit.explain(119)
    assert all(reason.index is not None and not math.isnan(reason.index) for reason in why.reasons)


# Threads, and failures.


def test_threads_share_commits_and_nothing_is_lost(tmp_path):
    store = SQLiteStore(str(tmp_path / "plays.db"))
    bandit = ac.Bandit(ARMS, window=1000, store=store)
    appends = []
    append = store.append

    def counted(bandit: int, requests: Any, now: float, skew: float = 0.0) -> Any:
        appends.append(len(requests))
        return append(bandit, requests, now, skew)

    store.append = counted  # type: ignore[method-assign]
    acknowledged: list[int] = []

    def work() -> None:
        for _ in range(25):
            d = bandit.decide()
            acknowledged.append(d.id)
            assert bandit.observe(d.id, 0.01, age=0, key="a").status is Status.STORED

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(acknowledged) == list(range(200))
    assert sum(appends) == 400
    assert len(appends) < 400  # some shared a transaction
    assert bandit.state().decisions == 200
    assert_same(arrays(bandit), refolded(bandit, store))
    store.close()


def test_a_failed_commit_changes_nothing_and_the_next_one_works(tmp_path, monkeypatch):
    """Whether the events came through is not known then; if they did, they are found."""
    store = SQLiteStore(str(tmp_path / "plays.db"))
    bandit = ac.Bandit(ARMS, window=WINDOW, store=store)
    play(bandit, 5)
    before, append = arrays(bandit), store.append

    def fails(*_: Any) -> Any:
        raise StoreError("disk full")

    def vanishes(*args: Any) -> Any:
        append(*args)
        raise StoreError("gone")

    monkeypatch.setattr(store, "append", fails)
    for action in (bandit.decide, lambda: bandit.observe(0, 0.1)):
        with pytest.raises(StoreError, match="disk full"):
            action()
    assert_same(before, arrays(bandit))
    monkeypatch.setattr(store, "append", vanishes)
    with pytest.raises(StoreError, match="gone"):
        bandit.decide(key="once")
    monkeypatch.setattr(store, "append", append)
    assert bandit.decide(key="once").id == 5
    assert bandit.decide().id == 6
    assert_same(arrays(bandit), refolded(bandit, store))
    store.close()


def test_an_error_amid_a_fold_is_made_good(monkeypatch):
    bandit = ac.Bandit(ARMS, window=WINDOW)
    bandit._volatile = False
    play(bandit, 30)
    ledger = bandit._follower.ledger
    monkeypatch.setattr(ledger, "extend", lambda events: (_ for _ in ()).throw(MemoryError))
    assert bandit.decide().id == 30  # stored, so acknowledged
    assert bandit.decide().id == 31
    assert bandit._follower.ledger is not ledger
    assert_same(arrays(bandit), refolded(bandit, bandit._store))


def test_an_error_amid_a_batch_in_memory_is_made_good(monkeypatch):
    bandit = ac.Bandit(ARMS, window=WINDOW)
    play(bandit, 30)
    ledger = bandit._follower.ledger
    make_one = ledger.make_one

    def fails(*given: Any) -> int:
        if ledger.decisions == 32:
            raise ac.InputError("an index is not a number")
        return make_one(*given)

    monkeypatch.setattr(ledger, "make_one", fails)
    with pytest.raises(ac.InputError, match="not a number"):
        bandit.decide(n=5)
    assert bandit.state().decisions == 30
    assert [one.id for one in bandit.decide(n=5)] == list(range(30, 35))
    assert_same(arrays(bandit), refolded(bandit, bandit._store))


# Forks.


@pytest.mark.parametrize("where", ["memory", "sqlite"])
def test_a_forked_child_refuses_a_bandit_of_its_parent(tmp_path, where):
    """And the parent goes on: the child lets go of nothing that is not its own."""
    store = None if where == "memory" else f"sqlite:///{tmp_path}/plays.db"
    with ac.Bandit(ARMS, window=WINDOW, store=store) as bandit:
        bandit.decide()
        calls: list[Callable[[], object]] = [
            bandit.decide,
            lambda: bandit.observe(0, 0.5),
            lambda: bandit.submit([Decide()]),
            lambda: bandit.close_decision(0),
            bandit.state,
            lambda: bandit.arms,
            bandit.catch_up,
        ]
        if where == "sqlite":
            calls += [lambda: bandit.explain(0), lambda: bandit.behind, lambda: bandit.add_arm("new")]
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            for call in calls:
                try:
                    call()
                    said = "nothing"
                except ac.InputError as error:
                    said = str(error)
                os.write(writing, f"{said}\n".encode())
            bandit.close()
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as file:
            lines = file.read().splitlines()
        assert os.waitpid(child, 0)[1] == 0
        assert len(lines) == len(calls)
        assert all(re.search("opened before (this process was forked|a fork)", line) for line in lines)
        assert bandit.decide().id == 1
        assert isinstance(bandit, ac.Bandit)


# Refusals.


def test_wrong_input_is_refused_in_one_clear_line_and_stores_nothing(store):
    bandit = ac.Bandit(ARMS, window=WINDOW, store=store)
    bandit.decide()
    head = store.head(bandit._row.number)
    wrong: list[tuple[Callable[[], object], str]] = [
        (lambda: bandit.observe(9, 0.5), "no decision has the id 9; nothing was stored"),
        (lambda: bandit.observe(-1, 0.5), "no decision has the id -1"),
        (lambda: bandit.observe(2**70, 0.5), "no decision has the id"),
        (lambda: bandit.observe("0", 0.5), "no decision has the id '0'"),  # type: ignore[arg-type]
        (lambda: bandit.observe(0, math.nan), "must be a finite number, not nan"),
        (lambda: bandit.observe(0, math.inf), "must be a finite number, not inf"),
        (lambda: bandit.observe(0, -0.1), "must not be negative"),
        (lambda: bandit.observe(0, "much"), "must be a finite number, not 'much'"),  # type: ignore[arg-type]
        (lambda: bandit.observe(0, 0.5, age=-1), "age must be 0 or more, not -1"),
        (lambda: bandit.observe(0, 0.5, age=math.nan), "age must be 0 or more, not nan"),
        (lambda: bandit.observe(0, 0.5, at=math.inf), "time must be a finite number, not inf"),
        (lambda: bandit.observe(0, 0.5, age=0, at=1), "by age= or by at=, not both"),
        (lambda: bandit.observe(0, 0.5, key=""), "text of 1 to 200 characters, not ''"),
        (lambda: bandit.observe(0, 0.5, key="x" * 201), "not 201 characters"),
        (lambda: bandit.observe(0, 0.5, key="a\0b"), "text of 1 to 200 characters"),
        (lambda: bandit.observe(0, 0.5, key="\ud800"), "text of 1 to 200 characters"),
        (lambda: bandit.decide(n=0), "n must be a whole number from 1 to 100000, not 0"),
        (lambda: bandit.decide(key=7), "text of 1 to 200 characters, not 7"),  # type: ignore[call-overload]
        (lambda: bandit.close_decision(1), "no decision has the id 1"),
        (lambda: bandit.add_arm(""), "text of 1 to 200 characters"),
        (lambda: bandit.add_arm("x", cap=0), "must be a number from 1e-50 to 1e+50, not 0"),
        (lambda: bandit.add_arm("x", window="3s"), "the bandit counts rounds, unlike '3s'"),
        (lambda: bandit.explain(1), "no decision has the id 1"),
        (lambda: ac.Bandit([], window=3), "arms must be names"),
        (lambda: ac.Bandit("jazz", window=3), "arms must be names"),
        (lambda: ac.Bandit(["a", "a"], window=3), "arms must have different names; 'a' is there twice"),
        (lambda: ac.Bandit({"a": -1.0}, window=3), "must be a number from 1e-50 to 1e+50, not -1.0"),
        (lambda: ac.Bandit(["a"], window=0), "window must be a whole number"),
        (
            lambda: ac.Bandit(["a"], window="60 days"),
            "or a time, such as '60d' (or s, min, h, w, y), not '60 days'",
        ),
        (lambda: ac.Bandit(["a"], window=80, groups=30), "groups must divide the window"),
        (lambda: ac.Bandit(["a"], window=80, policy="AgeMED"), "did you mean 'AgeIMED'"),
        (lambda: ac.Bandit(["a"], window=80, policy=ac.TPUCBFR(alpha=30)), "alpha must divide the window"),
        (lambda: ac.Bandit(["a"], window=80, seed=-1), "seed must be a whole number"),
        (lambda: ac.Bandit(["a"], window=80, name=""), "text of 1 to 200 characters"),
    ]
    for action, text in wrong:
        with pytest.raises(ac.InputError) as error:
            action()
        assert text in str(error.value)
        assert "\n" not in str(error.value)
    assert store.head(bandit._row.number) == head


def test_unknown_options_are_refused_and_the_nearest_is_named(store):
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"flor": 0.5, "nonsense": 3}, "unknown option of Bandit 'flor'"),
        ({"sed": 1}, "unknown option of Bandit 'sed'; did you mean 'seed'? (one of: clock, skew,"),
        ({"alow_negative": True}, "did you mean 'allow_negative'?"),
        ({"plicy": "UCB1"}, "did you mean 'policy'?"),
    ]
    for options, text in wrong:
        with pytest.raises(ac.InputError) as error:
            ac.Bandit(ARMS, window=WINDOW, store=store, **options)
        assert text in str(error.value)
    assert store.names() == []
    ac.Bandit(ARMS, window=WINDOW, store=store)
    wrong = [({"skw": 1.0}, "did you mean 'skew'?"), ({"seed": 3}, "unknown option of Bandit.open 'seed'")]
    for options, text in wrong:
        with pytest.raises(ac.InputError) as error:
            ac.Bandit.open(store, **options)
        assert text in str(error.value)


def test_submit_stores_what_observe_stores(store):
    """Numbers of numpy's, and values that are whole: the same piece, whichever way it comes."""
    bandit = ac.Bandit(ARMS, window=WINDOW, store=store)
    bandit.decide(n=2)
    number, value = np.int64(0), np.float32(0.5)
    piece = NewPiece(number, value, np.int64(0))  # type: ignore[arg-type]
    told = bandit.submit([piece, Decide(np.int64(1)), CloseDecision(np.int64(1))])  # type: ignore[arg-type]
    assert [one.status for one in told] == [Status.STORED] * 3
    assert bandit.observe(0, 0.5, age=0).status is Status.AGAIN
    checked = bandit.piece(number, value, np.int64(0))  # type: ignore[arg-type]
    assert checked == NewPiece(0, 0.5, 0.0)
    assert list(map(type, checked[:3])) == [int, float, float]
    assert bandit.submit([checked])[0].status is Status.AGAIN
    with pytest.raises(ac.InputError, match="must not be negative"):
        bandit.submit([NewPiece(0, 0.1, 0.0), NewPiece(0, -0.5, 0.0)])
    assert bandit.state().arms[0].observed == 0.5


def test_the_example_runs(capsys):
    runpy.run_path(str(Path(__file__).parents[2] / "examples" / "live.py"), run_name="__main__")
    assert len(capsys.readouterr().out.splitlines()) > 8


def test_an_interrupted_commit_leaves_no_one_waiting(monkeypatch):
    """The one who commits gets the interruption; who shared the commit, an error to try again on."""
    bandit = ac.Bandit(ARMS, window=WINDOW)
    bandit.decide()
    store, append, raised = bandit._store, bandit._store.append, []

    def interrupted(number: int, items: Any, *more: Any) -> Any:
        if len(items) > 1:
            raise KeyboardInterrupt
        while len(bandit.queue._queue) < 2:
            time.sleep(0.001)
        return append(number, items, *more)

    def work(key: str) -> None:
        try:
            bandit.observe(0, 0.1, key=key)
        except (StoreError, KeyboardInterrupt) as error:
            raised.append(type(error))

    monkeypatch.setattr(store, "append", interrupted)
    threads = [threading.Thread(target=work, args=(key,)) for key in "abc"]
    for thread in threads:  # the first commits alone, while the others line up
        thread.start()
        time.sleep(0.02)
    for thread in threads:
        thread.join(timeout=10)
        assert not thread.is_alive()
    assert sorted(error.__name__ for error in raised) == ["KeyboardInterrupt", "StoreError"]
    monkeypatch.setattr(store, "append", append)
    assert [bandit.observe(0, 0.1, key=key).status.value for key in "abc"] == ["again", "stored", "stored"]


def test_who_is_interrupted_while_waiting_is_waited_for_by_no_one():
    bandit = ac.Bandit(ARMS, window=WINDOW)
    queue, woken = bandit.queue, list[str]()
    first, second = (Call([NewPiece(0, 0.1, 0.0, None, key)], partial(woken.append, key)) for key in "ab")
    assert queue.join(first)  # it is to commit next, and is interrupted before it does
    assert not queue.join(second)
    queue._abandon(first)
    assert queue._queue == [second]
    assert queue._leader is second
    assert woken == ["b"]
    queue._abandon(second)
    assert not queue._queue
    assert bandit.decide().id == 0


@pytest.mark.filterwarnings("ignore:this decision has paid more in all")
@pytest.mark.parametrize("seed", range(5))
def test_refunds_that_outweigh_a_whole_bucket(seed):
    """Estimates stay finite, and the learned spread a spread."""
    dice = np.random.default_rng(seed)
    bandit = ac.Bandit({"jazz": 1.0, "rock": 2.0}, 6, groups=3, allow_negative=True)
    for id_ in range(60):
        bandit.decide()
        for _ in range(2):
            back = int(dice.integers(0, min(id_ + 1, 6)))
            bandit.observe(id_ - back, float(dice.choice([0.25, 0.75, -0.5, -0.75])), age=back)
        for arm in bandit.state().arms:
            if arm.estimate is not None and arm.interval is not None:
                assert arm.interval[0] <= arm.estimate <= arm.interval[1]
                assert min(arm.spread) >= 0.0


def test_a_policy_stored_without_a_newer_setting_is_the_same(store):
    """A policy's text names all its settings; one that was added since is missing in an older store."""
    bandit = ac.Bandit(["a", "b"], window=80, policy=ac.AgeIMED(), store=store)
    store.amend(bandit._row.number, {"policy": "AgeIMED(buckets=32)"})
    ac.Bandit(["a", "b"], window=80, policy=ac.AgeIMED(), store=store)
    with pytest.raises(ac.InputError, match="policy is AgeIMED"):
        ac.Bandit(["a", "b"], window=80, policy=ac.AgeIMED(k0=2.0), store=store)


@pytest.mark.filterwarnings("ignore:this decision has paid more")
def test_a_copy_has_the_history_and_the_new_cap(tmp_path):
    """With all kinds of events: batches with a key, pieces with and without an age, arms that come and go."""
    url = f"sqlite:///{tmp_path}/s.db"
    times = iter(range(1_000_000))
    with ac.Bandit(
        {"jazz": 1.0, "rock": 1.0}, "1h", store=url, name="old", clock=lambda: float(next(times))
    ) as old:
        for i in range(30):
            made = old.decide(2, key=f"visit-{i}") if i % 3 else [old.decide()]
            old.observe(made[0].id, 3.0, key="late" if i % 2 else None)
            old.observe(made[-1].id, 0.1, age=0.0)
        old.close_decision(3)
        old.add_arm("talk", cap=2.0)
        old.decide(4)
        old.retire_arm("rock")
        old.decide()
    count = copy_bandit(url, "old", "new", {"jazz": 5.0, "rock": 5.0}, floor=0.1)
    store = open_store(url)
    before, after = (store.read(number, 0, count + 1) for number in (1, 2))
    assert store.head(1) == store.head(2) == count
    for name, one, other in zip(before._fields, before, after, strict=True):
        if isinstance(one, np.ndarray) and name not in ("value", "cap"):
            assert np.array_equal(one, other), name
    with ac.Bandit.open(store, "new") as new, ac.Bandit.open(store, "old") as old:
        assert [arm.cap for arm in new.state().arms] == [5.0, 5.0, 2.0]
        assert [arm.observed for arm in new.state().arms] == [arm.observed for arm in old.state().arms]
        above = [sum(arm.above_cap for arm in bandit.state().arms) for bandit in (new, old)]
        assert above[0] == 0 < above[1]
        again = new.decide(2, key="visit-1")
        assert [d.id for d in again] == [d.id for d in old.decide(2, key="visit-1")]
        assert new.decide().propensity is not None
    store.close()
    for wrong, said in (({"jaz": 2.0}, "did you mean 'jazz'"), ({"jazz": -1.0}, "a cap must be a positive")):
        with pytest.raises(InputError, match=said):
            copy_bandit(url, "old", "third", wrong)
    with pytest.raises(InputError, match="already"):
        copy_bandit(url, "old", "new")
