"""A store in memory: the same rules, and nothing durable. For notebooks and tests."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from accrual.core.errors import InputError
from accrual.store.accept import Acceptance, Book, Head
from accrual.store.base import AddArm, Answer, ArmRow, BanditRow, DecisionRow, Events, Item
from accrual.store.columns import Event, columns, merged

_POLL = 0.002


class _Log:
    """One bandit's."""

    def __init__(self, row: BanditRow) -> None:
        self.row = row
        self.book = Book()
        self.head = Head(0, 0.0, 0)
        self.events: list[Event] = []  # that of position seq is number seq - 1
        self.seen: list[
            tuple[int, int]
        ] = []  # of each decision: its position, and how far its chooser had read

    def append(self, items: Sequence[Item], now: float, skew: float) -> list[Answer]:
        taking = Acceptance(self.book, self.head, now, skew, self.row.rounds)
        answers = taking.accept(items)
        self.head = taking.head
        self.events += merged(taking.rows, self.book.arms)
        self.seen += [(row[1], row[5]) for row in taking.rows.decisions]
        return answers


class MemoryStore:
    """Keeps bandits and their logs for as long as the process lives. It grows with every event.

    Examples
    --------
    >>> from accrual.store.base import Choose, Pay
    >>> store = MemoryStore()
    >>> plays = store.create("plays", {}, [AddArm("jazz", 1.0, 80.0)], rounds=True, now=0.0)
    >>> store.append(plays.number, [Choose((0,), (80.0,)), Pay(0, 0.7, age=0.0, key="a")], now=0.0)[1].seq
    3
    """

    def __init__(self) -> None:
        self._logs: list[_Log] = []
        self._snapshots: dict[tuple[int, str], tuple[int, bytes]] = {}
        self._lock = threading.Lock()

    def create(self, name: str, config: Mapping[str, Any], arms: Sequence[AddArm], rounds: bool,
               now: float) -> BanditRow:  # fmt: skip
        with self._lock:
            if any(log.row.name == name for log in self._logs):
                raise InputError(f"there is a bandit {name!r} already")
            log = _Log(BanditRow(len(self._logs), name, dict(config), rounds))
            log.append(arms, now, 0.0)
            self._logs.append(log)
            return log.row

    def find(self, name: str) -> BanditRow | None:
        return next((log.row for log in self._logs if log.row.name == name), None)

    def names(self) -> list[str]:
        return [log.row.name for log in self._logs]

    def append(self, bandit: int, items: Sequence[Item], now: float, skew: float = 0.0) -> list[Answer]:
        with self._lock:
            return self._logs[bandit].append(items, now, skew)

    def read(self, bandit: int, after: int, limit: int) -> Events:
        return columns(self._logs[bandit].events[after : after + limit])

    def head(self, bandit: int) -> int:
        return self._logs[bandit].head.seq

    def arms(self, bandit: int) -> list[ArmRow]:
        return list(self._logs[bandit].book.arms)

    def decision(self, bandit: int, id: int) -> DecisionRow | None:
        log = self._logs[bandit]
        if not 0 <= id < len(log.seen):
            return None
        seq, seen = log.seen[id]
        _, _, at, _, arm, _, window = log.events[seq - 1]
        return DecisionRow(id, seq, arm, at, window, seen)

    def wait(self, bandit: int, after: int, timeout: float) -> bool:
        end = time.monotonic() + timeout
        while self.head(bandit) <= after:
            if time.monotonic() >= end:
                return False
            time.sleep(_POLL)
        return True

    def save_snapshot(self, bandit: int, seq: int, form: str, body: bytes) -> None:
        self._snapshots[bandit, form] = (seq, body)

    def load_snapshot(self, bandit: int, form: str) -> tuple[int, bytes] | None:
        return self._snapshots.get((bandit, form))

    def close(self) -> None:
        """Nothing to let go of: what was kept stays for those who still have the store."""
