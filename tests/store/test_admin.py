"""What the administration of a store promises: new files, backups, exports, clocks, addresses, archives."""

from __future__ import annotations

import asyncio
import csv
import math
import os
import sqlite3
import stat
import struct
import subprocess
import sys
from contextlib import closing

import pytest
from tests.postgres import server

import accrual as ac
from accrual.cli.app import run
from accrual.core.errors import InputError
from accrual.core.files import csv_cell, write_csv
from accrual.live.archive import archive, delete, erase_due
from accrual.live.clock import SteadyClock
from accrual.live.contexts.encoder import bytes_of
from accrual.service.bandit_pool import BanditPool
from accrual.service.keys import new_key
from accrual.service.metrics import Metrics
from accrual.store.address import parse
from accrual.store.admin import backup, export, restore
from accrual.store.backends import make_tables, open_keys, open_store
from accrual.store.base import ARCHIVED, ERASE_AT, StoreError
from accrual.store.memory import MemoryStore

DAY = 86_400.0


def played(url: str, **options) -> None:
    """A bandit with three arms and some decisions and pieces."""
    with ac.Bandit(["a", "b", "c"], window=50, store=url, name="plays", **options) as bandit:
        for made in bandit.decide(n=8):
            bandit.observe(made.id, 0.5, key=f"k{made.id}")


# A new database where files of another were left.

STALE = "from accrual.store.sqlite.store import SQLiteStore; import os, sys\n" + (
    "from accrual.store.base import NewDecisions\n"
    "store = SQLiteStore(sys.argv[1])\n"
    "store.append(1, [NewDecisions((0,), (50.0,))], 0.0)\n"
    "os._exit(0)"
)


@pytest.mark.parametrize(
    "command",
    [
        ["db", "init", "{url}"],
        ["keys", "create", "--scope", "read", "--store", "{url}"],
        ["serve", "--store", "{url}", "--port", "0"],
        ["bandits", "erase", "--store", "{url}"],
        None,
    ],
    ids=["db init", "keys create", "serve", "bandits", "Bandit"],
)
def test_a_new_database_takes_nothing_from_a_log_left_behind(tmp_path, command):
    """After kill -9 and `rm`, old bandits and a revoked key came back, or the new file was corrupt."""
    path, url = tmp_path / "plays.db", f"sqlite:///{tmp_path}/plays.db"
    played(url)
    subprocess.run([sys.executable, "-c", STALE, str(path)], check=True)
    path.unlink()
    stale = f"{path}-wal and {path}-shm"

    def begin() -> str:
        if command is None:
            with pytest.raises(InputError) as refused:
                ac.Bandit(["a"], window=50, store=url)
            return str(refused.value)
        words = [sys.executable, "-m", "accrual", *(word.format(url=url) for word in command)]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 2
        return done.stderr.strip()

    said = begin()
    assert "\n" not in said
    assert f"there is no {path}, but {stale} of an earlier database" in said
    assert said.endswith(f"move away {stale}")
    assert not path.exists()
    for name in ("wal", "shm"):
        (tmp_path / f"plays.db-{name}").rename(tmp_path / f"old-{name}")
    (tmp_path / "plays.db-journal").write_bytes(b"what a power cut left")
    assert f"but {path}-journal of" in begin()
    (tmp_path / "plays.db-journal").unlink()
    make_tables(url)
    assert run(["db", "verify", url]) == 0
    with closing(open_store(url)) as store:
        assert store.names() == []


def test_of_processes_that_make_one_new_file_at_once_none_is_refused(tmp_path):
    code = "from accrual.store.backends import make_tables; import sys; make_tables(sys.argv[1])"
    url = f"sqlite:///{tmp_path}/plays.db"
    begun = [subprocess.Popen([sys.executable, "-c", code, url]) for _ in range(4)]
    assert [one.wait() for one in begun] == [0] * 4


# Backups and exports.


def test_reading_a_backup_leaves_no_trace_beside_it(tmp_path, capsys):
    """What a reading leaves beside a backup would be read as a part of it."""
    url, folder = f"sqlite:///{tmp_path}/plays.db", tmp_path / "backups"
    played(url)
    folder.mkdir()
    saved = f"sqlite:///{folder}/monday.db"
    backup(url, folder / "monday.db")
    for action in (
        ["db", "verify", saved],
        ["db", "restore", f"sqlite:///{tmp_path}/restored.db", f"{folder}/monday.db"],
        ["db", "export", saved, str(tmp_path / "out")],
        ["db", "backup", saved, str(tmp_path / "again.db")],
        ["bandits", "list", "--store", saved],
    ):
        assert run(action) == 0, capsys.readouterr().err
        assert os.listdir(folder) == ["monday.db"]


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_an_export_is_for_its_owner_alone(tmp_path, kind):
    """It was readable by all, where the database and its backups are not."""
    url = f"sqlite:///{tmp_path}/plays.db" if kind == "sqlite" else server().tables()
    played(url)
    before = os.umask(0)
    try:
        export(url, "plays", tmp_path / "out")
        backup(url, tmp_path / "out" / "backup.db")
        restore(f"sqlite:///{tmp_path}/out/restored.db", tmp_path / "out" / "backup.db")
    finally:
        os.umask(before)
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "out").iterdir()}
    assert len(modes) == 5
    assert set(modes.values()) == {0o600}


# Minus zero.


def test_minus_zero_is_no_damage(tmp_path):
    """As value, age and time: in the blocks of events it was -0.0, in the tables 0.0, for good."""
    url = f"sqlite:///{tmp_path}/plays.db"
    with ac.Bandit(["a"], window="1d", store=url, clock=lambda: -0.0) as bandit:
        for first in range(0, 5000, 1000):
            bandit.decide(n=1000)
            bandit.observe_many(
                range(first, first + 1000), [-0.0] * 1000, ages=[-0.0] * 1000, keys=["k"] * 1000
            )
    assert run(["db", "verify", url]) == 0
    with closing(sqlite3.connect(tmp_path / "plays.db")) as connection:
        assert connection.execute("SELECT count(*) FROM block").fetchone()[0] > 0


def test_minus_zero_in_a_context_is_zero():
    """A key sent again with the other zero was a conflict."""
    features = {"visits": (-5, 5)}
    with ac.Bandit(["a", "b"], window=50, policy="AgeLinTS", features=features) as bandit:
        first = bandit.decide(context={"visits": -0.0}, key="k")
        assert bandit.decide(context={"visits": 0}, key="k") == first
        assert bandit.choice(context={"visits": -0.0}).contexts == (bytes_of((0.0,)),) == (bytes(8),)
        assert bandit.choice(context={"visits": None}).contexts == (struct.pack("<d", math.nan),)


# Numbers and times out of the way.


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgresql"])
def test_a_decision_of_an_id_that_no_column_can_hold_is_unknown(tmp_path, kind):
    url = {"memory": None, "sqlite": f"sqlite:///{tmp_path}/p.db"}.get(kind) or (
        server().tables() if kind == "postgresql" else None
    )
    with ac.Bandit(["a"], window=50, store=url) as bandit:
        made = bandit.decide()
        for id_ in (2**63 - 1, 2**63, 2**64, -(2**63) - 1):
            with pytest.raises(InputError, match="no decision has the id"):
                bandit.observe(id_, 0.5)
            with pytest.raises(InputError, match="no decision has the id"):
                bandit.close_decision(id_)
            with pytest.raises(InputError, match="no decision has the id"):
                bandit.explain(id_)
        bandit.observe(made.id, 0.5)
        assert bandit.state().arms[0].observed == 0.5


def test_a_prior_with_a_window_of_more_than_57_years_is_the_same_everywhere(tmp_path):
    """Its decisions are dated before 1970, which SQLite and memory took for 1970."""
    prior = {"a": [[(3600.0, 0.5), (59 * 365 * DAY, 0.25)], []], "b": [[(7.0, 1.0)]]}
    found = []
    for store in (None, f"sqlite:///{tmp_path}/plays.db", server().tables()):
        with ac.Bandit(
            ["a", "b"], window="60y", groups=6, store=store, prior=prior, clock=lambda: 1.7e9
        ) as b:
            state = b.state()
            found.append((state, b._store.read(b._row.number, 0, 100).at.tolist()))
    assert found[0] == found[1] == found[2]
    assert found[0][1][0] == 1.7e9 - 60 * 365 * DAY
    assert found[0][0].pending == 0
    assert sum(arm.observed for arm in found[0][0].arms) == pytest.approx(1.75)


# Archives.


def test_a_leap_of_the_clock_erases_nothing():
    """Eight days ahead for 29 seconds, and a bandit deleted with a grace of seven days was gone."""
    store, time = MemoryStore(), [1.7e9, 0.0]  # the time of day, and what has elapsed
    store.clock = lambda: time[0]  # type: ignore[method-assign]
    clock = SteadyClock(store.clock, lambda: time[1])
    ac.Bandit(["a"], window=50, store=store, name="plays")
    delete(store, "plays", "7d", clock)
    assert erase_due(store, clock) == []
    time[:] = [1.7e9 + 8 * DAY, 29.0]
    with pytest.raises(StoreError, match="leapt ahead by 7 days, 23:59:31"):
        erase_due(store, clock)
    time[:] = [1.7e9 + 30.0, 30.0]
    assert erase_due(store, clock) == []
    assert store.names() == ["plays"]
    time[:] = [1.7e9 - 8 * DAY, 60.0]  # deleted now, it would be erased as soon as the clock is right
    with pytest.raises(StoreError, match="leapt back"):
        delete(store, "plays", "7d", clock)
    time[:] = [1.7e9 + 8 * DAY, 8 * DAY]
    assert erase_due(store, clock) == ["plays"]


def test_a_service_whose_clock_leaps_erases_nothing(caplog):
    """It goes on serving; once the clock is right again it erases what is due."""
    store, ahead = MemoryStore(), [0.0]
    real = store.clock
    store.clock = lambda: real() + ahead[0]  # type: ignore[method-assign]
    for name in ("plays", "kept"):
        ac.Bandit(["a"], window=50, store=store, name=name)
    delete(store, "plays", "7d")

    async def look() -> None:
        pool = BanditPool(store, Metrics(), 10)
        await pool.open_all()
        ahead[0] = 8 * DAY
        await pool.open_all()
        assert (await pool.find("kept")).name == "kept"
        with pytest.raises(StoreError, match="leapt ahead"):
            await pool.archive("kept", "7d")
        ahead[0] = 0.0
        await pool.open_all()
        assert store.names() == ["plays", "kept"]
        store.amend(0, {ERASE_AT: 1.0})
        await pool.open_all()
        await pool.close()

    asyncio.run(look())
    assert store.names() == ["kept"]
    assert [record.getMessage() for record in caplog.records].count("nothing can be erased") == 1


def test_an_archived_bandit_is_not_erased():
    """To archive one that was deleted left its erasure standing."""
    store = MemoryStore()
    ac.Bandit(["a"], window=50, store=store, name="plays")
    delete(store, "plays", "1h")
    since = store.find("plays").config[ARCHIVED]  # type: ignore[union-attr]
    assert archive(store, "plays").config[ARCHIVED] == since
    assert ERASE_AT not in store.find("plays").config  # type: ignore[union-attr]
    store.clock = lambda: since + 10 * DAY  # type: ignore[method-assign]
    assert erase_due(store) == []
    assert archive(store, "plays").config[ARCHIVED] == since


def test_a_huge_grace_is_refused(tmp_path, capsys):
    """It was stored, and after it `accrual bandits list` and `accrual keys list` failed."""
    url = f"sqlite:///{tmp_path}/plays.db"
    played(url)
    table = open_keys(url)
    row, _ = new_key("shop", ["read"], 1.0)
    table.add(row)
    table.close()
    for grace in ("99999999999y", "1" + "0" * 300 + "s", "101y"):
        for command in (["bandits", "delete", "plays"], ["keys", "rotate", row.id]):
            assert run([*command, "--grace", grace, "--store", url]) == 2
            assert f"grace must be at most 36500d, not {grace!r}" in capsys.readouterr().err
    assert run(["bandits", "delete", "plays", "--grace", "100y", "--store", url]) == 0
    assert run(["keys", "rotate", row.id, "--grace", "100y", "--store", url]) == 0
    assert run(["bandits", "list", "--store", url]) == 0
    assert run(["keys", "list", "--store", url]) == 0


# Addresses.


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:12/sEcret@db.example/plays",
        "postgresql://ann:xx/sEcret@db.example/plays",
        "postgresql://ann:xx?sEcret@db.example/plays",
        "postgresql://ann:xx#sEcret@db.example/plays",
        "postgresql://ann:xx@sEcret@db.example/plays",
        "postgresql://ann:xx@sEcret/x@db.example/plays",
        "postgresql://ann:xx[sEcret@db.example/plays",
        "postgresql://ann:sEcret",
        "postgresql:ann:sEcret@db.example/plays",
        "mysql://ann:xx?sEcret@db.example/plays",
        "postgresql://db.example/plays?password=sEcret&x",
    ],
)
def test_no_part_of_a_password_is_shown(url, capsys):
    """The driver took a part of it for the host or the port, and said so; a `?` in it showed all of it."""
    assert run(["db", "init", url]) == 2
    said = capsys.readouterr().err
    assert "sEcret" not in said
    assert "xx" not in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:a%40b:c@h/db?sslmode=require", "postgresql://ann@h/db?sslmode=require"),
        ("postgres://h1:5432,[::1]:5433/db?user=ann@corp", "postgres://h1:5432,[::1]:5433/db?user=ann@corp"),
        (
            "postgresql://ann:@/db?host=/tmp/x&sslpassword=k",
            "postgresql://ann@/db?host=/tmp/x&sslpassword=...",
        ),
        ("postgresql://", "postgresql://"),
    ],
)
def test_addresses_as_they_are_shown(url, shown):
    address = parse(url)
    assert (address.scheme, address.place, str(address)) == ("postgresql", url, shown)


# CSV.


@pytest.mark.parametrize(
    "text",
    ["=1+1", " =1+1", "\t@SUM(1)", "\u00a0+1+1", "\uff1d1+1", "\uff0b1", " \uff0dx", "\uff20x", "\nx", "-x"],
)
def test_no_cell_of_a_csv_file_begins_like_a_formula(tmp_path, text):
    write_csv(tmp_path / "a.csv", [["name", "value"], [text, -0.5]])
    with open(tmp_path / "a.csv", newline="", encoding="utf-8") as file:
        assert list(csv.reader(file)) == [["name", "value"], [f"'{text}", "-0.5"]]


def test_a_cell_of_a_csv_file_does_not_begin_a_row(tmp_path):
    write_csv(tmp_path / "a.csv", [["name"], ["a\r=1+1"], ["b\n=1+1"]])
    with open(tmp_path / "a.csv", newline="", encoding="utf-8") as file:
        assert list(csv.reader(file)) == [["name"], ["a\n=1+1"], ["b\n=1+1"]]


def test_numbers_in_a_csv_file_stay_numbers():
    same = ["-0.5", "+1e3", "-inf", -0.5, None, "jazz", "a=b", ""]
    assert [csv_cell(value) for value in same] == same
