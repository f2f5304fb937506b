"""`accrual replay`: what a policy would have earned, judged by a log."""

from __future__ import annotations

from typing import Annotated

import typer

from accrual.cli.compare import between
from accrual.cli.log import LogOptions, with_log
from accrual.cli.output import number, show_table
from accrual.core.errors import InputError


@with_log
def replay(
    source: LogOptions,
    policy: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="A policy, such as AgeIMED; may be repeated."),
    ] = None,
    uniform: Annotated[
        bool, typer.Option("--uniform", help="Every arm had the same chance in the log.")
    ] = False,
    method: Annotated[str, typer.Option(metavar="NAME", help="rejection or weighting.")] = "rejection",
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="Which random draws.")] = 0,
) -> None:
    """What a policy would have earned, on a log that was collected at random."""
    from accrual.experiments.logged import from_log
    from accrual.experiments.replay import replay as play
    from accrual.policy.catalog import parse

    if source.log.suffix == ".json":
        raise InputError(f"{source.log}: a replay walks through a log itself, not through what was fitted")
    policies = {one.label: one for one in map(parse, policy or ["AgeIMED"])}
    if len(policies) < len(policy or ()):
        raise InputError("--policy gives the same policy twice")
    with source.opened() as log:
        logged = from_log(log, source.fit(log), uniform)
    lines = play(logged, policies, method, seed)  # type: ignore[arg-type]  # it names the right ones itself
    show_table(
        ["policy", "reward", "95 %", "vs the log", "95 %", "used", "effective"],
        [
            [
                line.policy,
                number(line.reward.value),
                between(line.reward),
                *([f"{line.more.value:+.4g}", between(line.more)] if row else ["", ""]),
                f"{line.used:,}",
                f"{line.effective:,.0f}",
            ]
            for row, line in enumerate(lines)
        ],
        f"{source.log}: reward per decision, by {method}",
    )
    names = list(logged.arms)
    show_table(
        ["share of the choices", *names],
        [[line.policy, *(f"{100 * share:.1f} %" for share in line.shares)] for line in lines],
    )
    typer.echo(_READ[method])


_READ = {
    "rejection": "Each policy ran by itself, on the decisions for which the log had chosen as it would.",
    "weighting": "Each policy learned from all that the log had chosen, and was asked at every decision.",
}
