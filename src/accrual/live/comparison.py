"""A comparison of the arms in play over the same decisions: it begins anew whenever an arm is added."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from accrual.live.arm_table import ArmTable
from accrual.live.evidence import ERROR, Evidence, no_evidence
from accrual.live.guardrails import Guardrail
from accrual.live.guards import Guards, no_guards
from accrual.policy.floor import Limits


def new_comparison(
    arms: ArmTable,
    limits: Limits,
    allow_negative: bool,
    guardrails: Sequence[Guardrail],
    first: int = 0,
    last: Guards | None = None,
) -> tuple[Evidence, Guards]:
    """Return what a comparison begins with that counts decisions from id `first` on.

    An arm that was found worse on a guardrail in the `last` comparison stays so.
    """
    least = np.where(arms.playing, limits.shares(arms.playing).least, np.nan)
    sign = -1.0 if allow_negative else 0.0
    evidence = no_evidence(np.stack([sign * arms.caps, arms.caps], axis=1), least, ERROR, first)
    ranges = [(sign * one.cap, one.cap) for one in guardrails]
    guards = no_guards(ranges, [one.margin for one in guardrails], least, first)
    if last is not None:
        guards.worse[:, : last.worse.shape[1]] = last.worse
    return evidence, guards
