"""Watchers: a fourth one, of which no other file knows, is shown decisions, grows, survives and retires."""

import logging
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

import accrual as ac
from accrual.core.jit import njit
from accrual.live.commit import ArmMonitor
from accrual.live.ledger import Ledger
from accrual.live.log_follower import form_of
from accrual.live.verify_snapshots import learned, same_bits
from accrual.live.watch import Comparison, Pace, Watcher, watchers_of
from accrual.policies.floor import Limits
from accrual.store.base import RetireArm


class Tally(NamedTuple):
    ids: Any  # the ids of the decisions, in the order in which they were seen, from place 1 on
    sums: Any  # arms x 2: totals, and the first stream
    often: Any  # arms: the decision with which an arm had been seen ten times; 0 before


@njit
def see(tally: Tally, rules: Any, decision: Any) -> None:
    tally.ids[0] += 1
    tally.ids[tally.ids[0]] = decision.id
    tally.sums[decision.arm, 0] += decision.total
    tally.sums[decision.arm, 1] += decision.streams[0]
    if tally.ids[0] >= 10 and tally.often[decision.arm] == 0:
        tally.often[decision.arm] = decision.id


@dataclass(frozen=True)
class TallyWatcher(Watcher):
    name: ClassVar[str] = "tally"
    see = staticmethod(see)

    def start(self, comparison: Comparison) -> Tally:
        arms = len(comparison.caps)
        return Tally(np.zeros(100, np.int64), np.zeros((arms, 2)), np.zeros(arms, np.int64))

    def with_arm(self, arrays: Tally, comparison: Comparison) -> Tally:
        new = self.start(comparison)
        for array, old in zip(new, arrays, strict=True):
            array[: len(old)] = old
        return new

    def say(self, arrays, playing, name_of, pace, said) -> dict[str, float]:
        return {name_of(arm): float(arrays.sums[arm, 0]) for arm in playing}

    def found(self, arrays):
        return arrays.often

    def log_line(self, arrays, place):
        return "an arm was seen often", {"decision": int(arrays.often[place[0]])}

    def retiring(self, arrays):
        return arrays.often != 0


class EagerTallyWatcher(TallyWatcher):
    in_order: ClassVar[bool] = False


def ledger_with(*more: Watcher) -> Ledger:
    """Return a ledger of two arms, of which the second has a shorter window."""
    return Ledger(
        ac.AgeIMED(), [1.0, 1.0], 20, windows=[20.0, 5.0], streams=1, limits=Limits(0.3),
        watchers=(*watchers_of(False), *more),
    )  # fmt: skip


@pytest.mark.parametrize("watcher", [TallyWatcher(), EagerTallyWatcher()], ids=["in order", "at once"])
def test_a_fourth_watcher_sees_grows_and_survives(watcher):
    ledger, plain = ledger_with(watcher), ledger_with()
    made = []
    for now in range(30):
        made += ledger.decide(now, arm=now % 2)
        if now >= 15:
            ledger.observe(now, 0.25, 0.0)
    ledger.decide(30, arm=1, window=2.0)
    ledger.tick(40)
    ids, sums, _ = ledger.watched[-1]
    seen = ids[1 : ids[0] + 1].tolist()
    short = [decision.id for decision in made if decision.arm == 1]
    if watcher.in_order:
        assert seen == list(range(22))  # number 22 is of arm 0, and its window is not over
    else:
        assert sorted(seen) == sorted([*short, *range(0, 22, 2)])  # but for number 30: its window is its own
        assert [id for id in seen if id % 2] == short
    assert watcher.say(ledger.watched[-1], [0, 1], "ab".__getitem__, Pace(0, None, 20.0), {}) == {
        "a": 0.25 * sum(1 for id in seen if id >= 15 and id % 2 == 0),
        "b": 0.25 * sum(1 for id in seen if id >= 15 and id % 2 == 1),
    }
    ledger.add_arm(1.0)
    assert ledger.watched[-1].sums.shape == (3, 2)
    np.testing.assert_array_equal(ledger.watched[-1].sums[:2], sums)
    other = ledger_with(watcher)
    other.restore({name: array.copy() for name, array in ledger.arrays().items()})
    for one in (ledger, other):
        one.decide(41, n=5)
        one.tick(90)
    assert same_bits(learned(one), learned(other))
    assert "tally.sums" in ledger.arrays()
    assert "tally.sums" not in ledger.arrays(watched=False)
    assert form_of(ledger) != form_of(plain)  # a snapshot of one is not for the other


def test_what_a_watcher_finds_is_logged_once_and_retires_all_arms_but_one(caplog):
    ledger = ledger_with(TallyWatcher())
    monitor = ArmMonitor("plays", ledger, "abc".__getitem__)
    ledger.decide(1, n=30)
    with caplog.at_level(logging.WARNING, "accrual.live"):
        assert monitor.retirements(ledger) == []
        ledger.tick(40)
        assert set(np.flatnonzero(ledger.watched[-1].often)) == {0, 1}
        assert monitor.retirements(ledger) == [RetireArm(0)]
        ledger.add_arm(1.0)
        assert monitor.retirements(ledger) == [RetireArm(0), RetireArm(1)]
    assert [(line.message, line.bandit, line.arm) for line in caplog.records] == [
        ("an arm was seen often", "plays", arm) for arm in "ab"
    ]
    caplog.clear()
    ArmMonitor("plays", ledger, "abc".__getitem__).retirements(ledger)  # after a restart
    assert not caplog.records
