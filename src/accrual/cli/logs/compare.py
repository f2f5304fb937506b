"""`accrual compare`: which policy would do best on a log, and what waiting costs there."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from accrual.cli.completion import policies
from accrual.cli.logs.options import LogOptions, with_log
from accrual.cli.options import Device, Runs, Seed, count, expanded, with_executor
from accrual.cli.output import say, show_table, writable
from accrual.core.errors import InputError, need
from accrual.core.files import write_csv
from accrual.core.number_text import figure

if TYPE_CHECKING:
    from accrual.core.interval import Interval
    from accrual.evaluate.compare import Comparison
    from accrual.runs.runner import Executor


class CompareExtent(NamedTuple):
    """How much to play, and on what."""

    runs: Runs = 100
    horizon: Annotated[
        int | None, typer.Option(parser=count, metavar="ROUNDS", help="Decisions in a run.")
    ] = None
    device: Device = "cpu"


ARMS_SHOWN = 20


@with_log
@with_executor
@partial(expanded, name="extent", make=CompareExtent)
def compare(
    source: LogOptions,
    executor: Executor,
    extent: CompareExtent,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help="A policy, such as AgeTS or TPUCBFR(20); may be repeated.",
            autocompletion=policies,
        ),
    ] = None,
    all_arms: Annotated[
        bool, typer.Option("--all-arms", help=f"Print every arm, not just the best {ARMS_SHOWN}.")
    ] = False,
    rate: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="Decisions per second, or per the log's own unit.")
    ] = None,
    seed: Seed = 0,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where results and report go.")] = Path(
        "out/compare"
    ),
) -> None:
    """Simulate policies on what a log has paid.

    Simulated decisions pay what logged decisions paid, at the same ages.
    """
    need("matplotlib", "plot")
    source.check_uniform()
    from accrual.evaluate.compare import (
        PAGE,
        TABLE,
        comparison_cells,
        comparison_policies,
        conclusions,
        make_comparison,
        notes,
        set_up,
        usual_horizon,
        write_report,
    )
    from accrual.logs.fitted import reading_lines, top_lines
    from accrual.runs.cells import gather_results
    from accrual.runs.runner import Local, run_cells

    runs, horizon, device = extent
    figures = out / TABLE
    if source.context:
        if rate is not None or all_arms or executor != Local():
            raise InputError(
                "with --context decisions are made at the log's own pace, one run after the other: leave out "
                "--rate, --all-arms, --jobs, --engine and --address"
            )
        _by_context(source, extent, policy or (), seed, figures)
        return
    for path in (out / PAGE, figures):
        writable(path, [path.suffix], new_folder=True)
    setup = set_up(source.fitted(), rate, seed)
    compared = comparison_policies(setup, policy or ())
    rounds = usual_horizon(setup) if horizon is None else horizon
    cells = comparison_cells(setup, compared, rounds, runs, seed, device)
    run_cells(cells, out, executor)
    result = gather_results(cells, out)
    command = ["accrual", "compare", *source.words(), *(f"--policy={text}" for text in policy or ())]
    command += [f"--runs={runs}", f"--horizon={rounds}", f"--seed={seed}"]
    command += [] if rate is None else [f"--rate={rate:g}"]
    command += [] if device == "cpu" else [f"--device={device}"]
    kept = Path(source.log) if source.log.suffix == ".json" else out / "problem.json"
    if source.log.suffix != ".json":
        setup.fitted.save(kept)
    comparison = make_comparison(setup, result, compared, shlex.join(command), device, str(kept))
    result.save(out / "comparison.parquet")
    _write(figures, comparison.rows())
    page = write_report(out, comparison)
    say(f"{source.log}: {runs:,} runs of {rounds:,} decisions, seed {seed}")
    *sentences, python = conclusions(comparison)
    for line in [*top_lines(setup.fitted), *sentences]:
        say(line)
    typer.echo(f"{python}\n")  # in one piece, to be copied
    _show(comparison, all_arms)
    for note in [*notes(setup), *reading_lines(setup.fitted)]:
        say(note)
    typer.echo(f"figures: {figures}")
    typer.echo(f"report: {page}")


def _write(figures: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    numbers = ([f"{one:.6g}" if isinstance(one, float) else one for one in row.values()] for row in rows)
    figures.parent.mkdir(parents=True, exist_ok=True)
    write_csv(figures, [rows[0], *numbers])


def _by_context(
    source: LogOptions, extent: CompareExtent, policies: Sequence[str], seed: int, figures: Path
) -> None:
    """Compare by context, print what was found, and write the figures."""
    from accrual.evaluate.compare import compare_by_context

    if source.log.suffix == ".json" or extent.device != "cpu":
        raise InputError("contexts are compared on the log itself, on the CPU")
    writable(figures, [figures.suffix], new_folder=True)
    with source.opened() as log:
        found = compare_by_context(
            log, (), policies, extent.runs, extent.horizon, seed, source.uniform, source.fit(log)
        )
    for line in [*found.summary().splitlines(), ""]:
        say(line)
    show_table(
        ["policy", "reward", "95 %", "lost per 1000", "95 %", f"vs {found.lines[0].policy}", "95 %"],
        [
            [
                line.policy, figure(line.reward.value), line.reward.between(),
                figure(line.lost.value), line.lost.between(), *(_difference(line.more) if row else ["", ""]),
            ]
            for row, line in enumerate(found.lines)
        ],
        f"{source.log}: by context",
    )  # fmt: skip
    _write(figures, found.rows())
    typer.echo(f"figures: {figures}")


def _show(comparison: Comparison, all_arms: bool) -> None:
    from accrual.evaluate.compare import BASELINE, RANGE

    shown = comparison.arms if all_arms else comparison.arms[:ARMS_SHOWN]
    count = len(comparison.arms)
    title = "arms" if len(shown) == count else f"arms, the best {len(shown)} of {count:,}"
    show_table(
        ["arm", "decisions", "mean", "95 %", "shrunk", "95 %", "best?"],
        [
            [
                line.arm,
                f"{line.decisions:,}",
                figure(line.log.value),
                line.log.between(),
                figure(line.mean.value),
                line.mean.between(),
                f"{line.best:.2f}",
            ]
            for line in shown
        ],
        title,
    )
    show_table(
        ["policy", "lost per 1000", RANGE, "best arm", f"vs {BASELINE}", RANGE],
        [
            [
                line.policy,
                figure(line.lost.value),
                line.lost.between(),
                f"{line.share.value:.1f} %",
                *(_difference(line.more) if line.policy != BASELINE else ["", ""]),
            ]
            for line in comparison.lines
        ],
        "what policies lose",
    )
    show_table(
        ["what is seen", "lost per 1000", RANGE, "vs at once", RANGE],
        [
            [
                cost.way,
                figure(cost.lost.value),
                cost.lost.between(),
                *(_difference(cost.more) if row else ["", ""]),
            ]
            for row, cost in enumerate(comparison.waiting.costs)
        ],
        f"what waiting costs {BASELINE}",
    )


def _difference(value: Interval) -> list[str]:
    return [figure(value.value, 3, "+"), value.between()]
