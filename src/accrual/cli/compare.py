"""`accrual compare`: which policy would do best on a log, and what waiting costs there."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from accrual.cli.log import LogOptions, with_log
from accrual.cli.options import Device, Runs, count, expanded, with_executor
from accrual.cli.output import number, show_table, writable
from accrual.core.errors import need

if TYPE_CHECKING:
    from accrual.experiments.comparison import Comparison
    from accrual.experiments.runner import Executor
    from accrual.fit.schema import Interval


class Extent(NamedTuple):
    """How much to play, and on what."""

    runs: int
    horizon: int | None
    device: str


_EXTENT = {
    "runs": (Runs, 100),
    "horizon": (
        Annotated[int | None, typer.Option(parser=count, metavar="ROUNDS", help="Decisions in a run.")],
        None,
    ),
    "device": (Device, "cpu"),
}


def _with_extent(command: Callable[..., Any]) -> Callable[..., Any]:
    return expanded(command, "extent", _EXTENT, Extent)


@with_log
@with_executor
@_with_extent
def compare(
    source: LogOptions,
    executor: Executor,
    extent: Extent,
    policy: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="A policy, such as AgeTS or TPUCBFR(20); may be repeated."),
    ] = None,
    rate: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="Decisions per second, or per the log's own unit.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="Which random draws.")] = 0,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where results and report go.")] = Path(
        "out/compare"
    ),
) -> None:
    """Simulate policies on decisions that pay what logged ones did, when they did."""
    need("matplotlib", "plot")
    from accrual.experiments import compare as on_log
    from accrual.experiments.cells import gather
    from accrual.experiments.comparison import comparison
    from accrual.experiments.runner import run_cells
    from accrual.report.compare import PAGE, TABLE, write_csv, write_report

    runs, horizon, device = extent
    figures = out / TABLE
    for path in (out / PAGE, figures):
        writable(path, [path.suffix], new_folder=True)
    setup = on_log.set_up(source.fitted(), rate)
    compared = on_log.policies(setup, policy or ())
    rounds = on_log.usual_horizon(setup) if horizon is None else horizon
    cells = on_log.cells(setup, compared, rounds, runs, seed, device)
    run_cells(cells, out, executor)
    result = gather(cells, out)
    command = ["accrual", "compare", *source.words(), *(f"--policy={text}" for text in policy or ())]
    command += [f"--runs={runs}", f"--horizon={rounds}", f"--seed={seed}"]
    command += [] if rate is None else [f"--rate={rate:g}"]
    command += [] if device == "cpu" else [f"--device={device}"]
    found = comparison(setup, result, compared, shlex.join(command))
    result.save(out / "comparison.parquet")
    write_csv(figures, found)
    page = write_report(out, found)
    _show(found, f"{source.log}: {runs:,} runs of {rounds:,} decisions, seed {seed}")
    for note in on_log.notes(setup):
        typer.echo(note)
    typer.echo(f"to play {found.best.policy} live: {found.live}")
    typer.echo(f"figures: {figures}")
    typer.echo(f"report: {page}")


def _show(found: Comparison, title: str) -> None:
    from accrual.experiments.compare import BASELINE
    from accrual.experiments.comparison import pieces_save

    show_table(
        ["policy", "regret", "95 %", "lost per 1000", "best arm", f"per 1000 vs {BASELINE}", "95 %"],
        [
            [
                line.policy,
                number(line.regret.value),
                between(line.regret),
                number(line.lost.value),
                f"{line.share.value:.1f} %",
                *(["", ""] if line.policy == BASELINE else [f"{line.more.value:+.4g}", between(line.more)]),
            ]
            for line in found.lines
        ],
        title,
    )
    show_table(
        ["what is seen", "policy", "lost per 1000", "95 %", "vs at once", "95 %"],
        [
            [
                cost.way,
                cost.policy,
                number(cost.lost.value),
                between(cost.lost),
                *([f"{cost.more.value:+.4g}", between(cost.more)] if row else ["", ""]),
            ]
            for row, cost in enumerate(found.waiting)
        ],
        "what waiting costs",
    )
    saved = pieces_save(found.waiting)
    if saved is not None:
        typer.echo(f"Using pieces saves {saved:.0f} % of what waiting for totals costs.")


def between(value: Interval) -> str:
    """An interval in a table."""
    return "-" if value.low != value.low else f"{number(value.low)} to {number(value.high)}"
