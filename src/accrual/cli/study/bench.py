"""`accrual bench`: what a policy-round costs on this machine."""

from __future__ import annotations

from accrual.cli.output import show_table


def bench() -> None:
    """Measure the simulator on this machine."""
    from accrual.studies.bench import report

    show_table(["measurement", "value"], [list(row) for row in report()])
