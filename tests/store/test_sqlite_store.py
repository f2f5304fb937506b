"""What is particular to the store in SQLite: blocks, one writer, full disks. The rest is the suite's."""

import random
import sqlite3
import subprocess
import sys
import threading

import numpy as np
import pytest

import accrual as ac
from accrual.service.keys import ready_keys
from accrual.store.base import (
    AddArm,
    CloseDecision,
    NewDecisions,
    NewPiece,
    RetireArm,
    Status,
    StoreError,
    StoreRequest,
)
from accrual.store.events import Events, columns
from accrual.store.memory import MemoryStore
from accrual.store.sqlite import store as sqlite
from accrual.store.sqlite.store import SQLiteStore, event_rows

ARMS = [AddArm("jazz", 1.0, 80.0), AddArm("rock", 2.0, 80.0)]


@pytest.fixture
def store(tmp_path):
    store = SQLiteStore(str(tmp_path / "plays.db"))
    yield store
    store.close()


def read_rows(store: SQLiteStore, bandit: int, after: int, limit: int) -> Events:
    """Return what `read` does, but from the tables alone: the blocks must equal it."""
    return columns(store._file.read(lambda found: event_rows(found, bandit, after, after + limit)))


def made(store: SQLiteStore, name: str = "plays") -> int:
    return store.create(name, {}, ARMS, rounds=True, now=0.0).number


def assert_equal(one: Events, other: Events) -> None:
    for name, a, b in zip(Events._fields, one, other, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=name)


def fill(store, bandit: int, appends: int, seed: int = 0) -> None:
    """Items of all kinds, some of them sent again, in batches of all sizes."""
    dice, decisions = random.Random(seed), 1
    store.append(bandit, [NewDecisions((0,), (80.0,))], 0.0)
    for _ in range(appends):
        items: list[StoreRequest] = []
        for _ in range(dice.choice([1, 1, 3, 20])):
            kind = dice.randrange(10)
            if kind < 2:
                arms = tuple(dice.choices([0, 1], k=dice.randint(1, 3)))
                items.append(NewDecisions(arms, (80.0,) * len(arms), key=dice.choice([None, f"{decisions}"])))
                decisions += len(arms)
            elif kind == 2:
                items.append(CloseDecision(dice.randrange(decisions)))
            else:
                key = dice.choice([None, "a", "b", f"{dice.random()}"])
                items.append(NewPiece(dice.randrange(decisions), dice.choice([0.5, 0.25]), 0.0, None, key))
        store.append(bandit, items, 0.0)
        if dice.random() < 0.05:
            number = len(store.arms(bandit))
            store.append(bandit, [AddArm(f"arm {number}", 1.5, 40.0), RetireArm(0)], 0.0)


def test_blocks_hold_what_the_tables_hold(store, tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite, "BLOCK", 50)
    bandit, other = made(store), made(store, "another")
    memory = MemoryStore()
    memory.create("plays", {}, ARMS, rounds=True, now=0.0)
    fill(store, bandit, 150)
    fill(store, other, 20, seed=1)
    fill(memory, 0, 150)
    head = store.head(bandit)
    (blocks,) = store._file.reader.execute("SELECT count(*) FROM block WHERE bandit = ?", [bandit]).fetchone()
    assert blocks > 5
    everything = store.read(bandit, 0, 10**9)
    assert list(everything.seq) == list(range(1, head + 1))
    assert_equal(everything, read_rows(store, bandit, 0, head))
    assert_equal(everything, memory.read(0, 0, head))
    for after, limit in [(0, 1), (49, 3), (50, 50), (70, 100), (head - 3, 2), (head - 3, 9), (head, 5)]:
        part = store.read(bandit, after, limit)
        assert_equal(part, Events._make(column[after : after + limit] for column in everything))
    store.close()
    again = SQLiteStore(str(tmp_path / "plays.db"))  # the tail that is in no block yet is found again
    fill(again, bandit, 20, seed=2)
    fill(memory, 0, 20, seed=2)
    assert_equal(again.read(bandit, 0, 10**9), memory.read(0, 0, 10**9))
    assert_equal(again.read(bandit, 0, 10**9), read_rows(again, bandit, 0, 10**9))
    again.close()


def test_what_is_not_remembered_is_looked_up(store, monkeypatch):
    """With room for next to nothing, the answers are those of a store that remembers everything."""
    monkeypatch.setattr(sqlite, "_DECISIONS_MOST", 2)
    memory = MemoryStore()
    bandit, other = made(store), memory.create("plays", {}, ARMS, rounds=True, now=0.0).number
    fill(store, bandit, 60)
    fill(memory, other, 60)
    asks = [NewPiece(i, 0.5, 0.0, None, key) for i in range(-1, 40) for key in (None, "a", "b")]
    asks += [CloseDecision(i) for i in range(40)]  # type: ignore[misc]
    asks += [NewPiece(i, 0.5, None, None, "c") for i in range(40)]
    assert store.append(bandit, asks, 0.0) == memory.append(other, asks, 0.0)


def test_one_key_among_many_new_ones(store):
    """The fast way finds that something was there, and the slow way finds what."""
    bandit = made(store)
    store.append(bandit, [NewDecisions((0, 1), (80.0, 80.0), key="k"), NewPiece(0, 0.5, 0.0, None, "5")], 0.0)
    answers = store.append(
        bandit,
        [
            NewDecisions((1,), (80.0,)),
            *(NewPiece(0, 0.5, 0.0, None, str(i)) for i in range(10)),
            NewDecisions((0, 0), (80.0,) * 2, 0, "k"),
        ],
        0.0,
    )
    assert [answer.status.value for answer in answers] == ["stored"] * 6 + ["again"] + ["stored"] * 4 + [
        "again"
    ]
    assert [answer.seq for answer in answers] == [6, 7, 8, 9, 10, 11, 5, 12, 13, 14, 15, 3]
    assert answers[-1].arms == (0, 1)
    assert_equal(store.read(bandit, 0, 99), read_rows(store, bandit, 0, 99))


# One writer.


def test_a_second_writer_is_refused_in_one_line(store, tmp_path):
    for action in (
        lambda: SQLiteStore(str(tmp_path / "plays.db")),
        lambda: ac.Bandit(["a"], window=8, store=f"sqlite:///{tmp_path}/plays.db"),
    ):
        with pytest.raises(ac.InputError, match=r"sqlite:///.*plays\.db is open for writing already"):
            action()
    code = f"from accrual.store.sqlite.store import SQLiteStore; SQLiteStore({str(tmp_path / 'plays.db')!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "is open for writing already" in done.stderr.splitlines()[-1]
    store.close()
    SQLiteStore(str(tmp_path / "plays.db")).close()


def test_others_may_read(store, tmp_path):
    bandit = made(store)
    reader = SQLiteStore(str(tmp_path / "plays.db"), readonly=True)
    assert reader.head(bandit) == 2
    store.append(bandit, [NewDecisions((0,), (80.0,))], 0.0)
    assert reader.head(bandit) == 3
    assert reader.wait({bandit: 2}, timeout=5.0)
    assert not reader.wait({bandit: 3}, timeout=0.02)
    threading.Timer(0.05, lambda: store.append(bandit, [CloseDecision(0)], 0.0)).start()
    assert reader.wait({bandit: 3}, timeout=5.0)
    with pytest.raises(ac.InputError, match="open for reading only"):
        reader.append(bandit, [CloseDecision(0)], 0.0)
    reader.close()


def test_bandits_of_one_store_do_not_meet(store):
    one, other = made(store), made(store, "another")
    store.append(one, [NewDecisions((0,), (80.0,), key="k"), NewPiece(0, 0.5, 0.0, None, "a")], 0.0)
    assert store.append(other, [NewPiece(0, 0.5)], 0.0)[0].status is Status.UNKNOWN
    answers = store.append(
        other, [NewDecisions((0,), (80.0,), key="k"), NewPiece(0, 0.25, 0.0, None, "a")], 0.0
    )
    assert [answer.status for answer in answers] == [Status.STORED] * 2
    assert store.names() == ["plays", "another"]


# Files.


def test_files_that_are_something_else(tmp_path):
    (tmp_path / "text.db").write_text("not a database, by far" * 100)
    with pytest.raises(ac.InputError, match="file is not a database"):
        SQLiteStore(str(tmp_path / "text.db"))
    connection = sqlite3.connect(tmp_path / "other.db")
    connection.execute("CREATE TABLE songs (name TEXT)")
    connection.close()
    with pytest.raises(ac.InputError, match="has no tables of accrual; make them: accrual db init"):
        SQLiteStore(str(tmp_path / "other.db"))
    with pytest.raises(ac.InputError, match=r"cannot open .*nowhere"):
        SQLiteStore(str(tmp_path / "nowhere" / "plays.db"))
    with pytest.raises(ac.InputError, match="there is no file"):
        SQLiteStore(str(tmp_path / "none.db"), readonly=True)


def test_an_empty_file_is_not_taken_for_a_new_database(tmp_path):
    """Its keys would be forgotten, and anyone let in."""
    (tmp_path / "empty.db").touch()
    for action in (
        lambda: SQLiteStore(str(tmp_path / "empty.db")),
        lambda: ready_keys(f"sqlite:///{tmp_path}/empty.db"),
    ):
        with pytest.raises(ac.InputError, match="has 0 bytes"):
            action()


def test_a_synced_write_ahead_log(store):
    assert store._file.writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert store._file.writer.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL


def test_a_full_disk_is_an_error_and_no_more(store):
    """The limit on pages stands for the disk. What was acknowledged before is there, what failed is
    not, and it works again when there is room."""
    bandit = made(store)
    store.append(bandit, [NewDecisions((0,), (80.0,))], 0.0)
    (pages,) = store._file.writer.execute("PRAGMA page_count").fetchone()
    store._file.writer.execute(f"PRAGMA max_page_count = {pages + 2}")
    acknowledged = 0

    def fill_up() -> None:
        nonlocal acknowledged
        for i in range(100):
            store.append(bandit, [NewPiece(0, 0.5, 0.0, None, f"{i} {j}") for j in range(20)], 0.0)
            acknowledged += 20

    with pytest.raises(StoreError, match="full"):
        fill_up()
    assert store.head(bandit) == 3 + acknowledged
    with pytest.raises(StoreError, match="full"):
        store.append(bandit, [NewPiece(0, 0.5, 0.0, None, f"again {j}") for j in range(2000)], 0.0)
    store._file.writer.execute("PRAGMA max_page_count = 1000000")
    assert store.append(bandit, [NewPiece(0, 0.5, 0.0, None, "room")], 0.0)[0].seq == 4 + acknowledged
    assert_equal(store.read(bandit, 0, 10**6), read_rows(store, bandit, 0, 10**6))
    assert store._file.reader.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_failure_leaves_nothing_behind(store, monkeypatch):
    bandit = made(store)
    store.append(bandit, [NewDecisions((0,), (80.0,))], 0.0)
    monkeypatch.setattr(sqlite, "_DECISIONS_MOST", None)  # which cannot be compared
    with pytest.raises(TypeError):
        store.append(
            bandit,
            [NewDecisions((1,), (80.0,), key="x"), AddArm("talk", 1.0, 8.0), NewPiece(0, 0.5, 0.0)],
            0.0,
        )
    monkeypatch.undo()
    assert store.head(bandit) == 3
    assert len(store.arms(bandit)) == 2
    answers = store.append(
        bandit, [NewPiece(0, 0.5, 0.0), NewDecisions((1,), (80.0,), key="x"), AddArm("talk", 1.0, 8.0)], 0.0
    )
    assert [(answer.status.value, answer.seq) for answer in answers] == [
        ("stored", 4),
        ("stored", 5),
        ("stored", 6),
    ]
