"""A store from before there were propensities: upgraded, it keeps all and says that none was recorded."""

import asyncio
import sqlite3
from contextlib import closing

import asyncpg
import numpy as np
import pytest
from tests.postgres import server

import accrual as ac
from accrual.store import checksums, migrate
from accrual.store.address import parse
from accrual.store.admin.readers import open_reader
from accrual.store.events import PACKED, TABLES, block_events, select_all
from accrual.store.sqlite import store

NEWER = {"propensity", "context", "stream", "declared", "about"}  # columns that revision 0005 does not have


def filled(url):
    """A store of the newest form, of a bandit without a floor."""
    migrate.upgrade(url)
    with ac.Bandit(["a", "b"], window=20, store=url, seed=3) as bandit:
        for _ in range(10):
            made = bandit.decide(n=10)
            bandit.observe_many([one.id for one in made[::2]], [1.0] * 5, keys=[f"k{i}" for i in range(5)])
        return bandit.state()


def upgrade_to(url, revision, monkeypatch):
    statements = migrate.missing
    with monkeypatch.context() as patch:
        patch.setattr(migrate, "NEEDED", revision)
        patch.setattr(migrate, "missing", lambda kind, found, at: statements(kind, found, at, revision))
        migrate.upgrade(url)
    assert migrate.current(url) == revision


def old_rows(url):
    """The rows of each table, without the columns that came later; snapshots had another form."""
    with open_reader(url) as reader:
        for table, row in TABLES.items():
            if table == "snapshot":
                continue
            kept = [place for place, name in enumerate(row._fields) if name not in NEWER]
            names = [f'"{row._fields[place]}"' for place in kept]
            rows = [row for rows in reader.chunks(select_all(table)) for row in rows]
            yield table, names, [tuple(row[place] for place in kept) for row in rows], rows


def write_sqlite(new, old):
    """With the checksums of that time; and with blocks of events as they were, with two columns less."""
    older = np.dtype([(name, PACKED[name]) for name in (PACKED.names or ())[:-2]])
    with (
        closing(sqlite3.connect(parse(old).place)) as file,
        closing(sqlite3.connect(parse(new).place)) as had,
    ):
        for table, names, rows, whole in old_rows(new):
            insert = f"INSERT INTO {table} ({', '.join(names)}, sum) VALUES ({'?, ' * len(names)}?)"
            for row, all_ in zip(rows, whole, strict=True):
                file.execute(insert, [*row, checksums.SUMS[table](all_)])
        for bandit, seq, body in had.execute("SELECT bandit, seq, body FROM block").fetchall():
            events = np.zeros(len(block_events(body, seq)), older)
            for name in older.names or ():
                events[name] = block_events(body, seq)[name]
            bytes_ = events.tobytes()
            values = (bandit, seq, bytes_, checksums.digest(bandit, seq, bytes_))
            file.execute("INSERT INTO block (bandit, seq, body, digest) VALUES (?, ?, ?, ?)", values)
        file.execute("DELETE FROM seal")
        file.executemany(
            "INSERT INTO seal VALUES (?, ?)", had.execute("SELECT name, sum FROM seal").fetchall()
        )
        file.commit()


def write_postgres(new, old):
    async def copy():
        connection = await asyncpg.connect(old)
        for table, names, rows, _ in old_rows(new):
            marks = ", ".join(f"${i + 1}" for i in range(len(names)))
            await connection.executemany(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})", rows)
        await connection.close()

    asyncio.run(copy())


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_an_old_store_says_that_no_propensity_was_recorded(kind, tmp_path, monkeypatch):
    if kind == "sqlite":
        new, old = (f"sqlite:///{tmp_path}/{name}.db" for name in ("new", "old"))
    else:
        new, old = server().database(), server().database()
    monkeypatch.setattr(store, "_BLOCK", 100)
    state = filled(new)
    upgrade_to(old, "0005", monkeypatch)
    (write_sqlite if kind == "sqlite" else write_postgres)(new, old)
    with pytest.raises(ac.InputError, match="accrual db upgrade"):
        ac.Bandit.open(old)
    migrate.upgrade(old)
    with ac.Bandit.open(old) as bandit:
        assert bandit.state() == state
        said = bandit.state().verdict
        assert said.outcome == "cannot_tell"
        assert said.sentence.endswith("No propensity was recorded before, for 80 decisions.")
        again = bandit.observe(90, 1.0, key="k0")
        assert again.status.value == "again"
        assert bandit.observe(91, 0.5, age=1.0).status.value == "stored"
    with ac.Bandit.open(old, floor=0.2) as bandit:
        said = bandit.state().verdict
        assert said.sentence == (
            "No verdict yet: no decision with a recorded propensity, made among the arms now in play, has "
            "closed. No propensity was recorded before, for 80 decisions."
        )
        bandit.decide(n=50)
        assert (bandit.state().verdict.scored, bandit.state().verdict.skipped) == (30, 100)
