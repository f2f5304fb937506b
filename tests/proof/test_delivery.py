"""Pieces that come several times and in any order teach what they teach when each comes once, in time."""

from __future__ import annotations

import numpy as np
import pytest
from tests.proof.folds import refold

import accrual as ac
from accrual.live.log_follower import Arrays
from accrual.live.verify_snapshots import learned, same_bits

DAY = 86_400.0
PIECES = 50  # of each decision
SIZES = [pytest.param(2_000, id="quick"), pytest.param(100_000, id="long", marks=pytest.mark.slow)]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def deliver(policy: str, url: str, order: np.ndarray, late: bool, tell_apart: bool) -> tuple[Arrays, int]:
    """What is learned from `PIECES` pieces of each decision, sent in this order; and how many were stored.

    The decisions are made at once, before anything is known. Each piece is sent when it is due; or all
    of them at the end, one day before the first window closes.
    """
    clock = Clock()
    count = int(order.max()) + 1
    chance = np.random.default_rng(count)
    ages = np.sort(chance.uniform(0, 50 * DAY, count))
    values = chance.random(count) / PIECES
    arms = {"jazz": 1.0, "rock": 1.0, "folk": 1.0}
    with ac.Bandit(arms, "60d", groups=20, policy=policy, seed=1, store=url, clock=clock) as bandit:
        bandit.decide(n=count // PIECES)
        stored = 0
        for sent in np.array_split(order, len(order) // 500):
            clock.now = 59 * DAY if late else ages[sent].max()
            answers = bandit.observe_many(
                (sent % (count // PIECES)).tolist(),
                values[sent].tolist(),
                ages[sent].tolist(),
                keys=[f"{piece} {i}" if tell_apart else f"{piece}" for i, piece in enumerate(sent)],
            )
            assert not any(answer.late for answer in answers)
            stored += sum(answer.status.value == "stored" for answer in answers)
        clock.now = 61 * DAY
        bandit.decide(n=3)  # all windows have closed
        assert same_bits(learned(bandit._follower.ledger), learned(refold(bandit)))
        return learned(bandit._follower.ledger), stored


def differences(one: Arrays, other: Arrays) -> tuple[float, list[str]]:
    """The largest relative difference of two folds' numbers; and the whole numbers that differ at all."""
    # What open decisions have paid ahead is 0 here: a sum and its rounding error, which cancel.
    far, wrong = (
        float(np.abs(one["pending.sums.ahead"].sum(axis=1) - other["pending.sums.ahead"].sum(axis=1)).max()),
        [],
    )
    for name in one.keys() - {"now", "pending.sums.ahead"}:
        a, b = one[name], other[name]
        if a.dtype.kind == "f":
            far = max(far, float(np.max(np.abs(a - b) / np.maximum(np.abs(a), 1e-300), initial=0)))
        elif not np.array_equal(a, b):
            wrong.append(name)
    return far, wrong


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("policy", ["TPUCBFR(alpha=20)", "IMED", "TPUCBEW(alpha=20)", "AgeIMED"])
def test_duplicates_in_any_order_change_nothing(policy, count, tmp_path, say):
    """Counts are equal, sums to rounding: they were added up in another order."""
    chance = np.random.default_rng(1)
    clean, _ = deliver(policy, f"sqlite:///{tmp_path}/clean.db", np.arange(count), False, False)
    order = chance.permutation(np.repeat(np.arange(count), chance.integers(1, 6, count)))
    messy, stored = deliver(policy, f"sqlite:///{tmp_path}/messy.db", order, True, False)
    far, wrong = differences(clean, messy)
    say(f"{policy}: {count} pieces sent {len(order)} times in any order: {stored} stored, {far:.0e} apart")
    assert stored == count
    assert far < 1e-12
    assert not wrong


@pytest.mark.filterwarnings("ignore:this decision has paid more in all")
def test_without_their_keys_duplicates_count(tmp_path, say):
    """The control: each delivery under a key of its own."""
    order = np.repeat(np.arange(2_000), 3)
    clean, _ = deliver("AgeIMED", f"sqlite:///{tmp_path}/clean.db", np.arange(2_000), False, False)
    messy, stored = deliver("AgeIMED", f"sqlite:///{tmp_path}/messy.db", order, True, True)
    far, _ = differences(clean, messy)
    say(f"control, each delivery under its own key: {stored} of {len(order)} stored, {far:.0e} apart")
    assert far > 0.1
