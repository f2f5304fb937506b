"""Compare policies on the problem that a log was fitted to, or on the contexts of a log.

The command line takes `compare` apart, to play the cells anywhere: `set_up`, `comparison_policies`,
`comparison_cells`, `make_comparison`, `write_report`.
"""

from __future__ import annotations

from accrual.evaluate.compare.by_context import ContextComparison, compare_by_context
from accrual.evaluate.compare.comparison import RANGE, Comparison, compare, conclusions, make_comparison
from accrual.evaluate.compare.page import PAGE, TABLE, write_report
from accrual.evaluate.compare.setup import (
    BASELINE,
    comparison_cells,
    comparison_policies,
    notes,
    set_up,
    usual_horizon,
)

__all__ = [
    "BASELINE",
    "PAGE",
    "RANGE",
    "TABLE",
    "Comparison",
    "ContextComparison",
    "compare",
    "compare_by_context",
    "comparison_cells",
    "comparison_policies",
    "conclusions",
    "make_comparison",
    "notes",
    "set_up",
    "usual_horizon",
    "write_report",
]
