"""`accrual gallery`: policies on problems that are hard in different ways."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accrual.cli import completion
from accrual.cli.options import Device, count, with_executor
from accrual.cli.output import show_table, writable
from accrual.core.errors import need
from accrual.core.files import write_csv
from accrual.core.number_text import figure

if TYPE_CHECKING:
    from accrual.runs.runner import Executor
    from accrual.studies.gallery import GalleryLine

_FLOORS = {  # by whether a problem has contexts
    False: "the better of IMED and Thompson sampling",
    True: "the better of AgeLinTS and LinTS",
}


@with_executor
def gallery(
    executor: Executor,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID",
            help="A problem, or the beginning of its name; may be repeated.",
            autocompletion=completion.gallery,
        ),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help="A row of the table or any policy; may be repeated.",
            autocompletion=completion.policies,
        ),
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
    from accrual.runs.cells import gather_results
    from accrual.runs.runner import run_cells
    from accrual.studies.gallery import GalleryLine, choose, cut_entry, draw, lines, select

    compared = choose(select(only or ()), policy or ())
    entries = select([*compared])
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
    for with_contexts, floor in _FLOORS.items():
        chosen = {entry.id for entry in entries if (entry.problem.contexts is not None) == with_contexts}
        _show([line for line in table if line.problem in chosen], floor)
    write_csv(figures, [GalleryLine._fields, *table])
    typer.echo(f"figures: {figures}")
    if any(line.mean > 0 for line in table):
        draw(picture, table, {entry.id: entry.title for entry in entries})
        typer.echo(f"picture: {picture}")


def _show(table: Sequence[GalleryLine], floor: str) -> None:
    learning = [line for line in table if line.over_floor > 0]
    title = f"regret over the floor's ({floor} without delay)"
    _matrix(title, learning, lambda line: _ratio(line.over_floor))
    _matrix("the 99 % quantile of the runs' regret over the same", learning, lambda line: _ratio(line.q99))
    _matrix("the worst run's regret over the same", learning, lambda line: _ratio(line.worst))
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
