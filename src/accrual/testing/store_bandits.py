"""The part of the suite for stores that is about bandits: made, found, changed and erased."""

from __future__ import annotations

from typing import Any

import pytest

from accrual.core.errors import InputError
from accrual.store.base import ERASE_AT, Answer, NewPiece, Requests, Status, Store, StoreError
from accrual.store.event_schema import Events, Kind
from accrual.testing.acceptance import JAZZ, ROCK, decide


def event_tuples(events: Events) -> list[Any]:
    """Return events as tuples, without the propensities, which few tests are about."""
    columns = events._asdict()
    columns.pop("propensity")
    return list(zip(*(column.tolist() for column in columns.values()), strict=True))


class BanditsOfStoreSuite:
    """What any store must do with bandits; a part of `StoreSuite`, which has the store."""

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
            (1, Kind.ADD_ARM, 5.5, -1, 0, 1.0, 80.0),
            (2, Kind.ADD_ARM, 5.5, -1, 1, 2.0, 60.0),
        ]
        assert [tuple(arm) for arm in store.arms(bandit)] == [
            ("jazz", 1.0, 80.0, False, None), ("rock", 2.0, 60.0, False, None)
        ]  # fmt: skip

    def test_a_history_comes_after_the_first_arms(self, store: Store) -> None:
        """Each part at its own time, as if it had been appended."""
        pieces = Requests([NewPiece(0, 0.5, age=3.0), NewPiece(1, 0.5, age=81.0)], 8.0, skew=100.0)
        history = [Requests([decide(0, 0)], 5.5), pieces]
        bandit = store.create("plays", {}, [JAZZ], rounds=False, now=5.5, history=history).number
        assert event_tuples(store.read(bandit, 1, 100)) == [
            (2, Kind.DECISION, 5.5, 0, 0, 0.0, 80.0), (3, Kind.DECISION, 5.5, 1, 0, 0.0, 80.0),
            (4, Kind.PIECE, 8.0, 0, -1, 0.5, 3.0), (5, Kind.PIECE, 8.0, 1, -1, 0.5, 81.0),
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
