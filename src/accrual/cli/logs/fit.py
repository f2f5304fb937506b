"""`accrual fit`: from a log to how its reward arrives."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accrual.cli.logs.options import BAD_ROWS_FILE, LogOptions, with_log
from accrual.cli.options import Plot
from accrual.cli.output import PICTURES, line_width, say, show_table, writable
from accrual.core.errors import InputError, need
from accrual.core.number_text import figure

if TYPE_CHECKING:
    from accrual.logs.fitted import Fitted, Shares

_ARMS_MOST = 5  # columns of the spread's table
_WIDEST = 100  # characters in a line of the spread's table


@with_log
def fit(
    source: LogOptions,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="PATH", help="Write what was found here (.json).")
    ] = None,
    plot: Plot = None,
    prior: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Write the policy for new arms like the log's here (.txt)."),
    ] = None,
    arms: Annotated[int, typer.Option(min=1, metavar="COUNT", help="How many arms to print at most.")] = 20,
) -> None:
    """Estimate from a log how its reward arrives."""
    need("duckdb", "fit")
    source.check_uniform()
    if out is not None:
        writable(out, (".json",))
    if prior is not None:
        writable(prior, (".txt",))
    if plot is not None:
        writable(plot, PICTURES)
        need("matplotlib", "plot")
    with _waiting("reading the log and fitting"), source.opened() as log:
        fitted = source.fit(log)
    if prior is not None:  # first of all, for it may be refused
        _write_prior(fitted, prior)
    if out is not None:
        fitted.save(out)
    if plot is not None:
        fitted.plot(plot)
    show(fitted, arms)
    bad_rows = BAD_ROWS_FILE if fitted.log["bad_rows"] else None
    for what, path in (
        ("rows left out", bad_rows),
        ("written", out),
        ("policy for new arms", prior),
        ("picture", plot),
    ):
        if path is not None:
            typer.echo(f"{what}: {path}")


def _write_prior(fitted: Fitted, path: Path) -> None:
    from accrual.core.files import replacing
    from accrual.policies.catalog import policy_text

    policy = fitted.prior()
    if policy is None:
        raise InputError(
            "--prior needs at least two arms that have paid something, and their caps: give --cap, the most "
            "that one decision can pay"
        )
    with replacing(path) as partial:
        partial.write_text(f"{policy_text(policy)}\n", encoding="utf-8")


def _waiting(what: str) -> AbstractContextManager[object]:
    """Show on a terminal that work is going on."""
    from rich.console import Console

    console = Console(stderr=True)
    return console.status(what) if console.is_terminal else nullcontext()


def show(fitted: Fitted, arms: int) -> None:
    """Print what a fit found: the conclusions, then the tables."""
    from accrual.logs.fitted import conclusions, grounds, top_lines

    for line in (*top_lines(fitted), *conclusions(fitted), ""):
        say(line)
    _show_arms(fitted, arms)
    _show_curves(fitted, arms)
    _show_spread(fitted)
    for line in grounds(fitted):
        say(line)


def _show_arms(fitted: Fitted, most: int) -> None:
    from accrual.logs.fitted import arm_rows, shortened

    rows = []
    figures = arm_rows(fitted)
    for name, (decisions, closed, mean, low, high, *totals, ten, heavy) in figures[:most]:
        between = "-" if math.isnan(mean) else f"{figure(low)} to {figure(high)}{' ?' if heavy else ''}"
        counts = [f"{decisions:,.0f}", f"{closed:,.0f}"]
        share = "-" if math.isnan(ten) else f"{100 * ten:.0f} %"
        rows.append([shortened(name), *counts, figure(mean), between, *map(figure, totals), share])
    title = "what the arms pay"
    if len(figures) > most:
        title += f": the first {most} of {len(figures):,} (--arms {len(figures)} shows all)"
    if any(heavy for _, (*_, heavy) in figures[:most]):
        title += " (?: not to be trusted, see above)"
    heads = ["arm", "decisions", "closed", "mean", "95 %", "largest", "99.9 %", "cap", "top ten"]
    show_table(heads, rows, title)


def _show_curves(fitted: Fitted, most: int) -> None:
    from accrual.logs.fitted import risk_places, shortened, time

    room = max((min(line_width(), _WIDEST) - 16) // 19, 1)  # columns of 16 characters and a gap
    places, length = risk_places(fitted.groups, min(room, 5)), fitted.window / fitted.groups
    curves = [(arm.name, arm.curve) for arm in fitted.arms if arm.curve is not None]
    rows = []
    for name, curve in curves[: min(most, _ARMS_MOST)]:
        means = [
            f"{figure(curve.value[g], 3)} ({figure(curve.low[g], 3)}-{figure(curve.high[g], 3)})"
            for g in places
        ]
        rows += [[shortened(name), *means], ["  followed", *(f"{curve.followed[g]:,}" for g in places)]]
    title = "what a decision has paid by age, on average (95 % interval), and how many were followed so far"
    if len(curves) > _ARMS_MOST:
        title += f"; the first {_ARMS_MOST} of {len(curves):,} arms"
    show_table(["by age", *(time(fitted, (g + 1) * length) for g in places)], rows, title)


def _show_spread(fitted: Fitted) -> None:
    from accrual.logs.fitted import shortened, time

    paying = [arm for arm in fitted.arms if arm.spread is not None]
    room = (min(line_width(), _WIDEST) - 20) // 24 - 1  # columns of 21 characters and a gap
    most = max(0, min(_ARMS_MOST, room))
    columns: dict[str, Shares] = {"all arms": fitted.spread}
    columns |= {shortened(arm.name): arm.spread for arm in paying[:most] if arm.spread is not None}
    length, first = fitted.window / fitted.groups, 1
    rows = []
    for together in zip(*(shares.rows for shares in columns.values()), strict=True):
        last = int(together[0][0])
        row = [f"{first}-{last}" if last > first else str(last), time(fitted, last * length)]
        row += [f"{share:.3f} ({low:.3f}-{high:.3f})" for _, share, low, high in together]
        rows.append(row)
        first = last + 1
    each = int(fitted.spread.rows[0][0])
    what = "each group" if each == 1 else f"{each} groups at a time"
    title = f"spread: the share of the reward that comes in {what} (95 % interval)"
    if len(paying) > most:
        title += f"; the first {most} of {len(paying):,} arms" if most else "; all arms together"
    show_table(["group", "up to age", *columns], rows, title)
