"""What can be saved of a damaged SQLite file: every bandit's log up to the first event that is damaged."""

from __future__ import annotations

import heapq
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
from accrual.store import migrate
from accrual.store.address import Address, parse
from accrual.store.backup import check_place, finish
from accrual.store.base import Kind, StoreDamaged, StoreError
from accrual.store.checksums import SUMS, columns_of, counted, sound
from accrual.store.lock import SQLITE_ERRORS, FileLock

_SEQ = {"piece": 1, "decision": 2, "change": 1}  # which column is the position; rows come in its order
_AT = {"piece": 7, "decision": 4, "change": 4}  # ... and the time
_ORDER = {"piece": "bandit, seq", "decision": "bandit, id", "change": "bandit, seq"}
_CHUNK = 10_000  # rows
_LOST_KEY = ("recovered", "stands for keys that were damaged", "", b"", 0.0, 0.0)

Row = tuple[Any, ...]


def recover(url: str, path: str | os.PathLike[str], until: float | None = None) -> list[str]:
    """Write to a new file what is sound in a damaged one, which stays as it is.

    Parameters
    ----------
    url : str
        A SQLite file that nobody has open for writing.
    path : path
        Where no file is yet.
    until : float, optional
        Save no event after this time, in seconds since 1970: to go back to before a clock leapt ahead.
        Bandits that count rounds have no such times, and are saved whole.

    Returns
    -------
    list of str
        What was saved of each bandit, and what was not.
    """
    address = parse(url)
    if address.dialect != "sqlite":
        raise InputError("PostgreSQL has means of its own to recover; this is for SQLite files")
    if not os.path.isfile(address.place):
        raise InputError(f"there is no file at {address.place}")
    check_place(Path(path), again=False)
    lock = FileLock(address.place, f"{address} is open for writing; stop what is writing to it first")
    try:
        with tempfile.TemporaryDirectory(dir=Path(os.path.realpath(path)).parent) as folder:
            copy = Path(folder) / "damaged.db"
            for end in ("", "-wal"):
                with suppress(FileNotFoundError):
                    shutil.copyfile(os.path.realpath(address.place) + end, f"{copy}{end}")
            with replacing(path) as partial:
                report = _save(Address("sqlite", str(copy)), address, partial, until)
            return report
    finally:
        lock.release()


def _save(copy: Address, shown: Address, to: Path, until: float | None) -> list[str]:
    report = []
    migrate.upgrade(f"sqlite:///{to}")
    with (
        closing(migrate.connect_sqlite(copy, "rw")) as source,
        closing(migrate.connect_sqlite(Address("sqlite", str(to)), "rw")) as target,
    ):
        migrate.check(migrate.sqlite_version(source, shown), shown)
        target.execute("BEGIN")
        bandits, whole = _rows(source, "bandit", "1 = 1", "1")
        for bandit in bandits:
            _insert(target, "bandit", [bandit])
            number, name, _, rounds = bandit
            saved, ended = _log(source, target, number, math.inf if until is None or rounds else until)
            rest = "all of them" if ended is None else f"up to this: {ended}"
            report.append(f"{name}: {saved:,} events, {rest}")
        if not whole or not _all_there(source, "bandit"):
            report.append("the list of bandits is damaged: one or more are lost")
        keys, whole = _rows(source, "api_key", "1 = 1", "made, id")
        if not whole or not _all_there(source, "api_key"):
            report.append("some keys are lost: see accrual keys list")
            keys = [*keys, _LOST_KEY]  # so that a service asks for a key as before
        _insert(target, "api_key", keys)
        finish(target)
        target.execute("COMMIT")
    return report


def _all_there(source: sqlite3.Connection, table: str) -> bool:
    try:
        counted(source, table)
        return True
    except (StoreError, *SQLITE_ERRORS):
        return False


def _rows(source: sqlite3.Connection, table: str, where: str, order: str) -> tuple[list[Row], bool]:
    """The sound rows of a small table, and whether that is all of them."""
    found: list[Row] = []
    whole = True
    try:
        query = f"SELECT {columns_of(table)} FROM {table} NOT INDEXED WHERE {where} ORDER BY {order}"
        for row in source.execute(query):
            try:
                found.append(tuple(sound(table, row, "")))
            except StoreDamaged:
                whole = False
    except SQLITE_ERRORS:
        whole = False
    return found, whole


def _log(
    source: sqlite3.Connection, target: sqlite3.Connection, bandit: int, until: float
) -> tuple[int, str | None]:
    """Copy a bandit's events up to the first that is damaged: how many, and what is wrong with that one."""
    arms = {row[1]: row for row in _rows(source, "arm", f"bandit = {int(bandit)}", "number")[0]}
    wrong: list[str] = []
    streams = [_events(source, table, bandit, wrong) for table in _SEQ]
    kept: dict[str, list[Row]] = {table: [] for table in (*_SEQ, "arm")}
    seq, at, decisions, added = 0, 0.0, 0, 0
    for place, table, row in heapq.merge(*streams):
        if place != seq + 1:
            wrong.append(f"event {seq + 1} is missing")
            break
        if row[_AT[table]] > until:
            wrong.append(f"event {place} is after that time")
            break
        if table == "change" and row[2] == Kind.ADD_ARM:
            if row[3] != added or added not in arms:
                wrong.append(f"arm {added} is damaged")
                break
            kept["arm"].append(arms[added])
            added += 1
        kept[table].append(row)
        seq, at = place, row[_AT[table]]
        decisions += table == "decision"
        if len(kept[table]) >= _CHUNK:
            _insert(target, table, kept[table])
            kept[table] = []
    for table, rows in kept.items():
        _insert(target, table, rows)
    _insert(target, "head", [(bandit, seq, at, decisions, added)])
    return seq, wrong[0] if wrong else None


def _events(
    source: sqlite3.Connection, table: str, bandit: int, wrong: list[str]
) -> Iterator[tuple[int, str, Row]]:
    """The rows of a table of events, by the order of its key, up to the first that is not sound."""
    query = f"SELECT {columns_of(table)} FROM {table} NOT INDEXED WHERE bandit = ? ORDER BY {_ORDER[table]}"
    try:
        for row in source.execute(query, (bandit,)):
            yield row[_SEQ[table]], table, tuple(sound(table, row, f"event {row[_SEQ[table]]}"))
    except (StoreDamaged, *SQLITE_ERRORS) as error:
        wrong.append(str(error).partition(";")[0])


def _insert(target: sqlite3.Connection, table: str, rows: Iterable[Row]) -> None:
    columns = SUMS[table][1]
    names, marks = ", ".join(f'"{name}"' for name in columns), ", ".join("?" * len(columns))
    target.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", rows)
