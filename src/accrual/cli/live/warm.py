"""`accrual warm`: compile what live bandits need, so that no process has to do it later."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from accrual.cli import completion
from accrual.cli.output import say


def warm(
    policies: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[POLICY]...",
            help="Policies; without any, AgePrior and AgeLinTS.",
            autocompletion=completion.policies,
        ),
    ] = None,
    guardrails: Annotated[
        bool, typer.Option("--guardrails", help="For bandits with guardrails, which need more code.")
    ] = False,
) -> None:
    """Compile for live bandits, in advance."""
    from accrual.live.warm import warm as compile_policy
    from accrual.policies.catalog import DEFAULT, DEFAULT_WITH_FEATURES, parse

    for text in policies or [DEFAULT.label, DEFAULT_WITH_FEATURES.label]:
        window = 60 * getattr(parse(text), "alpha", 1)  # any window that its groups divide
        begun = time.perf_counter()
        compile_policy(text, window, ["guardrail"] if guardrails else [])
        say(f"{text}: {time.perf_counter() - begun:.1f} s")
