"""A store of which every byte matters, and what a process finds in it after one of them was changed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import accrual as ac
from accrual.core.errors import InputError
from accrual.live.commit import Decide
from accrual.store.base import CloseDecision, NewPiece, StoreError
from accrual.store.sqlite import store as sqlite

NAME = "plays"
FILES = ("plays.db", "plays.db-wal", "plays.db.last")  # the database, its log, the note of the last append


class Made(NamedTuple):
    """A store, as bytes of each of `FILES` that it has, and what is in it."""

    files: dict[str, bytes]
    history: Any


def shrink(set_: Callable[[Any, str, Any], None]) -> None:
    """Make blocks small, so that a small store has several."""
    set_(sqlite, "BLOCK", 64)


def batches(first: int, last: int) -> list[list[Any]]:
    """The asks of some transactions: decisions, pieces with keys, closings."""
    found: list[list[Any]] = []
    for i in range(first, last):
        pieces = [NewPiece(5 * i + j, 0.125 * j, 0.0, None, f"piece {i} {j}") for j in range(5)]
        found.append([Decide(5, f"batch {i}"), *pieces, CloseDecision(5 * i)])
    return found


def look(folder: Path, said: int) -> Any:
    """All that a bandit shows, and what it answers to what it has been told before."""
    with ac.Bandit.open(f"sqlite:///{folder}/plays.db", NAME) as bandit:
        state = bandit.state()
        told = state.decisions // 5 if said < 0 else said
        answers = [bandit.submit(asks) for asks in batches(0, told)]
        events = bandit._store.read(1, 0, 1 << 30)
        names = [bandit.explain(i).arm for i in range(0, state.decisions, 7)]
    return repr(state), repr(answers), repr([column.tolist() for column in events]), names


def make(folder: Path) -> tuple[Made, Made]:
    """One that was closed, with a snapshot; and one that was not, with most of it in the write-ahead log."""
    place = folder / "make"
    place.mkdir()
    about: dict[str, Any] = {"arm_features": {"tempo": (0, 200)}, "about": {"jazz": {"tempo": 120}}}
    with ac.Bandit(
        ["jazz", "rock"], 40, 8, store=f"sqlite:///{place}/plays.db", name=NAME, **about
    ) as bandit:
        for asks in batches(0, 40):
            bandit.submit(asks)
        bandit.add_arm("talk", cap=0.5, about={"tempo": 60})
        bandit.retire_arm("rock")
    closed = {"plays.db": (place / "plays.db").read_bytes()}
    with ac.Bandit.open(f"sqlite:///{place}/plays.db", NAME) as bandit:
        for asks in batches(40, 60):
            bandit.submit(asks)
        opened = {name: (place / name).read_bytes() for name in FILES}
    found = []
    for number, files in enumerate((closed, opened)):
        whole = folder / f"whole {number}"
        put(whole, files)
        found.append(Made(files, look(whole, -1)))
    return found[0], found[1]


def put(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir()
    for name, body in files.items():
        (folder / name).write_bytes(body)


def outcome(folder: Path, made: Made) -> str:
    """What a new process makes of the store in a folder: the same, or a refusal."""
    pipe = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(pipe[0])
            os.write(pipe[1], _found(folder, made).encode())
        finally:
            os._exit(0)
    os.close(pipe[1])
    with os.fdopen(pipe[0], "rb") as said:
        found = said.read().decode()
    _, status = os.waitpid(child, 0)
    return found if os.WIFEXITED(status) else f"signal {os.WTERMSIG(status)}"


def _found(folder: Path, made: Made) -> str:
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115  (the process ends)
    try:
        shown = look(folder, -1)
    except (InputError, StoreError) as error:
        return "refused" if str(error).count("\n") == 0 and str(error) else f"refused in lines: {error}"
    except BaseException as error:
        return f"uncaught: {error!r}"[:300]
    return "same" if shown == made.history else f"wrong: {shown[0][:200]}"
