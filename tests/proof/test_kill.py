"""The writing process is killed, time and again, under load from clients that try again."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import accrual as ac
from accrual.store.address import sqlite_address
from accrual.store.sqlite import connect_sqlite

KILLS = [pytest.param(8, id="quick"), pytest.param(200, id="long", marks=pytest.mark.slow)]
CLIENTS = 8


class Client(threading.Thread):
    """Decides and observes, one request after the other, each until it is acknowledged."""

    def __init__(self, number: int, place: Path, stop: threading.Event) -> None:
        super().__init__()
        self.number, self.place, self.stop = number, place, stop
        self.decided: dict[int, str] = {}  # id: arm
        self.paid: dict[tuple[int, str], float] = {}  # decision and key: value
        self.retries = 0
        self.connection: Any = None

    def run(self) -> None:
        chance = random.Random(self.number)
        while not self.stop.is_set():
            id_, arm = self.ask(key=f"{self.number}-{len(self.decided)}")
            self.decided[id_] = arm
            for i in range(chance.randrange(5)):
                key, value = f"{self.number}-{i}", chance.randrange(1, 64) / 64
                self.ask(id=id_, value=value, key=key)
                self.paid[id_, key] = value
        self.connection.close()

    def ask(self, **request: Any) -> Any:
        while True:
            try:
                if self.connection is None:
                    self.connection = socket.socket(socket.AF_UNIX)
                    self.connection.connect(str(self.place))
                self.connection.sendall(json.dumps(request).encode() + b"\n")
                return json.loads(self.connection.recv(1 << 10))
            except (OSError, ValueError):  # the writer was killed: no answer, or not all of it
                self.retries += 1
                self.connection.close()
                self.connection = None


def served(clients: list[Client]) -> int:
    """How many pieces were acknowledged."""
    return sum(len(client.paid) for client in clients)


def run_and_kill(folder: Path, kills: int, mode: str) -> list[Client]:
    """Kill the writer so many times, at any moment, its start among them."""
    place, chance = folder / "socket", random.Random(kills)
    command = [sys.executable, "-m", "tests.proof.writer", str(place), f"sqlite:///{folder}/plays.db", mode]
    stop = threading.Event()
    clients = [Client(number, place, stop) for number in range(CLIENTS)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        for number in range(kills + 1):
            print("go", file=writer.stdin, flush=True)
            process = int(writer.stdout.readline())
            if number == 0:
                for client in clients:
                    client.start()
            acknowledged, patience = served(clients), time.monotonic() + 60
            while number % 4 and served(clients) == acknowledged:  # three times in four it is to be at work
                assert time.monotonic() < patience
                time.sleep(0.01)
            if number == kills:
                stop.set()
                for client in clients:
                    client.join()
            else:
                time.sleep(chance.uniform(0, 0.1))
            os.kill(process, signal.SIGKILL)
        writer.stdin.close()
    return clients


def compare(folder: Path, clients: list[Client]) -> Counter[str]:
    """What was acknowledged beside what is in the database, and beside what was learned from it."""
    decided = {id_: arm for client in clients for id_, arm in client.decided.items()}
    paid = {piece: value for client in clients for piece, value in client.paid.items()}
    with closing(connect_sqlite(sqlite_address(folder / "plays.db"), "rw")) as database:
        sound = database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        made: list[Any] = database.execute(
            "SELECT id, name FROM decision JOIN arm ON arm = number"
        ).fetchall()
        arms = dict(made)
        rows: list[Any] = database.execute("SELECT decision, key, value FROM piece").fetchall()
    with ac.Bandit.open(f"sqlite:///{folder}/plays.db") as bandit:
        learned = {arm.name: (arm.decisions, arm.observed) for arm in bandit.state().arms}
    kept = {(id_, key): value for id_, key, value in rows}
    right = {
        name: (
            sum(arm == name for arm in decided.values()),
            sum(value for (id_, _), value in kept.items() if arms[id_] == name),
        )
        for name in learned
    }
    return Counter(
        acknowledged=len(decided) + len(paid),
        retried=sum(client.retries for client in clients),
        lost=len(decided.items() - arms.items()) + len(paid.items() - kept.items()),
        twice=len(rows) - len(kept) + len(arms) - len(decided) + len(kept.keys() - paid.keys()),
        wrong=(not sound) + (learned != right),
    )


@pytest.mark.parametrize("kills", KILLS)
def test_nothing_acknowledged_is_lost_or_counted_twice(kills, tmp_path, say):
    seen = compare(tmp_path, run_and_kill(tmp_path, kills, "durable"))
    say(f"kill -9, {CLIENTS} clients: {kills}: {dict(seen)}")
    assert seen["retried"] > 0
    assert (seen["lost"], seen["twice"], seen["wrong"]) == (0, 0, 0)


@pytest.mark.parametrize("kills", KILLS)
def test_acknowledged_too_early_some_is_lost(kills, tmp_path, say):
    """The control: pieces are acknowledged before they are committed."""
    seen = compare(tmp_path, run_and_kill(tmp_path, kills, "eager"))
    say(f"kill -9, control, acknowledged before the commit: {kills}: {dict(seen)}")
    assert seen["lost"] > 0
