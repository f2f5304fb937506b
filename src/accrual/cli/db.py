"""`accrual db`: the database behind live bandits."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from accrual.core.errors import InputError, unknown

ACTIONS = ("init", "upgrade", "backup", "restore", "verify", "recover", "export")
_WITH_PATH = {
    "backup": "the file to write", "restore": "the backup", "recover": "the file to write",
    "export": "the folder to write to",
}  # fmt: skip
_WRONG = 1  # exit code of a database that is not as it should be


def db(
    action: Annotated[
        str,
        typer.Argument(metavar="ACTION", help="init, upgrade, backup, restore, verify, recover or export."),
    ],
    url: Annotated[str, typer.Argument(metavar="URL", help="sqlite:///FILE or postgresql://USER@HOST/NAME.")],
    path: Annotated[
        Path | None,
        typer.Argument(metavar="[PATH]", help="A backup's file, a new file, or a folder to export to."),
    ] = None,
    bandit: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which one to export; needed if there are several.")
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Recover no event after this, such as 2026-11-15T12:00."),
    ] = None,
) -> int:
    """Make, upgrade, back up, restore, check, recover or export a database of live bandits."""
    if action not in ACTIONS:
        raise unknown("action", action, ACTIONS)
    if path is None and action in _WITH_PATH:
        raise InputError(f"accrual db {action} needs a PATH after the URL: {_WITH_PATH[action]}")
    if path is not None and action not in _WITH_PATH:
        raise InputError(f"accrual db {action} takes no PATH")
    if until is not None and action != "recover":
        raise InputError("--until is for accrual db recover")
    if bandit is not None and action != "export":
        raise InputError("--bandit is for accrual db export")
    if action in ("init", "upgrade"):
        _upgrade(action, url)
    elif action == "verify":
        return _verify(url)
    elif path is not None:
        _copy(action, url, path, bandit, until)
    return 0


def _upgrade(action: str, url: str) -> None:
    from accrual.store.address import parse
    from accrual.store.migrate import NEEDED, current, upgrade

    found = current(url)
    if action == "upgrade" and found is None:
        raise InputError(f"{parse(url)} has no tables of accrual; make them: accrual db init {parse(url)}")
    if action == "init" and found is not None and found != NEEDED:
        raise InputError(f"{parse(url)} has form {found} already; accrual db upgrade brings it to {NEEDED}")
    with _alone(url):
        upgrade(url)
    was = "" if found in (None, NEEDED) else f" (was {found})"
    typer.echo(f"{parse(url)}: form {NEEDED}{was}" + (", nothing to do" if found == NEEDED else ""))


@contextmanager
def _alone(url: str) -> Iterator[None]:
    """While no other process has a SQLite file open for writing; PostgreSQL has locks of its own."""
    from accrual.store.address import parse
    from accrual.store.lock import FileLock

    address = parse(url)
    if address.dialect != "sqlite":
        yield
        return
    if not os.path.exists(address.place):  # nobody can have it open, and only one can make it
        yield
        return
    lock = FileLock(address.place, f"{address} is in use; stop what is writing to it first")
    try:
        yield
    finally:
        lock.release()


def _moment(text: str) -> float:
    """Seconds since 1970."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"--until takes a time such as 2026-11-15T12:00:00+00:00, not {text!r}") from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _copy(action: str, url: str, path: Path, bandit: str | None, until: str | None) -> None:
    if action == "backup":
        from accrual.store.backup import backup

        backup(url, path)
        typer.echo(f"written: {path}")
    elif action == "restore":
        from accrual.store.address import parse
        from accrual.store.backup import restore

        restore(url, path)
        typer.echo(f"restored: {parse(url)}")
    elif action == "recover":
        from accrual.store.recover import recover

        for line in recover(url, path, None if until is None else _moment(until)):
            typer.echo(line)
        typer.echo(f"written: {path}")
    else:
        from accrual.store.export import export

        for file, count in export(url, bandit, path).items():
            typer.echo(f"written: {path / file} ({count:,} rows)")


def _verify(url: str) -> int:
    from accrual.live.verify import verify_snapshots
    from accrual.store.backends import open_store
    from accrual.store.readers import open_reader
    from accrual.store.verify import verify

    with open_reader(url) as reader:
        found = verify(reader)
        events = reader.value("SELECT coalesce(sum(seq), 0) FROM head") if not found else 0
    compared = 0
    if not found:
        store = open_store(url, readonly=True)
        try:
            compared, found = verify_snapshots(store)
        finally:
            store.close()
    for wrong in found:
        typer.echo(f"wrong: {wrong}")
    if found:
        return _WRONG
    typer.echo(f"{int(events):,} events, {compared:,} snapshots: nothing wrong")
    return 0
