"""Every store passes the published suite; and what is particular to PostgreSQL."""

from __future__ import annotations

import threading
import time
from contextlib import closing, suppress

import numpy as np
import psycopg
import pytest
from tests.postgres import server

import accrual as ac
from accrual.store.base import NewDecisions, NewPiece, StoreClosed, StoreError
from accrual.store.memory import MemoryStore
from accrual.store.postgres import connection as connections
from accrual.store.postgres import store as stores
from accrual.store.postgres.notifications import Notifications
from accrual.store.postgres.store import PostgresStore
from accrual.store.sqlite.store import SQLiteStore
from accrual.testing import StoreSuite
from accrual.testing.acceptance import JAZZ


class TestMemory(StoreSuite):
    durable = False

    def open_store(self, place):
        return MemoryStore()


class TestSQLite(StoreSuite):
    def open_store(self, place):
        return SQLiteStore(place / "plays.db")


class TestPostgres(StoreSuite):
    def open_store(self, place):
        note = place / "url"
        if not note.exists():
            note.write_text(server().tables())
        return PostgresStore(note.read_text())


@pytest.fixture
def pair():
    """Two stores on one PostgreSQL, with a bandit, as two workers have it."""
    url = server().tables()
    stores = [PostgresStore(url) for _ in range(2)]
    bandit = stores[0].create("plays", {}, [JAZZ], True, 0.0).number
    yield (*stores, bandit)
    for store in stores:
        store.close()


def after(seconds, store, bandit):
    timer = threading.Timer(seconds, store.append, (bandit, [NewDecisions((0,), (80.0,))], 0.0))
    timer.start()
    return timer


def test_another_worker_is_told(pair, monkeypatch):
    monkeypatch.setattr(stores, "_POLL", 60.0)  # so that only a notification helps
    one, two, bandit = pair
    timer = after(0.5, one, bandit)
    assert two.wait({bandit: 1}, timeout=30.0)
    timer.join()


def test_another_worker_finds_out_if_it_is_not_told(pair, monkeypatch):
    monkeypatch.setattr(Notifications, "_hear", lambda *_: None)
    one, two, bandit = pair
    timer = after(0.2, one, bandit)
    assert two.wait({bandit: 1}, timeout=30.0)
    timer.join()


def test_connections_come_back(pair):
    """Reading goes on; an append fails at most once for each connection that was lost, and loses nothing."""
    one, _, bandit = pair
    for i in range(5):
        server().kill_backends()
        assert one.head(bandit) >= 1
        server().kill_backends()
        for _ in range(10):
            try:
                answer = one.append(bandit, [NewDecisions((0,), (80.0,), key=f"{i}")], 0.0)[0]
                break
            except StoreError:
                continue
        assert answer.number == i
    assert len(one.read(bandit, 0, 100).seq) == 6


def test_an_append_whose_fate_is_unknown_raises(pair):
    """The head is locked by another; the connection is lost while the append waits."""
    one, _, bandit = pair
    with closing(psycopg.connect(one._address.place)) as connection:
        connection.execute("SELECT * FROM head FOR UPDATE")
        killer = threading.Timer(0.5, server().kill_backends)
        killer.start()
        with pytest.raises(StoreError):
            one.append(bandit, [NewPiece(0, 1.0, key="k")], 0.0)
        killer.join()


def test_a_worker_that_stops_within_an_append_holds_up_nobody_for_long(monkeypatch):
    settings = connections._SETTINGS.replace("'20s'", "'500ms'")
    monkeypatch.setattr(connections, "_SETTINGS", settings)
    url = server().tables()
    stopped, other = PostgresStore(url), PostgresStore(url)
    bandit = stopped.create("plays", {}, [JAZZ], True, 0.0).number
    with suppress(StoreError), stopped._connection() as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT * FROM head FOR UPDATE")
        assert other.append(bandit, [NewDecisions((0,), (80.0,))], 0.0)[0].seq == 2
        with pytest.raises(psycopg.Error, match="idle-in-transaction"):
            connection.execute("COMMIT")
    stopped.close()
    other.close()


def test_sessions_are_durable_and_read_committed():
    """Whatever the database's own defaults are."""
    url = server().tables() + "%20-csynchronous_commit%3Doff%20-cdefault_transaction_isolation%3Dserializable"
    store = PostgresStore(url)
    assert store._rows("SHOW synchronous_commit")[0][0] == "on"
    assert store._rows("SHOW transaction_isolation")[0][0] == "read committed"
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.names()


def test_waiting_for_events_ends_when_the_store_is_closed():
    store = PostgresStore(server().tables())
    bandit = store.create("plays", {}, [JAZZ], False, 0.0).number
    told: list[type] = []

    def wait():
        try:
            store.wait({bandit: store.head(bandit)}, 60.0)
        except StoreError as error:
            told.append(type(error))

    waiting = threading.Thread(target=wait)
    waiting.start()
    time.sleep(0.2)
    store.close()
    waiting.join(10)
    assert told == [StoreClosed]


def test_following_ends_with_the_store():
    before = set(threading.enumerate())
    bandit = ac.Bandit(["jazz"], 80, store=server().tables())
    bandit.follow()
    bandit._store.close()
    end = time.monotonic() + 10
    while set(threading.enumerate()) - before and time.monotonic() < end:
        time.sleep(0.05)
    assert set(threading.enumerate()) <= before


def test_only_index_lookups_while_the_tables_grow():
    """A connection that made its plans on empty tables still looks for keys in an index later."""
    url = server().tables()

    def scans_and_rows_read():
        counters = "idx_scan + seq_scan, idx_tup_fetch + seq_tup_read FROM pg_stat_user_tables"
        where = "relid = 'piece'::regclass"
        return np.array(tuple(server().execute(f"SELECT {counters} WHERE {where}", url)[0]))

    before = scans_and_rows_read()
    store = PostgresStore(url)
    bandit = store.create("plays", {}, [JAZZ], False, 0.0).number
    store.append(
        bandit, [NewDecisions((0,) * 1000, (80.0,) * 1000), NewPiece(0, 0.5)], 0.0
    )  # makes its plans now
    for batch in range(12):
        store.append(bandit, [NewPiece(i, 0.5, key=f"{batch}") for i in range(1000)], 0.0)
    store.close()
    give_up = time.monotonic() + 60
    while (since := scans_and_rows_read() - before)[0] < 12:
        assert time.monotonic() < give_up, "PostgreSQL did not write its statistics down"
        time.sleep(0.05)
    # No key is there before its piece, so the lookups find nothing; a plan for empty tables read 66,000 rows.
    assert since[1] < 1000
