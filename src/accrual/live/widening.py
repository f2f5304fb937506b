"""A policy's statistics when a feature is added."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from accrual.core.features import Features
from accrual.policies.base import Policy
from accrual.policies.contexts import ContextualPolicy, params_of

Floats = npt.NDArray[np.float64]


def widened(policy: Policy, caps: Floats, window: int, stats: Any, features: Features) -> tuple[Floats, Any]:
    """Return what the policy sees of the last feature where it is missing, and its statistics with it.

    An error if the policy takes no further feature. One that sees no contexts keeps its statistics.

    Parameters
    ----------
    policy : Policy
    caps, window
        As for the policy's params.
    stats : tuple of arrays
        The policy's, for all features but the last.
    features : Features
    """
    if not isinstance(policy, ContextualPolicy):
        return np.zeros(0), stats
    missing = features.seen(np.full(len(features), np.nan))[features.encoding.first[-1] :]
    return missing, policy.widen(stats, params_of(policy, caps, window, features.width), missing)
