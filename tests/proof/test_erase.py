"""A process that erases a bandit is killed: the bandit is there as it was, or gone; the others are whole."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest
from tests.postgres import server

import accrual as ac
from accrual.store.admin import verify
from accrual.store.backends import make_tables, open_reader, open_store
from accrual.store.base import ARCHIVED, ERASE_AT, NewDecisions, NewPiece

ERASE = """
import sys, time
from accrual.store.backends import open_store
from accrual.live.archive import erase_due
store = open_store(sys.argv[1])
print("ready", flush=True)
time.sleep(float(sys.argv[2]))
print(*erase_due(store), flush=True)
time.sleep(60)
"""
KILLS = [pytest.param(2, id="quick"), pytest.param(40, id="long", marks=pytest.mark.slow)]
EVENTS = 6_000


def log_of(store, name):
    row = store.find(name)
    return None if row is None else [column.tolist() for column in store.read(row.number, 0, 10**6)]


def filled(store, name):
    """A bandit of some thousand events, and its log."""
    ac.Bandit(["a", "b"], window=50, policy="UCB1", store=store, name=name)
    number = store.find(name).number
    batch = [NewDecisions((0, 1) * 50, (50.0,) * 100), *(NewPiece(i, 0.5, key=f"k{i}") for i in range(100))]
    for _ in range(EVENTS // 200):
        store.append(number, batch, 0.0)
    return number


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
@pytest.mark.parametrize("kills", KILLS)
def test_kills_while_a_bandit_is_erased(tmp_path, kind, kills):
    url = f"sqlite:///{tmp_path}/s.db" if kind == "sqlite" else server().tables()
    if kind == "sqlite":
        make_tables(url)
    store = open_store(url)
    filled(store, "kept")
    kept, ends = log_of(store, "kept"), []
    store.close()
    for i in range(kills):
        store = open_store(url)
        if store.find("gone") is None:
            number = filled(store, "gone")
            store.amend(number, {ARCHIVED: 1.0, ERASE_AT: 2.0})
            whole = log_of(store, "gone")
        store.close()
        child = subprocess.Popen(
            [sys.executable, "-c", ERASE, url, "0.05"], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.05 + 0.02 * (i % 6))  # about as long as erasing takes
        child.send_signal(signal.SIGKILL)
        said = child.stdout.read()
        child.wait()
        child.stdout.close()
        store = open_store(url)
        found = log_of(store, "gone")
        ends.append(found is None)
        assert found in (None, whole)
        assert found is None or not said.strip()  # what was said to be erased is
        assert log_of(store, "kept") == kept
        store.close()
        with open_reader(url) as reader:
            assert verify(reader) == []
    if kills > 10:
        assert 0 < sum(ends) < kills, "the kills fell all on one side"
