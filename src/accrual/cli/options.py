"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def count(given: str | int) -> int:
    """A whole number, also written 1e5; a default comes as it is."""
    try:
        return int(given)  # not by way of a float, which would round a long number
    except ValueError:
        pass
    try:
        value = float(given)
        if value == int(value):
            return int(value)
    except (ValueError, OverflowError):
        pass
    raise typer.BadParameter(f"{given!r} is not a whole number")


Setting = Annotated[
    str, typer.Argument(metavar="SETTING", help="A named setting such as setting1, or a TOML file.")
]
Horizon = Annotated[int, typer.Option(parser=count, metavar="ROUNDS", help="Rounds in a run.")]
Runs = Annotated[int, typer.Option(parser=count, metavar="COUNT", help="How many runs.")]
Plot = Annotated[Path | None, typer.Option(metavar="PATH", help="Write a picture here (.png, .svg or .pdf).")]
