"""`accrual headline`: the paper's main comparison at full size."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accrual.cli.options import Horizon, Runs
from accrual.cli.output import PICTURES, number, show_table, writable
from accrual.core.errors import need

if TYPE_CHECKING:
    from accrual.engine.result import Result
    from accrual.policy.base import Policy

ALPHA = 50
BASELINE = f"TPUCBFR({ALPHA})"


def headline(
    runs: Runs = 100,
    horizon: Horizon = 100_000,
    out: Annotated[Path, typer.Option(metavar="PATH", help="Where to write the picture.")] = Path(
        "out/headline.png"
    ),
) -> None:
    """The paper's main comparison, at full size."""
    need("matplotlib", "plot")
    writable(out, PICTURES, new_folder=True)

    from accrual import bounds
    from accrual.engine.simulate import simulate
    from accrual.experiments.paper import setting1

    problem = setting1()
    compared = policies()
    if sys.stderr.isatty():  # the progress bar cannot come before the first round is compiled
        print(
            f"Setting 1, {len(compared)} policies, {runs:,} runs of {horizon:,} rounds "
            "(the first time, compiling takes some ten seconds)",
            file=sys.stderr,
        )
    result = simulate(problem, compared, horizon=horizon, runs=runs, seed=0)
    _show(result)
    curves = {
        f"upper bound of {BASELINE}": bounds.upper_tpucbfr(problem, result.rounds, ALPHA),
        f"upper bound of TPUCBFRG({ALPHA}, begin)": bounds.upper_tpucbfrg(
            problem, result.rounds, ALPHA, "begin"
        ),
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    result.plot(out, bounds=curves)
    typer.echo(f"picture: {out}")


def policies() -> list[Policy]:
    """What is compared: the eight spreads, the even one, and the two that use no pieces."""
    from accrual.policy.delayed_ucb1 import DelayedUCB1
    from accrual.policy.tpucbfr import TPUCBFR
    from accrual.policy.tpucbfrg import TPUCBFRG
    from accrual.policy.ucb1 import UCB1
    from accrual.spread import NAMES

    return [TPUCBFR(ALPHA), *(TPUCBFRG(ALPHA, name) for name in NAMES), UCB1(), DelayedUCB1()]


def _show(result: Result) -> None:
    rows = sorted(result.rows(BASELINE), key=lambda row: row["mean"])
    base = next(row["mean"] for row in rows if row["policy"] == BASELINE)
    show_table(
        ["policy", "regret", "s.e.", f"vs {BASELINE}", "s.e."],
        [
            [
                row["policy"],
                number(row["mean"]),
                number(row["se"]),
                "" if row["policy"] == BASELINE else f"{100 * row[f'vs {BASELINE}'] / base:+.1f} %",
                "" if row["policy"] == BASELINE else f"{100 * row['vs_se'] / base:.1f} %",
            ]
            for row in rows
        ],
    )
