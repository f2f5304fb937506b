"""`accrual convert`: make a log from another table."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from accrual.cli.logs.options import Columns, TimeFormat, TimeUnit, TimeZone, column_roles
from accrual.cli.options import expanded
from accrual.cli.output import writable
from accrual.core.errors import InputError, unknown

if TYPE_CHECKING:
    from accrual.logs.read import TimeOptions

_KINDS = ("transactions", "sessions")


def _time_options(
    time_format: TimeFormat = None, time_unit: TimeUnit = None, timezone: TimeZone = None
) -> TimeOptions:
    from accrual.logs.read import TimeOptions

    return TimeOptions(time_format, time_unit, timezone)


@partial(expanded, name="times", make=_time_options)
def convert(
    times: Any,
    kind: Annotated[str, typer.Argument(metavar="KIND", help="What TABLE holds: transactions or sessions.")],
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="A file, or a folder of parts.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where the log goes.")],
    arm: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column whose value in a first row is the arm.")
    ] = None,
    cut: Annotated[
        str | None,
        typer.Option(metavar="COLUMN=NUMBERS", help="Ranges of a number as arms, such as amount=10,50."),
    ] = None,
    column: Columns = None,
) -> None:
    """Make a log from transactions or sessions."""
    from accrual.logs import convert as tables

    if kind not in _KINDS:
        raise unknown("kind of table", kind, _KINDS)
    for name in (tables.DECISIONS, tables.PIECES):
        writable(out / name, (".parquet",), new_folder=True)
    again = f"accrual fit {out / tables.DECISIONS} {out / tables.PIECES} -o problem.json"
    if kind == "sessions":
        if cut is not None or column or any((times.format, times.unit, times.zone)):
            raise InputError(
                "sessions have fixed columns: --cut, --column and the options for how times are written are "
                "for transactions"
            )
        by_arm = tables.read_sessions(table, arm or "context_type")
        decisions, pieces, end = tables.session_log(by_arm)
        notes = ["sessions take turns, arm by arm, one a round; a quarter of a song is a round"]
        again += f" --window {tables.ROUNDS} --groups {tables.SONGS} --end {end}"
    else:
        if (arm is None) == (cut is None):
            raise InputError("transactions need an arm: either --arm COLUMN or --cut COLUMN=NUMBERS")
        chosen = tables.AmountRanges.parse(cut) if cut is not None else str(arm)
        decisions, pieces, notes = tables.transaction_log(table, chosen, column_roles(column), times)
    tables.write(out, decisions, pieces)
    for note in notes:
        typer.echo(note)
    typer.echo(f"{len(decisions):,} decisions and {len(pieces):,} pieces: {out}")
    typer.echo(f"next: {again}")
