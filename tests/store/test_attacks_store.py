"""Attacks on a store's files: other writers, files left behind, damage, old forms."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from collections import Counter
from contextlib import closing

import pytest
from tests.postgres import server

import accrual as ac
from accrual.cli.app import run
from accrual.core import files
from accrual.core.errors import InputError
from accrual.service.keys import new_key
from accrual.store.admin import backup, restore
from accrual.store.backends import open_keys, open_store
from accrual.store.base import (
    AddArm,
    CloseDecision,
    NewDecisions,
    NewPiece,
    Status,
    StoreDamaged,
    StoreError,
    StoreRequest,
)
from accrual.store.sqlite import lock
from accrual.store.sqlite.store import SQLiteStore

ARMS = [AddArm("jazz", 1.0, 80.0), AddArm("rock", 1.0, 80.0, about=bytes(range(16)))]


def filled(path, appends: int = 30) -> int:
    """A store with some events; its bandit's number."""
    store = SQLiteStore(str(path))
    number = store.create("plays", {}, ARMS, rounds=True, now=0.0).number
    for i in range(appends):
        store.append(
            number, [NewDecisions((i % 2,), (80.0,), key=f"d{i}"), NewPiece(i, 0.5, 0.0, None, f"p{i}")], 0.0
        )
    store.close()
    return number


# Two writers.


@pytest.mark.parametrize("way", ["same", "symlink", "hard link", "link to the folder"])
def test_no_second_writer_by_any_path(tmp_path, way):
    """The lock was beside the path that was given, so a link led round it."""
    (tmp_path / "real").mkdir()
    path = other = tmp_path / "real" / "plays.db"
    filled(path)
    if way == "symlink":
        other = tmp_path / "link.db"
        other.symlink_to(path)
    elif way == "hard link":
        other = tmp_path / "hard.db"
        os.link(path, other)
    elif way == "link to the folder":
        (tmp_path / "again").symlink_to(tmp_path / "real")
        other = tmp_path / "again" / "plays.db"
    with closing(SQLiteStore(str(path))):
        with pytest.raises(InputError, match="open for writing already"):
            SQLiteStore(str(other))
        code = f"from accrual.store.sqlite.store import SQLiteStore; SQLiteStore({str(other)!r})"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert "is open for writing already" in done.stderr.splitlines()[-1]
    SQLiteStore(str(other)).close()


def test_a_second_writer_is_refused_at_its_first_commit(tmp_path, monkeypatch):
    """Where no lock holds, such as on some network drives, the head row tells."""
    number = filled(tmp_path / "plays.db")
    first = SQLiteStore(str(tmp_path / "plays.db"))
    with monkeypatch.context() as second_process:
        second_process.setattr(files, "fcntl", None)
        for name, kind in {"_held": set, "_descriptors": dict, "_connections": Counter}.items():
            second_process.setattr(lock, name, kind())
        second = SQLiteStore(str(tmp_path / "plays.db"))
        first.append(number, [NewDecisions((0,), (80.0,))], 0.0)
        head = first.head(number)
        for _ in range(2):
            with pytest.raises(StoreError, match="another process has written to it"):
                second.append(number, [NewDecisions((0,), (80.0,))], 0.0)
        first.append(number, [NewDecisions((0,), (80.0,))], 0.0)
        assert first.head(number) == head + 1
        second.close()
    first.close()


def test_a_file_that_was_replaced_is_not_written_to(tmp_path):
    number = filled(tmp_path / "plays.db")
    with closing(SQLiteStore(str(tmp_path / "plays.db"))) as store:
        os.rename(tmp_path / "plays.db", tmp_path / "away.db")
        with pytest.raises(StoreError, match="was removed"):
            store.append(number, [NewDecisions((0,), (80.0,))], 0.0)
        shutil.copyfile(tmp_path / "away.db", tmp_path / "plays.db")
        with pytest.raises(StoreError, match="was replaced"):
            store.append(number, [NewDecisions((0,), (80.0,))], 0.0)
        os.replace(tmp_path / "away.db", tmp_path / "plays.db")
        store.append(number, [NewDecisions((0,), (80.0,))], 0.0)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # of Python 3.12 on: there are threads
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_fork_is_refused_at_once(tmp_path, kind):
    """On SQLite it lost events, on PostgreSQL it waited for a thread that is not there."""
    url = f"sqlite:///{tmp_path}/plays.db" if kind == "sqlite" else server().tables()
    with closing(open_store(url)) as store:
        number = store.create("plays", {}, ARMS, True, 0.0).number
        child = os.fork()
        if not child:
            code = 1
            try:
                store.append(number, [NewDecisions((0,), (80.0,))], 0.0)
            except InputError as error:
                code = 0 if "before a fork" in str(error) else 2
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert store.append(number, [NewDecisions((0,), (80.0,))], 0.0)[0].seq == 3


# Files that are left behind.


def crashed(folder) -> None:
    """A store whose process died: with a write-ahead log that no one has moved into it."""
    filled(folder / "s.db")
    code = (
        "import os, sys\nfrom accrual.store.base import NewDecisions\n"
        "from accrual.store.sqlite.store import SQLiteStore\n"
        "s = SQLiteStore(sys.argv[1])\n"
        "for _ in range(50): s.append(1, [NewDecisions((0,), (80.0,))], 0.0)\n"
        "os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code, str(folder / "s.db")], check=True)
    assert (folder / "s.db-wal").stat().st_size > 0


def test_a_log_left_behind_is_not_replayed_into_a_restored_file(tmp_path):
    """After a crash, `mv s.db away` and a restore, SQLite replayed the old log: malformed in 4 of 4."""
    number = filled(tmp_path / "good.db")
    backup(f"sqlite:///{tmp_path}/good.db", tmp_path / "backup.db")
    crashed(tmp_path)
    (tmp_path / "s.db").rename(tmp_path / "away.db")
    url = f"sqlite:///{tmp_path}/s.db"
    for action in (
        lambda: restore(url, tmp_path / "backup.db"),
        lambda: backup(f"sqlite:///{tmp_path}/good.db", tmp_path / "s.db"),
    ):
        with pytest.raises(InputError, match="already") as refused:
            action()
        for name in ("s.db", "s.db-wal", "s.db-shm"):
            assert f"{tmp_path}/{name}" in str(refused.value)
    assert not (tmp_path / "s.db").exists()
    for name in ("s.db-wal", "s.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    restore(url, tmp_path / "backup.db")
    with closing(SQLiteStore(str(tmp_path / "s.db"))) as store:
        assert store.head(number) == 62
    assert run(["db", "verify", url]) == 0


@pytest.mark.parametrize("in_use", [False, True])
def test_a_backup_takes_the_place_of_no_file(tmp_path, in_use):
    filled(tmp_path / "plays.db")
    filled(tmp_path / "other.db")
    with closing(SQLiteStore(str(tmp_path / ("other.db" if in_use else "plays.db")))):
        before = (tmp_path / "other.db").read_bytes()
        with pytest.raises(InputError, match=r"other\.db.* already"):
            backup(f"sqlite:///{tmp_path}/plays.db", tmp_path / "other.db")
        assert (tmp_path / "other.db").read_bytes() == before


def test_files_are_for_their_owner_alone(tmp_path):
    crashed(tmp_path)
    backup(f"sqlite:///{tmp_path}/s.db", tmp_path / "b.db")
    restore(f"sqlite:///{tmp_path}/r.db", tmp_path / "b.db")
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    assert {"s.db", "s.db-wal", "s.db.last", "b.db", "r.db"} <= set(modes)
    assert set(modes.values()) == {0o600}


# Other writers of the same file.


def test_the_log_is_written_again_under_the_lock(tmp_path):
    """Opening a store rewrote the log while `accrual keys` wrote to it, and destroyed it 5 of 5 times."""
    crashed(tmp_path)
    url = f"sqlite:///{tmp_path}/s.db"
    stop = threading.Event()
    made = []

    def make_keys() -> None:
        table = open_keys(url)
        while not stop.is_set():
            row, _ = new_key("shop", ["read"], 0.0)
            table.add(row)
            made.append(row.id)
        table.close()

    thread = threading.Thread(target=make_keys)
    thread.start()
    try:
        for _ in range(25):
            with closing(SQLiteStore(str(tmp_path / "s.db"))) as store:
                store.append(1, [NewDecisions((0,), (80.0,))], 0.0)
    finally:
        stop.set()
        thread.join()
    table = open_keys(url)
    assert {row.id for row in table.all()} == set(made)
    table.close()
    with closing(sqlite3.connect(tmp_path / "s.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert run(["db", "verify", url]) == 0


# Damage.


def test_a_damaged_log_is_refused_if_something_acknowledged_would_be_lost(tmp_path):
    """SQLite ends the log at the first wrong byte, and all that was acknowledged after it was gone."""
    crashed(tmp_path)
    body = (tmp_path / "s.db-wal").read_bytes()
    whole = {name: (tmp_path / name).read_bytes() for name in ("s.db", "s.db-wal", "s.db.last")}
    frame = 24 + 4096
    for at in (3, 9, 20, 30, 32 + frame + 10, 32 + 9 * frame + 2000, len(body) - 1):
        (tmp_path / "s.db").write_bytes(whole["s.db"])
        (tmp_path / "s.db-wal").write_bytes(body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :])
        for _ in range(2):
            with pytest.raises(StoreDamaged, match=r"acknowledged are lost: .* not at 112; restore a backup"):
                SQLiteStore(str(tmp_path / "s.db"))
    os.unlink(tmp_path / "s.db.last")
    with closing(SQLiteStore(str(tmp_path / "s.db"))) as store:  # as the message says
        assert 62 <= store.head(1) < 112
    for name, content in whole.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "s.db.last").write_bytes(whole["s.db.last"][:-1] + b"x")  # the note itself: the log decides
    with closing(SQLiteStore(str(tmp_path / "s.db"))) as store:
        assert store.head(1) == 112
    assert not (tmp_path / "s.db.last").exists()  # it was closed


DAMAGE = {
    "a piece": "UPDATE piece SET value = 0.25 WHERE seq = 20",
    "a piece that is gone": "DELETE FROM piece WHERE seq = 20",
    "a decision": "UPDATE decision SET arm = 0 WHERE id = 9",
    "an arm": "UPDATE arm SET cap = 3.0 WHERE number = 1",
    "what was known about an arm": "UPDATE arm SET about = NULL WHERE number = 1",
    "an arm that is gone": "DELETE FROM arm WHERE number = 1",
    "the head": "UPDATE head SET seq = 60",
    "the configuration": "UPDATE bandit SET config = '{\"a\": 1}'",
    "the name": "UPDATE bandit SET name = 'playt'",
    "the bandit": "DELETE FROM bandit",
}


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_is_refused_in_one_line(tmp_path, what):
    """Python's sqlite3 writes a page and leaves its checksum as it was, as damage does."""
    filled(tmp_path / "plays.db")
    with closing(sqlite3.connect(tmp_path / "plays.db")) as connection:
        connection.execute(DAMAGE[what])
        connection.commit()

    def use() -> None:
        with closing(SQLiteStore(str(tmp_path / "plays.db"))) as store:
            row = store.find("plays")
            assert row is not None
            store.read(row.number, 0, 1000)
            store.append(row.number, [NewDecisions((0,), (80.0,))], 0.0)

    with pytest.raises(StoreDamaged, match="damaged: a page has a wrong checksum") as refused:
        use()
    assert "\n" not in str(refused.value)
    assert run(["db", "verify", f"sqlite:///{tmp_path}/plays.db"]) == 1


def test_what_a_power_cut_left_half_made_is_undone(tmp_path):
    """Before a file has a write-ahead log it has a journal, which only a connection that may write undoes."""
    filled(tmp_path / "plays.db")
    cut = tmp_path / "cut"
    cut.mkdir()
    with closing(sqlite3.connect(tmp_path / "plays.db")) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA cache_size = 1")  # so that pages are written before the commit
        connection.execute("UPDATE piece SET key = hex(zeroblob(5000))")
        for name in ("plays.db", "plays.db-journal"):
            shutil.copyfile(tmp_path / name, cut / name)
    for readonly in (True, False):
        shutil.copytree(cut, again := tmp_path / f"{readonly}")
        with closing(SQLiteStore(str(again / "plays.db"), readonly=readonly)) as store:
            assert len(store.read(1, 0, 1000).seq) == 62


def test_one_damaged_bandit_leaves_the_others(tmp_path):
    filled(tmp_path / "plays.db", 300)
    with closing(SQLiteStore(str(tmp_path / "plays.db"))) as store:
        store.create("songs", {}, ARMS, True, 0.0)
    with closing(sqlite3.connect(tmp_path / "plays.db")) as connection:
        connection.execute("UPDATE piece SET age = 2.0 WHERE bandit = 1 AND seq = 10")
        connection.commit()
    with closing(SQLiteStore(str(tmp_path / "plays.db"))) as store:
        assert store.names() == ["plays", "songs"]
        with pytest.raises(StoreDamaged, match="wrong checksum"):
            store.read(1, 0, 100)
        assert store.append(2, [NewDecisions((0,), (80.0,))], 0.0)[0].status is Status.STORED


def test_a_file_without_checksums_is_refused_and_a_copy_of_it_has_them(tmp_path):
    """Such as what SQLite's own `.recover` saves of a damaged file."""
    number = filled(tmp_path / "plays.db")
    with closing(sqlite3.connect(tmp_path / "plays.db")) as connection:
        script = "\n".join(connection.iterdump())
    with closing(sqlite3.connect(tmp_path / "saved.db")) as connection:
        connection.executescript(script)
    with pytest.raises(StoreDamaged, match="its pages have no checksums; copy it with accrual db restore"):
        SQLiteStore(str(tmp_path / "saved.db"))
    url = f"sqlite:///{tmp_path}/new.db"
    assert run(["db", "restore", url, f"{tmp_path}/saved.db"]) == 0
    assert run(["db", "verify", url]) == 0
    with closing(SQLiteStore(str(tmp_path / "new.db"))) as store:
        assert store.append(number, [NewPiece(3, 0.5, 0.0, None, "p3")], 0.0)[0].status is Status.AGAIN


def test_a_flipped_snapshot_is_not_used(tmp_path):
    """One in 12,000 was taken for whole."""
    url = f"sqlite:///{tmp_path}/plays.db"
    with ac.Bandit(["a", "b"], 40, 8, store=url) as bandit:
        bandit.decide(n=100)
        state = bandit.state()
    with closing(sqlite3.connect(tmp_path / "plays.db")) as connection:
        (body,) = connection.execute("SELECT body FROM snapshot").fetchone()
        for at in (100, len(body) // 2, len(body) - 100):
            connection.execute(
                "UPDATE snapshot SET body = ?", [body[:at] + bytes([body[at] ^ 4]) + body[at + 1 :]]
            )
            connection.commit()
            with ac.Bandit.open(url) as bandit:
                assert bandit.state() == state
                bandit._follower._snapshot_position = bandit._follower.position  # it is not to be replaced


# Keys.


def test_keys_of_all_ages_are_found(tmp_path):
    """Each key is counted once, however long ago that was, and after any number of starts."""
    store = SQLiteStore(str(tmp_path / "plays.db"))
    number = store.create("plays", {}, ARMS, rounds=True, now=0.0).number
    items: list[list[StoreRequest]] = [
        [
            NewDecisions((0, 1), (80.0, 80.0), key=f"d{i}"),
            *(NewPiece(2 * i, j / 4, 0.0, None, f"p{j}") for j in range(4)),
            CloseDecision(2 * i + 1),
        ]
        for i in range(700)
    ]
    first = [store.append(number, one, 0.0) for one in items]
    store.close()
    store = SQLiteStore(str(tmp_path / "plays.db"))
    again = [store.append(number, one, 0.0) for one in items]
    for before, after in zip(first, again, strict=True):
        assert [answer._replace(status=Status.AGAIN) for answer in before] == after
    conflict = store.append(
        number, [NewPiece(0, 9.0, 0.0, None, "p1"), NewDecisions((0,), (80.0,), key="d3")], 0.0
    )
    assert {answer.status for answer in conflict} == {Status.CONFLICT}
    late = store.append(number, [NewPiece(1, 0.5, 0.0, None, "new")], 0.0)  # its decision was closed long ago
    assert late[0].late
    store.close()
    assert run(["db", "verify", f"sqlite:///{tmp_path}/plays.db"]) == 0
