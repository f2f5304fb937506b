"""`accrual bandits`: list, copy, archive, restore and delete bandits."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from accrual.cli.output import show_table, utc
from accrual.core.errors import InputError

if TYPE_CHECKING:
    from accrual.store.base import BanditRow, Store

app = typer.Typer(help="List, copy, archive, delete bandits.")

Url = Annotated[str | None, typer.Option("--store", metavar="URL", help="The database.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Which bandit.")]


def _url(url: str | None) -> str:
    return url or os.environ.get("ACCRUAL_STORE", "sqlite:///accrual.db")


def _opened(url: str | None, readonly: bool = False) -> closing[Store]:
    from accrual.store.address import parse
    from accrual.store.backends import open_store
    from accrual.store.schema import check_there

    check_there(parse(_url(url)))
    return closing(open_store(_url(url), readonly=readonly))


@app.command("list")
def list_(store: Url = None) -> None:
    """Show all bandits, and which are archived."""
    from accrual.store.address import parse

    with _opened(store, readonly=True) as place:
        rows = [row for name in place.names() if (row := place.find(name)) is not None]
        lines = [[row.name, _state(row), str(len(place.arms(row.number)))] for row in rows]
    if lines:
        show_table(["name", "state", "arms"], lines)
    else:
        typer.echo(f"no bandits in {parse(_url(store))} yet; make one with ac.Bandit or through a service")


@app.command()
def archive(name: Name, store: Url = None) -> None:
    """Archive a bandit; all its data are kept."""
    from accrual.live.archive import archive as put_away

    with _opened(store) as place:
        _say(put_away(place, name))


@app.command()
def restore(name: Name, store: Url = None) -> None:
    """Bring an archived bandit back."""
    from accrual.live.archive import restore as bring_back

    with _opened(store) as place:
        _say(bring_back(place, name))


@app.command()
def delete(
    name: Name,
    grace: Annotated[
        str, typer.Option(metavar="TIME", help="How long it can still be restored: 12h, 7d.")
    ] = "7d",
    store: Url = None,
) -> None:
    """Archive a bandit, and erase it later.

    A running service erases it after the grace period; without one, accrual bandits erase does.
    """
    from accrual.live.archive import delete as put_away

    with _opened(store) as place:
        _say(put_away(place, name, grace))


@app.command()
def erase(store: Url = None) -> None:
    """Erase bandits whose grace period is over."""
    from accrual.live.archive import erase_due

    with _opened(store) as place:
        erased = erase_due(place)
    typer.echo(f"erased: {', '.join(erased)}" if erased else "nothing to erase")


@app.command()
def copy(
    old: Annotated[str, typer.Argument(metavar="OLD", help="The bandit to copy.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The name of the copy.")],
    cap: Annotated[
        list[str] | None,
        typer.Option(metavar="[ARM=]CAP", help="A cap of an arm, or of all arms; may be repeated."),
    ] = None,
    floor: Annotated[
        float | None, typer.Option(metavar="SHARE", help="A floor, for a bandit that has none.")
    ] = None,
    store: Url = None,
) -> None:
    """Copy a bandit with its history.

    A cap that was too low cannot be changed; the copy has the new one from its first decision on.
    """
    from accrual.live.copying import copy_bandit

    with _opened(store, readonly=True) as place:
        row = place.find(old)
        arms = [] if row is None else [arm.name for arm in place.arms(row.number)]
    count = copy_bandit(_url(store), old, new, _caps(cap or [], arms), floor)
    typer.echo(f"{new}: {count:,} events, copied from {old}")


def _caps(options: list[str], arms: list[str]) -> dict[str, float]:
    caps: dict[str, float] = {}
    for text in options:
        name, sign, number = text.rpartition("=")
        try:
            caps |= dict.fromkeys([name] if sign else arms, float(number))
        except ValueError:
            raise InputError(f"--cap takes a number, or ARM=NUMBER, not {text!r}") from None
    return caps


def _say(row: BanditRow) -> None:
    typer.echo(f"{row.name}: {_state(row)}")


def _state(row: BanditRow) -> str:
    from accrual.store.base import ARCHIVED, ERASE_AT

    if ERASE_AT in row.config:
        return f"deleted, to be erased at {utc(row.config[ERASE_AT])} UTC"
    if ARCHIVED in row.config:
        return f"archived since {utc(row.config[ARCHIVED])} UTC"
    return "in use"
