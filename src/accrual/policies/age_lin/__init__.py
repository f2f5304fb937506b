"""AgeLinTS: the right arm for each context, learned from every piece."""

from __future__ import annotations

from accrual.policies.age_lin.policy import AgeLinTS
from accrual.policies.age_lin.sums import READY, Stats

__all__ = ["READY", "AgeLinTS", "Stats"]
