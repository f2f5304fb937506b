"""`accrual keys`: who may use the service."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from accrual.core.durations import parse_duration
from accrual.core.errors import InputError, need, unknown

if TYPE_CHECKING:
    from accrual.store.keys import KeyTable

_ENDED = 0.0  # good until then, by any clock: this machine's may be ahead of the service's
ACTIONS = ("create", "list", "rotate", "revoke")


def keys(
    action: Annotated[str, typer.Argument(metavar="ACTION", help="create, list, rotate or revoke.")],
    id: Annotated[str | None, typer.Argument(metavar="[ID]", help="Which key to rotate or revoke.")] = None,
    store: Annotated[str | None, typer.Option(metavar="URL", help="The service's database.")] = None,
    name: Annotated[str, typer.Option(metavar="TEXT", help="Whose key it is to be.")] = "key",
    scope: Annotated[
        list[str] | None, typer.Option(metavar="SCOPE", help="read, write or admin; may be repeated.")
    ] = None,
    grace: Annotated[
        str, typer.Option(metavar="TIME", help="How long a rotated key stays good: 0s, 12h, 7d.")
    ] = "0s",
) -> None:
    """Create, list, rotate and revoke keys of the service."""
    need("msgspec", "service")
    from accrual.service.keys import ready_keys
    from accrual.service.settings import load

    if action not in ACTIONS:
        raise unknown("action", action, ACTIONS)
    if (id is not None) != (action in ("rotate", "revoke")):
        raise InputError(
            f"accrual keys {action} takes {'no ID' if id is not None else 'an ID; list shows them'}"
        )
    table = ready_keys(load(environment=os.environ, options={"store": store}).store)
    try:
        if action == "create":
            _create(table, name, scope or [])
        elif action == "list":
            _list(table)
        else:
            assert id is not None
            _end(table, action, id, grace)
    finally:
        table.close()


def _create(table: KeyTable, name: str, scopes: list[str]) -> None:
    from accrual.service.keys import new_key

    row, text = new_key(name, scopes, time.time())
    table.add(row)
    _show(text)


def _show(text: str) -> None:
    print(text)
    print("keep it now: it is not shown again, and the database has only its digest", file=sys.stderr)


def _list(table: KeyTable) -> None:
    from accrual.cli.output import show_table

    now = time.time()
    rows = []
    for row in table.all():
        state = "good" if row.ends is None else "ended" if row.ends <= now else f"until {_day(row.ends)}"
        rows.append([row.id, " ".join(sorted(row.scopes)), _day(row.made), state, row.name])
    show_table(["id", "scopes", "made", "state", "name"], rows)


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at))


def _end(table: KeyTable, action: str, id: str, grace: str) -> None:
    from accrual.service.keys import new_key

    seconds = parse_duration(grace, "--grace", least=0.0)
    row = next((row for row in table.all() if row.id == id), None)
    if row is None:
        raise InputError(f"no key has the id {id!r}; accrual keys list shows them")
    if action == "revoke":
        table.end(id, _ENDED)
        return
    now = time.time()
    if row.ends is not None and row.ends <= now:
        raise InputError(f"the key {id} has ended; create another")
    new, text = new_key(row.name, row.scopes, now)
    table.add(new, (id, now + seconds if seconds else _ENDED))
    _show(text)
