"""`accrual fit`: from a log to how its reward arrives."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accrual.cli.log import LogOptions, with_log
from accrual.cli.options import Plot
from accrual.cli.output import PICTURES, number, show_table, writable
from accrual.core.errors import need

if TYPE_CHECKING:
    from accrual.fit.schema import Arm, Fitted, Interval, Shares

_ARMS_MOST = 5  # columns of the spread's table
_UNITS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "m"), (1.0, "s"))


@with_log
def fit(
    source: LogOptions,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="PATH", help="Write what was found here (.json).")
    ] = None,
    plot: Plot = None,
) -> None:
    """Find out from a log how its reward arrives."""
    need("duckdb", "fit")
    if out is not None:
        writable(out, (".json",))
    if plot is not None:
        writable(plot, PICTURES)
        need("matplotlib", "plot")
    with _waiting("reading the log and fitting"), source.opened() as log:
        fitted = source.fit(log)
    show(fitted)
    if out is not None:
        fitted.save(out)
        typer.echo(f"written: {out}")
    if plot is not None:
        from accrual.report.fit import draw

        draw(fitted, plot)
        typer.echo(f"picture: {plot}")


def _waiting(what: str) -> AbstractContextManager[object]:
    """Something that turns while a terminal's user waits."""
    from rich.console import Console

    console = Console(stderr=True)
    return console.status(what) if console.is_terminal else nullcontext()


def show(fitted: Fitted) -> None:
    """Print what a fit found."""
    _show_log(fitted)
    _show_arms(fitted.arms)
    _show_spread(fitted)
    advice = fitted.recommended
    typer.echo(
        f"recommended window: {_length(fitted, advice.window)}, by which 99 % has come of the reward that "
        f"comes within {time(fitted, advice.watched)}, as far as a tenth of the decisions were followed"
    )
    share, low, high = (
        f"{100 * x:.2f}" for x in (advice.beyond.value, advice.beyond.low, advice.beyond.high)
    )
    after = f"{share} % ({low} to {high})"
    if advice.faded:
        typer.echo(f"after that: {after} of all reward, if it goes on fading as it does")
    else:
        typer.echo(
            f"the reward has not faded by then: {after} of it may come later, so the window is too short"
        )
    typer.echo(f"recommended groups: {advice.groups}")
    typer.echo("")
    for finding in fitted.findings:
        figures = "too little to tell"
        if finding.p is not None:
            figures = f"{finding.statistic:.3g}, p {'< 0.0001' if finding.p < 1e-4 else f'= {finding.p:.4f}'}"
        answer = "yes" if finding.yes else "no sign of it"
        typer.echo(f"{finding.question} {answer} ({finding.test}: {figures})")
    for warning in fitted.warnings:
        typer.echo(f"note: {warning}")


def _show_log(fitted: Fitted) -> None:
    log = fitted.log
    share = 100 * fitted.open / max(log["decisions"], 1)
    typer.echo(
        f"{log['decisions']:,} decisions and {log['pieces']:,} pieces from {log['first']} to {log['end']}"
    )
    for note in log["notes"]:
        typer.echo(note)
    left_out = {
        "pieces without a decision": log["orphans"],
        f"repeated pieces ({log['conflicts']:,} of them contradicting the first)": log["repeats"],
        "decisions and pieces after the end": log["after_end"],
        "pieces later than the window": fitted.late,
    }
    for what, count in left_out.items():
        if count:
            typer.echo(f"left out, {what}: {count:,}")
    typer.echo(
        f"window {time(fitted, fitted.window)} in {fitted.groups} groups: {fitted.open:,} decisions "
        f"({share:.1f} %) were still open at the end; they count as far as they were followed"
    )
    typer.echo("")


def _show_arms(arms: Sequence[Arm]) -> None:
    rows = []
    for arm in arms:
        row = [arm.name, f"{arm.decisions:,}", f"{arm.closed:,}"]
        if arm.mean is None or arm.cap is None:
            rows.append([*row, *"------"])
            continue
        own = number(arm.cap.given) if arm.cap.given is not None else "-"
        figures = (arm.mean.value, arm.mean.low, arm.mean.high, arm.cap.observed, arm.cap.quantile)
        rows.append([*row, *map(number, figures), own])
    head = ["arm", "decisions", "closed", "mean", "95 % from", "to", "largest total", "99.9 %", "your cap"]
    show_table(head, rows)


def _show_spread(fitted: Fitted) -> None:
    paying = [arm for arm in fitted.arms if arm.spread is not None]
    columns: dict[str, Shares] = {"all arms": fitted.spread}
    columns |= {arm.name: arm.spread for arm in paying[:_ARMS_MOST] if arm.spread is not None}
    length = fitted.window / fitted.groups
    rows = []
    for g in range(fitted.groups):
        row = [str(g + 1), time(fitted, (g + 1) * length)]
        for shares in columns.values():
            row.append(f"{shares.value[g]:.3f} ({shares.low[g]:.3f}-{shares.high[g]:.3f})")
        rows.append(row)
    title = "spread: the share of the reward that comes in each group (95 % interval)"
    if len(paying) > _ARMS_MOST:
        title += f"; the first {_ARMS_MOST} of {len(paying)} arms"
    show_table(["group", "up to age", *columns], rows, title)


def time(fitted: Fitted, value: float) -> str:
    """A length of time as a person reads it: all of them in the unit that suits the window."""
    if fitted.unit != "seconds":
        return f"{value:.4g}"
    scale, name = next((s, n) for s, n in _UNITS if fitted.window >= 2 * s or s == 1.0)
    return f"{value / scale:.4g} {name}"


def _length(fitted: Fitted, interval: Interval) -> str:
    low, high = time(fitted, interval.low), time(fitted, interval.high)
    return f"{time(fitted, interval.value)} (95 % interval {low} to {high})"
