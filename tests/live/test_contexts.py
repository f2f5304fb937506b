"""A ledger with contexts: what is tried is what is chosen, and trials leave no trace."""

from __future__ import annotations

import numpy as np
import pytest

import accrual as ac
from accrual.core.errors import InputError
from accrual.core.features import Features
from accrual.live.ledger import Ledger

FEATURES = Features({"plan": ["free", "paid"], "new": bool, "visits": (0, 10)})


def some_context(dice):
    return FEATURES.stored(
        {
            "plan": ["free", "paid", "other"][int(dice.integers(3))],
            "new": bool(dice.integers(2)),
            "visits": float(dice.integers(12)),
        }
    )


def play(policy, rounds, trials, seed=3):
    """A ledger after so many rounds with pieces in and out of order; with trials before every decision."""
    ledger = Ledger(policy, [1.0, 1.0, 1.0], 40, seed=1, features=FEATURES)
    dice = np.random.default_rng(seed)
    chosen, tried = [], []
    for now in range(1, rounds):
        contexts = [some_context(dice) for _ in range(3)]
        if trials:
            tried.append(ledger.choose(now, 3, 0.0, 0, contexts))
        decisions = ledger.decide(now, 3, contexts=contexts)
        chosen.append([decision.arm for decision in decisions])
        for decision, context in zip(decisions, contexts, strict=True):
            for _ in range(int(dice.integers(3))):
                ledger.observe(
                    decision.id, 0.1 * (1.0 + (context[0] == decision.arm)), float(dice.integers(40))
                )
    return ledger, chosen, tried


@pytest.mark.parametrize("policy", [ac.AgeLinTS(), ac.LinTS()])
def test_what_is_tried_is_what_is_then_chosen(policy):
    """Also where a refresh falls into a batch, and no trial leaves a trace."""
    ledger, chosen, tried = play(policy, 60, trials=True)
    assert tried == chosen
    again, without, _ = play(policy, 60, trials=False)
    assert without == chosen
    for name, array in ledger.arrays().items():
        np.testing.assert_array_equal(array, again.arrays()[name], err_msg=name)


def test_odd_values_are_counted_once():
    ledger, _, _ = play(ac.AgeLinTS(), 40, trials=True)
    assert ledger.visitors.oddities.sum(axis=0)[0] > 0
    dice = np.random.default_rng(3)
    unknown = beyond = 0
    for _ in range(1, 40):
        contexts = [some_context(dice) for _ in range(3)]
        unknown += sum(context[0] == -1 for context in contexts)
        beyond += sum(context[2] > 10 for context in contexts)
        for _ in contexts:
            for _ in range(int(dice.integers(3))):
                dice.integers(40)
    assert ledger.visitors.oddities.tolist() == [[unknown, 0, 0], [0, 0, 0], [0, 0, beyond]]


def test_a_constant_context_needs_no_features():
    ledger = Ledger(ac.AgeLinTS(), [1.0, 1.0], 20)
    for now in range(1, 200):
        (decision,) = ledger.decide(now)
        ledger.observe(decision.id, 0.2 + 0.5 * decision.arm, 0.0)
    assert ledger.stats.pulls[1] > 3 * ledger.stats.pulls[0]
    with pytest.raises(InputError, match="no features"):
        Ledger(ac.AgeTS(), [1.0], 20).decide(1, contexts=[[1.0]])
    with pytest.raises(InputError, match="3 numbers each"):
        Ledger(ac.AgeLinTS(), [1.0], 20, features=FEATURES).decide(1, contexts=[[1.0]])
