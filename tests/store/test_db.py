"""Databases: their form, backups, checks and exports, on SQLite and on PostgreSQL."""

from __future__ import annotations

import os
import struct
from contextlib import closing
from typing import Any

import pytest
from tests.postgres import server

import accrual as ac
from accrual.cli.app import run
from accrual.core.errors import InputError
from accrual.core.features import Features
from accrual.logs.open_log import open_log
from accrual.store.address import parse
from accrual.store.admin import backup, export, restore, verify
from accrual.store.admin.verification import _CHECKS
from accrual.store.backends import make_tables, open_reader, open_store, schema_version
from accrual.store.base import AddArm, CloseDecision, NewDecisions, NewPiece, RetireArm, digest
from accrual.store.events import TABLES, select_all
from accrual.store.schema import VERSION
from accrual.store.sqlite import connect_sqlite


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    """An empty place."""
    return f"sqlite:///{tmp_path}/plays.db" if request.param == "sqlite" else server().database()


def other(url, tmp_path):
    """Another empty place, of the other kind."""
    return server().database() if url.startswith("sqlite") else f"sqlite:///{tmp_path}/other.db"


def fill(url, events=5000):
    """A bandit in rounds, and one with a clock."""
    make_tables(url)
    with ac.Bandit(["a", "b"], window=50, groups=10, policy="AgeIMED", store=url, name="rounds") as bandit:
        for _ in range(events // 500):
            made = bandit.decide(n=250)
            bandit.observe_many([d.id for d in made], [0.25] * 250, keys=[f"k{d.id}" for d in made])
            bandit.close_decision(made[0].id)
            bandit.observe(made[0].id, 0.5)  # late
        state = bandit.state()
    store = open_store(url)
    arms = [AddArm("ü", 1.0, 60.0, bytes(range(16))), AddArm("b", 2.0, 60.0)]
    clocked = store.create("clock", {"own_policy": True}, arms, False, 1e9).number
    store.append(
        clocked,
        [
            NewDecisions((0, 1), (60.0, 60.0), contexts=(bytes(8), bytes(8))),
            NewPiece(0, 0.5, age=0.0),
            CloseDecision(1),
            AddArm("late", 1.0, 60.0, bytes(16)),
        ],
        1e9 + 0.5,
    )
    store.close()
    return state


def contents(url):
    with open_reader(url) as reader:
        return {
            table: [tuple(row) for rows in reader.chunks(select_all(table)) for row in rows]
            for table in TABLES
        }


def test_copies_know_all_columns(url):
    make_tables(url)
    for table, row in TABLES.items():
        with open_reader(url) as reader:
            if url.startswith("sqlite"):
                found = [row[1] for row in next(reader.chunks(f"PRAGMA table_info({table})"))]
            else:
                query = "SELECT attname FROM pg_attribute WHERE attrelid = $1::text::regclass AND attnum > 0"
                found = [row[0] for row in next(reader.chunks(query + " ORDER BY attnum", table))]
        assert tuple(found) == row._fields


def test_opening_says_what_is_missing(url, tmp_path):
    if not url.startswith("sqlite"):
        with pytest.raises(InputError, match="accrual db init"):
            open_store(url)
    make_tables(url)
    make_tables(url)  # a second time changes nothing
    assert schema_version(url) == VERSION
    statement = "UPDATE accrual_version SET version_num = '0010'"
    if url.startswith("sqlite"):
        with closing(connect_sqlite(parse(url), "rw")) as connection:
            connection.execute(statement)
    else:
        server().execute(statement, url)
    for refused in (open_store, make_tables, lambda url: backup(url, tmp_path / "backup.db")):
        with pytest.raises(InputError, match=r"tables of schema version '0010', made by another accrual"):
            refused(url)
    assert run(["db", "init", url]) == 2


def test_a_backup_restored_is_the_same(url, tmp_path):
    """To the same kind of database and to the other; and the bandit goes on from there."""
    state = fill(url)
    file = tmp_path / "monday.db"
    backup(url, file)
    same = server().database() if not url.startswith("sqlite") else f"sqlite:///{tmp_path}/same.db"
    for target in (same, other(url, tmp_path)):
        restore(target, file)
        assert contents(target) == contents(url)
        with ac.Bandit.open(target, "rounds") as bandit:
            assert bandit.state() == state
            assert bandit.decide().id == state.decisions
        assert run(["db", "verify", target]) == 0
        with pytest.raises(InputError, match="already"):
            restore(target, file)


def test_a_backup_is_taken_while_another_writes(tmp_path):
    url = f"sqlite:///{tmp_path}/plays.db"
    with ac.Bandit(["a", "b"], window=50, store=url) as bandit:
        bandit.decide(n=10)
        assert run(["db", "backup", url, str(tmp_path / "backup.db")]) == 0
        assert run(["db", "verify", url]) == 0
    store = open_store(f"sqlite:///{tmp_path}/backup.db")
    assert store.names() == ["bandit"]
    store.close()


DAMAGE = [
    ("UPDATE head SET seq = seq + 1 WHERE bandit = 1", "heads that are not at the last event"),
    ("UPDATE head SET decisions = decisions - 1 WHERE bandit = 1", "heads that miscount"),
    ("DELETE FROM head WHERE bandit = 1", "bandits without a head"),
    ("DELETE FROM bandit WHERE number = 2", "of no bandit"),
    ("UPDATE piece SET seq = 3 WHERE bandit = 1 AND seq = 260", "positions used twice"),
    (
        "UPDATE piece SET at = 0, stated = TRUE WHERE bandit = 1 AND seq = 260",
        "events earlier than the event before",
    ),
    ("UPDATE decision SET id = 9999 WHERE bandit = 1 AND id = 7", "decisions out of order"),
    ("UPDATE decision SET at = at - 0.5 WHERE bandit = 1 AND id = 0", "decisions at a wrong round"),
    ("UPDATE decision SET arm = 5 WHERE bandit = 1 AND id = 7", "decisions for no arm"),
    ("UPDATE piece SET decision = 99999 WHERE bandit = 1 AND seq = 260", "pieces of no decision"),
    ("UPDATE change SET subject = 88888 WHERE bandit = 2 AND kind = 2", "closings of no decision"),
    ("DELETE FROM change WHERE bandit = 2 AND kind = 3", "arms without an event"),
    ("UPDATE piece SET late = NOT late WHERE bandit = 1 AND seq = 260", "pieces whose lateness is wrong"),
    ("UPDATE piece SET age = age + 1 WHERE bandit = 1 AND seq = 260", "pieces whose age"),
    (
        "DROP INDEX IF EXISTS piece_key; "
        "UPDATE piece SET decision = 0, key = 'k' WHERE bandit = 1 AND seq IN (260, 261)",
        "keys used twice",
    ),
    ("UPDATE snapshot SET seq = 999999", "snapshots beyond the end"),
]


def test_verify_finds_each_kind_of_damage(url, tmp_path):
    """Every check finds something that no other test of it could have let pass."""
    assert len(DAMAGE) == len(_CHECKS)
    fill(url, 1000)
    with open_reader(url) as reader:
        assert verify(reader) == []
    backup(url, tmp_path / "whole.db")
    for i, (statement, finding) in enumerate(DAMAGE):
        if url.startswith("sqlite"):
            place = tmp_path / f"{i}.db"
            place.write_bytes((tmp_path / "whole.db").read_bytes())
            with closing(connect_sqlite(parse(f"sqlite:///{place}"), "rw")) as connection:
                connection.execute(statement)
            with open_reader(f"sqlite:///{place}") as reader:
                found = verify(reader)
        else:
            with open_reader(url) as reader:
                inside: Any = reader  # its own transaction, which is never committed
                _damage(inside._connection, statement)
                found = verify(reader)
        assert any(finding in line for line in found), (finding, found)


def _damage(connection: Any, statement: str) -> None:
    connection.execute("ROLLBACK; BEGIN")  # the reader's own transaction cannot write
    connection.execute(statement)


def test_verify_finds_a_damaged_file_block_and_snapshot(tmp_path, capsys):
    url = f"sqlite:///{tmp_path}/plays.db"
    fill(url, 10_000)
    whole = (tmp_path / "plays.db").read_bytes()
    for statement, finding in (
        ("UPDATE block SET body = zeroblob(length(body))", "blocks of events"),
        ("UPDATE snapshot SET body = substr(body, 1, length(body) - 99)", "damaged: the snapshot"),
        ("UPDATE snapshot SET seq = seq - 1", "damaged: the snapshot"),
        ("UPDATE snapshot SET digest = sealed(bandit, seq - 1, form, body), seq = seq - 1", "not the fold"),
    ):  # fmt: skip
        with closing(connect_sqlite(parse(url), "rw")) as connection:
            sealed: Any = lambda number, seq, form, body: digest(number, seq, form.encode() + body)  # noqa: E731
            connection.create_scalar_function("sealed", sealed)
            connection.execute(statement)
        assert run(["db", "verify", url]) == 1
        assert finding in capsys.readouterr().out
        (tmp_path / "plays.db").write_bytes(whole)
    middle = len(whole) // 2 // 4096 * 4096
    (tmp_path / "plays.db").write_bytes(whole[:middle] + bytes(4096) + whole[middle + 4096 :])
    assert run(["db", "verify", url]) == 1
    assert "damaged" in capsys.readouterr().out


def test_what_is_exported_can_be_fitted(url, tmp_path):
    fill(url, 1000)
    counts = export(url, "rounds", tmp_path / "out")
    assert counts == {"decisions.parquet": 500, "pieces.parquet": 502, "arms.parquet": 2}
    with open_log(tmp_path / "out" / "decisions.parquet", tmp_path / "out" / "pieces.parquet") as log:
        assert log.query("SELECT count(*) FROM decisions") == [(500,)]
        assert log.query("SELECT sum(value) FROM pieces")[0][0] == pytest.approx(500 * 0.25 + 2 * 0.5)
    export(url, "clock", tmp_path / "clock")
    with open_log(tmp_path / "clock" / "decisions.parquet", tmp_path / "clock" / "pieces.parquet") as log:
        assert log.query("SELECT age, value FROM pieces") == [(0.0, 0.5)]


def test_arms_are_exported_with_what_is_known_about_them(url, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    features = Features({"mood": ["calm", "loud"], "live": bool, "length": (0, 9)})
    known: list[dict[str, Any]] = [{"mood": "loud", "live": True, "length": 4}, {"mood": "odd"}]
    about = [struct.pack("<3d", *features.stored(one)) for one in known]
    make_tables(url)
    store = open_store(url)
    arms = [AddArm("ü", 1.5, 60.0, about[0]), AddArm("b", 2.0, 50.0)]
    number = store.create(
        "known", {"arm_features": features.written(), "imported": 1}, arms, True, 0.0
    ).number
    store.append(number, [AddArm("late", 1.0, 60.0, about[1]), RetireArm(0)], 0.0)
    store.create("plain", {}, arms[1:], True, 0.0)
    store.close()
    for name, count in (("known", 3), ("plain", 1)):
        assert export(url, name, tmp_path / name)["arms.parquet"] == count
    table = parquet.read_table(tmp_path / "known" / "arms.parquet").to_pydict()
    assert table == {
        "number": [0, 1, 2], "name": ["ü", "b", "late"], "cap": [1.5, 2.0, 1.0], "window": [60.0, 50.0, 60.0],
        "about_mood": ["loud", None, None], "about_live": [True, None, None],
        "about_length": [4.0, None, None],
    }  # fmt: skip
    plain = parquet.read_table(tmp_path / "plain" / "arms.parquet")
    assert plain.to_pydict() == {"number": [0], "name": ["b"], "cap": [2.0], "window": [50.0]}
    names = {"number": "int64", "name": "string", "cap": "double", "window": "double"}
    assert {field.name: str(field.type) for field in plain.schema} == names


def test_wrong_commands_get_one_line(tmp_path, capsys):
    url = f"sqlite:///{tmp_path}/plays.db"
    for arguments, word in (
        (["inti", url], "Did you mean 'init'"),
        (["verify", url], "there is no file"),
        (["backup", url], "Missing argument 'FILE'"),
        (["backup", url, f"{tmp_path}/b.db"], "there is no file"),
        (["restore", url, f"{tmp_path}/none.db"], "no backup"),
        (["init", url, f"{tmp_path}/b.db"], "unexpected extra argument"),
        (["init", url, "--bandit", "a"], "No such option: --bandit"),
        (["init", "mysql://x/y"], "write sqlite:///FILE"),
        (
            ["init", "postgresql://nobody:secret@127.0.0.1:1/x"],
            "cannot open postgresql://nobody@127.0.0.1:1/x",
        ),
    ):
        assert run(["db", *arguments]) == 2
        error = capsys.readouterr().err
        assert word in error
        assert "secret" not in error
        assert error.count("\n") == 1
    assert os.listdir(tmp_path) == []
    fill(url, 500)
    assert run(["db", "export", url, str(tmp_path / "out")]) == 2
    assert "rounds, clock" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
