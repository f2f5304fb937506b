"""A ledger with contexts: what is tried is what is chosen, and trials leave no trace."""

from __future__ import annotations

import numpy as np
import pytest
from tests.proof.folds import refold

import accrual as ac
from accrual.core.errors import InputError
from accrual.core.features import Features
from accrual.live.ledger import Ledger
from accrual.live.log_follower import details_from_store
from accrual.live.verify_snapshots import verify_snapshots
from accrual.store.admin import export
from accrual.store.events import DecisionMade, columns
from accrual.store.memory import MemoryStore

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


@pytest.mark.parametrize("policy", [pytest.param(ac.AgeLinTS(), marks=pytest.mark.slow), ac.LinTS()])
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
    assert ledger.context_encoder.oddities.sum(axis=0)[0] > 0
    dice = np.random.default_rng(3)
    unknown = beyond = 0
    for _ in range(1, 40):
        contexts = [some_context(dice) for _ in range(3)]
        unknown += sum(context[0] == -1 for context in contexts)
        beyond += sum(context[2] > 10 for context in contexts)
        for _ in contexts:
            for _ in range(int(dice.integers(3))):
                dice.integers(40)
    assert ledger.context_encoder.oddities.tolist() == [[unknown, 0, 0], [0, 0, 0], [0, 0, beyond]]


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


DECLARED = {"plan": ["free", "paid"], "visits": (0, 10)}


def bandit_of(store, **options):
    return ac.Bandit(["a", "b"], window=30, store=store, features=DECLARED, seed=5, **options)


def use(bandit, decisions, seed=2):
    """Let free visitors like a, paying ones b."""
    dice = np.random.default_rng(seed)
    chosen = []
    for i in range(decisions):
        plan = ["free", "paid"][int(dice.integers(2))]
        decision = bandit.decide(context={"plan": plan, "visits": int(dice.integers(12))}, key=f"d{i}")
        chosen.append((plan, decision.arm))
        if dice.uniform() < (0.8 if (plan == "free") == (decision.arm == "a") else 0.2):
            bandit.observe(decision.id, 1.0, age=0)
    return chosen


def test_the_arm_depends_on_the_context():
    chosen = use(bandit_of(None), 600)[300:]
    right = sum((plan == "free") == (arm == "a") for plan, arm in chosen)
    assert right > 0.85 * len(chosen)


def test_a_file_gives_back_the_same_bandit(tmp_path):
    """Closed and opened, with and without a snapshot, and folded anew: the same choices and statistics."""
    whole = bandit_of(f"sqlite:///{tmp_path}/whole.db")
    expected = use(whole, 260)
    first = bandit_of(f"sqlite:///{tmp_path}/parts.db")
    assert use(first, 130) == expected[:130]
    first.close()
    again = ac.Bandit.open(f"sqlite:///{tmp_path}/parts.db")
    assert again.features is not None
    assert use(again, 260) == expected  # the first 130 are known by their keys
    arrays = again._follower.ledger.arrays()
    refolded = refold(again).arrays()
    for name, array in whole._follower.ledger.arrays().items():
        np.testing.assert_array_equal(array, arrays[name], err_msg=name)
        np.testing.assert_array_equal(array, refolded[name], err_msg=name)
    explanation = again.explain(200)
    assert explanation.exact
    assert set(explanation.context) == {"plan", "visits"}
    terms = explanation.reasons[0].terms
    adds = sum(value for name, value in terms.items() if name.endswith(" adds"))
    assert adds == pytest.approx(terms["expected total in this context"])
    for bandit in (whole, again):
        bandit.close()


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_a_fold_in_stretches_has_the_live_bandits_statistics(size):
    """Also what only the last decision of a stretch writes, where that decision is a new arm's turn."""
    bandit = bandit_of(None)
    use(bandit, 61)
    bandit.add_arm("c", 1.0)
    arms = [one.arm for one in bandit.decide(n=3, context=[{"plan": "paid", "visits": i} for i in range(3)])]
    assert [arm == "c" for arm in arms] == [False, False, True]
    live, store, ledger = bandit._follower.ledger, bandit._store, bandit._config.ledger()
    position = len(bandit._config.arms)
    while position < store.head(0):
        events = store.read(0, position, size)
        ledger.extend(events, *details_from_store(store, 0, ledger, events))
        position = int(events.seq[-1])
    for name, array in live.arrays().items():
        np.testing.assert_array_equal(array, ledger.arrays()[name], err_msg=name)


def test_snapshots_with_features_are_verified_for_a_policy_without_contexts_too():
    store = MemoryStore()
    bandit = ac.Bandit(["a", "b"], window=40, policy="AgePrior", features={"new": bool}, store=store)
    bandit.decide(n=30, context=[{"new": i % 2 == 0} for i in range(30)])
    bandit.close()
    assert verify_snapshots(store) == (1, [])


def test_batches_keys_and_what_is_refused():
    bandit = bandit_of(None)
    contexts = [{"plan": "free"}, {"plan": "paid"}, {}]
    first = bandit.decide(n=3, context=contexts, key="k")
    assert bandit.decide(n=3, context=contexts, key="k") == first
    with pytest.raises(InputError, match="other contexts"):
        bandit.decide(n=3, context=contexts[::-1], key="k")
    with pytest.raises(InputError, match="list of 2 contexts"):
        bandit.decide(n=2, context=contexts)
    with pytest.raises(InputError, match="must be features with their values"):
        bandit.decide(context=contexts)
    with pytest.raises(InputError, match="did you mean 'plan'"):
        bandit.decide(context={"plans": "free"})
    with pytest.raises(InputError, match="no features"):
        ac.Bandit(["a"], window=5).decide(context={"plan": "free"})
    with pytest.raises(InputError, match="must be levels"):
        ac.Bandit(["a"], window=5, features={"plan": int})
    assert bandit._follower.ledger.decisions == 3
    assert bandit._follower.ledger.context_encoder.oddities.tolist() == [[0, 1, 0], [0, 3, 0]]


def test_the_state_says_for_whom_which_arm_wins():
    bandit = bandit_of(None)
    use(bandit, 1500)
    plan, visits = bandit.state().features
    assert (plan.name, [level.level for level in plan.levels]) == ("plan", ["free", "paid"])
    assert [max(level.expected, key=level.expected.__getitem__) for level in plan.levels] == ["a", "b"]
    assert (visits.name, [level.level for level in visits.levels]) == ("visits", ["0", "10"])
    assert visits.beyond > 0
    for level, x in zip(plan.levels, ("free", "paid"), strict=True):
        for arm, value in level.expected.items():  # 0.8 and 0.2, shrunk a little
            assert abs(value - (0.8 if (x == "free") == (arm == "a") else 0.2)) < 0.2
    assert ac.Bandit(["a"], window=5).state().features == []


def test_a_pair_of_features_that_counts_only_together_is_found_and_explained(tmp_path):
    """Paid or on a phone, but not both, likes a: neither feature says anything by itself."""
    declared = {"paid": bool, "phone": bool, "visits": (0, 10)}
    url, dice = f"sqlite:///{tmp_path}/pairs.db", np.random.default_rng(1)
    bandit = ac.Bandit(["a", "b"], window=30, store=url, features=declared, seed=5)
    right = 0
    for i in range(500):
        paid, phone = dice.integers(2, size=2).astype(bool).tolist()
        d = bandit.decide(context={"paid": paid, "phone": phone, "visits": float(dice.uniform(0, 10))})
        likes = (paid != phone) == (d.arm == "a")
        right += likes and i >= 250
        if dice.uniform() < (0.8 if likes else 0.2):
            bandit.observe(d.id, 1.0, age=0)
    assert right > 0.9 * 250
    a, b = (reason.terms["paid × phone adds"] for reason in bandit.explain(d.id).reasons)
    assert (a > 0.2 and b < -0.2) if paid != phone else (a < -0.2 and b > 0.2)
    for level in bandit.state().features[0].levels:  # with a phone or without, a is liked as often as b
        assert abs(level.expected["a"] - level.expected["b"]) < 0.2
    bandit.close()
    with pytest.raises(InputError, match="policy"):
        ac.Bandit(["a", "b"], window=30, store=url, features=declared, seed=5, policy="AgeLinTS(columns=0)")


def test_contexts_are_exported(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    url = f"sqlite:///{tmp_path}/plays.db"
    bandit = ac.Bandit(["a"], window=5, store=url, features={"plan": ["free"], "new": bool, "visits": (0, 9)})
    bandit.decide(n=2, context=[{"plan": "free", "new": True, "visits": 12}, {"plan": "other"}])
    bandit.close()
    export(url, None, tmp_path / "out")
    table = parquet.read_table(tmp_path / "out" / "decisions.parquet").to_pydict()
    assert table["context_plan"] == ["free", None]
    assert table["context_new"] == [True, None]
    assert table["context_visits"] == [12.0, None]


def test_a_stretch_of_a_log_must_fit_what_is_told_of_it():
    """As many contexts as decisions, with as many numbers as features."""
    ledger = Ledger(ac.LinTS(), [1.0], 20, features=Features({"plan": ["free", "paid"]}))
    made = [DecisionMade(i + 3, i + 1.0, i, 0, 20.0, 0, 0.0, i + 2) for i in range(2)]
    one, two = columns(made[:1]), columns(made)
    for attempt, words in [
        (lambda: ledger.extend(one, [[1.0], [0.0]]), r"1 decisions need contexts of 1 num.*\(2, 1\)"),
        (lambda: ledger.extend(one, [[1.0, 0.0]]), r"contexts of 1 numbers each, not \(1, 2\)"),
        (lambda: ledger.extend(one, [[]]), r"contexts of 1 numbers each, not \(1, 0\)"),
        (lambda: Ledger(ac.LinTS(), [1.0], 20).extend(one, [[1.0]]), "no features are declared"),
        (lambda: Ledger(ac.AgeIMED(), [1.0], 20).extend(one, [[1.0]]), "no features are declared"),
        (lambda: Ledger(ac.AgeIMED(), [1.0], 20).make_one(1.0, contexts=[[1.0]]), "no features are declared"),
    ]:
        with pytest.raises(InputError, match=words):
            attempt()
    assert ledger.decisions == 0
    ledger.extend(two, [[1.0], [np.nan]])
    assert ledger.context_encoder.oddities.tolist() == [[0, 1, 0]]
    assert ledger.pending_decisions.contexts[:2].tolist() == [[1, 0, 1], [1, 0, 0]]
