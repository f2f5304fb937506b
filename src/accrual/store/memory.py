"""A store in memory. It follows the rules of every store; its contents are lost when the process ends."""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeVar

from accrual.core.errors import InputError
from accrual.store.accept import Acceptance, LogLookup
from accrual.store.base import (
    AddArm,
    Answers,
    BanditRow,
    Requests,
    StoredArm,
    StoreRequest,
    amended,
    may_be_erased,
    wait_for_events,
)
from accrual.store.events import DecisionRow, Event, Events, HeadRow, columns, events_of_rows

_POLL = 0.002
_SEQ = attrgetter("seq")
_T = TypeVar("_T")


class _MemoryLog:
    """The log of one bandit."""

    def __init__(self, row: BanditRow, now: float) -> None:
        self.row = row
        self.lookup = LogLookup()
        head = HeadRow(bandit=row.number, seq=0, at=0.0 if row.rounds else now + 0.0, decisions=0, arms=0)
        self.acceptance = Acceptance(self.lookup, head, row.rounds)
        self.rows = self.acceptance.rows  # all that there have been: rows are only added

    def append(self, requests: Sequence[StoreRequest], now: float, skew: float) -> Answers:
        self.acceptance.begin(now, skew)
        return self.acceptance.accept(requests)

    def between(self, after: int, upto: int) -> list[Event]:
        """Return the events at positions beyond `after`, up to `upto`."""

        def part(rows: list[_T]) -> list[_T]:
            return rows[bisect_right(rows, after, key=_SEQ) : bisect_right(rows, upto, key=_SEQ)]

        rows = self.rows
        return events_of_rows(part(rows.decision), part(rows.piece), part(rows.change), self.lookup.arms)


class MemoryStore:
    """A store in memory, for as long as the process lives. It grows with every event.

    Examples
    --------
    >>> from accrual.store.base import NewDecisions, NewPiece
    >>> store = MemoryStore()
    >>> plays = store.create("plays", {}, [AddArm("jazz", 1.0, 80.0)], rounds=True, now=0.0)
    >>> requests = [NewDecisions((0,), (80.0,)), NewPiece(0, 0.7, age=0.0, key="a")]
    >>> store.append(plays.number, requests, now=0.0)[1].seq
    3
    """

    shared = False

    def __init__(self) -> None:
        self._logs: dict[int, _MemoryLog] = {}
        self._made = 0
        self._snapshots: dict[tuple[int, str], tuple[int, bytes]] = {}
        self._lock = threading.Lock()

    def create(self, name: str, config: Mapping[str, Any], arms: Sequence[AddArm], rounds: bool,
               now: float, history: Sequence[Requests] = ()) -> BanditRow:  # fmt: skip
        with self._lock:
            if self.find(name) is not None:
                raise InputError(f"there is a bandit {name!r} already")
            log = _MemoryLog(BanditRow(self._made, name, dict(config), rounds), now)
            for part in (Requests(arms, now), *history):
                log.append(*part)
            self._logs[self._made] = log
            self._made += 1
            return log.row

    def find(self, name: str) -> BanditRow | None:
        return next((log.row for log in [*self._logs.values()] if log.row.name == name), None)

    def names(self) -> list[str]:
        return [log.row.name for log in [*self._logs.values()]]

    def amend(self, bandit: int, changes: Mapping[str, Any]) -> BanditRow:
        with self._lock:
            log = self._log(bandit)
            log.row = log.row._replace(config=amended(log.row.config, changes))
            return log.row

    def erase(self, bandit: int, now: float) -> bool:
        with self._lock:
            log = self._logs.get(bandit)
            if log is None or not may_be_erased(log.row.config, now):
                return False
            del self._logs[bandit]
            for number, form in [*self._snapshots]:
                if number == bandit:
                    del self._snapshots[number, form]
            return True

    def _log(self, bandit: int) -> _MemoryLog:
        log = self._logs.get(bandit)
        if log is None:
            raise InputError(f"no bandit has the number {bandit}")
        return log

    def append(self, bandit: int, requests: Sequence[StoreRequest], now: float, skew: float = 0.0) -> Answers:
        with self._lock:
            return self._log(bandit).append(requests, now, skew)

    def read(self, bandit: int, after: int, limit: int) -> Events:
        log = self._log(bandit)
        with self._lock:
            return columns(log.between(after, after + limit))

    def head(self, bandit: int) -> int:
        return self._log(bandit).acceptance.seq

    def arms(self, bandit: int) -> list[StoredArm]:
        return list(self._log(bandit).lookup.arms)

    def decision(self, bandit: int, id: int) -> DecisionRow | None:
        rows = self._log(bandit).rows.decision
        return rows[id] if 0 <= id < len(rows) else None

    def contexts(self, bandit: int, first: int, count: int) -> list[bytes | None]:
        return [row.context for row in self._log(bandit).rows.decision[first : first + count]]

    def used_keys(self, bandit: int, keys: Sequence[str]) -> set[str]:
        return set(keys) & self._log(bandit).lookup.batches.keys()

    def wait(self, positions: Mapping[int, int], timeout: float) -> dict[int, int]:
        return wait_for_events(self.head, positions, timeout, _POLL)

    def save_snapshot(self, bandit: int, seq: int, form: str, body: bytes) -> None:
        self._snapshots[bandit, form] = (seq, body)

    def load_snapshot(self, bandit: int, form: str) -> tuple[int, bytes] | None:
        return self._snapshots.get((bandit, form))

    def clock(self) -> float:
        """Return this machine's time."""
        return time.time()

    def probe(self) -> None:
        """Do nothing: memory can always be stored to."""

    def close(self) -> None:
        """Do nothing: there is no connection, and a bandit that still uses the store may go on."""
