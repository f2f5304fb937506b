"""PostgreSQL fails under load, time and again, while clients try again: what was acknowledged stays."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import psycopg
import pytest
from tests.postgres import Server

import accrual as ac
from accrual.core.errors import InputError
from accrual.live.verify_snapshots import learned, refold, same_bits
from accrual.store.address import parse
from accrual.store.admin import verify
from accrual.store.backends import open_reader, open_store
from accrual.store.base import NewPiece, StoreError
from accrual.store.postgres.connection import connect
from accrual.store.postgres.log import append

FAILURES = [pytest.param(2, id="quick"), pytest.param(20, id="long", marks=pytest.mark.slow)]

CLIENTS = 8
WORKERS = 2


class Client(threading.Thread):
    """Decides and observes, each until it is acknowledged."""

    def __init__(self, number: int, bandit: ac.Bandit, stop: threading.Event) -> None:
        super().__init__()
        self.number, self.bandit, self.stop = number, bandit, stop
        self.decided: dict[str, tuple[int, str]] = {}
        self.paid: dict[tuple[int, str], float] = {}
        self.retries = 0

    def run(self) -> None:
        chance = random.Random(self.number)
        while not self.stop.is_set():
            key = f"{self.number}-{len(self.decided)}"
            decision = self.until_answered(lambda key=key: self.bandit.decide(key=key))
            self.decided[key] = (decision.id, decision.arm)
            for i in range(chance.randrange(4)):
                value, name = chance.randrange(1, 64) / 64, f"{self.number}-{i}"
                self.until_answered(
                    lambda id=decision.id, value=value, name=name: self.bandit.observe(id, value, key=name)
                )
                self.paid[decision.id, name] = value

    def until_answered(self, request: Any) -> Any:
        while True:
            try:
                return request()
            except StoreError:
                self.retries += 1
                time.sleep(0.02)


@pytest.fixture(scope="module")
def durable():
    """A server of its own, to be ill-treated; it syncs."""
    return Server(durable=True)


@pytest.mark.parametrize("failures", FAILURES)
def test_nothing_acknowledged_is_lost(durable, failures, say):
    """Backends are killed, and the server is restarted in immediate mode."""
    url = durable.tables()
    caps = dict.fromkeys("abc", 100.0)  # more than any decision is paid here
    bandits = [ac.Bandit(caps, window=50, groups=10, store=url) for _ in range(WORKERS)]
    bandits[0].decide()  # compiled before the clock runs
    stop = threading.Event()
    clients = [Client(i, bandits[i % WORKERS], stop) for i in range(CLIENTS)]
    for client in clients:
        client.start()
    killed = 0
    for _ in range(failures):
        for _ in range(3):
            time.sleep(0.2)
            killed += durable.kill_backends()
        time.sleep(0.3)
        durable.crash()
    time.sleep(0.5)
    stop.set()
    for client in clients:
        client.join()

    store = open_store(url)
    row = store.find("bandit")
    assert row is not None
    names = [arm.name for arm in store.arms(row.number)]
    decided = {f"{key}": answer for client in clients for key, answer in client.decided.items()}
    paid = {key: value for client in clients for key, value in client.paid.items()}
    kept = {
        (row[0], row[1]): row[2] for row in durable.execute("SELECT decision, key, value FROM piece", url)
    }
    made = {
        row[0]: (row[1], names[row[2]])
        for row in durable.execute("SELECT key, id, arm FROM decision WHERE key IS NOT NULL", url)
    }
    assert paid == {key: kept[key] for key in paid}
    assert decided == {key: made[key] for key in decided}
    # Nothing is there twice, and nothing that nobody sent: what was not acknowledged was being retried.
    assert len(kept) == len(paid)
    assert len(made) == len(decided)
    with open_reader(url) as reader:
        assert verify(reader) == []
    # Both workers went on, and have learned what the log says.
    for bandit in bandits:
        bandit.catch_up()
        whole = refold(store, row, bandit._config.ledger(), store.head(row.number))
        assert same_bits(learned(bandit._follower.ledger), learned(whole))
        bandit.close()
    store.close()
    retries = sum(client.retries for client in clients)
    assert retries > 0
    say(
        f"PostgreSQL, {failures} immediate restarts and {killed} backends killed under {CLIENTS} clients "
        f"on {WORKERS} workers: {len(decided) + len(paid):,} acknowledged, {retries:,} retries, 0 lost, "
        "0 doubled"
    )


def test_control_acknowledged_before_the_commit(durable, say):
    """The same check finds what is lost if the acknowledgement comes first."""
    url = durable.tables()
    with ac.Bandit(["a", "b"], window=50, store=url) as bandit:
        bandit.decide()
        number = bandit._row.number
    acknowledged: list[str] = []

    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            try:
                with connect(parse(url)) as connection:
                    while not stop.is_set():
                        key = f"k{len(acknowledged)}"
                        with connection.transaction():
                            append(connection, number, [NewPiece(0, 1.0, key=key)], 0.0, 0.0)
                            acknowledged.append(key)
                            time.sleep(0.01)  # most kills fall here
            except (InputError, psycopg.Error):
                time.sleep(0.02)

    writing = threading.Thread(target=write)
    writing.start()
    for _ in range(10):
        time.sleep(0.3)
        durable.kill_backends()
    stop.set()
    writing.join()
    kept = {row[0] for row in durable.execute("SELECT key FROM piece", url)}
    lost = len(set(acknowledged) - kept)
    assert lost > 0
    say(f"control, acknowledged before the commit: {lost} of {len(acknowledged):,} lost")
