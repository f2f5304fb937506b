"""AgePrior, the default policy: pieces at every age, and a prior over arms that is learned on the way."""

from __future__ import annotations

from accrual.policies.age_prior.history import STEPS, with_history
from accrual.policies.age_prior.policy import AgePrior

__all__ = ["STEPS", "AgePrior", "with_history"]
