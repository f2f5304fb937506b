"""Save what is sound in a damaged SQLite file: the log of every bandit up to its first damaged event."""

from __future__ import annotations

import heapq
import json
import math
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from accrual.core.errors import InputError
from accrual.core.files import replacing
from accrual.store.address import Address, sqlite_address
from accrual.store.base import StoreDamaged, StoreError
from accrual.store.events import ArmRow, BanditTableRow, HeadRow, KeyTableRow, Kind, insert_into
from accrual.store.schema import check_version
from accrual.store.sqlite.checksums import check_list, checked_row, columns_of
from accrual.store.sqlite.file import check_place, connect_sqlite, make_tables, version_of
from accrual.store.sqlite.lock import SQLITE_ERRORS, FileLock
from accrual.store.sqlite.rows import complete_file

_LOG = ("piece", "decision", "change")  # the tables whose rows are events
_CHUNK = 10_000  # rows
_LOST_KEY = KeyTableRow(
    id="recovered", name="stands for keys that were damaged", scopes="", digest=b"", made=0.0, ends=0.0
)


def recover_file(address: Address, path: str | os.PathLike[str], until: float | None) -> list[str]:
    """Write what is sound in a damaged SQLite file to a new one; see `accrual.store.admin.recover`."""
    if not os.path.isfile(address.place):
        raise InputError(f"there is no file at {address.place}")
    check_place(path, replace=False)
    lock = FileLock(address.place, f"{address} is open for writing; stop what is writing to it first")
    try:
        with tempfile.TemporaryDirectory(dir=Path(os.path.realpath(path)).parent) as folder:
            copy = Path(folder) / "damaged.db"
            for end in ("", "-wal"):
                with suppress(FileNotFoundError):
                    shutil.copyfile(os.path.realpath(address.place) + end, f"{copy}{end}")
            with replacing(path) as partial:
                report = _save(sqlite_address(copy), address, partial, until)
            return report
    finally:
        lock.release()


def _save(copy: Address, shown: Address, to: Path, until: float | None) -> list[str]:
    report = []
    make_tables(sqlite_address(to))
    with (
        closing(connect_sqlite(copy, "rw")) as source,
        closing(connect_sqlite(sqlite_address(to), "rw")) as target,
    ):
        check_version(version_of(source, shown), shown)
        target.execute("BEGIN")
        bandits, whole = _rows(source, "bandit", "1 = 1", "1")
        for bandit in bandits:
            limit = math.inf if until is None or bandit.rounds else until
            saved, ended = _log(source, target, bandit, limit)
            rest = "all of them" if ended is None else f"up to this: {ended}"
            said = f"{saved:,} events, {rest}" if saved else f"lost: {ended}"
            report.append(f"{bandit.name}: {said}")
        if not whole or not _all_there(source, "bandit"):
            report.append("the list of bandits is damaged: one or more are lost")
        keys, whole = _rows(source, "api_key", "1 = 1", "made, id")
        if not whole or not _all_there(source, "api_key"):
            report.append("some keys are lost: see accrual keys list")
            keys = [*keys, _LOST_KEY]  # so that a service asks for a key as before
        _insert(target, "api_key", keys)
        complete_file(target)
        target.execute("COMMIT")
    return report


def _all_there(source: sqlite3.Connection, table: str) -> bool:
    try:
        check_list(source, table)
        return True
    except (StoreError, *SQLITE_ERRORS):
        return False


def _rows(source: sqlite3.Connection, table: str, where: str, order: str) -> tuple[list[Any], bool]:
    """Return the sound rows of a small table, and whether that is all of them."""
    rows: list[Any] = []
    whole = True
    try:
        query = f"SELECT {columns_of(table)} FROM {table} NOT INDEXED WHERE {where} ORDER BY {order}"
        for row in source.execute(query):
            try:
                rows.append(checked_row(table, row, f"a row of {table}"))
            except StoreDamaged:
                whole = False
    except SQLITE_ERRORS:
        whole = False
    return rows, whole


def _first_arms(bandit: BanditTableRow) -> dict[int, ArmRow]:
    """Return the first arms of a bandit by number, from its configuration, which has them too."""
    arms = {}
    for number, (name, cap, window, *about) in enumerate(json.loads(bandit.config).get("arms", ())):
        known = bytes.fromhex(about[0]) if about else None
        arms[number] = ArmRow(
            bandit=bandit.number, number=number, name=name, cap=cap, window=window, about=known
        )
    return arms


def _log(
    source: sqlite3.Connection, target: sqlite3.Connection, bandit: BanditTableRow, until: float
) -> tuple[int, str | None]:
    """Copy a bandit and its events up to the first that is damaged.

    Return how many events were copied, and what is wrong with the first that was not; None if all are sound.
    Nothing is copied, not even the bandit, if the log ends before the bandit has all its first arms.
    """
    first = _first_arms(bandit)
    where = f"bandit = {int(bandit.number)}"
    arms = first | {row.number: row for row in _rows(source, "arm", where, "number")[0]}
    wrong: list[str] = []
    streams = [_events(source, table, bandit.number, wrong) for table in _LOG]
    sound: dict[str, list[Any]] = {table: [] for table in (*_LOG, "arm")}
    seq, at, decisions, added = 0, 0.0, 0, 0
    for place, table, row in heapq.merge(*streams):
        if place != seq + 1:
            wrong.append(f"event {seq + 1} is missing")
            break
        if row.at > until:
            wrong.append(f"event {place} is after that time")
            break
        if table == "change" and row.kind == Kind.ADD_ARM:
            if row.subject != added or added not in arms:
                wrong.append(f"arm {added} is damaged")
                break
            sound["arm"].append(arms[added])
            added += 1
        sound[table].append(row)
        seq, at = place, row.at
        decisions += table == "decision"
        if len(sound[table]) >= _CHUNK and added >= len(first):
            _insert(target, table, sound[table])
            sound[table] = []
    ended = wrong[0] if wrong else None
    if added < max(len(first), 1):
        return 0, ended or "its arms are missing"
    for table, rows in sound.items():
        _insert(target, table, rows)
    head = HeadRow(bandit=bandit.number, seq=seq, at=at, decisions=decisions, arms=added)
    _insert(target, "bandit", [bandit])
    _insert(target, "head", [head])
    return seq, ended


def _events(
    source: sqlite3.Connection, table: str, bandit: int, wrong: list[str]
) -> Iterator[tuple[int, str, Any]]:
    """Yield the rows of a table of events, by the order of its key, up to the first that is not sound."""
    query = f"SELECT {columns_of(table)} FROM {table} NOT INDEXED WHERE bandit = ? ORDER BY 1, 2"
    try:
        for row in source.execute(query, (bandit,)):
            event = checked_row(table, row)
            yield event.seq, table, event
    except (StoreDamaged, *SQLITE_ERRORS) as error:
        wrong.append(str(error).partition(";")[0])


def _insert(target: sqlite3.Connection, table: str, rows: Iterable[Any]) -> None:
    target.executemany(insert_into(table), rows)
