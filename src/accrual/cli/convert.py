"""`accrual convert`: other tables, made into a log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from accrual.cli.log import Columns, told
from accrual.cli.output import writable
from accrual.core.errors import InputError, unknown

_KINDS = ("transactions", "sessions")


def convert(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="transactions or sessions.")],
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="A file, or a folder of parts.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where the log goes.")],
    arm: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Whose value in the first row is the arm.")
    ] = None,
    cut: Annotated[
        str | None,
        typer.Option(metavar="COLUMN=NUMBERS", help="Ranges of a number as arms, such as amount=10,50."),
    ] = None,
    column: Columns = None,
) -> None:
    """Make a log of a table of transactions or of music sessions."""
    from accrual.fit import convert as files
    from accrual.fit import sessions, transactions

    if kind not in _KINDS:
        raise unknown("kind of table", kind, _KINDS)
    for name in (files.DECISIONS, files.PIECES):
        writable(out / name, (".parquet",), new_folder=True)
    again = f"accrual fit {out / files.DECISIONS} {out / files.PIECES} -o problem.json"
    if kind == "sessions":
        if cut is not None or column:
            raise InputError("sessions have columns of their own: --cut and --column are for transactions")
        found = sessions.read(table, arm or "context_type")
        decisions, pieces, end = sessions.tables(found)
        notes = ["sessions take turns, arm by arm, one a round; a quarter of a song is a round"]
        again += f" --window {sessions.ROUNDS} --groups {sessions.SONGS} --end {end}"
    else:
        if (arm is None) == (cut is None):
            raise InputError("transactions need an arm: either --arm COLUMN or --cut COLUMN=NUMBERS")
        chosen = transactions.Cut.parse(cut) if cut is not None else str(arm)
        decisions, pieces, notes = transactions.convert(table, chosen, told(column))
    files.write(out, decisions, pieces)
    for note in notes:
        typer.echo(note)
    typer.echo(f"{len(decisions):,} decisions and {len(pieces):,} pieces: {out}")
    typer.echo(f"next: {again}")
