"""Features that are added later: the fold is the same to the bit however one comes by it."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import numpy as np
import pytest
from tests.postgres import server
from tests.proof.folds import refold

import accrual as ac
from accrual.core.errors import InputError
from accrual.core.features import Features
from accrual.live.commit import Decide
from accrual.live.contexts.contexts import told_by_store
from accrual.live.ledger import Ledger
from accrual.live.log_follower import check_events
from accrual.live.verify import learned, same_bits, verify_snapshots
from accrual.policies.contexts import ContextualPolicy
from accrual.store.admin.exports import export
from accrual.store.backends import open_store
from accrual.store.base import StoreDamaged
from accrual.store.events import Kind, columns
from accrual.store.memory import MemoryStore

FIRST = {"plan": ["free", "paid"]}
ADDED = {"new": bool, "zone": ["x", "y"], "visits": (0, 10)}
CHOICES: dict[str, list[Any]] = {
    "plan": ["free", "paid", "other"],
    "new": [True, False],
    "zone": ["x", "y", "z"],
}


def bandit_of(store, policy="LinTS", **options):
    return ac.Bandit(["a", "b"], window=20, store=store, features=FIRST, policy=policy, seed=5, **options)


def names_of(bandit):
    """The features that a bandit has now."""
    assert bandit.features is not None
    return list(bandit.features.kinds)


def visitor(dice, names):
    every = {name: values[int(dice.integers(len(values)))] for name, values in CHOICES.items()}
    every["visits"] = float(dice.integers(12))
    return {name: value for name, value in every.items() if name in names}


def use(bandit, decisions, seed):
    """Decisions with all that the bandit takes, and pieces."""
    dice = np.random.default_rng(seed)
    for _ in range(decisions):
        context = visitor(dice, names_of(bandit))
        made = bandit.decide(context=context)
        if dice.random() < (0.8 if (context.get("new") is True) == (made.arm == "a") else 0.3):
            bandit.observe(made.id, 0.5 + 0.5 * float(dice.random()), age=0)


def grow(bandit):
    """A life in which features come one after the other, and one arm."""
    use(bandit, 40, 1)
    assert bandit.add_feature("new", bool)
    use(bandit, 40, 2)
    bandit.add_arm("c")
    assert bandit.add_feature("zone", ["x", "y"])
    assert bandit.add_feature("visits", (0, 10))
    use(bandit, 40, 3)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    return f"sqlite:///{tmp_path}/plays.db" if request.param == "sqlite" else server().tables()


def test_live_refold_and_snapshot_are_the_same_to_the_bit(url):
    """With a snapshot from before the features and one from after, and folded in pieces of any length."""
    bandit = bandit_of(url)
    use(bandit, 40, 1)
    bandit.close()  # leaves a snapshot
    bandit = ac.Bandit.open(url)
    grow(bandit)
    live = learned(bandit._follower.ledger)
    assert same_bits(live, learned(refold(bandit)))
    store, number = bandit._store, bandit._row.number
    ledger, position = bandit._config.ledger(), 2
    for size in (1, 7, 50) * 30:
        events = store.read(number, position, size)
        ledger.extend(events, *told_by_store(store, number, ledger, events))
        position = int(events.seq[-1]) if len(events.seq) else position
    assert same_bits(live, learned(ledger))
    assert bandit.explain(60).exact
    assert set(bandit.explain(10).context) == {"plan"}
    assert set(bandit.explain(130).context) == {"plan", "new", "zone", "visits"}
    before = bandit._follower.position
    bandit.close()
    with ac.Bandit.open(url) as again:
        assert again._follower.position == before
        assert same_bits(live, learned(again._follower.ledger))
        assert again.features is not None
        assert again.features.kinds == FIRST | ADDED | {"visits": (0.0, 10.0)}
        use(again, 5, 9)
        assert [one.missing for one in again.state().features] == [0, 80, 120, 120]
    place = open_store(url)
    assert verify_snapshots(place) == (2, [])
    place.close()


def test_a_process_that_dies_leaves_the_feature_or_nothing(tmp_path):
    """A copy of it that was closed in order has learned the same."""
    child = os.fork()
    if not child:
        grow(bandit_of(f"sqlite:///{tmp_path}/killed.db"))
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    with bandit_of(f"sqlite:///{tmp_path}/closed.db") as bandit:
        grow(bandit)
    with ac.Bandit.open(f"sqlite:///{tmp_path}/killed.db") as again:
        assert again._follower.position == bandit._follower.position
        assert same_bits(learned(bandit._follower.ledger), learned(again._follower.ledger))


def test_the_sums_are_those_of_a_bandit_that_had_the_features_from_the_start():
    """To the bit for AgeLinTS, whose sums are of contexts as they are; LinTS keeps an inverse."""
    dice = np.random.default_rng(4)
    early = Ledger(ac.AgeLinTS(), [1.0, 1.0], 40, features=Features(FIRST | ADDED))
    late = Ledger(ac.AgeLinTS(), [1.0, 1.0], 40, features=Features(FIRST))
    for now in range(1, 90):
        if now == 60:
            for name, kind in ADDED.items():
                late.add_feature(name, kind)
        context = visitor(dice, FIRST if now < 60 else FIRST | ADDED)
        arm, value, age = int(dice.integers(2)), float(dice.random()), float(dice.integers(40))
        for ledger in (early, late):
            features = ledger.visitors.features
            assert features is not None
            (made,) = ledger.decide(now, contexts=[features.stored(context)], arm=arm)
            ledger.observe(made.id, value, age)
    for name in ("gram", "response", "earlier", "growth", "square", "asked", "nonzero"):
        np.testing.assert_array_equal(getattr(late.stats, name), getattr(early.stats, name), err_msg=name)
    np.testing.assert_array_equal(late.visitors.oddities, early.visitors.oddities)
    assert late.visitors.oddities[1, 1] == 59  # missing in all decisions so far
    assert late.stats.shared[0] == 1.0
    assert late.choose(100.0, 20) == late.choose(100.0, 20)


def test_the_inverse_of_lints_is_that_of_the_wider_matrix():
    """Against plain numpy, for a number that is half the constant and for levels that are 0."""
    policy = ac.LinTS(ridge=0.7)
    ledger = Ledger(policy, [2.0], 5, features=Features(FIRST))
    dice, seen, paid = np.random.default_rng(7), [], []
    for now in range(1, 30):
        features = ledger.visitors.features
        assert features is not None
        context = features.stored(visitor(dice, features.kinds))
        (made,) = ledger.decide(float(10 * now), contexts=[context])
        seen.append(context)
        paid.append(float(dice.random()))
        ledger.observe(made.id, paid[-1], 0.0)
        ledger.tick(10.0 * now + 6.0)
        if now in (9, 14, 22):
            name = [*ADDED][(9, 14, 22).index(now)]
            ledger.add_feature(name, ADDED[name])
    features = ledger.visitors.features
    assert features is not None
    x = np.array([features.seen([*one, *[np.nan] * (len(features) - len(one))]) for one in seen])
    inverse = np.linalg.inv(0.7 * np.eye(features.width) + x.T @ x)
    np.testing.assert_allclose(ledger.stats.inverse[0], inverse, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        ledger.stats.estimate[0], inverse @ x.T @ np.array(paid) / 2.0, rtol=1e-9, atol=1e-12
    )


def test_what_is_learned_stays_and_the_new_feature_is_learned_too():
    bandit = ac.Bandit(["a", "b"], window=10, features=FIRST, seed=3)  # AgeLinTS
    dice = np.random.default_rng(1)

    def right(decisions):
        """The share of decisions for the arm that pays: by the new feature, if it is told."""
        good = 0
        for _ in range(decisions):
            context = visitor(dice, names_of(bandit))
            made = bandit.decide(context=context)
            best = "a" if context.get("new", context["plan"] == "free") else "b"
            good += made.arm == best
            bandit.observe(made.id, 1.0 if made.arm == best else 0.0, age=0)
        return good / decisions

    right(300)
    before = bandit._follower.ledger.stats.estimate.copy()
    bandit.add_feature("new", bool)
    np.testing.assert_array_equal(bandit._follower.ledger.stats.estimate[:, :3], before)
    right(1500)
    assert right(300) > 0.85
    levels = next(one for one in bandit.state().features if one.name == "new").levels
    assert [max(level.expected, key=level.expected.__getitem__) for level in levels] == ["b", "a"]


def test_two_workers_follow_each_other():
    """A worker that has not seen the feature yet decides without it, and both come to the same."""
    url = server().tables()
    one = bandit_of(open_store(url))
    two = ac.Bandit.open(open_store(url))  # neither follows by itself: it is handed an open store
    use(one, 20, 1)
    assert one.add_feature("new", bool)
    assert names_of(two) == ["plan"]
    contexts = two.stored_contexts({"plan": "paid"})
    use(two, 1, 2)  # which makes it read the log
    assert names_of(two) == ["plan", "new"]
    two.submit([Decide(1, "k", contexts)])  # made before it had read of the feature
    assert two.decide(context={"plan": "paid"}, key="k").id == two._follower.ledger.decisions - 1
    use(two, 20, 3)
    assert not two.add_feature("new", bool)
    assert one.add_feature("zone", ["x", "y"])  # the two are at different positions of the log
    assert two.add_feature("visits", (0, 10))
    one.catch_up()
    assert names_of(one) == names_of(two) == ["plan", "new", "zone", "visits"]
    arrays = learned(one._follower.ledger)
    assert same_bits(arrays, learned(two._follower.ledger))
    assert same_bits(arrays, learned(refold(one)))
    for bandit in (one, two):
        bandit._store.close()


def test_many_threads_add_features_at_once(tmp_path):
    """Each is added once, and all that fit are."""
    bandit = bandit_of(f"sqlite:///{tmp_path}/plays.db")
    new = []

    def add(i):
        new.append(bandit.add_feature(f"f{i % 8}", bool))

    threads = [threading.Thread(target=add, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(new) == [False] * 8 + [True] * 8
    assert sorted(names_of(bandit)) == [f"f{i}" for i in range(8)] + ["plan"]
    assert same_bits(learned(bandit._follower.ledger), learned(refold(bandit)))
    bandit.close()


class Plain(ContextualPolicy):
    """What a user may have written before features could be added."""

    label = "Plain"

    def params(self, caps, window, width=1): ...

    def stats(self, params): ...


def test_what_is_refused_changes_nothing():
    bandit = bandit_of(None)
    use(bandit, 5, 1)
    before, position = learned(bandit._follower.ledger), bandit._follower.position
    wide = {f"l{i}": [str(j) for j in range(49)] for i in range(2)}
    full = ac.Bandit(["a"], window=5, policy="LinUCB", features=wide)
    full.add_feature("one", bool)
    full.add_feature("two", bool)
    many = ac.Bandit(["a"], window=5, policy="LinUCB", features={f"f{i}": bool for i in range(50)})
    for attempt, words in [
        (lambda: bandit.add_feature("plan", bool), r"already, declared as \['free', 'paid'\], which cannot"),
        (lambda: bandit.add_feature("new", int), "must be levels, bool or a range"),
        (lambda: bandit.add_feature("plan", int), "must be levels, bool or a range"),
        (lambda: bandit.add_feature("", bool), "text of 1 to 200 characters"),
        (lambda: bandit.add_feature("x", ["a"] * 2), "1 to 100 different levels"),
        (lambda: full.add_feature("three", bool), "are 101, more than 100"),
        (lambda: many.add_feature("f50", bool), "at most 50 features may be declared, not 51"),
        (lambda: ac.Bandit(["a"], window=5).add_feature("x", bool), "made without features, so none can"),
        (lambda: Plain().widen(None, None, np.zeros(1)), "Plain has no function `widen`"),
    ]:
        with pytest.raises(InputError, match=words):
            attempt()
    assert not bandit.add_feature("plan", ["free", "paid"])  # the same again is harmless
    assert bandit._follower.position == position
    assert same_bits(before, learned(bandit._follower.ledger))


def test_a_policy_that_sees_no_context_stores_it_all_the_same():
    bandit = ac.Bandit(["a", "b"], window=20, features=FIRST, policy="AgeIMED", store=MemoryStore())
    bandit.decide(n=3)
    bandit.add_feature("new", bool)
    made = bandit.decide(context={"new": True})
    assert bandit.explain(made.id).context == {"plan": None, "new": True}
    assert [(one.name, one.missing) for one in bandit.state().features] == [("plan", 4), ("new", 3)]


def test_opened_by_what_it_was_made_with_or_by_what_it_has_now(tmp_path):
    url = f"sqlite:///{tmp_path}/plays.db"
    bandit = bandit_of(url)
    bandit.add_feature("new", bool)
    bandit.close()
    bandit_of(url).close()
    made: Any = {"window": 20, "store": url, "policy": "LinTS", "seed": 5}
    ac.Bandit(["a", "b"], features=FIRST | {"new": bool}, **made).close()
    with pytest.raises(InputError, match=r"features is \{'plan': .*'new': 'bool'\}, not \{'plan': .*'old'"):
        ac.Bandit(["a", "b"], features=FIRST | {"old": bool}, **made)


def test_export_has_a_column_for_it(url, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    with bandit_of(url) as bandit:
        bandit.decide(context={"plan": "free"})
        bandit.add_feature("new", bool)
        bandit.decide(n=2, context=[{"new": True}, {}])
    export(url, None, tmp_path / "out")
    table = parquet.read_table(tmp_path / "out" / "decisions.parquet").to_pydict()
    assert table["context_plan"] == ["free", None, None]
    assert table["context_new"] == [None, True, None]


def test_a_stretch_of_a_log_must_fit_what_is_told_of_it():
    """As many contexts as decisions, with as many numbers as features; and the features that it adds."""

    def events(*kinds):
        rows = [(i + 3, kind, float(i + 1), -1, 0, 0.0, 20.0, 0.0) for i, kind in enumerate(kinds)]
        return columns(rows)

    ledger = Ledger(ac.LinTS(), [1.0], 20, features=Features(FIRST))
    decision, feature = Kind.DECISION, Kind.ADD_FEATURE
    one, new = events(decision), events(decision, feature, decision)
    for attempt, words in [
        (
            lambda: ledger.extend(one, [[1.0], [0.0]]),
            r"1 decisions need contexts of 1 num.*\(2, 1\)",
        ),
        (lambda: ledger.extend(one, [[1.0, 0.0]]), r"contexts of 1 numbers each, not \(1, 2\)"),
        (lambda: ledger.extend(one, [[]]), r"contexts of 1 numbers each, not \(1, 0\)"),
        (
            lambda: ledger.extend(new, [[1.0], [1.0]], [("new", bool)]),
            "2 decisions need contexts of 2 numbers",
        ),
        (lambda: ledger.extend(new, [[1.0], [1.0]]), "adds 1 features needs as many declared"),
        (lambda: ledger.extend(one, [[1.0]], [("new", bool)]), "adds 0 features needs as many declared"),
        (lambda: Ledger(ac.LinTS(), [1.0], 20).extend(one, [[1.0]]), "no features are declared"),
        (lambda: Ledger(ac.AgeIMED(), [1.0], 20).extend(one, [[1.0]]), "no features are declared"),
        (lambda: Ledger(ac.AgeIMED(), [1.0], 20).make_one(1.0, contexts=[[1.0]]), "no features are declared"),
    ]:
        with pytest.raises(InputError, match=words):
            attempt()
    assert ledger.decisions == 0
    ledger.extend(new, [[1.0, np.nan], [0.0, 1.0]], [("new", bool)])
    assert ledger.visitors.oddities.tolist() == [[0, 0, 0], [0, 1, 0]]
    assert ledger.pending_decisions.contexts[:2].tolist() == [[1, 0, 1, 0.5], [1, 1, 0, 1]]


def test_a_feature_out_of_order_is_damage():
    ledger = Ledger(ac.LinTS(), [1.0], 20, features=Features(FIRST))
    for number in (1, -1):
        stretch = columns([(3, Kind.ADD_FEATURE, 1.0, -1, number, 0.0, 0.0, 0.0)])
        with pytest.raises(StoreDamaged, match="event 3 is a feature out of order"):
            check_events(ledger, 2, stretch)
