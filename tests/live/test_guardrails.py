"""Guardrails: hand-checked wealth, few false alarms, and retirements that are ordinary events."""

import logging
import math
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet
from tests.live.watching import first_trip
from tests.postgres import server

import accrual as ac
from accrual.core.errors import InputError
from accrual.core.jit.compiler import python_function
from accrual.evaluate.plan import even_shares
from accrual.live.verify_snapshots import learned, refold, same_bits
from accrual.live.watch.evidence import BETS, SCORED, WEIGHTS
from accrual.live.watch.guardrails import evidence_of, guard, least_excess, no_guards
from accrual.store.admin import export
from accrual.store.backends import make_tables
from accrual.store.base import NewPiece, RetireArm, StoreError
from accrual.store.events import Kind

STOP: Any = "stop"  # no action of a guardrail
REFUNDS = {"refunds": ac.Guardrail(margin=0.02, action="retire")}


def test_the_wealth_against_the_margin_by_hand():
    """The wealth of each bet is at least what the bound says, and by no more than a thousandth."""
    guards = no_guards([0], [(0.0, 1.0)], [0.02], np.full(2, 0.05), 0.05, 0)
    dice = np.random.default_rng(0)
    logs, h, paid = np.zeros(len(BETS)), 0.5, 0.5
    playing = np.ones(2, bool)
    for i in range(160):
        arm = int(dice.random() < 0.5)
        total = float(dice.random() < (0.9, 0.1)[arm])
        guard(guards, playing, arm, np.array([total]), 0.5)
        s = (total - h) / 0.5
        logs += np.log1p(BETS * 0.05 * ((s if arm == 0 else -s) - 0.02))
        paid += total
        h = paid / (i + 2)
    exact = float((WEIGHTS * np.exp(logs)).sum())
    evidence = python_function(evidence_of)(guards, 0)
    assert evidence.counts[SCORED] == 160
    evidence.unit[1] = exact  # the least excess is then the margin, but for the bound
    (first, _) = least_excess(evidence, [0, 1])
    assert 0.02 - 1e-3 < first <= 0.02


def trips(means, runs, rounds, margin=0.02, floor=0.3):
    shares = even_shares(len(means), floor)
    return np.array(
        [
            first_trip(
                no_guards([0], [(0.0, 1.0)], [margin], shares.least, 0.05, 0),
                shares, np.array(means), (3, run), 200, rounds,
            )
            for run in range(runs)
        ]
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("means", [(0.05, 0.07), (0.3, 0.3), (0.1, 0.12, 0.12)])
def test_an_arm_within_the_margin_is_seldom_found_worse(means):
    """At most 5 % of 1,000 runs and two standard errors, with a look after every 16th closed decision."""
    margin = 0.02 if len(set(means)) > 1 else 0.0
    assert (trips(means, 1000, 3000, margin) > 0).mean() <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 1000)


@pytest.mark.slow
def test_an_arm_beyond_the_margin_is_found():
    """0.12 against 0.05 is 0.05 more than the margin: in nine of ten of 200 runs within 4,000 decisions."""
    assert (trips((0.05, 0.12), 200, 4000) > 0).mean() > 0.9


def play(bandit, decisions, seed=0, refund=None):
    """Send a reward now and then, and a refund by arm."""
    dice = np.random.default_rng(seed)
    for _ in range(decisions):
        one = bandit.decide()
        if dice.random() < 0.3:
            bandit.observe(one.id, 1.0, age=0)
        if dice.random() < (refund or {"a": 0.05, "b": 0.6, "c": 0.05})[one.arm]:
            bandit.observe(one.id, 1.0, age=0, stream="refunds")


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_an_arm_that_is_worse_is_retired_and_a_refold_agrees(tmp_path, kind, caplog):
    store = f"sqlite:///{tmp_path}/plays.db" if kind == "sqlite" else server().database()
    make_tables(store)
    with ac.Bandit(["a", "b"], window=20, store=store, floor=0.4, seed=3, streams=REFUNDS) as bandit:
        with caplog.at_level(logging.WARNING, "accrual.live"):
            play(bandit, 500)
        (found,) = bandit.state().guardrails
        assert bandit.arms == ["a"]
        ledger = bandit._follower.ledger
        before = {name: array.copy() for name, array in learned(ledger).items()}
        position = bandit._follower.position
        events = bandit._store.read(1, 0, 10_000)
    assert found.arms[1].span is not None
    assert (
        f"b (retired) from decision 0 to {found.arms[1].span[1]}, on average by more than 0.02"
        in found.sentence
    )
    assert [(arm.worse, arm.retired) for arm in found.arms] == [(False, False), (True, True)]
    assert found.outcome == "worse_arms"
    (line,) = [record for record in caplog.records if record.name == "accrual.live"]
    assert (line.guardrail, line.arm, line.action) == ("refunds", "b", "retire")
    (retired,) = np.flatnonzero(events.kind == Kind.RETIRE_ARM)
    assert events.arm[retired] == 1
    made = events.arm[(events.kind == Kind.DECISION) & (events.seq > events.seq[retired])]
    assert (made == 0).all()
    assert len(made) > 50
    with ac.Bandit.open(store) as other:
        row = other._store.find("bandit")
        assert row is not None
        assert same_bits(learned(refold(other._store, row, other._config.ledger(), position)), before)
        assert other.state().guardrails == [found]


def test_the_policy_does_not_learn_from_a_guardrail():
    plain, guarded = (
        ac.Bandit(["a", "b"], window=20, floor=0.4, seed=3, streams=rails) for rails in ({}, REFUNDS)
    )
    for _ in range(60):
        one, other = plain.decide(), guarded.decide()
        assert one == other
        for bandit in (plain, guarded):
            bandit.observe(one.id, 0.25, age=0)
        guarded.observe(one.id, 0.5, age=0, stream="refunds")
    assert plain.state().arms == guarded.state().arms
    assert guarded.state().guardrails[0].arms[0].mean == 0.5
    assert guarded.state().verdict == plain.state().verdict
    with pytest.raises(InputError, match="unknown stream 'refund'"):
        guarded.observe(0, 1.0, stream="refund")
    with pytest.raises(InputError, match="no stream number 1"):
        guarded.submit([NewPiece(50, 1.0, stream=1)])
    assert not guarded.observe(59, 0.125, age=0, stream="reward").late  # its name may be given too
    assert sum(arm.observed for arm in guarded.state().arms) == 60 * 0.25 + 0.125
    (late,) = guarded.observe_many([0], [1.0], streams=["refunds"])
    assert late.late


def test_a_flag_does_not_retire_and_another_guardrail_may():
    rails = {"refunds": ac.Guardrail(margin=0.02), "complaints": ac.Guardrail(cap=2.0, margin=0.1)}
    bandit = ac.Bandit(["a", "b"], window=20, floor=0.4, seed=3, streams=rails)
    play(bandit, 500)
    refunds, complaints = bandit.state().guardrails
    assert bandit.arms == ["a", "b"]
    assert "Worse on refunds: b from decision 0 to" in refunds.sentence
    assert complaints.sentence == "No arm is known to be worse on complaints."
    assert complaints.outcome == "none_worse"
    bandit.add_arm("c")  # a new comparison, in which what was found stays found
    play(bandit, 100)
    (refunds, _) = bandit.state().guardrails
    assert [arm.worse for arm in refunds.arms] == [False, True, False]
    assert 0 < refunds.scored < 100


def test_the_last_arm_stays():
    """Two guardrails, each of which finds the other arm worse: one arm retires, and the other stays."""
    rails = {name: ac.Guardrail(action="retire") for name in ("refunds", "complaints")}
    bandit = ac.Bandit(["a", "b"], window=2, floor=0.5, seed=3, streams=rails)
    for _ in range(600):
        one = bandit.decide()
        bandit.observe(one.id, 1.0, age=0, stream="refunds" if one.arm == "a" else "complaints")
    assert len(bandit.arms) == 1
    assert bandit.state().guardrails[0].outcome == "worse_arms"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"streams": REFUNDS}, "needs a floor"),
        ({"streams": {"x": 0.02}, "floor": 0.1}, "names with their settings"),
        ({"streams": {"x": ac.Guardrail(margin=1.0)}, "floor": 0.1}, "from 0 to below its cap"),
        (
            {"streams": {"x": ac.Guardrail(cap=-1.0)}, "floor": 0.1},
            "the cap of stream .* must be a number from",
        ),
        ({"streams": {"reward": ac.Guardrail()}, "floor": 0.1}, "every bandit has a stream 'reward'"),
        ({"streams": {"x": ac.Guardrail(action=STOP)}, "floor": 0.1}, "action of a guardrail"),
        ({"streams": ["refunds"], "floor": 0.1}, "names with their settings"),
    ],
)
def test_guardrails_that_cannot_be(options, said):
    with pytest.raises(InputError, match=said):
        ac.Bandit(["a", "b"], window=20, **options)


def test_an_export_has_guardrails_in_a_file_of_their_own(tmp_path):
    store = f"sqlite:///{tmp_path}/plays.db"
    with ac.Bandit(["a", "b"], window=20, store=store, floor=0.4, seed=3, streams=REFUNDS) as bandit:
        for one in bandit.decide(n=4):
            bandit.observe(one.id, 0.25, age=0)
        bandit.observe(2, 1.0, age=1, stream="refunds")
    counts = export(store, None, tmp_path / "out")
    arms = {"arms.parquet": 2}
    assert counts == {"decisions.parquet": 4, "pieces.parquet": 4, "streams.parquet": 1} | arms
    (row,) = parquet.read_table(tmp_path / "out" / "streams.parquet").to_pylist()
    assert (row["decision"], row["stream"], row["value"], row["age"]) == (2, "refunds", 1.0, 1.0)
    assert "stream" not in parquet.read_table(tmp_path / "out" / "pieces.parquet").column_names


def test_other_guardrails_are_refused_when_a_bandit_is_opened_again(tmp_path):
    store = f"sqlite:///{tmp_path}/plays.db"
    ac.Bandit(["a", "b"], window=20, store=store, floor=0.1, streams=REFUNDS).close()
    ac.Bandit(["a", "b"], window=20, store=store, floor=0.1, streams=REFUNDS).close()
    for other in ({}, {"refunds": ac.Guardrail(margin=0.03, action="retire")}):
        with pytest.raises(InputError, match="streams is"):
            ac.Bandit(["a", "b"], window=20, store=store, floor=0.1, streams=other)


def test_a_retirement_that_cannot_be_stored_is_said_and_comes_with_a_later_commit(
    tmp_path, caplog, monkeypatch
):
    store = f"sqlite:///{tmp_path}/plays.db"
    make_tables(store)
    with ac.Bandit(["a", "b"], window=20, store=store, floor=0.4, seed=3, streams=REFUNDS) as bandit:
        append, failed = bandit._store.append, list[int]()

        def full_once(number, requests, now, skew=0.0):
            if not failed and any(isinstance(request, RetireArm) for request in requests):
                failed.append(len(requests))
                raise StoreError("the disk is full")
            return append(number, requests, now, skew)

        monkeypatch.setattr(bandit._store, "append", full_once)
        with caplog.at_level(logging.WARNING, "accrual.live"):
            play(bandit, 500)  # every decision and piece is answered all the same
        assert failed == [1]
        assert bandit.arms == ["a"]
    (said,) = [record for record in caplog.records if "could not be retired" in record.message]
    assert said.error == "the disk is full"
