"""What closed decisions say: the verdict, guardrails, and alarms for arms that no longer pay as they did.

Other rooms may use `Guardrail`, the states (`Verdict`, `GuardrailState`, `AlarmState`), their outcomes, and
the evidence with its scores, which a plan plays with.
"""

from __future__ import annotations

from accrual.live.watch.alarms import Alarms, AlarmState, alarm_state, no_alarms, watch, with_arms
from accrual.live.watch.evidence import (
    BEGINS,
    BETS,
    KNOWN,
    NO_PROPENSITY,
    SKIPPED,
    WEIGHTS,
    Evidence,
    bound_of,
    comparison_error,
    find_beaten,
    no_evidence,
    score,
)
from accrual.live.watch.guardrails import (
    GUARDRAIL_OUTCOMES,
    GUARDRAILS_MOST,
    REWARD,
    Flags,
    Guardrail,
    GuardrailState,
    Guards,
    checked_guardrail,
    guard,
    guardrail_states,
    no_guards,
)
from accrual.live.watch.verdicts import VERDICT_OUTCOMES, Pace, Verdict, verdict

__all__ = [
    "BEGINS",
    "BETS",
    "GUARDRAILS_MOST",
    "GUARDRAIL_OUTCOMES",
    "KNOWN",
    "NO_PROPENSITY",
    "REWARD",
    "SKIPPED",
    "VERDICT_OUTCOMES",
    "WEIGHTS",
    "AlarmState",
    "Alarms",
    "Evidence",
    "Flags",
    "Guardrail",
    "GuardrailState",
    "Guards",
    "Pace",
    "Verdict",
    "alarm_state",
    "bound_of",
    "checked_guardrail",
    "comparison_error",
    "find_beaten",
    "guard",
    "guardrail_states",
    "no_alarms",
    "no_evidence",
    "no_guards",
    "score",
    "verdict",
    "watch",
    "with_arms",
]
