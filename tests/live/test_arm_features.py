"""Features of arms: the fold is the same to the bit however one comes by it, and new arms start from them."""

from __future__ import annotations

import os
import signal
import struct
from typing import Any

import numpy as np
import pytest
from tests.postgres import server
from tests.proof.folds import refold

import accrual as ac
from accrual.core.errors import InputError
from accrual.core.jit.compiler import python_function
from accrual.live.log_follower import details_from_store
from accrual.live.verify_snapshots import learned, same_bits, verify_snapshots
from accrual.policies.age_prior.model import expected_level
from accrual.store.backends import open_store
from accrual.store.base import AddArm, Status

FEATURES = {"subject": ["art", "maths"], "hours": (0, 10), "new": bool}
ABOUT = {"a": {"subject": "art", "hours": 2}, "b": {"subject": "maths", "new": True}}


def bandit_of(store=None, **options):
    given: dict[str, Any] = {"arm_features": FEATURES, "about": ABOUT} | options
    return ac.Bandit(["a", "b"], window=20, store=store, seed=5, **given)


def use(bandit, decisions, seed):
    """Decisions, and pieces that depend on the subject alone: arms a, c and e are of art."""
    dice = np.random.default_rng(seed)
    arms = []
    for _ in range(decisions):
        made = bandit.decide()
        arms.append(made.arm)
        if dice.random() < (0.8 if made.arm in "ace" else 0.1):
            bandit.observe(made.id, 0.5 + 0.5 * float(dice.random()), age=0)
    return arms


def grow(bandit):
    """A life in which arms come."""
    arms = use(bandit, 40, 1)
    bandit.add_arm("c", about={"subject": "art"})
    bandit.add_arm("d", about={"subject": "maths", "hours": 5, "new": False})
    return arms + use(bandit, 80, 2)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    return f"sqlite:///{tmp_path}/plays.db" if request.param == "sqlite" else server().tables()


def test_live_refold_and_snapshot_are_the_same_to_the_bit(url):
    """In memory, in a database, folded again in stretches of any length, and from snapshots."""
    in_memory = bandit_of()
    chosen = grow(in_memory)
    bandit = bandit_of(url)
    assert use(bandit, 40, 1) == chosen[:40]
    bandit.close()  # leaves a snapshot from before the new arms
    bandit = ac.Bandit.open(url)
    bandit.add_arm("c", about={"subject": "art"})
    bandit.add_arm("d", about={"subject": "maths", "hours": 5, "new": False})
    assert use(bandit, 80, 2) == chosen[40:]
    live = learned(bandit._follower.ledger)
    assert same_bits(live, learned(in_memory._follower.ledger))
    assert same_bits(live, learned(refold(bandit)))
    store, number = bandit._store, bandit._row.number
    ledger, position = bandit._config.ledger(), 2
    for size in (1, 7, 50) * 30:
        events = store.read(number, position, size)
        ledger.extend(events, *details_from_store(store, number, ledger, events))
        position = int(events.seq[-1]) if len(events.seq) else position
    assert same_bits(live, learned(ledger))
    assert bandit.explain(60).exact
    bandit.close()
    with ac.Bandit.open(url) as again:
        assert same_bits(live, learned(again._follower.ledger))
        assert again._follower.ledger.arms.about.tolist()[2:] == [[1, 0, 0.5, 0.5], [0, 1, 0.5, 0]]
    place = open_store(url)
    assert verify_snapshots(place) == (1, [])
    place.close()


def test_a_process_that_dies_leaves_all_that_was_answered(tmp_path):
    child = os.fork()
    if not child:
        grow(bandit_of(f"sqlite:///{tmp_path}/killed.db"))
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    bandit = bandit_of()
    grow(bandit)
    with ac.Bandit.open(f"sqlite:///{tmp_path}/killed.db") as again:
        assert same_bits(learned(bandit._follower.ledger), learned(again._follower.ledger))


def test_two_workers_learn_of_an_arm_from_each_other():
    url = server().tables()
    with bandit_of(url) as one, ac.Bandit.open(url) as two:
        use(one, 30, 1)
        two.catch_up()
        two.add_arm("c", about={"subject": "art", "hours": 1})
        one.catch_up()
        use(one, 30, 2)
        two.catch_up()
        assert same_bits(learned(one._follower.ledger), learned(two._follower.ledger))


def test_a_new_arm_starts_from_what_similar_arms_taught():
    """Before its first decision: an arm of art is expected to pay more than one of maths."""
    bandit = ac.Bandit(
        list("abcdefgh"), window=20, seed=5, arm_features=FEATURES,
        about={name: {"subject": "art" if name in "ace" else "maths"} for name in "abcdefgh"},
    )  # fmt: skip
    use(bandit, 200, 1)
    bandit.add_arm("new art", about={"subject": "art"})
    bandit.add_arm("new maths", about={"subject": "maths"})
    ledger = bandit._follower.ledger
    art, maths = (python_function(expected_level)(ledger.params, ledger.stats, arm) for arm in (8, 9))
    assert art > maths + 0.1


def test_the_same_arm_again_is_no_error_and_another_is():
    bandit = bandit_of()
    bandit.add_arm("c", about={"subject": "art"})
    bandit.add_arm("c", about={"subject": "art"})
    assert bandit.arms == ["a", "b", "c"]
    for other in ({"subject": "maths"}, None):
        with pytest.raises(InputError, match="another cap, window or features"):
            bandit.add_arm("c", about=other)
    (answer,) = bandit.submit([bandit.arm("d", 1.0, 20, {"hours": 3})])
    assert answer.status is Status.STORED
    with pytest.raises(InputError, match=r"needs what is known about it; Bandit\.arm makes it"):
        bandit.submit([AddArm("e", 1.0, 20.0)])
    for level in (1e6, 7.0, -3.0, 0.5):  # the first would be written far beyond what compiled code has
        with pytest.raises(InputError, match=r"not of the bandit's arm_features; Bandit\.arm makes it"):
            bandit.submit([AddArm("e", 1.0, 20.0, struct.pack("<3d", level, 1.0, 0.0))])
    bandit.add_arm("f", about={"hours": -0.0})
    bandit.add_arm("f", about={"hours": 0.0})  # the same number
    bandit.add_arm("g", about={"hours": np.float32("nan")})  # which is not known


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"subject": "arts"}, "unknown level of the feature 'subject' 'arts'; did you mean 'art'"),
        ({"hours": 11}, "'hours' must be from 0 to 10, not 11"),
        ({"hours": "two"}, "'hours' must be a number"),
        ({"hour": 1}, "unknown feature 'hour'"),
        (["art"], "must be features with their values"),
    ],
)
def test_what_cannot_be_known_about_an_arm(about, said):
    bandit = bandit_of()
    with pytest.raises(InputError, match=said):
        bandit.add_arm("c", about=about)
    with pytest.raises(InputError, match=said):
        bandit_of(about={"a": about})
    assert bandit.arms == ["a", "b"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"policy": "AgeIMED"}, "AgeIMED learns nothing from features of arms; AgePrior does"),
        ({"arm_features": None}, "about says what is known about arms; declare it"),
        ({"about": {"z": {}}}, "unknown arm 'z'"),
        ({"about": ["a"]}, "about must be arms with what is known about each"),
        ({"arm_features": {}}, "at least one feature"),
        ({"arm_features": {"hours": (1, 0)}}, "arm_features: the range of the feature 'hours'"),
        ({"arm_features": {"hours": (0, 1e-310)}}, "arm_features: the range of the feature 'hours'"),
        ({"arm_features": {"\ud800": bool}}, "arm_features: the name of a feature"),
        ({"policy": ac.AgePrior(about=[[0.0], [1.0]])}, "as arm_features and about, not in its policy"),
    ],
)
def test_what_cannot_be_declared(options, said):
    with pytest.raises(InputError, match=said):
        bandit_of(**options)


def test_a_bandit_without_features_of_arms_takes_none():
    bandit = ac.Bandit(["a", "b"], window=20)
    with pytest.raises(InputError, match="no arm_features are declared"):
        bandit.add_arm("c", about={"subject": "art"})
    with pytest.raises(InputError, match="no arm_features are declared"):
        bandit.submit([AddArm("c", 1.0, 20.0, bytes(8))])


def test_it_is_opened_again_as_it_was_made(tmp_path):
    store = f"sqlite:///{tmp_path}/plays.db"
    bandit_of(store).close()
    bandit_of(store).close()
    with pytest.raises(
        InputError, match=r"it differs: arms is .*'subject': 'art'.* not .*'subject': 'maths'"
    ):
        bandit_of(store, about={"a": {"subject": "maths"}})
    with pytest.raises(InputError, match="; arm_features is"):
        bandit_of(store, arm_features={**FEATURES, "more": bool})
    with bandit_of(store) as bandit:
        bandit.add_arm("c", about={"subject": "art"})
    given: dict[str, Any] = {"arm_features": FEATURES, "about": ABOUT | {"c": {"subject": "art"}}}
    ac.Bandit(["a", "b", "c"], window=20, store=store, seed=5, **given).close()  # as it is now


GENRES = {"genre": ["jazz", "rock"], "minutes": (0, 60)}


def after_forty_decisions(**options) -> ac.Bandit:
    """A bandit of two arms, the first of which pays more, after some decisions."""
    made = ac.Bandit({"a": 10.0, "b": 10.0}, 4, seed=1, **options)
    for _ in range(40):
        decision = made.decide()
        made.observe(decision.id, 8.0 if decision.arm == "a" else 2.0, age=0)
    return made


def test_a_state_says_what_is_known_about_each_arm():
    made = after_forty_decisions(arm_features=GENRES, about={"a": {"genre": "jazz", "minutes": 31.625}})
    assert [arm.about for arm in made.state().arms] == [
        {"genre": "jazz", "minutes": 31.625},
        {"genre": None, "minutes": None},
    ]
    made.add_arm("c", about={"genre": "rock"})  # after a state was read: it is in the next one
    assert made.state().arms[2].about == {"genre": "rock", "minutes": None}
    page = made.state()._repr_html_()
    assert "<th>what is known about it</th>" in page
    assert "<td>genre: jazz, minutes: 31.625</td>" in page
    assert "<td>genre: rock</td>" in page


def test_a_bandit_without_features_of_arms_says_nothing_of_them():
    made = after_forty_decisions()
    assert [arm.about for arm in made.state().arms] == [None, None]
    assert "known" not in made.state()._repr_html_().split("<table>")[1]
    assert all("known" not in term for reason in made.explain(39).reasons for term in reason.terms)


def test_an_explanation_says_what_is_expected_from_what_is_known():
    made = after_forty_decisions(arm_features=GENRES, about={"a": {"genre": "jazz"}, "b": {"genre": "rock"}})
    term = "expected from what is known about it"
    of = {reason.arm: reason.terms for reason in made.explain(39).reasons}
    assert 8.5 > of["a"][term] > 5.0 > of["b"][term] > 1.5  # in the unit of the pieces, not of caps
