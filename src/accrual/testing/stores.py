"""The suite for stores.

Subclass it in a test file, say how to open the store, and pytest does the rest::

    from accrual.testing import StoreSuite

    class TestMine(StoreSuite):
        def open_store(self, place):
            return Mine(place / "plays.db")
"""

from __future__ import annotations

import random
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accrual.core.errors import InputError
from accrual.store.base import (
    ERASE_AT,
    AddArm,
    Answer,
    CloseDecision,
    NewDecisions,
    NewPiece,
    Requests,
    RetireArm,
    Status,
    Store,
    StoreError,
    StoreRequest,
)
from accrual.store.events import (
    NO_STREAM,
    ArmAdded,
    ArmRetired,
    DecisionMade,
    DecisionRow,
    Events,
    Kind,
    PieceArrived,
    records,
)
from accrual.store.memory import MemoryStore
from accrual.testing.acceptance import CASES, JAZZ, ROCK, Append, Case, decide


def event_tuples(events: Events) -> list[Any]:
    """Return events as tuples: the type of each, then its fields, the position first."""
    return [(type(event), *event) for event in records(events)]


class StoreSuite(ABC):
    """What any store must do, wherever it stores events."""

    durable = True  # whether what was stored is there when the store is opened again

    @abstractmethod
    def open_store(self, place: Path) -> Store:
        """Open the store at `place`, a folder that is empty when a test begins.

        With the same place again, open the same store again.
        """

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        """A new store."""
        store = self.open_store(tmp_path)
        yield store
        store.close()

    # Bandits: made, found, changed and erased.

    def test_bandits_are_found_by_name(self, store: Store) -> None:
        """With their configuration, in the order in which they were made."""
        config = {"policy": "AgeIMED()", "caps": [1.0, 2.5], "ünï": None}
        made = store.create("b", config, [JAZZ, ROCK], rounds=True, now=0.0)
        other = store.create("a", {}, [JAZZ], rounds=False, now=0.0)
        assert store.names() == ["b", "a"]
        assert store.find("b") == made
        assert (made.name, made.config, made.rounds) == ("b", config, True)
        assert store.find("a") == other
        assert not other.rounds
        assert store.find("c") is None

    def test_a_name_is_given_once(self, store: Store) -> None:
        """The second of its name is refused, and leaves nothing behind."""
        made = store.create("plays", {}, [JAZZ], rounds=True, now=0.0)
        with pytest.raises(InputError, match="plays"):
            store.create("plays", {"other": 1}, [JAZZ, ROCK], rounds=True, now=0.0)
        assert store.find("plays") == made
        assert [arm.name for arm in store.arms(made.number)] == ["jazz"]

    def test_the_first_arms_are_the_first_events(self, store: Store) -> None:
        """At the time at which the bandit was made."""
        bandit = store.create("plays", {}, [JAZZ, ROCK], rounds=False, now=5.5).number
        assert event_tuples(store.read(bandit, 0, 100)) == [
            (ArmAdded, 1, 5.5, 0, 1.0, 80.0),
            (ArmAdded, 2, 5.5, 1, 2.0, 60.0),
        ]
        assert [tuple(arm) for arm in store.arms(bandit)] == [
            ("jazz", 1.0, 80.0, False, None), ("rock", 2.0, 60.0, False, None)
        ]  # fmt: skip

    def test_a_history_comes_after_the_first_arms(self, store: Store) -> None:
        """Each part at its own time, as if it had been appended."""
        pieces = Requests([NewPiece(0, 0.5, age=3.0), NewPiece(1, 0.5, age=81.0)], 8.0, skew=100.0)
        history = [Requests([decide(0, 0)._replace(seen=1)], 5.5), pieces]
        bandit = store.create("plays", {}, [JAZZ], rounds=False, now=5.5, history=history).number
        assert event_tuples(store.read(bandit, 1, 100)) == [
            (DecisionMade, 2, 5.5, 0, 0, 80.0, 0, 0.0, 1), (DecisionMade, 3, 5.5, 1, 0, 80.0, 0, 0.0, 1),
            (PieceArrived, 4, 8.0, 0, NO_STREAM, 0.5, 3.0), (PieceArrived, 5, 8.0, 1, NO_STREAM, 0.5, 81.0),
        ]  # fmt: skip
        (after,) = store.append(bandit, [decide(0)], 9.0)
        assert (after.seq, after.number, after.at) == (6, 2, 9.0)

    def test_entries_of_a_configuration_are_changed_and_removed(self, store: Store) -> None:
        """Of one bandit alone."""
        one = store.create("1", {"a": 1, "b": 2}, [JAZZ], rounds=True, now=0.0)
        two = store.create("2", {"a": 1}, [JAZZ], rounds=True, now=0.0)
        assert store.amend(one.number, {"b": None, "c": 3.5}) == one._replace(config={"a": 1, "c": 3.5})
        assert store.find("1") == one._replace(config={"a": 1, "c": 3.5})
        assert store.find("2") == two
        store.append(one.number, [decide(0)], 0.0)
        with pytest.raises(InputError):
            store.amend(99, {"a": 2})

    def test_a_bandit_is_erased_when_its_time_has_come(self, store: Store) -> None:
        """The others keep all they have; its name is free again, and its number is nobody's."""
        gone, kept = (store.create(name, {}, [JAZZ], rounds=True, now=0.0).number for name in ("1", "2"))
        for bandit in (gone, kept):
            store.append(bandit, [decide(0, key="k"), NewPiece(0, 0.5, key="k")], 0.0)
            store.save_snapshot(bandit, 3, "form", b"body")
        before = event_tuples(store.read(kept, 0, 10))
        assert not store.erase(gone, 1e12)
        store.amend(gone, {ERASE_AT: 100.0})
        assert not store.erase(gone, 99.0)
        assert store.erase(gone, 100.0)
        assert not store.erase(gone, 100.0)
        assert store.names() == ["2"]
        assert store.find("1") is None
        with pytest.raises((InputError, StoreError)):
            store.append(gone, [decide(0)], 0.0)
        assert event_tuples(store.read(kept, 0, 10)) == before
        assert store.load_snapshot(kept, "form") == (3, b"body")
        assert store.append(kept, [NewPiece(0, 0.5, key="k")], 0.0)[0].status is Status.AGAIN
        store.amend(kept, {ERASE_AT: 1.0})
        assert store.erase(kept, 2.0)
        new = store.create("1", {}, [JAZZ], rounds=True, now=0.0).number
        assert new not in (gone, kept)
        assert store.append(new, [decide(0, key="k")], 0.0)[0].status is Status.STORED
        assert store.load_snapshot(new, "form") is None

    def test_bandits_do_not_mix(self, store: Store) -> None:
        """Each has its own decisions, keys and positions."""
        one, two = (store.create(name, {}, [JAZZ], rounds=True, now=0.0).number for name in ("1", "2"))
        for bandit in (one, two):
            chosen, paid = store.append(bandit, [decide(0, key="k"), NewPiece(0, 0.5, key="k")], 0.0)
            assert chosen == Answer(Status.STORED, 2, 1.0, 0, (0,))
            assert paid == Answer(Status.STORED, 3, 1.0)
        assert store.append(one, [NewPiece(1, 0.5)], 0.0) == [Answer(Status.UNKNOWN)]
        assert event_tuples(store.read(one, 0, 10)) == event_tuples(store.read(two, 0, 10))

    # Decisions.

    def test_a_decision_is_kept_as_made(self, store: Store) -> None:
        """With its own window, the position that its caller had read to, and the salt of its draws."""
        bandit = _clocked(store)
        store.append(
            bandit,
            [NewDecisions((1, 0), (7.5, 80.0), seen=2, salt=2**31 - 1, propensities=(0.95, 0.05))],
            now=3.0,
        )
        first = DecisionRow(
            bandit=bandit, id=0, seq=3, arm=1, at=3.0, window=7.5, seen=2, key=None, part=0, salt=2**31 - 1,
            propensity=0.95, context=None,
        )  # fmt: skip
        assert store.decision(bandit, 0) == first
        assert store.decision(bandit, 1) == first._replace(
            id=1, seq=4, arm=0, window=80.0, part=1, propensity=0.05
        )
        assert store.read(bandit, 2, 10).salt.tolist() == [2**31 - 1] * 2  # a refold has it too
        assert store.decision(bandit, 2) is None
        assert store.read(bandit, 2, 9).propensity.tolist() == [0.95, 0.05]

    def test_a_key_gives_the_same_propensities_again(self, store: Store) -> None:
        """Those that were stored, not those that the request brings now; none where there were none."""
        bandit = _clocked(store)
        first = NewDecisions((1, 0), (80.0, 80.0), key="a", propensities=(0.95, 0.05))
        again = first._replace(arms=(0, 0), propensities=(0.5, 0.5))
        plain = NewDecisions((0,), (80.0,), key="b")
        answers = store.append(bandit, [first, again, plain], now=3.0)
        assert [answer.propensities for answer in answers] == [(0.95, 0.05), (0.95, 0.05), ()]
        answers = store.append(bandit, [again, plain._replace(propensities=(0.5,))], now=3.0)
        assert [answer.propensities for answer in answers] == [(0.95, 0.05), ()]

    def test_keys_under_which_decisions_are_stored(self, store: Store) -> None:
        bandit = _rounds(store)
        store.append(bandit, [NewDecisions((0, 1), (80.0, 80.0), key="k"), NewPiece(0, 0.5, key="p")], 0.0)
        assert store.used_keys(bandit, ["k", "p", "x"]) == {"k"}
        assert store.used_keys(bandit, []) == set()

    def test_contexts_are_kept_with_their_decisions(self, store: Store) -> None:
        """Those of a batch in order; the same key with other contexts is a conflict, and stores nothing."""
        bandit = _rounds(store)
        contexts = (b"\x00" * 16, b"\xff" * 16)
        batch = NewDecisions((0, 1), (80.0, 80.0), key="k", contexts=contexts)
        (first,) = store.append(bandit, [batch], 0.0)
        store.append(bandit, [NewDecisions((1,), (80.0,))], 0.0)
        assert store.contexts(bandit, 0, 9) == [*contexts, None]
        assert store.contexts(bandit, 1, 1) == [contexts[1]]
        (again,) = store.append(bandit, [batch], 0.0)
        assert (again.status, again.number, again.arms) == (Status.AGAIN, first.number, (0, 1))
        other = batch._replace(contexts=contexts[::-1])
        assert store.append(bandit, [other], 0.0)[0].status is Status.CONFLICT
        row = store.decision(bandit, 1)
        assert row is not None
        assert row.context == contexts[1]
        assert store.contexts(bandit, 3, 9) == []

    def test_a_key_is_for_the_same_contexts_or_for_none(self, store: Store) -> None:
        """Stored with contexts and sent again without is a conflict, as is the other way round."""
        bandit = _rounds(store)
        personal = NewDecisions((0, 1), (80.0, 80.0), key="p", contexts=(bytes(8), b"\xff" * 8))
        plain = NewDecisions((0,), (80.0,), key="q")
        requests = [personal, personal._replace(contexts=None), plain, plain._replace(contexts=(bytes(8),))]
        for first in (Status.STORED, Status.AGAIN):
            answers = store.append(bandit, requests, 0.0)
            wanted = [first, Status.CONFLICT] * 2
            assert [answer.status for answer in answers] == wanted
            assert [answer.contexts for answer in answers] == [personal.contexts, None, None, None]
            # One at a time too: a store may do more for requests that bring contexts.
            assert store.append(bandit, requests[1:2], 0.0)[0] == Answer(Status.CONFLICT)
            assert store.append(bandit, requests[3:], 0.0)[0] == Answer(Status.CONFLICT)
        assert store.contexts(bandit, 0, 9) == [*(personal.contexts or ()), None]

    # What becomes of requests.

    @pytest.mark.parametrize("case", CASES.values(), ids=CASES)
    def test_requests_are_answered_by_the_rules(self, store: Store, case: Case) -> None:
        """Each append of a case gets its answers, and the log holds what they say was stored."""
        bandit = store.create("plays", {}, [JAZZ, ROCK], case.rounds, now=0.0).number
        answers = [
            answer
            for append in case.appends
            for answer in _answered(store, bandit, append, [answer for _, answer in append.expected])
        ]
        stored = [answer for answer in answers if answer.status is Status.STORED]
        assert store.head(bandit) == 2 + sum(max(len(answer.arms), 1) for answer in stored)

    # Arms.

    def test_arms_come_and_go(self, store: Store) -> None:
        """As events, once each."""
        bandit = _rounds(store)
        soul = AddArm("soul", 3.0, 40.0)
        store.append(bandit, [soul, soul, RetireArm(0), RetireArm(0)], 0.0)
        assert [tuple(arm) for arm in store.arms(bandit)] == [
            ("jazz", 1.0, 80.0, True, None), ("rock", 2.0, 60.0, False, None),
            ("soul", 3.0, 40.0, False, None),
        ]  # fmt: skip
        assert event_tuples(store.read(bandit, 2, 10)) == [
            (ArmAdded, 3, 0.0, 2, 3.0, 40.0), (ArmRetired, 4, 0.0, 0)
        ]  # fmt: skip

    def test_what_is_known_about_arms_is_kept_with_them(self, tmp_path: Path) -> None:
        """Of the first arms and of those that are added, for each bandit its own; also when opened again."""
        known = [bytes(range(16)), None, b"", b"\xff" * 24]
        store = self.open_store(tmp_path)
        first = [JAZZ._replace(about=known[0]), ROCK]
        added = [AddArm("soul", 3.0, 40.0, known[2]), AddArm("folk", 3.0, 40.0, known[3])]
        bandit = store.create("plays", {}, first, rounds=True, now=0.0).number
        other = store.create("other", {}, [JAZZ, ROCK], rounds=True, now=0.0).number
        store.append(bandit, [decide(0), *added, RetireArm(0)], 0.0)
        store.append(other, [added[0]._replace(about=known[0])], 0.0)
        if self.durable:
            store.close()
            store = self.open_store(tmp_path)
        try:
            assert [arm.about for arm in store.arms(bandit)] == known
            assert [arm.about for arm in store.arms(other)] == [None, None, known[0]]
            asked = [*first, *added, first[0]._replace(about=None), ROCK._replace(about=bytes(8))]
            statuses = [answer.status for answer in store.append(bandit, asked, 0.0)]
            assert statuses == [Status.AGAIN] * 4 + [Status.CONFLICT] * 2
            assert [arm.about for arm in store.arms(bandit)] == known
        finally:
            store.close()

    # Reading.

    def test_blocks_make_up_the_log(self, store: Store) -> None:
        """However it is cut; positions rise, and the last is the head."""
        bandit = _rounds(store)
        for _ in range(20):
            store.append(bandit, [decide(0, 1), NewPiece(0, 0.5), CloseDecision(1), NewPiece(1, 0.25)], 0.0)
        whole = event_tuples(store.read(bandit, 0, 1000))
        for size in (1, 7, 64):
            parts: list[Any] = []
            while block := event_tuples(store.read(bandit, parts[-1][1] if parts else 0, size)):
                assert len(block) <= size
                parts += block
            assert parts == whole
        seqs = [row[1] for row in whole]
        assert seqs == sorted(set(seqs))
        assert store.head(bandit) == seqs[-1]

    def test_nothing_to_store(self, store: Store) -> None:
        """No requests, no events."""
        bandit = _rounds(store)
        assert store.append(bandit, [], 0.0) == []
        assert len(store.read(bandit, 2, 10).seq) == 0
        assert store.head(bandit) == 2

    def test_numbers_come_back_to_the_bit(self, store: Store) -> None:
        """Values, ages and times, small and large."""
        values = [0.1, 1 / 3, 5e-324, 1.7976931348623157e308, -0.3, 0.0, 2.0**-1074 * 3]
        bandit = _clocked(store, 0)
        store.append(
            bandit, [NewPiece(0, value, age=0.1 + 0.2, key=str(value)) for value in values], 1e9 + 1 / 3
        )
        events = store.read(bandit, 3, 10)
        assert events.value.tolist() == values
        assert set(events.age.tolist()) == {0.1 + 0.2}
        assert set(events.at.tolist()) == {1e9 + 1 / 3}
        again = store.append(bandit, [NewPiece(0, v, age=0.1 + 0.2, key=str(v)) for v in values], 2e9)
        assert {answer.status for answer in again} == {Status.AGAIN}

    def test_minus_zero_is_stored_as_zero(self, tmp_path: Path) -> None:
        """As value, as age and as time; in the log and in what is read when the store is opened again."""
        store = self.open_store(tmp_path)
        bandit = store.create("plays", {}, [JAZZ], rounds=False, now=-0.0).number
        store.append(bandit, [decide(0), NewPiece(0, -0.0, age=-0.0), NewPiece(0, -0.0)], now=-0.0)
        for _ in range(2):
            events = store.read(bandit, 0, 10)
            assert not any(np.signbit(column).any() for column in (events.at, events.value, events.age))
            if self.durable:
                store.close()
                store = self.open_store(tmp_path)
        store.close()

    def test_nothing_has_an_id_that_no_column_can_hold(self, store: Store) -> None:
        """Decisions, contexts and positions beyond 2**63 are not there, which is no error."""
        bandit = _clocked(store, 0)
        for number in (2**63 - 1, 2**63, 2**200):
            assert store.decision(bandit, number) is None
            assert store.contexts(bandit, number, 5) == []
            assert len(store.read(bandit, number, 5).seq) == 0

    def test_a_log_may_begin_before_1970(self, store: Store) -> None:
        """The first event has the caller's time, whatever that is; those of a prior may lie so far back."""
        bandit = store.create("plays", {}, [JAZZ], rounds=False, now=-1e9).number
        (decided, piece) = store.append(bandit, [decide(0), NewPiece(0, 0.5)], now=-1e9 + 60.0)
        assert (decided.at, piece.at, piece.age) == (-1e9 + 60.0, -1e9 + 60.0, 0.0)
        assert store.read(bandit, 0, 10).at.tolist() == [-1e9, -1e9 + 60.0, -1e9 + 60.0]

    def test_waiting_ends_with_an_event(self, store: Store) -> None:
        """Or in time, without one."""
        bandit = _rounds(store)
        assert store.wait({bandit: 1}, timeout=0.0)
        assert not store.wait({bandit: 2}, timeout=0.05)
        later = threading.Timer(0.1, store.append, (bandit, [decide(0)], 0.0))
        later.start()
        assert store.wait({bandit: 2}, timeout=30.0)
        later.join()

    # Snapshots.

    def test_a_snapshot_takes_the_place_of_the_last(self, store: Store) -> None:
        """For its bandit and form alone."""
        bandit = _rounds(store)
        assert store.load_snapshot(bandit, "form") is None
        store.save_snapshot(bandit, 1, "form", b"one")
        store.save_snapshot(bandit, 2, "form", bytes(range(256)) * 5000)
        store.save_snapshot(bandit, 1, "other", b"")
        assert store.load_snapshot(bandit, "form") == (2, bytes(range(256)) * 5000)
        assert store.load_snapshot(bandit, "other") == (1, b"")
        assert store.load_snapshot(bandit + 1, "form") is None

    # All of it together.

    def test_the_same_as_a_plain_list(self, store: Store) -> None:
        """Random appends get the answers, and leave the events, of a store that is a list in memory."""
        for seed in range(4):
            dice = random.Random(seed)
            rounds = seed % 2 == 0
            plain = MemoryStore()
            mine = store.create(f"{seed}", {}, [JAZZ, ROCK], rounds, 0.0).number
            other = plain.create(f"{seed}", {}, [JAZZ, ROCK], rounds, 0.0).number
            now = 0.0
            for _ in range(60):
                now += dice.choice([0.0, 1.0, 30.0, -3.0])
                requests = [_random(dice, now) for _ in range(dice.choice([1, 2, 5, 20]))]
                skew = dice.choice([0.0, 2.0])
                before = store.head(mine)
                answers = store.append(mine, requests, now, skew)
                assert answers.events == records(store.read(mine, before, 1000))
                for request, got, wanted in zip(
                    requests, answers, plain.append(other, requests, now, skew), strict=True
                ):
                    assert got._replace(seq=0) == wanted._replace(seq=0), request  # positions may have gaps
            events = [(row[0], *row[2:]) for row in event_tuples(store.read(mine, 0, 100_000))]
            assert events == [(row[0], *row[2:]) for row in event_tuples(plain.read(other, 0, 100_000))]
            assert len(events) > 200
            assert store.arms(mine) == plain.arms(other)
            assert store.contexts(mine, 0, 10_000) == plain.contexts(other, 0, 10_000)

    def test_one_of_many_threads_is_first(self, store: Store) -> None:
        """Eight threads bring the same pieces and decisions: each is stored once, and all agree."""
        bandit = _rounds(store)
        store.append(bandit, [decide(*[0] * 20)], 0.0)
        answers: list[list[Answer]] = [[] for _ in range(8)]
        start = threading.Barrier(8)

        def bring(mine: list[Answer]) -> None:
            start.wait()
            for i in range(20):
                mine += store.append(bandit, [NewPiece(i, 0.5, key="k"), decide(1, key=f"{i}")], 0.0)

        threads = [threading.Thread(target=bring, args=(mine,)) for mine in answers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for same in zip(*answers, strict=True):
            statuses = sorted(answer.status.value for answer in same)
            assert statuses == ["again"] * 7 + ["stored"]
            assert len({answer._replace(status=Status.STORED) for answer in same}) == 1
        events = store.read(bandit, 0, 1000)
        assert np.bincount(events.kind).tolist()[:2] == [40, 20]
        assert events.decision[events.kind == Kind.DECISION].tolist() == list(range(40))

    def test_opened_again_it_is_the_same(self, tmp_path: Path) -> None:
        """Bandits, events, keys and snapshots."""
        if not self.durable:
            pytest.skip("keeps nothing")
        store = self.open_store(tmp_path)
        bandit = _rounds(store)
        store.append(
            bandit, [decide(0, 1, key="k"), NewPiece(0, 0.5, key="k"), CloseDecision(1), RetireArm(1)], 0.0
        )
        store.save_snapshot(bandit, 3, "form", b"body")
        before = _all_of(store, bandit)
        store.close()
        store = self.open_store(tmp_path)
        try:
            assert before == _all_of(store, bandit)
            assert store.load_snapshot(bandit, "form") == (3, b"body")
            answers = store.append(
                bandit, [decide(1, 1, key="k"), NewPiece(0, 0.5, key="k"), CloseDecision(1)], 0.0
            )
            assert {answer.status for answer in answers} == {Status.AGAIN}
            assert answers[0].arms == (0, 1)
            assert store.append(bandit, [decide(0)], 0.0)[0].number == 2
        finally:
            store.close()


def _answered(store: Store, bandit: int, append: Append, expected: list[Answer]) -> list[Answer]:
    answers = store.append(bandit, [request for request, _ in append.expected], append.now, append.skew)
    assert answers == expected
    return answers


def _all_of(store: Store, bandit: int) -> Any:
    events = event_tuples(store.read(bandit, 0, 100))
    return store.find("plays"), store.arms(bandit), events


def _rounds(store: Store) -> int:
    return store.create("plays", {}, [JAZZ, ROCK], rounds=True, now=0.0).number


def _clocked(store: Store, *arms: int, at: float = 0.0) -> int:
    """Make a bandit with a clock, and decisions for `arms` at time `at`."""
    bandit = store.create("plays", {}, [JAZZ, ROCK], rounds=False, now=0.0).number
    if arms:
        store.append(bandit, [decide(*arms)], now=at)
    return bandit


def _random(dice: random.Random, now: float) -> StoreRequest:
    """Make a request that the store may accept or refuse."""
    decision, key = dice.randrange(40), dice.choice([None, "a", "b", "c"])
    kind = dice.random()
    if kind < 0.2:
        arms = [dice.randrange(3) for _ in range(dice.choice([1, 1, 3]))]
        key = dice.choice([None, None, str(dice.randrange(30))])
        contexts = dice.choice([None, None, tuple(bytes([dice.randrange(2)]) * 8 for _ in arms)])
        windows = tuple(dice.choice([20.0, 80.0]) for _ in arms)
        return NewDecisions(tuple(arms), windows, dice.randrange(9), key, contexts=contexts)
    if kind < 0.26:
        return CloseDecision(decision) if kind < 0.24 else RetireArm(dice.randrange(4))
    if kind < 0.32:
        about = dice.choice([None, None, bytes(8), bytes(16)])
        return AddArm(dice.choice("xyz"), dice.choice([1.0, 2.0]), 80.0, about)
    value = dice.choice([0.0, -0.0, 0.25, 0.5])
    stated = dice.choice([0.0, -0.0, 1.0, 2.0, 19.0, 20.0, 90.0])
    return dice.choice(
        [NewPiece(decision, value, key=key), NewPiece(decision, value, stated, None, key),
         NewPiece(decision, value, None, now - stated, key)]
    )  # fmt: skip
