"""`accrual gallery`: policies on problems that are hard in different ways."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accrual.cli.options import Device, count, with_executor
from accrual.cli.output import show_table, writable
from accrual.core.errors import need
from accrual.core.figures import figure
from accrual.core.files import write_csv

if TYPE_CHECKING:
    from accrual.experiments.runner import Executor
    from accrual.report.gallery import GalleryLine


@with_executor
def gallery(
    executor: Executor,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="A problem, or the beginning of its name; may be repeated."),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="A row of the table or any policy; may be repeated."),
    ] = None,
    horizon: Annotated[
        int | None, typer.Option(parser=count, metavar="ROUNDS", help="Rounds in a run, in every problem.")
    ] = None,
    runs: Annotated[
        int | None, typer.Option(parser=count, metavar="COUNT", help="How many runs, of every problem.")
    ] = None,
    device: Device = "cpu",
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where to write results and picture.")] = Path(
        "out/gallery"
    ),
) -> None:
    """Play policies on a gallery of hard problems.

    Their regret is shown beside that of learners that see every total at once.
    """
    need("matplotlib", "plot")
    need("pyarrow", "frames")
    from accrual.experiments.cells import gather_results
    from accrual.experiments.gallery import cut_entry, policies, select
    from accrual.experiments.runner import run_cells
    from accrual.report.gallery import GalleryLine, draw, lines

    entries = select(only or ())
    compared = {entry.id: policies(entry.problem, policy or ()) for entry in entries}
    picture, figures = out / "gallery.png", out / "gallery.csv"
    for path in (picture, figures):
        writable(path, [path.suffix], new_folder=True)

    cells = {entry.id: cut_entry(entry, compared[entry.id], horizon, runs, device) for entry in entries}
    run_cells([cell for part in cells.values() for cell in part], out, executor)
    table: list[GalleryLine] = []
    for id, part in cells.items():
        result = gather_results(part, out)
        result.save(out / f"{id}.parquet")
        table += lines(id, result)
    _show(table)
    write_csv(figures, [GalleryLine._fields, *table])
    typer.echo(f"figures: {figures}")
    if any(line.mean > 0 for line in table):
        draw(picture, table, {entry.id: entry.title for entry in entries})
        typer.echo(f"picture: {picture}")


def _show(table: Sequence[GalleryLine]) -> None:
    learning = [line for line in table if line.over_floor > 0]
    _matrix("regret over the floor's (the better of IMED and Thompson sampling without delay)", learning,
            lambda line: _ratio(line.over_floor))  # fmt: skip
    _matrix("the worst run's regret over the mean", learning, lambda line: _ratio(line.worst))
    _matrix("mean regret", learning, lambda line: figure(line.mean))
    _matrix(
        "share of the most chosen arm, where all arms are equal",
        [line for line in table if line not in learning],
        lambda line: f"{line.share:.2f}",
    )


def _matrix(title: str, table: Sequence[GalleryLine], text: Callable[[GalleryLine], str]) -> None:
    """Print problems x policies."""
    if not table:
        return
    policies = list(dict.fromkeys(line.policy for line in table))
    rows: dict[str, list[str]] = {}
    for line in table:
        rows.setdefault(line.problem, [""] * len(policies))[policies.index(line.policy)] = text(line)
    show_table(["problem", *policies], [[problem, *cells] for problem, cells in rows.items()], title)


def _ratio(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:,.0f}"
