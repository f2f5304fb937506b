"""The ledger makes the simulator's choices and keeps the statistics of the whole history."""

import json
import math
import os
import runpy
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.live.open_rows import open_rows

import accrual as ac
from accrual.core.jit.compiler import _fingerprint
from accrual.engine.recording import record
from accrual.live.kernels import make_kernel
from accrual.live.ledger import Decision, Ledger
from accrual.policies.age_cells import KAPPA_START
from accrual.policies.base import Functions, Policy, no_amended
from accrual.policies.catalog import CATALOG

WAITING = [name for name in CATALOG if not CATALOG[name].example().immediate]
KINDS = ["TPUCBFRG", "DelayedUCB1", "IMED", "TPUCBEW", "AgeIMED"]  # between them, every statistic
WINDOW = 12
BASE = ("pulls", "observed", "closed", "total", "seen", "paid", "growth", "square")


def policy_of(name: str) -> Policy:
    return CATALOG[name].example()


def ledger_of(name: str, caps: Sequence[float] = (1.0, 2.0, 1.5), **more: Any) -> Ledger:
    return Ledger(policy_of(name), caps, WINDOW, **more)


def arrays(ledger: Ledger) -> dict[str, Any]:
    return {name: np.array(value) for name, value in ledger.stats._asdict().items()}


def assert_close(actual: dict[str, Any], expected: dict[str, Any], rtol: float, atol: float) -> None:
    for name, value in expected.items():
        np.testing.assert_allclose(actual[name], value, rtol=rtol, atol=atol, err_msg=name)


# The simulator and the live side are the same thing.


@pytest.mark.parametrize("name", WAITING)
@pytest.mark.parametrize("division", ["even", "first"])
def test_a_recorded_run_replayed_makes_the_same_choices(name, division):
    """Not to the bit: the engine adds rates and reads a table of cumulative pay, the ledger adds
    pieces, and the two round differently. Continuous rewards keep ties, which rounding could
    turn, out of it."""
    problem = ac.Problem(
        caps=[1.0, 2.0, 1.5, 1.8],
        window=WINDOW,
        groups=6,
        laws=[ac.BetaLaw(1.0, b, spread="begin_middle") for b in (0.6, 2.0, 1.2, 1.5)],
        division=division,
    )
    horizon = 1500
    recording = record(problem, policy_of(name), horizon, seed=4)
    ledger = Ledger(policy_of(name), problem.caps, WINDOW, seed=4)
    for t in range(horizon):
        assert ledger.choose(now=t + 1) == [recording.arms[t]]  # and it leaves no trace
        (decision,) = ledger.decide(now=t + 1)
        assert decision[:3] == (t, recording.arms[t], t + 1)
        for s in range(max(t - WINDOW + 1, 0), t + 1):
            if recording.pieces[s, t - s] > 0.0:
                assert ledger.observe(s, recording.pieces[s, t - s], age=t - s)
    ledger.tick(horizon + 1)
    assert ledger.late == 0
    assert ledger.pending == WINDOW - 1
    assert_close(arrays(ledger), recording.stats._asdict(), rtol=1e-9, atol=1e-12)


# Statistics against a recomputation from the full event list.


@dataclass
class History:
    """Everything that happened, kept in full."""

    arm: list[int]
    at: list[float]
    window: list[float]
    end: list[float]  # when the window is over
    counted: list[float]  # when all groups are over: with the window of the arm
    pieces: list[tuple[int, float, float]]  # id, value, age: those that came in time
    closed: set[int]  # nothing more is taken of these; they are counted as if nobody had said so
    now: float = 0.0
    late: int = 0

    def statistics(self, policy: Policy, caps: Sequence[float]) -> dict[str, Any]:
        """The base statistics at `now`, from nothing."""
        arms = len(caps)
        edges = policy.edges(WINDOW)
        stats = {name: np.zeros(arms) for name in ("pulls", "observed", "closed", "total", "squares")}
        cells: dict[str, Any] = {
            name: np.zeros((arms, len(edges))) for name in ("seen", "paid", "growth", "square")
        }
        for id_, arm in enumerate(self.arm):
            mine = [(value / caps[arm], age) for id2, value, age in self.pieces if id2 == id_]
            total = math.fsum(value for value, _ in mine)
            ended = self.counted[id_] <= self.now
            stats["pulls"][arm] += 1
            stats["observed"][arm] += total
            stats["closed"][arm] += ended
            stats["total"][arm] += total if ended else 0.0
            stats["squares"][arm] += total**2 if ended else 0.0
            for g, edge in enumerate(edges):
                if ended or self.at[id_] + edge <= self.now:
                    first = edges[g - 1] if g else 0
                    before = math.fsum(value for value, age in mine if age < first)
                    after = math.fsum(value for value, age in mine if age < edge)
                    cells["seen"][arm, g] += 1
                    cells["paid"][arm, g] += after - before
                    cells["growth"][arm, g] += after**2 - before**2
                    cells["square"][arm, g] += (after - before) ** 2
        if not len(edges):
            cells = {"square": stats["squares"]}
        return {name: value for name, value in {**stats, **cells}.items() if name != "squares"}


# Few ages and few decisions, so that pieces meet: in one group, at its edges, after its end.
AGES = st.sampled_from([0, 1, 2, 3, 6, 12]) | st.floats(0, 13)
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("decide"), st.integers(1, 5), st.none() | st.sampled_from([1, 2.5, 4, 7, 12])),
        st.tuples(st.just("record"), st.integers(0, 9), st.none() | st.floats(0.5, 12)),
        *[st.tuples(st.just("piece"), st.integers(0, 4), st.floats(0, 1), AGES)] * 4,
        *[st.tuples(st.just("wait"), st.sampled_from([0, 0.3, 1, 2, 3, 9]))] * 2,
        st.tuples(st.just("close"), st.integers(0, 10)),
        st.tuples(st.just("add"), st.floats(0.5, 3), st.none() | st.sampled_from([3, 6.5])),
        st.tuples(st.just("retire"), st.integers(0, 9)),
    ),
    min_size=10,
    max_size=60,
)


def play(ledger: Any, events: list[Any], caps: list[float]) -> History:
    """Send the events to a ledger that has been given no others, and keep them all."""
    history = History([], [], [], [], [], [], set())
    windows = [float(WINDOW)] * len(caps)

    def made(decision: Decision[int], own: float | None) -> None:
        history.arm.append(decision.arm)
        history.at.append(decision.at)
        history.window.append(windows[decision.arm] if own is None else min(own, windows[decision.arm]))
        history.end.append(decision.at + history.window[-1])
        history.counted.append(decision.at + windows[decision.arm])

    for kind, *more in events:
        if kind == "decide":
            for decision in ledger.decide(history.now, n=more[0], window=more[1]):
                made(decision, more[1])
        elif kind == "record":
            made(ledger.decide(history.now, window=more[1], arm=more[0] % len(caps))[0], more[1])
        elif kind == "wait":
            history.now += more[0]
            ledger.tick(history.now)
        elif kind == "add":
            caps.append(more[0])
            windows.append(WINDOW if more[1] is None else more[1])
            assert ledger.add_arm(more[0], window=more[1]) == len(caps) - 1
        elif kind == "retire" and ledger.arms.in_play != [more[0] % len(caps)]:
            ledger.retire_arm(more[0] % len(caps))
        elif kind == "close" and history.arm:
            id_ = max(len(history.arm) - 1 - more[0], 0)
            assert ledger.close_decision(id_, history.now) == (
                history.end[id_] > history.now and id_ not in history.closed
            )
            history.closed.add(id_)
        elif kind == "piece" and history.arm:
            id_ = max(len(history.arm) - 1 - more[0], 0)
            in_time = more[2] < history.window[id_] and history.now < history.end[id_]
            in_time = in_time and id_ not in history.closed
            assert ledger.observe(id_, more[1], age=more[2]) == in_time
            if in_time:
                history.pieces.append((id_, more[1], more[2]))
            else:
                history.late += 1
    return history


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=100, deadline=None, derandomize=True)
@given(events=EVENTS)
def test_statistics_equal_a_brute_force_recomputation(name, events):
    """Out of order, in batches, closed early, with windows of their own, arms that come and go.

    A piece's age is free here, before or after its group is over. The tolerance is a rounding
    error for each of some hundred additions of numbers near 1.
    """
    caps = [1.0, 2.0, 1.5]
    ledger = ledger_of(name, caps)
    history = play(ledger, [("decide", 2, None), *events], caps)
    raw = name in ("TPUCBFRG", "DelayedUCB1", "TPUCBEW")  # kept in rewards, not in caps
    expected = history.statistics(ledger.policy, caps)
    unit = np.array(caps) if raw else np.ones(len(caps))
    for field, value in ledger.stats._asdict().items():
        if field in BASE:
            scale = unit if field in ("observed", "total", "paid") else np.ones(len(caps))
            want = (expected[field].T * scale).T
            np.testing.assert_allclose(value, want, rtol=1e-12, atol=1e-12, err_msg=field)
    assert ledger.late == history.late
    open_ = [id_ for id_, end in enumerate(history.end) if end > history.now and id_ not in history.closed]
    assert ledger.pending == len(open_) == len(open_rows(ledger.pending_decisions))
    totals = np.zeros(len(history.arm))
    for id_, value, _ in history.pieces:
        totals[id_] += value
    above = np.flatnonzero(totals > np.array(caps)[history.arm] * (1 + 1e-9))
    assert (
        ledger.arms.above.tolist() == np.bincount(np.array(history.arm)[above], minlength=len(caps)).tolist()
    )
    assert ledger.decisions == len(history.arm)


DELIVERIES = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 11), st.floats(0, 1)), min_size=1, max_size=25
)


def deliver(name: str, pieces: list[tuple[int, int, float]], ticks: Sequence[float]) -> dict[str, Any]:
    """Four decisions, pieces in this order with these pauses, then all windows close."""
    ledger = ledger_of(name, [4.0, 5.0])
    for arm in (0, 1, 0, 1):
        ledger.decide(now=0, arm=arm)
    for (id_, age, value), now in zip(pieces, ticks, strict=True):
        ledger.tick(now)
        assert ledger.observe(id_, value, age)
    ledger.tick(2 * WINDOW)
    return arrays(ledger)


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=40, deadline=None, derandomize=True)
@given(data=st.data())
def test_the_order_of_delivery_and_the_cutting_of_pieces_do_not_matter(name, data):
    """Beyond rounding: 25 additions of numbers near 1 lose less than 1e-12."""
    pieces = data.draw(DELIVERIES)
    expected = deliver(name, pieces, [0] * len(pieces))
    cut = [(id_, age, value * share) for id_, age, value in pieces for share in (0.25, 0.5, 0.25)]
    shuffled = data.draw(st.permutations(cut))
    ticks = sorted(data.draw(st.lists(st.floats(0, 11.9), min_size=len(cut), max_size=len(cut))))
    assert_close(deliver(name, shuffled, ticks), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(events=EVENTS, pauses=st.lists(st.floats(0, 1), min_size=60, max_size=60))
def test_ticks_in_between_change_nothing_to_the_bit(name, events, pauses):
    plain, ticking = ledger_of(name), ledger_of(name)
    caps = [1.0, 2.0, 1.5]
    play(plain, [("decide", 2, None), *events], [*caps])

    class Restless:
        """A ledger to which time passes in small steps."""

        def __getattr__(self, method):
            return getattr(ticking, method)

        def tick(self, now):
            then = max(ticking.now, 0.0)
            for pause in sorted(pauses):
                ticking.tick(then + pause * (now - then))
            ticking.tick(now)

    play(Restless(), [("decide", 2, None), *events], [*caps])
    for field, value in arrays(plain).items():
        np.testing.assert_array_equal(value, arrays(ticking)[field], err_msg=field)


@pytest.mark.parametrize("name", WAITING)
@pytest.mark.parametrize("order", [range(10), range(9, -1, -1), [3, 9, 0, 7, 1, 8, 2, 6, 4, 5]])
def test_ten_pieces_of_a_tenth_are_one_decision_with_total_one(name, order):
    """Delivered when the decision is old, so that most come out of order."""
    ledger = ledger_of(name, [1.0, 1.0])
    ledger.decide(now=0, n=2)
    ledger.tick(8)
    for age in order:
        ledger.observe(1, 0.1, age=age)
    ledger.tick(WINDOW)
    stats = arrays(ledger)
    assert list(stats["pulls"]) == [1, 1]
    if "observed" in stats:
        assert stats["observed"] == pytest.approx([0, 1], rel=1e-12)
    if "closed" in stats:
        assert list(stats["closed"]) == [1, 1]
        assert stats["total"] == pytest.approx([0, 1], rel=1e-12)
    if "seen" in stats:
        assert (stats["seen"] == 1).all()
        assert stats["paid"].sum(axis=1) == pytest.approx([0, 1], rel=1e-12)
    if "growth" in stats:
        assert stats["growth"].sum(axis=1) == pytest.approx([0, 1], rel=1e-12)


# Windows, closings, batches.


def test_windows_of_arms_and_decisions_by_hand():
    """TPUCBEW(4) on a window of 12: groups end at ages 3, 6, 9, 12."""
    ledger = ledger_of("TPUCBEW", [1.0, 1.0], windows=[12, 7])
    seen = ledger.stats.seen
    ledger.decide(now=0, n=2)
    ledger.decide(now=0, window=4, arm=0)
    ledger.tick(2.9)
    assert not seen.any()
    ledger.tick(3)
    assert seen[:, 0].tolist() == [2, 1]
    assert ledger.pending == 3
    ledger.tick(4)  # the third decision's own window is over: it is paid no more, and its groups go on
    assert ledger.pending == 2
    assert seen.tolist() == [[2, 0, 0, 0], [1, 0, 0, 0]]
    assert not ledger.observe(2, 1.0, age=3.9)
    ledger.tick(6)
    assert seen.tolist() == [[2, 2, 0, 0], [1, 1, 0, 0]]
    assert ledger.observe(1, 0.5, age=6.9)
    assert not ledger.observe(1, 0.5, age=7)
    ledger.tick(7)  # the second arm's window is over: all groups of its decisions finish together
    assert seen.tolist() == [[2, 2, 0, 0], [1, 1, 1, 1]]
    assert ledger.stats.paid[1].tolist() == [0, 0, 0.5, 0]
    assert (ledger.pending, ledger.late) == (1, 2)
    assert ledger.close_decision(0, now=8)
    assert not ledger.close_decision(0, now=8)
    assert not ledger.observe(0, 1.0, age=1)
    assert (ledger.pending, ledger.late) == (0, 3)
    assert seen[0].tolist() == [2, 2, 0, 0]  # closing finishes nothing ...
    ledger.tick(9)
    assert seen[0].tolist() == [2, 2, 2, 0]
    ledger.tick(12)  # ... its groups finish at their own ages
    assert seen[0].tolist() == [2, 2, 2, 2]


def test_the_total_of_a_closed_decision_counts_when_its_window_is_over():
    ledger = ledger_of("DelayedUCB1", [1.0, 1.0])
    ledger.decide(now=0, n=2)
    ledger.observe(0, 0.25, age=0)
    ledger.observe(0, 0.25, age=11)
    ledger.close_decision(0, now=1)
    assert not ledger.observe(0, 0.25, age=1)
    ledger.tick(11.9)
    assert ledger.stats.closed.tolist() == [0, 0]
    ledger.tick(12)
    assert ledger.stats.closed.tolist() == [1, 1]
    assert ledger.stats.total.tolist() == [0.5, 0.0]


def visits(name: str, closing: bool) -> tuple[list[int], dict[str, Any]]:
    """Visitors stay for a while and pay as long as they do. Whoever leaves is closed at once, or is not."""
    ledger = ledger_of(name, [1.0, 1.0, 1.0])
    dice = np.random.default_rng(0)
    arms: list[int] = []
    leaving: dict[int, list[int]] = {}
    paying: dict[int, list[tuple[int, float, int]]] = {}
    for now in range(400):
        for id_ in leaving.pop(now, []) if closing else []:
            assert ledger.close_decision(id_, now)
        for id_, value, age in paying.pop(now, []):
            assert ledger.observe(id_, value, age)
        (decision,) = ledger.decide(now)
        arms.append(decision.arm)
        stays = dice.geometric(1 / (2 + 2 * np.arange(3)))[decision.arm]  # the last arm's stay longest
        if stays < WINDOW:
            leaving.setdefault(now + int(stays), []).append(decision.id)
        for age in range(min(int(stays), WINDOW)):
            paying.setdefault(now + age, []).append((decision.id, 1 / WINDOW, age))
    ledger.tick(400 + WINDOW)
    return arms, arrays(ledger)


@pytest.mark.parametrize("name", KINDS)
def test_to_close_what_pays_nothing_more_changes_no_choice_and_no_statistic(name):
    """To the bit. Were the groups of those who leave to finish when they leave, the short stays would be
    counted before the long ones, and every arm look worse than it is."""
    arms, stats = visits(name, closing=False)
    assert len(set(arms)) == 3
    closed_arms, closed_stats = visits(name, closing=True)
    assert closed_arms == arms
    for field, value in stats.items():
        assert value.tobytes() == closed_stats[field].tobytes(), field


def own_windows(name: str, closing: bool) -> tuple[list[int], list[list[int]], dict[str, Any], int]:
    """Decisions with windows of their own, or such that are closed when these would be over."""
    ledger = ledger_of(name, windows=[12, 12, 8])
    dice = np.random.default_rng(3)
    arms, tried = [], []
    leaving: dict[int, list[int]] = {}
    for now in range(300):
        for id_ in leaving.pop(now, []) if closing else []:
            ledger.close_decision(id_, now)
        tried.append(ledger.choose(now, n=5, step=1.0))
        own = int(dice.integers(1, 13))
        (decision,) = ledger.decide(now, window=None if closing else own)
        arms.append(decision.arm)
        leaving.setdefault(now + own, []).append(decision.id)
        for id_, age, value in zip(
            range(max(now - 11, 0), now + 1), dice.permutation(12), dice.random(12), strict=False
        ):
            ledger.observe(id_, value, min(int(age), now - id_))
    return arms, tried, arrays(ledger), ledger.pending


@pytest.mark.parametrize("name", KINDS)
def test_an_own_window_is_a_closing_at_its_end(name):
    """To the bit: the choices, those of decisions that are only tried, and the statistics."""
    arms, tried, stats, pending = own_windows(name, closing=False)
    assert len(set(arms)) == 3
    closed_arms, closed_tried, closed_stats, closed_pending = own_windows(name, closing=True)
    assert (closed_arms, closed_tried, closed_pending) == (arms, tried, pending)
    for field, value in stats.items():
        assert value.tobytes() == closed_stats[field].tobytes(), field


@pytest.mark.parametrize("rounds", [120, 150, 200])
@pytest.mark.parametrize("policy", [ac.AgePrior(), ac.AgeIMED(), ac.TPUCBEW(alpha=20), ac.IMED()])
def test_own_windows_leave_a_mean_where_it_is(policy, rounds):
    """Every other decision is watched for 20 rounds of 100, so totals are 1/6 and 5/6, and their mean is 0.5.

    Within 0.01: an odd number of decisions may have finished a group.
    """
    ledger = Ledger(policy, [1.0], window=100)
    for now in range(rounds):
        ledger.decide(now, window=(20, None)[now % 2], arm=0)
        for id_ in range(max(now - 99, 0), now + 1):
            if now - id_ < (20, 100)[id_ % 2]:
                assert ledger.observe(id_, 1 / 120, age=now - id_)
    ledger.tick(rounds)
    stats = ledger.stats
    if isinstance(policy, ac.IMED):
        assert stats.total[0] / stats.closed[0] == pytest.approx(0.5, abs=0.02)  # an odd one of 21 is 0.016
    else:
        assert (stats.paid[0] / stats.seen[0]).sum() == pytest.approx(0.5, abs=0.01)
    if isinstance(policy, ac.AgePrior):
        policy.functions.refresh(ledger.params, stats)
        assert stats.own[0] == pytest.approx(0.5, abs=0.01)


def test_the_mean_that_own_windows_would_tell_if_they_finished_groups_at_once():
    """The figure of docs/ledger.md: as above, after 150 rounds, by hand. Group k of 5 pays 20 / 120."""
    made = np.arange(150)
    short, age = made % 2 == 0, 150 - made
    told = 0.0
    for end in (20, 40, 60, 80, 100):
        known = np.where(short, age >= 20, age >= end)
        told += (20 / 120 * (~short | (end == 20)) * known).sum() / known.sum()
    assert round(told, 2) == 0.41


def test_what_is_due_at_once_is_done_in_order_of_the_decisions():
    """Seen in the rounding: 1e16 + 1 is 1e16, so in this order, and no other, 1 is lost."""
    ledger = ledger_of("DelayedUCB1", [1.0, 1.0])
    for window, value in ((None, 1e16), (5, 1.0), (None, -1e16)):
        (decision,) = ledger.decide(now=0, window=window, arm=0)
        ledger.observe(decision.id, value, age=0)
    ledger.tick(12)
    assert ledger.stats.closed[0] == 3
    assert ledger.stats.total[0] == 0.0


def test_a_batch_is_chosen_one_by_one_without_news():
    together, apart = ledger_of("AgeTS"), ledger_of("AgeTS")
    for now in range(0, 60, 3):
        batch = together.decide(now, n=4, window=5)
        assert batch == [apart.decide(now, window=5)[0] for _ in range(4)]
        for decision in batch:
            for ledger in (together, apart):
                ledger.observe(decision.id, 0.1 * decision.arm, age=1)


def test_memory_grows_with_what_is_pending():
    ledger = ledger_of("AgeIMED")
    for now in range(5000):
        (decision,) = ledger.decide(now)
        if now % 3:
            ledger.close_decision(decision.id, now)
    assert ledger.pending == WINDOW // 3
    assert len(ledger.pending_decisions.queues.rows) == len(ledger.pending_decisions.where) == 64
    ledger.decide(now=5000, n=1000)
    assert len(ledger.pending_decisions.queues.rows) == 1024
    ledger.tick(6000)
    assert ledger.pending == 0
    assert ledger.decisions == 6000


# Arms that come and go.


def pay(ledger: Ledger, means: Sequence[float], rounds: int) -> Any:
    """Play on; a decision of arm i pays means[i] or so, over the window. The arms chosen."""
    dice = np.random.default_rng(len(means))
    start, arms = max(ledger.now, 0) + 1, []
    for now in range(int(start), int(start) + rounds):
        (decision,) = ledger.decide(now)
        arms.append(decision.arm)
        for age in (0, 4, 8):
            ledger.observe(decision.id, dice.uniform(0, 2 / 3 * means[decision.arm]), age)
    return np.bincount(arms, minlength=len(means))


@pytest.mark.parametrize("name", ["AgeIMED", "AgeTS", "IMED", "KLUCB", "ThompsonSampling", "TPUCBEW"])
def test_a_retired_arm_is_not_chosen_and_leads_nothing(name):
    """Were the retired arm still the one to beat, IMED would go on trying the rest for ever: at
    means of 0.5 and 0.2 and a goal of 0.8, the worse about a quarter as often as the better."""
    ledger = Ledger(policy_of(name), [2.0, 1.0, 1.0], WINDOW)
    pay(ledger, [0.8, 0.5, 0.2], 300)
    ledger.retire_arm(0)
    assert ledger.arms.in_play == [1, 2]
    pulls = pay(ledger, [0.8, 0.5, 0.2], 2000)
    assert pulls[0] == 0
    assert pulls[2] < (0.05 if name in ("AgeIMED", "IMED") else 0.5) * pulls[1]


@pytest.mark.parametrize("name", WAITING)
def test_a_new_arm_comes_next_and_is_found_if_best(name):
    ledger = Ledger(policy_of(name), [1.0, 1.0], WINDOW)
    pay(ledger, [0.3, 0.2], 300)
    before = arrays(ledger)
    arm = ledger.add_arm(1.0)
    for field, value in arrays(ledger).items():
        np.testing.assert_array_equal(value[: len(before[field])], before[field], err_msg=field)
    assert ledger.decide(now=301)[0].arm == arm == 2
    pulls = pay(ledger, [0.3, 0.2, 0.7], 3000)
    assert pulls[2] > 1500


def test_a_new_arm_of_an_age_policy_starts_from_what_was_learned():
    ledger = Ledger(ac.AgeIMED(), [1.0, 1.0], WINDOW)
    pay(ledger, [0.3, 0.2], 300)
    kappa = ledger.stats.kappa
    assert not np.allclose(kappa, KAPPA_START)  # it has been learned
    ledger.add_arm(1.0)
    np.testing.assert_allclose(ledger.stats.inverse[2], 1 / kappa)


# Refusals.


def test_wrong_input_is_refused_in_one_clear_line_and_changes_nothing():
    ledger = ledger_of("AgeIMED")
    ledger.decide(now=5)
    before = arrays(ledger)
    wrong: list[tuple[Callable[[], object], str]] = [
        (lambda: ledger.decide(now=4), "time must not go back: 4 comes after 5"),
        (lambda: ledger.tick(math.nan), "time must not go back"),
        (lambda: ledger.decide(now=5, n=0), "n must be a whole number"),
        (lambda: ledger.decide(now=5, window=13), "at most the ledger's 12, not 13"),
        (lambda: ledger.decide(now=5, window=0), "a window must be a positive number, not 0"),
        (lambda: ledger.decide(now=5, arm=3), "arm must be a whole number from 0 to 2, not 3"),
        (lambda: ledger.observe(1, 0.5, age=0), "no decision has the id 1; there are 1, from 0 on"),
        (lambda: ledger.observe(-1, 0.5, age=0), "no decision has the id -1"),
        (lambda: ledger.observe(0.5, 0.5, age=0), "no decision has the id 0.5"),  # type: ignore[arg-type]
        (lambda: ledger.observe(0, math.nan, age=0), "must be a finite number, not nan"),
        (lambda: ledger.observe(0, 0.5, age=-1), "age must be 0 or more, not -1"),
        (lambda: ledger.observe(0, 0.5, age=math.nan), "age must be 0 or more, not nan"),
        (lambda: ledger.close_decision(1, now=9), "no decision has the id 1"),
        (lambda: ledger.add_arm(0.0), "a cap must be a positive number, not 0.0"),
        (lambda: ledger.add_arm(1.0, window=20), "at most the ledger's 12"),
        (lambda: ledger.retire_arm(7), "arm must be a whole number from 0 to 2, not 7"),
        (lambda: Ledger(ac.AgeIMED(), [], WINDOW), "at least one arm"),
        (lambda: Ledger(ac.AgeIMED(), [1.0], -1), "window must be a whole number"),
        (lambda: Ledger(ac.AgeIMED(), [1.0], WINDOW, windows=[1, 2]), "1 arms need 1 windows, not 2"),
        (lambda: Ledger(Unamended(4), [1.0], WINDOW), "lacks the function `amended`"),
    ]
    for action, text in wrong:
        with pytest.raises(ac.InputError) as error:
            action()
        assert text in str(error.value)
        assert "\n" not in str(error.value)
    for field, value in arrays(ledger).items():
        np.testing.assert_array_equal(value, before[field], err_msg=field)


def test_nobody_left_to_choose():
    ledger = ledger_of("AgeIMED", [1.0])
    ledger.decide(now=0)
    ledger.retire_arm(0)
    with pytest.raises(ac.InputError, match="every arm has retired"):
        ledger.decide(now=1)
    assert ledger.observe(0, 0.5, age=3)
    ledger.add_arm(1.0)
    assert ledger.decide(now=1)[0].arm == 1


@dataclass(frozen=True)
class Unamended(ac.TPUCBEW):
    """A policy that learns from groups but cannot take a piece out of order."""

    functions: ClassVar[Functions] = ac.TPUCBEW.functions._replace(amended=no_amended)


# Compilation.


def test_kernels_of_different_policies_never_share_machine_code():
    """A kernel reaches a policy's functions only through others."""
    one: Any = make_kernel(ac.AgeIMED.functions, "groups", False, False, ())
    amended = ac.AgeIMED.functions._replace(amended=ac.TPUCBEW.functions.amended)
    other: Any = make_kernel(amended, "groups", False, False, ())
    assert _fingerprint(one.py_func) != _fingerprint(other.py_func)


def bits() -> dict[str, dict[str, list[str]]]:
    """A short history's statistics, as exact text."""
    found = {}
    for name in KINDS:
        ledger = ledger_of(name)
        for now in range(40):
            for decision in ledger.decide(now, n=2, window=(None, 5)[now % 2]):
                ledger.observe(max(decision.id - 9, 0), 0.1 + 0.01 * now, age=now % 7)
            if now % 5 == 0:
                ledger.close_decision(decision.id, now)
        found[name] = {field: [float(x).hex() for x in v.ravel()] for field, v in arrays(ledger).items()}
    return found


def test_plain_python_gives_the_same_bits():
    command = "import json, test_ledger; print(json.dumps(test_ledger.bits()))"
    paths = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": paths}
    done = subprocess.run(
        [sys.executable, "-c", command], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == bits()


@pytest.mark.parametrize("example", ["own_windows", "arms_come_and_go"])
def test_examples_run(example, capsys):
    runpy.run_path(str(Path(__file__).parents[2] / "examples" / f"{example}.py"), run_name="__main__")
    assert len(capsys.readouterr().out.splitlines()) > 4
