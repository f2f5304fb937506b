"""kill -9 through the front: what was acknowledged is there, once; with many clients that try again."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from tests.serving import Process

from accrual.client import Client, Piece


class Sender(threading.Thread):
    """A client that never gives up. What it was told is in `ids` and `pieces`."""

    def __init__(self, url: str, part: int, stop: threading.Event) -> None:
        super().__init__()
        self._url, self._part, self._stop_now = url, part, stop
        self.ids: list[int] = []
        self.pieces: list[tuple[int, str]] = []
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            with Client(self._url, attempts=10_000, timeout=300) as client:
                i = 0
                while not self._stop_now.is_set():
                    i += 1
                    made = client.decide("plays", key=f"{self._part}-{i}")
                    self.ids.append(made.id)
                    keys = [f"{self._part}-{i}-{j}" for j in range(4)]
                    assert client.observe("plays", made.id, 0.5, key=keys[0]).status in ("stored", "again")
                    batch = [Piece(made.id, 0.25, age=0, key=key) for key in keys[1:]]
                    results = client.observe_many("plays", batch)
                    assert {result.status for result in results} <= {"stored", "again"}
                    self.pieces += [(made.id, key) for key in keys]
        except Exception as error:
            self.error = error


def killed(folder: Path, kills: int, store: str | None = None, *options: str) -> tuple[int, int]:
    """Kill a service under load `kills` times. How many events were acknowledged, and how many kept."""
    process = Process(folder, *options, store=store)
    service = process.ready()
    port = service.port
    service.post("/v1/bandits", {"name": "plays", "arms": ["a", "b"], "window": 100_000})
    stop = threading.Event()
    senders = [Sender(service.url, part, stop) for part in range(8)]
    for sender in senders:
        sender.start()
    try:
        for i in range(kills):
            before = sum(len(sender.pieces) for sender in senders)
            while sum(len(sender.pieces) for sender in senders) < before + 8:
                time.sleep(0.01)
                assert not any(sender.error for sender in senders)
            time.sleep(0.003 * (i % 7))  # not always at the same point of a transaction
            process.kill()
            process = Process(folder, *options, store=store, port=port)
        process.ready()
    finally:
        stop.set()
        for sender in senders:
            sender.join()
    service = process.service
    events = service.events()
    state = service.get("/v1/bandits/plays/state").json()
    process.stop()
    assert not any(sender.error for sender in senders), [sender.error for sender in senders]

    ids = [id_ for sender in senders for id_ in sender.ids]
    decisions = [event["decision"] for event in events if event["kind"] == "decision"]
    assert len(set(ids)) == len(ids), "two clients were given the same decision"
    assert decisions == list(range(len(decisions)))
    assert set(ids) <= set(decisions), "an acknowledged decision was lost"
    pieces = sum(event["kind"] == "piece" for event in events)
    acknowledged = sum(len(sender.pieces) for sender in senders)
    extra = 8 * 5  # each client may have had one decision with its pieces under way at the end
    assert acknowledged <= pieces <= acknowledged + extra, "lost, or counted twice"
    assert len(ids) <= len(decisions) <= len(ids) + 8
    assert state["decisions"] == len(decisions)
    return acknowledged + len(ids), len(events) - 2


def test_killed_three_times(tmp_path):
    told, kept = killed(tmp_path, kills=3)
    assert kept >= told > 20
