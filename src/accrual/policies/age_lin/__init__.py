"""AgeLinTS: the right arm for each context, learned from every piece.

Read `sums` first (what is stored of decisions, and how they enter), then `refresh` (how estimates follow from
the sums), then `policy` (the index and the settings). docs/contexts.md has the model.
"""

from __future__ import annotations

from accrual.policies.age_lin.policy import AgeLinTS, average_columns
from accrual.policies.age_lin.sums import READY, Stats

__all__ = ["READY", "AgeLinTS", "Stats", "average_columns"]
