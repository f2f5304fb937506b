"""The policy for arms that a log does not know, from those that it does."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from accrual.core.errors import InputError
from accrual.core.groups import group_of
from accrual.fit.schema import Arm, Fitted, Floats
from accrual.policy.age_history import STEPS, with_history
from accrual.policy.age_prior import AgePrior


def policy_for_new_arms(
    fitted: Fitted, cap: float | None, window: float, without: Collection[str]
) -> AgePrior | None:
    """See `Fitted.prior`."""
    if not 0.0 < window <= fitted.window:
        raise InputError(
            f"window must be above 0 and at most the fit's own, {fitted.window:g}, not {window!r}"
        )
    if cap is not None and not 0.0 < cap < np.inf:
        raise InputError(f"cap must be a number above 0, not {cap!r}")
    old = []
    for arm in fitted.known:
        own = arm.cap.given if arm.cap is not None and arm.cap.given is not None else cap
        if own is not None and arm.name not in without:
            old.append(_rows(arm, window) / own)
    return with_history(AgePrior(), old)


def _rows(arm: Arm, window: float) -> Floats:
    """Add up what each decision of the sample paid in each step of the window: decisions x steps."""
    sample = arm.sample
    decision = np.repeat(np.arange(len(sample.lengths)), sample.lengths)
    step = group_of(sample.ages, window, STEPS)  # STEPS itself past the window
    rows = np.zeros((len(sample.lengths), STEPS + 1))
    np.add.at(rows, (decision, step), sample.values * sample.scale)
    return rows[:, :STEPS]
