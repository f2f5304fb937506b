"""`accrual paper`: every table and figure of the paper, reproduced, checked and shown."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accrual.cli.options import Extent, with_executor, with_extent
from accrual.cli.output import show_table
from accrual.core.errors import InputError, need

if TYPE_CHECKING:
    from accrual.runs.runner import Executor
    from accrual.studies.paper import Report

_DISAGREES = 1


@with_executor
@with_extent
def paper(
    executor: Executor,
    extent: Extent,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="A setting, or figure3 or table8 as in the paper; may be repeated."),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where results and report go.")] = Path(
        "out/paper"
    ),
    fresh: Annotated[bool, typer.Option("--fresh", help="Compute again what is already there.")] = False,
    spotify: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH", help="The streaming sessions: a CSV file (or .gz), or a folder of them."
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Exit with 1 and a list if a printed number disagrees.")
    ] = False,
) -> int:
    """Reproduce the paper's tables and figures."""
    need("matplotlib", "plot")
    need("pyarrow", "frames")
    from accrual.studies.paper import HORIZON, PaperOptions, build, run

    horizon, runs, device = extent
    if check and horizon != HORIZON:
        raise InputError(f"--check compares with numbers printed for {HORIZON} rounds; leave out --horizon")
    options = PaperOptions(out, only or (), runs, horizon, executor, fresh, spotify, device)
    summary = run(options)
    if summary.policy_rounds:
        _say(
            f"{summary.policy_rounds / 1e6:,.4g} million policy-rounds in {summary.seconds:.1f} s, "
            f"{summary.policy_rounds / summary.seconds / 1e6:.3g} million a second; drawing the report"
        )
    report = build(out)
    _show(report)
    typer.echo(f"report: {report.page}")
    if not check:
        return 0
    for line in report.disagreements:
        typer.echo(f"disagrees: {line}")
    return _DISAGREES if report.disagreements else 0


def _show(report: Report) -> None:
    if report.printed:
        show_table(
            ["setting", "learner", "paper", "ours", "± s.e.", "difference", "agrees"],
            [
                [
                    line.setting,
                    line.learner,
                    f"{line.paper:.3g}",
                    f"{line.ours:.4g}",
                    f"{line.error:.2g}",
                    f"{100 * (line.difference or 0):+.1f} %",
                    "yes" if line.agrees else "NO",
                ]
                for line in report.printed
            ],
        )
        agree = len(report.printed) - len(report.disagreements)
        typer.echo(f"{agree} of {len(report.printed)} printed numbers agree")
    held = sum(statement.holds for statement in report.statements)
    typer.echo(f"{held} of {len(report.statements)} statements of the text hold")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
