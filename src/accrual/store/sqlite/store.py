"""A store in a SQLite file: one process writes, others may read.

Every append is one transaction, synced to the disk before it returns (WAL, synchronous=FULL). The tables are
the truth. Two things follow from them. Events are stored once more in blocks, some thousands in a row of the
table `block`, because reading them one row at a time would take most of a refold. Keys are in an index of
their own (`accrual.store.sqlite.key_index`). All that is read is checked (`accrual.store.sqlite.checksums`).
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from accrual.core.errors import InputError
from accrual.store.accept import Acceptance
from accrual.store.base import (
    AddArm,
    Answer,
    BanditRow,
    Requests,
    StoredArm,
    StoreError,
    StoreRequest,
    amended,
    checked_snapshot,
    digest,
    may_be_erased,
    wait_for_events,
)
from accrual.store.events import (
    PACKED,
    BanditTableRow,
    DecisionRow,
    Event,
    Events,
    HeadRow,
    events_of_rows,
    pack,
    unpack,
)
from accrual.store.sqlite.checksums import SUMS, check_list, checked_row, columns_of, damaged, seal_list
from accrual.store.sqlite.file import SQLiteFile
from accrual.store.sqlite.rows import (
    ADD,
    BLOCK,
    TableLookup,
    add_block,
    arm_rows,
    context_rows,
    decision_row,
    event_rows,
    head_row,
)

_DECISIONS_MOST = 80_000  # that are remembered; others are looked up
_POLL = 0.01

_SAVE = """
INSERT INTO snapshot (bandit, form, seq, body, digest) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (bandit, form) DO UPDATE SET seq = excluded.seq, body = excluded.body, digest = excluded.digest
WHERE length(excluded.body) > 0
"""
_BANDIT = f"SELECT {columns_of('bandit')} FROM bandit WHERE number = ?"
_HEADS = f"SELECT {columns_of('head')} FROM head"
_SET_HEAD = (
    f"UPDATE head SET {', '.join(f'{name} = ?' for name in (*HeadRow._fields, 'sum'))} WHERE bandit = ?"
)
# The greatest number of a bandit that was erased: a row of table `seal`, so that it is not given again.
_LAST_ERASED = "last erased"
_NEXT_NUMBER = (
    "SELECT max((SELECT coalesce(max(number), 0) FROM bandit), "
    "(SELECT coalesce(max(sum), 0) FROM seal WHERE name = ?)) + 1"
)
_SEAL_ERASED = (
    "INSERT INTO seal (name, sum) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET sum = max(sum, excluded.sum)"
)
_OF_BANDIT = ("head", "arm", "decision", "piece", "change", "snapshot", "block", "key_run", "key_page")
_BANDIT_SUM, _HEAD_SUM = SUMS["bandit"], SUMS["head"]


class _WriterLog:
    """What the writer remembers about a bandit's log, until a transaction fails."""

    def __init__(self, connection: sqlite3.Connection, bandit: int) -> None:
        row = connection.execute(_BANDIT, [bandit]).fetchone()
        head = head_row(connection, bandit)
        if row is None or head is None:
            raise InputError(f"no bandit has the number {bandit}")
        self.rounds = bool(checked_row("bandit", row, f"bandit {bandit}").rounds)
        self.head = head
        self.lookup = TableLookup(connection, bandit, self.head)
        (blocks,) = connection.execute(
            "SELECT coalesce(max(seq), 0) FROM block WHERE bandit = ?", [bandit]
        ).fetchone()
        self.tail: list[Event] = event_rows(connection, bandit, blocks, self.head.seq)  # in no block yet
        if len(self.tail) != self.head.seq - blocks:
            raise damaged(f"event {self.head.seq} is missing")


class SQLiteStore:
    """A store in a file.

    Parameters
    ----------
    path : str
        Made if there is none.
    readonly : bool
        Read what another process may be writing.

    Examples
    --------
    >>> import tempfile
    >>> from accrual.store.base import NewDecisions, NewPiece
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = SQLiteStore(f"{folder}/plays.db")
    ...     plays = store.create("plays", {}, [AddArm("jazz", 1.0, 80.0)], rounds=True, now=0.0)
    ...     requests = [NewDecisions((0,), (80.0,)), NewPiece(0, 0.7, age=0.0)]
    ...     _, answer = store.append(plays.number, requests, now=0.0)
    ...     store.close()
    >>> answer.seq, answer.late
    (3, False)
    """

    shared = False

    def __init__(self, path: str, readonly: bool = False) -> None:
        self._logs: dict[int, _WriterLog] = {}
        self._ends: dict[int, tuple[Any, ...]] = {}  # by bandit: the head rows that this writer may find
        self._file = SQLiteFile(path, readonly, self._logs.clear)
        if self._file.writer is not None:
            with self._file.opening():
                self._ends = {row[0]: (row,) for row in self._file.writer.execute(_HEADS)}

    def create(self, name: str, config: Mapping[str, Any], arms: Sequence[AddArm], rounds: bool,
               now: float, history: Sequence[Requests] = ()) -> BanditRow:  # fmt: skip
        with self._file.transaction() as connection:
            if _find(connection, name) is not None:
                raise InputError(f"there is a bandit {name!r} already")
            (number,) = connection.execute(_NEXT_NUMBER, [_LAST_ERASED]).fetchone()
            row = BanditTableRow(number=number, name=name, config=json.dumps(dict(config)), rounds=rounds)
            connection.execute(ADD["bandit"], (*row, _BANDIT_SUM(row)))
            start = HeadRow(bandit=number, seq=0, at=0.0 if rounds else now + 0.0, decisions=0, arms=0)
            head = (*start, _HEAD_SUM(start))
            connection.execute(ADD["head"], head)
            self._ends[number] = (head,)
            seal_list(connection, "bandit")
            for part in (Requests(arms, now), *history):
                self._append(connection, number, *part)
            return BanditRow(number, name, dict(config), rounds)

    def find(self, name: str) -> BanditRow | None:
        return self._file.read(lambda connection: _find(connection, name))

    def names(self) -> list[str]:
        return self._file.read(_names)

    def amend(self, bandit: int, changes: Mapping[str, Any]) -> BanditRow:
        with self._file.transaction() as connection:
            row = _bandit_row(connection, bandit)
            if row is None:
                raise InputError(f"no bandit has the number {bandit}")
            config = amended(json.loads(row.config), changes)
            new = row._replace(config=json.dumps(config))
            values = [new.config, _BANDIT_SUM(new), bandit]
            connection.execute("UPDATE bandit SET config = ?, sum = ? WHERE number = ?", values)
            seal_list(connection, "bandit")
            return BanditRow(bandit, row.name, config, bool(row.rounds))

    def erase(self, bandit: int, now: float) -> bool:
        with self._file.transaction() as connection:
            row = _bandit_row(connection, bandit)
            if row is None or not may_be_erased(json.loads(row.config), now):
                return False
            connection.execute("PRAGMA secure_delete = ON")  # zeros in place of what was there
            for table in _OF_BANDIT:
                connection.execute(f"DELETE FROM {table} WHERE bandit = ?", [bandit])
            connection.execute("DELETE FROM bandit WHERE number = ?", [bandit])
            connection.execute("PRAGMA secure_delete = OFF")
            connection.execute(_SEAL_ERASED, (_LAST_ERASED, bandit))
            seal_list(connection, "bandit")
            self._logs.pop(bandit, None)
            self._ends.pop(bandit, None)
        self._file.checkpoint()  # the write-ahead log still has the events
        return True

    def append(
        self, bandit: int, requests: Sequence[StoreRequest], now: float, skew: float = 0.0
    ) -> list[Answer]:
        with self._file.transaction() as connection:
            return self._append(connection, bandit, requests, now, skew)

    def _append(
        self,
        connection: sqlite3.Connection,
        bandit: int,
        requests: Sequence[StoreRequest],
        now: float,
        skew: float,
    ) -> list[Answer]:
        end = connection.execute(f"{_HEADS} WHERE bandit = ?", (bandit,)).fetchone()
        if end not in self._ends.get(bandit, (None,)):
            raise StoreError(
                "another process has written to it, and only one may; stop both, then start one again"
            )
        log = self._log(connection, bandit)
        lookup = log.lookup
        acceptance = Acceptance(lookup, log.head, log.rounds)
        acceptance.begin(now, skew)
        lookup.begin()
        answers = acceptance.accept(requests)
        rows, head = acceptance.rows, acceptance.head
        if head.seq == log.head.seq:
            return answers
        for table, new in rows._asdict().items():
            if new:
                row_sum = SUMS[table]
                connection.executemany(ADD[table], [(*row, row_sum(row)) for row in new])
        lookup.add_keys(rows)
        lookup.index.flush(head.seq)
        log.head = head
        new_end = (*head, _HEAD_SUM(head))
        connection.execute(_SET_HEAD, (*new_end, bandit))
        self._ends[bandit] = (end, new_end)  # the transaction may still fail
        log.tail += events_of_rows(rows.decision, rows.piece, rows.change, lookup.arms)
        if len(log.tail) >= BLOCK:
            add_block(connection, bandit, head.seq, log.tail)
            log.tail = []
        if len(lookup.decisions) > _DECISIONS_MOST:
            recent = islice(lookup.decisions.items(), len(lookup.decisions) // 2, None)
            lookup.decisions = dict(recent)
        return answers

    def _log(self, connection: sqlite3.Connection, bandit: int) -> _WriterLog:
        log = self._logs.get(bandit)
        if log is None:
            log = self._logs[bandit] = _WriterLog(connection, bandit)
        return log

    def read(self, bandit: int, after: int, limit: int) -> Events:
        return self._file.read(lambda connection: _events(connection, bandit, after, limit))

    def head(self, bandit: int) -> int:
        return self._file.read(lambda connection: _head(connection, bandit))

    def arms(self, bandit: int) -> list[StoredArm]:
        return self._file.read(lambda connection: arm_rows(connection, bandit))

    def decision(self, bandit: int, id: int) -> DecisionRow | None:
        def find(connection: sqlite3.Connection) -> DecisionRow | None:
            head = head_row(connection, bandit)
            made = 0 if head is None else head.decisions
            return decision_row(connection, bandit, id) if 0 <= id < made else None

        return self._file.read(find)

    def contexts(self, bandit: int, first: int, count: int) -> list[bytes | None]:
        return self._file.read(lambda connection: context_rows(connection, bandit, first, count))

    def used_keys(self, bandit: int, keys: Sequence[str]) -> set[str]:
        with self._file.transaction() as connection:  # the index of keys is the writer's
            lookup = self._log(connection, bandit).lookup
            return {key for key in keys if lookup.find_batch(key) is not None}

    def wait(self, positions: Mapping[int, int], timeout: float) -> dict[int, int]:
        return wait_for_events(self.head, positions, timeout, _POLL)

    def save_snapshot(self, bandit: int, seq: int, form: str, body: bytes) -> None:
        sum_ = digest(bandit, seq, form.encode() + body)
        with self._file.transaction() as connection:
            for given in (body, b""):  # the second changes nothing, but frees the memory of the first
                connection.execute(_SAVE, [bandit, form, seq, given, sum_])

    def load_snapshot(self, bandit: int, form: str) -> tuple[int, bytes] | None:
        found = self._file.read(lambda connection: connection.execute(
            "SELECT seq, body, digest FROM snapshot WHERE bandit = ? AND form = ?", [bandit, form]
        ).fetchone())  # fmt: skip
        return None if found is None else checked_snapshot(bandit, form, found)

    def clock(self) -> float:
        """Return this machine's time."""
        return time.time()

    def probe(self) -> None:
        with self._file.transaction() as connection:
            for _ in range(2):  # there and back: SQLite does not write a row that stays as it is
                connection.execute("UPDATE seal SET sum = ~sum")

    def close(self) -> None:
        """Close the connections to the file, and let other processes write to it."""
        self._file.close()


def _find(connection: sqlite3.Connection, name: str) -> BanditRow | None:
    row = connection.execute(f"SELECT {columns_of('bandit')} FROM bandit WHERE name = ?", [name]).fetchone()
    if row is None:
        check_list(connection, "bandit")  # it may have been there
        return None
    bandit: BanditTableRow = checked_row("bandit", row, f"the bandit {name!r}")
    if bandit.name != name:
        raise damaged(f"the bandit {name!r} (index of table bandit)")
    return BanditRow(bandit.number, name, json.loads(bandit.config), bool(bandit.rounds))


def _bandit_row(connection: sqlite3.Connection, number: int) -> BanditTableRow | None:
    row = connection.execute(_BANDIT, [number]).fetchone()
    return None if row is None else checked_row("bandit", row, f"bandit {number}")


def _names(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute(f"SELECT {columns_of('bandit')} FROM bandit NOT INDEXED ORDER BY 1").fetchall()
    if all(_BANDIT_SUM(row[:-1]) == row[-1] for row in rows):
        check_list(connection, "bandit")  # one may be missing; a damaged one is refused when it is opened
    name = BanditTableRow._fields.index("name")
    return [row[name] for row in rows]


def _head(connection: sqlite3.Connection, bandit: int) -> int:
    head = head_row(connection, bandit)
    return 0 if head is None else head.seq


def _events(connection: sqlite3.Connection, bandit: int, after: int, limit: int) -> Events:
    upto = min(after + limit, _head(connection, bandit))  # positions have no gaps here
    after = min(after, upto)
    parts, last = [], after
    for seq, body, was in connection.execute(
        "SELECT seq, body, digest FROM block WHERE bandit = ? AND seq > ? ORDER BY seq", [bandit, after]
    ):
        if digest(bandit, seq, body) != was:
            raise damaged(f"the block of events up to {seq}")
        parts.append(np.frombuffer(body, PACKED))
        last = seq
        if last >= upto:
            break
    if last < upto:
        parts.append(pack(event_rows(connection, bandit, last, upto)))
    if not parts:
        return unpack(np.zeros(0, PACKED))
    first = int(parts[0]["seq"][0])
    found = unpack(np.concatenate(parts)[after + 1 - first : upto + 1 - first])
    wrong = found.seq != np.arange(after + 1, after + 1 + len(found.seq))
    if wrong.any() or len(found.seq) != max(upto - after, 0):
        raise damaged(f"event {after + 1 + int(np.argmax(wrong)) if wrong.any() else upto} is missing")
    return found
