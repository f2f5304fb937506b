"""`accrual simulate`: policies on a problem."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accrual.cli import completion
from accrual.cli.options import Extent, Plot, Seed, Setting, with_extent
from accrual.cli.output import PICTURES, show_table, writable
from accrual.core.errors import InputError, need
from accrual.core.files import write_csv
from accrual.core.number_text import figure

if TYPE_CHECKING:
    from accrual.engine.result import Result
    from accrual.policies.base import Policy


@with_extent
def simulate(
    setting: Setting,
    extent: Extent,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help="A policy, such as 'TPUCBFRG(alpha=50, spread=begin)'; may be repeated.",
            autocompletion=completion.policies,
        ),
    ] = None,
    seed: Seed = 0,
    threads: Annotated[
        int | None, typer.Option(metavar="COUNT", help="How many threads; all cores unless given.")
    ] = None,
    plot: Plot = None,
    save: Annotated[
        list[Path] | None,
        typer.Option(
            "--save",
            "--csv",
            metavar="PATH",
            help="Write the whole result (.parquet) or the printed table (.csv); may be repeated.",
        ),
    ] = None,
) -> None:
    """Play policies on a problem."""
    from accrual.engine.simulate import simulate as play
    from accrual.studies.problem_files import load, usual_policies, with_yardsticks

    setup = load(setting)
    policies = _parsed(policy) if policy else setup.policies or usual_policies(setup.problem)
    if plot is not None:
        writable(plot, PICTURES)
        need("matplotlib", "plot")
    for path in save or ():
        writable(path, (".parquet", ".csv"))
        if path.suffix == ".parquet":
            need("pyarrow", "frames")
    result = play(
        setup.problem,
        with_yardsticks(setup.problem, policies),
        horizon=extent.horizon,
        runs=extent.runs,
        seed=seed,
        device=extent.device,
        threads=threads,
    )
    show(result, f"{setting}: regret after {extent.horizon:,} rounds, {extent.runs:,} runs, seed {seed}")
    if plot is not None:
        result.plot(plot)
    for path in save or ():
        if path.suffix == ".parquet":
            result.save(path)
        else:
            rows = result.rows()
            write_csv(path, [rows[0], *(row.values() for row in rows)])


def show(result: Result, title: str) -> None:
    """Print the final regret of each policy, compared with the first."""
    rows = result.rows()
    head = ["policy", "mean", "s.e.", "5 %", "median", "95 %", "worst", f"vs {result.labels[0]}", "s.e."]
    show_table(head, [[row["policy"], *map(figure, list(row.values())[1:])] for row in rows], title)


def _parsed(texts: Sequence[str]) -> dict[str, Policy]:
    from accrual.policies.catalog import parse

    policies: dict[str, Policy] = {}
    for text in texts:
        policy = parse(text)
        if policy.label in policies:
            raise InputError(f"--policy gives {policy.label} twice")
        policies[policy.label] = policy
    return policies
