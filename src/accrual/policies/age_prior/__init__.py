"""AgePrior, the default policy: it learns from pieces at every age, and learns a prior over arms on the way.

Read `model` first (the statistics, and how one arm is estimated), then `learning` (what all arms share, with
`arm_features` for arms that have features), then `policy` (the index and the settings). `forgetting` is for
rewards that change, `history` starts the policy from older arms. docs/age_prior.md has the model in words.
"""

from __future__ import annotations

from accrual.policies.age_prior.history import STEPS, with_history
from accrual.policies.age_prior.policy import AgePrior

__all__ = ["STEPS", "AgePrior", "with_history"]
