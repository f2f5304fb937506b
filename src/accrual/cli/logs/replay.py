"""`accrual replay`: what a policy would have earned, judged by a log."""

from __future__ import annotations

from typing import Annotated

import typer

from accrual.cli.completion import policies
from accrual.cli.logs.compare import ARMS_SHOWN
from accrual.cli.logs.options import LogOptions, with_log
from accrual.cli.options import Seed
from accrual.cli.output import say, show_table
from accrual.core.errors import InputError
from accrual.core.number_text import figure


@with_log
def replay(
    source: LogOptions,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT", help="A policy, such as AgePrior; may be repeated.", autocompletion=policies
        ),
    ] = None,
    always: Annotated[
        list[str] | None,
        typer.Option(metavar="ARM", help="A policy that always chooses this arm; may be repeated."),
    ] = None,
    shares: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ARM=SHARE,...", help="A policy that chooses arms with these shares; may be repeated."
        ),
    ] = None,
    all_arms: Annotated[
        bool, typer.Option("--all-arms", help=f"Print every arm, not just {ARMS_SHOWN}.")
    ] = False,
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="For policies that learn: rejection, weighting or 'doubly robust'."
        ),
    ] = "rejection",
    seed: Seed = 0,
) -> None:
    """Judge policies by a log collected at random."""
    from accrual.evaluate.replay import ReplayResult, from_log, judge_all, named
    from accrual.policies.catalog import DEFAULT

    if source.log.suffix == ".json":
        raise InputError(f"{source.log}: a replay needs the log itself, not what a fit wrote")
    with source.opened() as log:
        logged = from_log(log, source.fit(log), source.uniform)
    given = [*(policy or ()), *(f"always {arm}" for arm in always or ()), *(shares or ())] or [DEFAULT.label]
    lines = judge_all(logged, named(given, logged), method, seed)  # type: ignore[arg-type]  # it names the right ones itself
    result = ReplayResult(logged, lines, method)
    for line in [*result.summary().splitlines(), ""]:
        say(line)
    show_table(
        ["policy", "method", "reward", "95 %", "vs the log", "95 %", "effective"],
        [
            [
                line.policy,
                line.method,
                figure(line.reward.value),
                line.reward.between(),
                *([figure(line.more.value, 3, "+"), line.more.between()] if row else ["", ""]),
                f"{line.effective:,.0f}",
            ]
            for row, line in enumerate(result.lines)
        ],
        f"{source.log}: reward per decision",
    )
    # Of the three lines of a fixed policy one is enough here, and a column is a policy: arms may be many.
    chosen = {line.policy: line.shares for line in result.lines}
    order = sorted(range(len(logged.arms)), key=lambda arm: -max(share[arm] for share in chosen.values()))
    shown = sorted(order if all_arms else order[:ARMS_SHOWN])
    title = "share of the choices, %"
    if len(shown) < len(order):
        title += f"; {len(shown)} of {len(order):,} arms"
    show_table(
        ["arm", *chosen],
        [[logged.arms[arm], *(f"{100 * share[arm]:.1f}" for share in chosen.values())] for arm in shown],
        title,
    )
