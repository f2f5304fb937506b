"""`accrual plan`: how many decisions a verdict takes, and what the floor costs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from accrual.cli.output import say, show_table
from accrual.core.errors import InputError


def plan(
    source: Annotated[
        str,
        typer.Argument(
            metavar="MEAN|PROBLEM.JSON",
            help="What a decision pays on average now, in units of the cap, or the problem.json of a fit.",
        ),
    ],
    difference: Annotated[
        float, typer.Argument(metavar="DIFFERENCE", help="How much more the best arm pays.")
    ],
    floor: Annotated[
        float, typer.Option(metavar="SHARE", help="The share of decisions drawn at random.")
    ] = 0.1,
    arms: Annotated[int, typer.Option(metavar="NUMBER", help="How many arms there are.")] = 2,
    sd: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER", help="The standard deviation of totals; without it they are 0 or the cap."
        ),
    ] = None,
    per_day: Annotated[float | None, typer.Option(metavar="NUMBER", help="Decisions a day.")] = None,
    window: Annotated[
        float, typer.Option(metavar="NUMBER", help="Decisions that are made while one window is open.")
    ] = 0.0,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw decisions and cost over the floor.")
    ] = None,
) -> None:
    """Say how many decisions a verdict takes."""
    from accrual.evaluate.plan import plan as planned
    from accrual.logs.fitted import Fitted

    given: float | Fitted
    if source.endswith(".json"):
        given = Fitted.load(source)
    else:
        try:
            given = float(source)
        except ValueError:
            raise InputError(
                f"give a mean, such as 0.3, or the problem.json of a fit, not {source!r}"
            ) from None
    found = planned(given, difference, floor, arms, sd=sd, per_day=per_day, window=window)
    say(found.summary())
    say("")
    show_table(
        ["floor", "half have a verdict by", "four of five by", "days", "cost in 1,000"],
        [
            [
                f"{line.floor:g}",
                _count(line.half, found.window),
                _count(line.most, found.window),
                ""
                if not found.per_day or line.most is None
                else f"{(line.most + found.window) / found.per_day:,.1f}",
                f"{line.cost:,.1f}",
            ]
            for line in sorted(found.lines, key=lambda line: line.floor)
        ],
        "decisions until a verdict",
    )
    if plot is not None:
        found.plot(plot)
        say(f"wrote {plot}")


def _count(decisions: float | None, window: float) -> str:
    return "too many" if decisions is None else f"{decisions + window:,.0f}"
