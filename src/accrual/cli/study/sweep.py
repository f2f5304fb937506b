"""`accrual sweep`: policies over a grid of parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accrual.cli.options import count, with_executor
from accrual.cli.output import show_table, writable
from accrual.core.errors import need
from accrual.core.files import write_csv
from accrual.core.number_text import figure

if TYPE_CHECKING:
    from accrual.runs.runner import Executor
    from accrual.studies.sweep import SweepLine


@with_executor
def sweep(
    executor: Executor,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A TOML file with a problem, policies and a grid.")
    ],
    runs: Annotated[
        int | None,
        typer.Option(parser=count, metavar="COUNT", help="How many runs; the file's unless given."),
    ] = None,
    horizon: Annotated[
        int | None,
        typer.Option(parser=count, metavar="ROUNDS", help="Rounds in a run; the file's unless given."),
    ] = None,
    show: Annotated[int, typer.Option(metavar="COUNT", help="How many of the best to print.")] = 5,
    device: Annotated[str, typer.Option(metavar="NAME", help="cpu or cuda.")] = "cpu",
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Where results and picture go.")] = None,
) -> None:
    """Try policies over a grid of parameters."""
    need("matplotlib", "plot")
    need("pyarrow", "frames")
    from accrual.runs.cells import gather_results
    from accrual.runs.runner import run_cells
    from accrual.studies.sweep import csv_rows, draw, lines, read

    swept = read(file, runs, horizon)
    folder = Path("out") / Path(file).stem if out is None else out
    picture, figures = folder / "sweep.png", folder / "sweep.csv"
    for path in (picture, figures):
        writable(path, [path.suffix], new_folder=True)
    cells = swept.cells(device)
    run_cells([cell for part in cells.values() for cell in part], folder, executor)
    cases = lines(swept, {block: gather_results(part, folder) for block, part in cells.items()})
    for case in cases:
        _show(case, list(swept.grid), show)
    write_csv(figures, csv_rows(swept, cases))
    typer.echo(f"figures: {figures}")
    if len(swept.grid) <= 2:
        draw(picture, swept, cases)
        typer.echo(f"picture: {picture}")


def _show(case: Sequence[SweepLine], grid: Sequence[str], most: int) -> None:
    """Print the best few of a case, and the rows to compare them with."""
    from accrual.studies.sweep import best, ranked, title

    first = best(case)
    tried = [line for line in case if ranked(line.point)]
    shown = [line for line in case if not ranked(line.point) or line in tried[:most]]
    rows = []
    for line in shown:
        over = ["", ""] if line is first else [figure(line.over_best), figure(line.over_best_se)]
        places = [str(line.point.place.get(key, "")) for key in grid]
        rows.append([line.point.label, *places, figure(line.mean), figure(line.se), *over])
    alike = sum(
        line.over_best <= 2 * line.over_best_se for line in tried if not math.isnan(line.over_best_se)
    )
    where = title(first.point.case)
    show_table(
        ["policy", *grid, "regret", "s.e.", "over the best", "s.e."],
        rows,
        f"{where + ': ' if where else ''}{len(tried):,} points, {first.runs:,} runs; "
        f"{alike:,} within two standard errors of the best",
    )
