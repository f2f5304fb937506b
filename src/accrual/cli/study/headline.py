"""`accrual headline`: the paper's main comparison at full size."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accrual.cli.options import Device, Horizon, Runs
from accrual.cli.output import PICTURES, say, show_table, writable
from accrual.core.errors import need
from accrual.core.number_text import figure

if TYPE_CHECKING:
    from accrual.engine.result import Result

ALPHA = 50
BASELINE = f"TPUCBFR({ALPHA})"
FLOOR = "IMED, told totals at once"


def headline(
    runs: Runs = 100,
    horizon: Horizon = 100_000,
    device: Device = "cpu",
    out: Annotated[Path, typer.Option(metavar="PATH", help="Where to write the picture.")] = Path(
        "out/headline.png"
    ),
) -> None:
    """Play the paper's main comparison."""
    need("matplotlib", "plot")
    writable(out, PICTURES, new_folder=True)

    from accrual import bounds
    from accrual.engine.simulate import simulate
    from accrual.policies.age_prior import AgePrior
    from accrual.policies.imed import IMED
    from accrual.problems.paper import setting1
    from accrual.studies.bench import compared

    problem = setting1()
    policies = {policy.label: policy for policy in compared(ALPHA)}
    policies |= {"AgePrior, the default": AgePrior(), FLOOR: IMED(immediate=True)}
    if sys.stderr.isatty():  # the progress bar cannot come before the first round is compiled
        print(
            f"Setting 1, {len(policies)} policies, {runs:,} runs of {horizon:,} rounds "
            "(the first time, compiling takes some ten seconds)",
            file=sys.stderr,
        )
    result = simulate(problem, policies, horizon=horizon, runs=runs, seed=0, device=device)
    _show(result)
    curves = {
        f"upper bound of {BASELINE}": bounds.upper_tpucbfr(problem, result.rounds, ALPHA),
        f"upper bound of TPUCBFRG({ALPHA}, begin)": bounds.upper_tpucbfrg(
            problem, result.rounds, ALPHA, "begin"
        ),
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    result.plot(out, bounds=curves)
    say(
        "The TPUCB policies are the paper's; AgePrior is the default of live bandits, and is told no spread. "
        f"'{FLOOR}' is the no-delay floor: it learns each total in the round of its decision."
    )
    typer.echo(f"picture: {out}")
    typer.echo("next: accrual serve --demo (a bandit that learns as you watch), or accrual --help")


def _show(result: Result) -> None:
    rows = sorted(result.rows(BASELINE), key=lambda row: row["mean"])
    base = next(row["mean"] for row in rows if row["policy"] == BASELINE)
    lines = []
    for row in rows:
        change, error = (100 * row[key] / base for key in (f"vs {BASELINE}", "vs_se"))
        compared = ["", ""] if row["policy"] == BASELINE else [f"{change:+.1f} %", f"{error:.1f} %"]
        if math.isnan(error):  # of a single run
            compared[1] = ""
        lines.append([row["policy"], figure(row["mean"]), figure(row["se"]), *compared])
    show_table(["policy", "regret", "s.e.", f"vs {BASELINE}", "s.e."], lines)
