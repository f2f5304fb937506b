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
    AddArm,
    Answer,
    CloseDecision,
    NewDecisions,
    NewPiece,
    RetireArm,
    Status,
    Store,
    StoreRequest,
)
from accrual.store.event_schema import DecisionRow, Events, Kind
from accrual.store.memory import MemoryStore

JAZZ, ROCK = AddArm("jazz", 1.0, 80.0), AddArm("rock", 2.0, 60.0)
_WINDOW = 80.0


class StoreSuite(ABC):
    """What any store must do, whatever it keeps things in."""

    durable = True  # whether what was stored is there when the store is opened again

    @abstractmethod
    def open_store(self, place: Path) -> Store:
        """The store at `place`, an empty folder when a test begins.

        The same place again must be the same store, opened again.
        """

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        """A new store."""
        store = self.open_store(tmp_path)
        yield store
        store.close()

    # Bandits.

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
        assert _rows(store.read(bandit, 0, 100)) == [
            (1, Kind.ADD_ARM, 5.5, -1, 0, 1.0, 80.0),
            (2, Kind.ADD_ARM, 5.5, -1, 1, 2.0, 60.0),
        ]
        assert [tuple(arm) for arm in store.arms(bandit)] == [
            ("jazz", 1.0, 80.0, False), ("rock", 2.0, 60.0, False)
        ]  # fmt: skip

    def test_bandits_do_not_mix(self, store: Store) -> None:
        """Each has its own decisions, keys and positions."""
        one, two = (store.create(name, {}, [JAZZ], rounds=True, now=0.0).number for name in ("1", "2"))
        for bandit in (one, two):
            chosen, paid = store.append(bandit, [_choose(0, key="k"), NewPiece(0, 0.5, key="k")], 0.0)
            assert chosen == Answer(Status.STORED, 2, 1.0, 0, (0,))
            assert paid == Answer(Status.STORED, 3, 1.0)
        assert store.append(one, [NewPiece(1, 0.5)], 0.0) == [Answer(Status.UNKNOWN)]
        assert _rows(store.read(one, 0, 10)) == _rows(store.read(two, 0, 10))

    # Decisions.

    def test_rounds_count_decisions(self, store: Store) -> None:
        """A decision's time is its number from 1 on; anything else has that of the last decision."""
        bandit = _rounds(store)
        batch, paid, single = store.append(
            bandit, [_choose(0, 1, 0), NewPiece(0, 0.5), _choose(1)], now=1e9
        )  # fmt: skip
        assert batch == Answer(Status.STORED, 3, 1.0, 0, (0, 1, 0))
        assert paid == Answer(Status.STORED, 6, 3.0, age=2.0)
        assert single == Answer(Status.STORED, 7, 4.0, 3, (1,))
        assert store.read(bandit, 2, 10).at.tolist() == [1.0, 2.0, 3.0, 3.0, 4.0]

    def test_time_does_not_go_back(self, store: Store) -> None:
        """An event is never before the one before it, whatever the caller's clock says."""
        bandit = _clocked(store)
        assert store.append(bandit, [_choose(0)], now=50.0)[0].at == 50.0
        assert store.append(bandit, [_choose(0)], now=40.0)[0].at == 50.0
        assert store.append(bandit, [_choose(0)], now=60.0)[0].at == 60.0
        assert store.append(bandit, [NewPiece(9, 1.0)], now=70.0)[0].status is Status.UNKNOWN
        assert store.append(bandit, [_choose(0)], now=65.0)[0].at == 65.0  # nothing happened at 70

    def test_a_decision_is_kept_as_made(self, store: Store) -> None:
        """With its own window, what whoever chose had seen, and the salt of the draws."""
        bandit = _clocked(store)
        store.append(bandit, [NewDecisions((1, 0), (7.5, 80.0), seen=2, salt=2**31 - 1)], now=3.0)
        first = DecisionRow(
            bandit=bandit, id=0, seq=3, arm=1, at=3.0, window=7.5, seen=2, key=None, part=0, salt=2**31 - 1,
            context=None,
        )  # fmt: skip
        assert store.decision(bandit, 0) == first
        assert store.decision(bandit, 1) == first._replace(id=1, seq=4, arm=0, window=80.0, part=1)
        assert store.read(bandit, 2, 10).value.tolist() == [2.0**31 - 1] * 2  # a refold has it too
        assert store.decision(bandit, 2) is None

    def test_contexts_are_kept_with_their_decisions(self, store: Store) -> None:
        """Those of a batch in order; the same key with other contexts is a conflict, and stores nothing."""
        bandit = _rounds(store)
        contexts = (b"\x00" * 16, b"\xff" * 16)
        batch = NewDecisions((0, 1), (_WINDOW, _WINDOW), key="k", contexts=contexts)
        (first,) = store.append(bandit, [batch], 0.0)
        store.append(bandit, [_choose(1)], 0.0)
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

    def test_a_key_makes_a_batch_idempotent(self, store: Store) -> None:
        """The same decisions again, whatever was chosen this time; another number is a conflict."""
        bandit = _rounds(store)
        (first,) = store.append(bandit, [_choose(0, 1, key="k")], 0.0)
        again = first._replace(status=Status.AGAIN)
        assert store.append(bandit, [_choose(1, 1, key="k"), _choose(1, key="k")], 0.0) == [
            again, Answer(Status.CONFLICT)
        ]  # fmt: skip
        one, two, other = store.append(
            bandit, [_choose(0, key="x"), _choose(1, key="x"), _choose(0, key="y")], 0.0
        )
        assert two == one._replace(status=Status.AGAIN)
        assert other.number == one.number + 1 == 3

    def test_an_unknown_arm_is_refused(self, store: Store) -> None:
        """And the batch with it."""
        bandit = _rounds(store)
        for arms in ((2,), (-1,), (0, 2)):
            assert store.append(bandit, [_choose(*arms)], 0.0) == [Answer(Status.UNKNOWN)]
        assert store.head(bandit) == 2

    # Pieces.

    def test_same_key_same_body_is_the_same_piece(self, store: Store) -> None:
        """Answered like the first time; with another body, a conflict; nothing is added."""
        bandit = _clocked(store, 0, 1)
        (first,) = store.append(bandit, [NewPiece(0, 0.5, age=1.0, key="k")], now=2.0)
        assert first == Answer(Status.STORED, 5, 2.0, age=1.0)
        again, *others = store.append(
            bandit,
            [
                NewPiece(0, 0.5, age=1.0, key="k"),
                NewPiece(0, 0.6, age=1.0, key="k"),
                NewPiece(0, 0.5, age=2.0, key="k"),
                NewPiece(0, 0.5, key="k"),
                NewPiece(1, 0.5, age=1.0, key="k"),
            ],
            now=9.0,
        )
        assert again == first._replace(status=Status.AGAIN)
        assert others == [*[Answer(Status.CONFLICT)] * 3, Answer(Status.STORED, 6, 9.0, age=1.0)]
        assert store.head(bandit) == 6

    def test_arrival_is_not_part_of_the_body(self, store: Store) -> None:
        """A piece that states no age is the same piece whenever it comes again."""
        bandit = _clocked(store, 0)
        (first,) = store.append(bandit, [NewPiece(0, 0.5, key="k")], now=2.0)
        assert first == Answer(Status.STORED, 4, 2.0, age=2.0)
        assert store.append(bandit, [NewPiece(0, 0.5, key="k")], now=99.0) == [
            first._replace(status=Status.AGAIN)
        ]  # fmt: skip

    def test_without_a_key_a_stated_age_makes_one(self, store: Store) -> None:
        """By age or by time, the same value at the same age is the same piece."""
        bandit = _clocked(store, 0, at=10.0)
        answers = store.append(
            bandit,
            [
                NewPiece(0, 0.5, age=3.0),
                NewPiece(0, 0.5, when=13.0),
                NewPiece(0, 0.5, age=3.0, key="k"),
                NewPiece(0, 0.5, age=4.0),
            ],
            now=20.0,
        )
        assert [(answer.status, answer.seq, answer.age) for answer in answers] == [
            (Status.STORED, 4, 3.0), (Status.AGAIN, 4, 3.0), (Status.STORED, 5, 3.0), (Status.STORED, 6, 4.0)
        ]  # fmt: skip

    def test_without_a_key_or_an_age_every_piece_is_its_own(self, store: Store) -> None:
        """Even at one moment."""
        bandit = _clocked(store, 0)
        answers = store.append(bandit, [NewPiece(0, 0.5)] * 3, now=1.0)
        assert [answer.status for answer in answers] == [Status.STORED] * 3
        assert len({answer.seq for answer in answers}) == 3

    def test_an_unknown_decision_is_refused(self, store: Store) -> None:
        """Nothing is stored, and the others of the append are."""
        bandit = _clocked(store, 0)
        answers = store.append(
            bandit, [NewPiece(1, 0.5), NewPiece(0, 0.5), NewPiece(-1, 0.5), CloseDecision(7)], now=0.0
        )
        assert [answer.status for answer in answers] == [
            Status.UNKNOWN, Status.STORED, Status.UNKNOWN, Status.UNKNOWN
        ]  # fmt: skip
        assert store.head(bandit) == 4

    def test_the_future_is_refused(self, store: Store) -> None:
        """Beyond the skew; a piece refused may come again when its time has come."""
        bandit = _clocked(store, 0, at=10.0)
        pieces = [NewPiece(0, 0.5, age=3.0, key="a"), NewPiece(0, 0.5, when=13.0, key="b")]
        assert store.append(bandit, pieces, now=12.0) == [Answer(Status.FUTURE)] * 2
        assert [answer.status for answer in store.append(bandit, pieces, 12.0, skew=1.0)] == [
            Status.STORED
        ] * 2
        assert store.append(bandit, [NewPiece(0, 0.5, age=4.0, key="c")], 13.0) == [Answer(Status.FUTURE)]
        assert store.append(bandit, [NewPiece(0, 0.5, age=4.0, key="c")], 14.0)[0].status is Status.STORED

    def test_before_its_decision_is_refused(self, store: Store) -> None:
        """Beyond the skew; within it, the piece is of age 0."""
        bandit = _clocked(store, 0, at=10.0)
        assert store.append(bandit, [NewPiece(0, 0.5, when=8.0)], 12.0) == [Answer(Status.EARLY)]
        (stored,) = store.append(bandit, [NewPiece(0, 0.5, when=8.0)], 12.0, skew=2.0)
        assert stored == Answer(Status.STORED, 4, 12.0, age=0.0)

    @pytest.mark.parametrize(
        ("piece", "now", "late"),
        [
            (NewPiece(0, 0.5, age=59.0), 59.0, False),
            (NewPiece(0, 0.5, age=59.0), 60.0, True),  # the window is over
            (NewPiece(0, 0.5, age=60.0), 59.0, True),  # the age is past it, as far as skew allows
            (NewPiece(0, 0.5), 59.9, False),
            (NewPiece(0, 0.5), 60.0, True),
            (NewPiece(1, 0.5, age=1.0), 5.0, True),  # closed
        ],
    )
    def test_late_is_stored_and_said(self, store: Store, piece: NewPiece, now: float, late: bool) -> None:
        """After the window by the clock or by its age, or after the decision was closed."""
        bandit = _clocked(store)
        store.append(bandit, [NewDecisions((1, 1), (60.0, 60.0)), CloseDecision(1)], 0.0)
        (answer,) = store.append(bandit, [piece], now, skew=5.0)
        assert (answer.status, answer.late) == (Status.STORED, late)
        assert store.head(bandit) == 6
        assert store.append(bandit, [piece._replace(key="k"), piece._replace(key="k")], 500.0)[1].late

    def test_closing_in_the_same_append(self, store: Store) -> None:
        """Each item finds what those before it left."""
        bandit = _rounds(store)
        answers = store.append(
            bandit,
            [
                _choose(0),
                NewPiece(0, 0.1),
                CloseDecision(0),
                NewPiece(0, 0.2),
                CloseDecision(0),
                NewPiece(0, 0.1, key="k"),
            ],
            0.0,
        )
        assert [answer.late for answer in answers] == [False, False, False, True, False, True]
        assert answers[4] == answers[2]._replace(status=Status.AGAIN)

    def test_keys_within_one_append(self, store: Store) -> None:
        """The first that can be stored is; a refused one keeps no key."""
        bandit = _clocked(store, 0, at=10.0)
        answers = store.append(
            bandit,
            [
                NewPiece(0, 0.5, age=99.0, key="k"),  # future
                NewPiece(0, 0.5, age=1.0, key="k"),
                NewPiece(0, 0.5, age=1.0, key="k"),
                NewPiece(0, 0.7, age=1.0, key="k"),
                NewPiece(0, 0.7, age=1.0, key="j"),
            ],
            now=20.0,
        )
        assert [(answer.status.value, answer.seq) for answer in answers] == [
            ("future", 0), ("stored", 4), ("again", 4), ("conflict", 0), ("stored", 5)
        ]  # fmt: skip

    # Arms.

    def test_arms_come_and_go(self, store: Store) -> None:
        """As events, once each."""
        bandit = _rounds(store)
        soul = AddArm("soul", 3.0, 40.0)
        added, again, conflict, retired, unknown = store.append(
            bandit, [soul, soul, soul._replace(cap=4.0), RetireArm(0), RetireArm(3)], 0.0
        )
        assert added == Answer(Status.STORED, 3, 0.0, 2)
        assert again == added._replace(status=Status.AGAIN)
        assert (conflict, unknown) == (Answer(Status.CONFLICT), Answer(Status.UNKNOWN))
        assert retired == Answer(Status.STORED, 4, 0.0)
        assert store.append(bandit, [RetireArm(0)], 0.0) == [retired._replace(status=Status.AGAIN)]
        assert [tuple(arm) for arm in store.arms(bandit)] == [
            ("jazz", 1.0, 80.0, True), ("rock", 2.0, 60.0, False), ("soul", 3.0, 40.0, False)
        ]  # fmt: skip
        assert _rows(store.read(bandit, 2, 10)) == [
            (3, Kind.ADD_ARM, 0.0, -1, 2, 3.0, 40.0), (4, Kind.RETIRE_ARM, 0.0, -1, 0, 0.0, 0.0)
        ]  # fmt: skip
        assert store.append(bandit, [_choose(2)], 0.0)[0].status is Status.STORED

    # Reading.

    def test_blocks_make_up_the_log(self, store: Store) -> None:
        """However it is cut; positions rise, and the last is the head."""
        bandit = _rounds(store)
        for _ in range(20):
            store.append(bandit, [_choose(0, 1), NewPiece(0, 0.5), CloseDecision(1), NewPiece(1, 0.25)], 0.0)
        whole = _rows(store.read(bandit, 0, 1000))
        for size in (1, 7, 64):
            parts: list[Any] = []
            while block := _rows(store.read(bandit, parts[-1][0] if parts else 0, size)):
                assert len(block) <= size
                parts += block
            assert parts == whole
        seqs = [row[0] for row in whole]
        assert seqs == sorted(set(seqs))
        assert store.head(bandit) == seqs[-1]

    def test_nothing_to_store(self, store: Store) -> None:
        """No items, no events."""
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

    def test_waiting_ends_with_an_event(self, store: Store) -> None:
        """Or in time, without one."""
        bandit = _rounds(store)
        assert store.wait(bandit, 1, timeout=0.0)
        assert not store.wait(bandit, 2, timeout=0.05)
        later = threading.Timer(0.1, store.append, (bandit, [_choose(0)], 0.0))
        later.start()
        assert store.wait(bandit, 2, timeout=30.0)
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
                items = [_random(dice, now) for _ in range(dice.choice([1, 2, 5, 20]))]
                skew = dice.choice([0.0, 2.0])
                for item, got, wanted in zip(
                    items,
                    store.append(mine, items, now, skew),
                    plain.append(other, items, now, skew),
                    strict=True,
                ):
                    assert got._replace(seq=0) == wanted._replace(seq=0), item  # positions may have gaps
            events = [row[1:] for row in _rows(store.read(mine, 0, 100_000))]
            assert events == [row[1:] for row in _rows(plain.read(other, 0, 100_000))]
            assert len(events) > 200

    def test_one_of_many_threads_is_first(self, store: Store) -> None:
        """Eight threads bring the same pieces and decisions: each is stored once, and all agree."""
        bandit = _rounds(store)
        store.append(bandit, [_choose(*[0] * 20)], 0.0)
        answers: list[list[Answer]] = [[] for _ in range(8)]
        start = threading.Barrier(8)

        def bring(mine: list[Answer]) -> None:
            start.wait()
            for i in range(20):
                mine += store.append(bandit, [NewPiece(i, 0.5, key="k"), _choose(1, key=f"{i}")], 0.0)

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
            bandit, [_choose(0, 1, key="k"), NewPiece(0, 0.5, key="k"), CloseDecision(1), RetireArm(1)], 0.0
        )
        store.save_snapshot(bandit, 3, "form", b"body")
        before = (store.find("plays"), store.arms(bandit), _rows(store.read(bandit, 0, 100)))
        store.close()
        store = self.open_store(tmp_path)
        try:
            assert before == (store.find("plays"), store.arms(bandit), _rows(store.read(bandit, 0, 100)))
            assert store.load_snapshot(bandit, "form") == (3, b"body")
            answers = store.append(
                bandit, [_choose(1, 1, key="k"), NewPiece(0, 0.5, key="k"), CloseDecision(1)], 0.0
            )
            assert {answer.status for answer in answers} == {Status.AGAIN}
            assert answers[0].arms == (0, 1)
            assert store.append(bandit, [_choose(0)], 0.0)[0].number == 2
        finally:
            store.close()


def _choose(*arms: int, key: str | None = None) -> NewDecisions:
    return NewDecisions(arms, (_WINDOW,) * len(arms), key=key)


def _rounds(store: Store) -> int:
    return store.create("plays", {}, [JAZZ, ROCK], rounds=True, now=0.0).number


def _clocked(store: Store, *arms: int, at: float = 0.0) -> int:
    """A bandit with a clock, and decisions for `arms` at time `at`."""
    bandit = store.create("plays", {}, [JAZZ, ROCK], rounds=False, now=0.0).number
    if arms:
        store.append(bandit, [_choose(*arms)], now=at)
    return bandit


def _rows(events: Events) -> list[Any]:
    return list(zip(*(column.tolist() for column in events), strict=True))


def _random(dice: random.Random, now: float) -> StoreRequest:
    """Something that may or may not be stored."""
    decision, key = dice.randrange(40), dice.choice([None, "a", "b", "c"])
    kind = dice.random()
    if kind < 0.2:
        arms = [dice.randrange(3) for _ in range(dice.choice([1, 1, 3]))]
        key = dice.choice([None, None, str(dice.randrange(30))])
        return NewDecisions(
            tuple(arms), tuple(dice.choice([20.0, 80.0]) for _ in arms), dice.randrange(9), key
        )
    if kind < 0.26:
        return CloseDecision(decision) if kind < 0.24 else RetireArm(dice.randrange(4))
    if kind < 0.3:
        return AddArm(dice.choice("xyz"), dice.choice([1.0, 2.0]), 80.0)
    value = dice.choice([0.0, 0.25, 0.5])
    stated = dice.choice([0.0, 1.0, 2.0, 19.0, 20.0, 90.0])
    return dice.choice(
        [NewPiece(decision, value, key=key), NewPiece(decision, value, stated, None, key),
         NewPiece(decision, value, None, now - stated, key)]
    )  # fmt: skip
