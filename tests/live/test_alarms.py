"""The alarm: places and bets by hand, few false alarms, and an alarm that survives what a bandit survives."""

import logging
import math

import numpy as np
import pytest
from tests.live.watching import first_alarms, watch_all

import accrual as ac
from accrual.core.jit.compiler import python_function
from accrual.core.random import ALARM, coin
from accrual.live.ledger import Ledger
from accrual.live.verify_snapshots import learned, refold, same_bits
from accrual.live.watch import alarms as parts
from accrual.live.watch.alarms import BINS, FALSE_ALARM, bin_of, no_alarms, watch, with_arms
from accrual.live.watch.watcher import Pace
from accrual.store.memory import MemoryStore


def test_bins_keep_the_order_of_totals():
    totals = [-3.0, -1e-9, 0.0, 1e-9, *np.geomspace(1e-6, 0.999, 500), 1.0, 7.0]
    bins = [python_function(bin_of)(x) for x in totals]
    assert bins == sorted(bins)
    assert (bins[0], bins[1], bins[2], bins[3]) == (0, 0, 1, 1)
    assert bins[-2:] == [BINS - 1] * 2
    assert (min(bins[4:-2]), max(bins[4:-2])) == (2, BINS - 2)
    assert len(set(bins)) > 150  # eight to each of twenty doublings


def test_places_and_bets_by_hand():
    """p is the share of totals before that are larger, ties and itself counting a random part."""
    dice, totals = np.random.default_rng(2), []
    alarms = no_alarms(1, 1)
    stakes, left = np.zeros(26), 1.0
    for n in range(1, 120):
        totals.append(float(dice.choice([0.0, 0.25, 0.9], p=[0.5, 0.3, 0.2])))
        watch(alarms, 0, 10 + n, totals[-1], 1.0, 7)
        larger = sum(total > totals[-1] for total in totals)
        p = (larger + coin(7, 0, 10 + n, ALARM) * totals.count(totals[-1])) / n
        before, left = 1 / math.log(math.e + n - 1), 1 / math.log(math.e + n)
        factors = [1 + sign * size * (0.5 - p) for size in parts.SIZES for sign in (1, -1)]
        for tail in parts.TAILS:
            for times in parts.TIMES:
                rest = (1 - times * tail) / (1 - tail)
                factors += [times if p < tail else rest, times if p >= 1 - tail else rest]
        stakes = (stakes + (before - left) / 26) * factors
    np.testing.assert_allclose(alarms.stakes[0], stakes, rtol=1e-12)
    assert alarms.raised[0] == 0
    assert alarms.bounds[0] == 1 / (0.5 * FALSE_ALARM)


def test_every_bet_is_fair():
    """For a uniform p each factor has a mean of 1: of a million of them, within 5 standard errors."""
    p = np.linspace(0.0, 1.0, 64 * 1000, endpoint=False) + 0.5 / 64_000
    for j in range(26):
        stakes = np.zeros(26)
        stakes[j] = 1.0
        made = []
        for one in p[::64]:
            own = stakes.copy()
            parts.bet(own, 1.0, float(one))
            made.append(own[j] / (1.0 + (1.0 - 1.0 / math.log(math.e + 1.0)) / 26))
        assert np.mean(made) == pytest.approx(1.0, abs=0.002), j


def test_no_more_than_the_accepted_chance_however_many_arms_are_added():
    alarms = no_alarms(3, 3)
    for arms in range(4, 300):
        alarms = with_arms(alarms, 3, arms)
    assert 0.95 * FALSE_ALARM < (1 / alarms.bounds).sum() <= FALSE_ALARM
    np.testing.assert_array_equal(alarms.bounds[:3], 3 / (0.5 * FALSE_ALARM))


def test_few_false_alarms():
    """300 arms alone on fixed seeds, of four kinds; the bound is 2.5 % where no arm is added: 7.5 of 300."""
    kinds = [
        lambda dice: (dice.random(1000) < 0.3) * 1.0,
        lambda dice: (dice.random(1000) < 0.02) * 1.0,
        lambda dice: dice.beta(2, 3, 1000),
        lambda dice: 1e-3 * np.exp(dice.normal(size=1000)),
    ]
    for kind in kinds:
        raised = 0
        for run in range(300):
            alarms = no_alarms(1, 1)
            raised += watch_all(alarms, np.zeros(1000, np.int64), kind(np.random.default_rng(run)), run) >= 0
        assert raised <= 7


@pytest.mark.slow
def test_few_false_alarms_with_a_policy_and_a_change_is_found():
    """200 runs of ten arms on fixed seeds; the bound is 2.5 % where no arm is added: 5 of 200."""
    still = first_alarms((0.3, 0.3), 200, 3000)
    assert np.isfinite(still).sum() <= 5
    found = first_alarms((0.5, 0.3), 50, 3000)
    assert np.isfinite(found).all()
    assert (found > 1500).all()
    assert np.median(found) < 1500 + 400


def changing(bandit: ac.Bandit, rounds: int, chances: dict[str, float], seed: int) -> None:
    dice = np.random.default_rng(seed)
    for _ in range(rounds):
        d = bandit.decide()
        if dice.random() < chances[d.arm]:
            bandit.observe(d.id, 1.0, age=0)


def test_an_alarm_is_logged_once_and_survives(caplog):
    store = MemoryStore()
    bandit = ac.Bandit(["a", "b"], 20, policy=ac.AgeIMED(), seed=1, store=store)
    changing(bandit, 1000, {"a": 0.3, "b": 0.6}, 1)
    before = bandit.state().alarm
    assert (before.arms, before.reason, before.error) == ([], "", 0.05)
    assert before.sentence == "No arm is known to pay differently than before."
    assert before.closed == 1000 - 20
    with caplog.at_level(logging.WARNING, logger="accrual.live"):
        changing(bandit, 400, {"a": 0.3, "b": 0.1}, 2)
    (said,) = [record for record in caplog.records if "no longer pays" in record.message]
    assert (said.bandit, said.arm) == ("bandit", "b")
    state = bandit.state()
    (arm,) = state.alarm.arms
    assert arm.name == "b"
    assert 1000 <= arm.decision < 1200
    assert arm.lately < 0.35
    assert arm.before > 0.55
    assert state.alarm.sentence.startswith("No longer pays as before: b (0.")
    assert state.alarm.sentence in state._repr_html_()
    ledger = bandit._follower.ledger
    row = store.find("bandit")
    assert row is not None
    again = refold(store, row, bandit._config.ledger(), bandit._follower.position)
    assert same_bits(learned(again), learned(ledger))
    caplog.clear()
    other = ac.Bandit.open(store, "bandit")
    assert other.state().alarm == state.alarm
    other.add_arm("c")
    assert other.state().alarm.arms == state.alarm.arms
    changing(other, 30, {"a": 0.3, "b": 0.1, "c": 0.2}, 3)
    assert not caplog.records


def test_decisions_with_windows_of_their_own_are_left_out():
    ledger = Ledger(ac.AgeIMED(), [1.0, 1.0], 80)
    ledger.decide(1, n=10)
    ledger.decide(2, n=7, window=3.0)
    ledger.tick(200)
    alarms, _ = ledger.watched
    assert alarms.counts.sum() == 10


def test_an_old_log_is_left_out():
    """A fit keeps decisions at evenly spaced ranks, which are not exchangeable with later ones."""
    clock = [1e6]
    closed: dict[str, list[list[tuple[float, float]]]] = {
        arm: [[]] * 30 + [[(60.0, 1.0)]] * 30 for arm in "ab"
    }
    bandit = ac.Bandit(["a", "b"], "10h", policy=ac.AgeIMED(), seed=1, prior=closed, clock=lambda: clock[0])
    bandit.decide(n=5)
    clock[0] += 40_000.0
    bandit.decide()
    assert bandit.state().alarm.closed == 5


def test_nothing_is_said_where_the_policy_chooses_by_contexts():
    ledger = Ledger(ac.LinTS(), [1.0, 1.0], 5)
    ledger.decide(1, n=3)
    ledger.tick(20)  # all three have closed
    state = ledger.watchers[0].say(ledger.watched[0], [0, 1], str, Pace(0, None, 5.0), {})
    assert "chooses by contexts" in state.sentence
    assert (state.arms, state.closed) == ([], 0)
