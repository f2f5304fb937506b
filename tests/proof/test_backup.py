"""Backups taken under load: restored, they are what the live database was at one moment."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from tests.postgres import server

import accrual as ac
from accrual.live.verify_snapshots import learned, refold, same_bits
from accrual.store.admin import backup, restore, verify
from accrual.store.backends import open_reader, open_store
from accrual.store.postgres.backend import PostgresTableReader

# How many, and how many events at least from one to the next: each is to be of another moment.
TIMES = [pytest.param(2, 200, id="quick"), pytest.param(20, 2_000, id="long", marks=pytest.mark.slow)]


class Load:
    """Four threads that decide and observe."""

    def __init__(self, url: str) -> None:
        self.bandit = ac.Bandit(["a", "b", "c"], window=60, groups=12, store=url)
        self.bandit.decide(n=100)
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(i,)) for i in range(4)]
        for thread in self._threads:
            thread.start()

    def _work(self, number: int) -> None:
        while not self._stop.is_set():
            made = self.bandit.decide(n=20)
            self.bandit.observe_many([d.id for d in made], [(d.id * 7 + number) % 5 / 4 for d in made])
            self.bandit.close_decision(made[0].id)

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


@pytest.mark.parametrize(("times", "apart"), TIMES)
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_backup_is_the_database_at_one_moment(kind, times, apart, tmp_path, say):
    url = f"sqlite:///{tmp_path}/live.db" if kind == "sqlite" else server().tables()
    load = Load(url)
    bandit = load.bandit
    before: list[int] = []
    places: list[int] = []
    for i in range(times):
        assert bandit._store.wait({1: (before[-1] if before else 0) + apart}, timeout=60.0)
        before.append(bandit._store.head(1))  # acknowledged by now, so it must be in the backup
        backup(url, tmp_path / f"{i}.backup")
        places.append(bandit._store.head(1))
    load.stop()
    positions = []
    for i in range(times):
        target = f"sqlite:///{tmp_path}/{i}.db" if kind == "sqlite" else server().tables()
        restore(target, tmp_path / f"{i}.backup")
        with open_reader(target) as reader:
            assert verify(reader) == []
        restored = open_store(target, readonly=True)
        row = restored.find("bandit")
        assert row is not None
        position = restored.head(row.number)
        assert before[i] <= position <= places[i]
        for ours, theirs in zip(
            restored.read(1, 0, position), bandit._store.read(1, 0, position), strict=True
        ):
            np.testing.assert_array_equal(ours, theirs)
        folded = refold(restored, row, bandit._config.ledger(), position)
        assert same_bits(
            learned(folded), learned(refold(bandit._store, row, bandit._config.ledger(), position))
        )
        restored.close()
        positions.append(position)
    bandit.close()
    assert len(set(positions)) == times
    say(
        f"{times} backups of {kind} under load, at {positions[0]:,} to {positions[-1]:,} events: each "
        "restored, verified and refolded to the live state at its moment"
    )


def test_control_copying_the_file(tmp_path, say):
    """The same check finds what is missing in a plain copy of the file."""
    load = Load(f"sqlite:///{tmp_path}/live.db")
    wrong = 0
    for i in range(5):
        before = load.bandit._store.head(1)
        shutil.copy(tmp_path / "live.db", tmp_path / f"{i}.db")
        try:
            with closing(sqlite3.connect(tmp_path / f"{i}.db")) as connection:
                wrong += connection.execute("SELECT sum(seq) FROM head").fetchone()[0] != before
        except sqlite3.Error:
            wrong += 1
    load.stop()
    load.bandit.close()
    assert wrong > 0
    say(f"control, copying SQLite's file: {wrong} of 5 copies lack what was acknowledged")


def test_control_reading_tables_at_different_moments(tmp_path, monkeypatch, say):
    """The same check finds that the tables of a PostgreSQL backup do not fit together."""

    def begin(self: Any) -> None:
        self._connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED")

    monkeypatch.setattr(PostgresTableReader, "_begin", begin)
    url = server().tables()
    load = Load(url)
    wrong = 0
    for i in range(5):
        backup(url, tmp_path / f"{i}.db")
        with open_reader(f"sqlite:///{tmp_path}/{i}.db") as reader:
            wrong += bool(verify(reader))
    load.stop()
    load.bandit.close()
    assert wrong > 0
    say(f"control, reading PostgreSQL's tables at different moments: {wrong} of 5 backups are wrong")
