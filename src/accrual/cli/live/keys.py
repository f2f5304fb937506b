"""`accrual keys`: who may use the service."""

from __future__ import annotations

import os
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from accrual.cli.output import show_table, utc
from accrual.core.durations import UNITS, parse_duration
from accrual.core.errors import InputError, need

if TYPE_CHECKING:
    from accrual.store.backends import KeyRow, KeyTable

_ENDED = 0.0  # good until then, by any clock: this machine's may be ahead of the service's

app = typer.Typer(help="Create, list and end keys of the service.")

Store = Annotated[str | None, typer.Option(metavar="URL", help="The service's database.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="Which key; accrual keys list shows the ids.")]


def _table(store: str | None, new: bool = False) -> closing[KeyTable]:
    """Open the keys of a service; with `new`, make the database if there is none."""
    need("msgspec", "service")
    from accrual.service.keys import ready_keys
    from accrual.service.settings import load
    from accrual.store.backends import open_keys

    url = load(environment=os.environ, options={"store": store}).store
    return closing(ready_keys(url) if new else open_keys(url))


@app.command()
def create(
    scope: Annotated[
        list[str] | None, typer.Option(metavar="SCOPE", help="read, write or admin; may be repeated.")
    ] = None,
    name: Annotated[str, typer.Option(metavar="TEXT", help="Whose key it is to be.")] = "key",
    store: Store = None,
) -> None:
    """Print a new key, which is not shown again."""
    need("msgspec", "service")
    from accrual.service.keys import new_key

    row, text = new_key(name, scope or [], time.time())
    with _table(store, new=True) as table:
        table.add(row)
    _show(text)


@app.command("list")
def list_(store: Store = None) -> None:
    """Show all keys, without their secrets."""
    now = time.time()
    rows = []
    with _table(store) as table:
        for row in table.all():
            state = "good" if row.ends is None else "ended" if row.ends <= now else f"until {utc(row.ends)}"
            rows.append([row.id, " ".join(sorted(row.scopes)), utc(row.made), state, row.name])
    show_table(["id", "scopes", "made", "state", "name"], rows)


@app.command()
def rotate(
    id: Id,
    grace: Annotated[
        str, typer.Option(metavar="TIME", help="How long the old key stays valid: 0s, 12h, 7d.")
    ] = "0s",
    store: Store = None,
) -> None:
    """Print a key that replaces another."""
    seconds = parse_duration(grace, "--grace", least=0.0, most=100 * UNITS["y"])
    with _table(store) as table:
        from accrual.service.keys import new_key

        row, now = _find(table, id), time.time()
        if row.ends is not None and row.ends <= now:
            raise InputError(f"the key {id} has ended; create another")
        new, text = new_key(row.name, row.scopes, now)
        table.add(new, (id, now + seconds if seconds else _ENDED))
        _show(text)


@app.command()
def revoke(id: Id, store: Store = None) -> None:
    """End a key."""
    with _table(store) as table:
        table.end(_find(table, id).id, _ENDED)


def _find(table: KeyTable, id: str) -> KeyRow:
    row = next((row for row in table.all() if row.id == id), None)
    if row is None:
        raise InputError(f"no key has the id {id!r}; accrual keys list shows them")
    return row


def _show(text: str) -> None:
    print(text)
    print("keep it now: it is not shown again, and the database has only its digest", file=sys.stderr)
