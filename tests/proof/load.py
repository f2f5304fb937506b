"""A history that anyone can check: append number n is known, and so are the events that it makes."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from accrual.store.base import AddArm, BanditRow, NewDecisions, NewPiece, StoreRequest
from accrual.store.events import NO_STREAM, DecisionMade, Events, PieceArrived, records
from accrual.store.sqlite.store import SQLiteStore

# Where there is one, a folder in memory: to sync thousands of files on a real disk takes its time.
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
WINDOW = 80.0
ARMS = [AddArm("jazz", 1.0, WINDOW), AddArm("rock", 1.0, WINDOW)]


def items(number: int) -> list[StoreRequest]:
    """What append `number` brings: a decision, and up to six pieces of it."""
    pieces = [NewPiece(number, number + i / 8, age=0.0, key=f"piece {i}") for i in range(number % 7)]
    return [NewDecisions((number % 2,), (WINDOW,), key=f"decision {number}"), *pieces]


def events(number: int) -> list[tuple[Any, ...]]:
    """The events that it makes, as they are read, without their positions."""
    at = number + 1  # a bandit whose clock is the number of its decisions
    pieces = [(PieceArrived, at, number, NO_STREAM, number + i / 8, 0.0) for i in range(number % 7)]
    return [(DecisionMade, at, number, number % 2, WINDOW, 0, 0.0, 0), *pieces]


def start(file: Path) -> tuple[SQLiteStore, BanditRow]:
    """The store and its bandit, as they are or new."""
    store = SQLiteStore(str(file))
    return store, store.find("plays") or store.create("plays", {}, ARMS, True, 0.0)


def whole(log: Events) -> int:
    """How many appends a log has, if it has whole ones, all from the first on, as they were sent; else -1."""
    rows = [(type(event), *event[1:]) for event in records(log)]
    appends = sum(row[0] is DecisionMade for row in rows)
    sent = [event for number in range(appends) for event in events(number)]
    return appends if rows[len(ARMS) :] == sent and len(set(log.seq.tolist())) == len(rows) else -1


def kept(file: Path) -> int:
    """How many appends a database has that nobody has open; -1 if it is broken, or has not whole ones."""
    store, bandit = start(file)
    with closing(store):
        found = whole(store.read(bandit.number, 0, 1 << 30))
    with closing(sqlite3.connect(file)) as database:
        sound = database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    return found if sound else -1
