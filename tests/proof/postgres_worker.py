"""A worker process of the PostgreSQL proofs: `python -m tests.proof.postgres_worker JOB URL ...`."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import psycopg

import accrual as ac
from accrual.live.verify_snapshots import learned
from accrual.store.base import NewPiece, Status
from accrual.store.postgres.store import PostgresStore

CONNECTIONS = 16
_BATCH = 20
_THINKING = 0.01  # seconds between looking and inserting: the same for all, so that they stay in step


def pieces(own: range, raced: range, worker: int) -> list[tuple[int, float]]:
    """(number, value) of what a worker sends: its own, and those that all send, evenly among them.

    Every third raced piece has a value that depends on the worker: only one body may win.
    """
    many = max(len(own) // max(len(raced), 1), 1)
    sent = []
    for i, number in enumerate(own):
        sent.append((number, 0.5))
        if i % many == 0 and i // many < len(raced):
            shared = raced[i // many]
            sent.append((shared, 0.5 if shared % 3 else worker + 1.0))
    return sent


def race(url: str, decisions: int, sent: list[tuple[int, float]]) -> dict[str, Any]:
    """Send all, over 16 connections; what was answered to each."""
    store = PostgresStore(url, connections=CONNECTIONS)
    bandit = store.find("raced")
    assert bandit is not None
    answers: dict[str, Any] = {}

    def send(part: list[tuple[int, float]]) -> None:
        for start in range(0, len(part), _BATCH):
            items = [
                NewPiece(number % decisions, value, key=str(number))
                for number, value in part[start : start + _BATCH]
            ]
            for item, answer in zip(items, store.append(bandit.number, items, 0.0), strict=True):
                answers[str(item.key)] = [answer.status.value, answer.seq]

    _send_all(send, [(sent[i::CONNECTIONS],) for i in range(CONNECTIONS)])
    store.close()
    return answers


def race_naively(url: str, decisions: int, sent: list[tuple[int, float]]) -> dict[str, Any]:
    """The same by looking first and inserting then, with no constraint: the control."""
    answers: dict[str, Any] = {}

    def send(connection: psycopg.Connection, part: list[tuple[int, float]]) -> None:
        for number, value in part:
            key = str(number)
            with connection.transaction():
                found = connection.execute("SELECT 1 FROM naive WHERE key = %s", [key]).fetchone()
                time.sleep(_THINKING)
                if not found:
                    connection.execute("INSERT INTO naive VALUES (%s, %s)", [key, value])
            answers[key] = [Status.AGAIN.value if found else Status.STORED.value, 0]
        connection.close()

    connections = [psycopg.connect(url, autocommit=True) for _ in range(CONNECTIONS)]
    _send_all(send, [(connection, sent[i::CONNECTIONS]) for i, connection in enumerate(connections)])
    return answers


def _send_all(send: Callable[..., None], parts: Sequence[tuple[Any, ...]]) -> None:
    """Send each part in a thread of its own, all at once with the other workers."""
    threads = [threading.Thread(target=send, args=part) for part in parts]
    _start_with_all()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _start_with_all() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


def share(url: str, worker: int, rounds: int) -> dict[str, Any]:
    """Decide and observe beside other workers; then wait for all, and say what was learned."""
    bandit = ac.Bandit(["a", "b", "c"], window=40, groups=8, store=url, name="shared")
    lags, seconds, done = [], [], threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            stale = bandit.staleness
            lags.append(stale.events)
            seconds.append(stale.seconds)

    watching = threading.Thread(target=watch)
    for i in range(rounds):
        if i == 1:  # all is compiled by now
            watching.start()
        made = bandit.decide(n=5)
        bandit.observe_many(
            [d.id for d in made], [((worker + 3) * d.id % 7 + 1) / 8 for d in made], keys=[f"{worker}"] * 5
        )
    done.set()
    watching.join()
    total = int(sys.argv[5])
    while bandit._follower.position < total:  # nothing but following
        time.sleep(0.01)
    found = {name: array.tobytes().hex() for name, array in learned(bandit._follower.ledger).items()}
    bandit.close()
    return {"learned": found, "lags": lags, "seconds": seconds}


def main() -> None:
    job, url, worker, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    if job == "share":
        print(json.dumps(share(url, worker, size)))
        return
    workers, total, raced = int(sys.argv[5]), int(sys.argv[6]), int(sys.argv[7])
    each = (total - raced) // workers
    own = range(raced + worker * each, raced + (worker + 1) * each)
    sent = pieces(own, range(raced), worker)
    print(json.dumps((race if job == "race" else race_naively)(url, size, sent)))


if __name__ == "__main__":
    main()
