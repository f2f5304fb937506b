"""What finished decisions say: the verdict, guardrails, and alarms for arms that no longer pay as they did.

Each is a `Watcher`; `watchers_of` lists them. Other rooms may use `Guardrail`, the states (`Verdict`,
`GuardrailState`, `AlarmState`), their outcomes, and the evidence with its scores, which a plan plays with.
"""

from __future__ import annotations

from accrual.live.watch.alarms import AlarmState, AlarmWatcher
from accrual.live.watch.evidence import (
    BETS,
    NO_PROPENSITY,
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
    Guardrail,
    GuardrailState,
    GuardrailWatcher,
    checked_guardrail,
)
from accrual.live.watch.verdicts import VERDICT_OUTCOMES, Verdict, VerdictWatcher
from accrual.live.watch.watcher import NEVER, Comparison, Finished, Flags, Pace, Watcher, see_all

__all__ = [
    "BETS",
    "GUARDRAILS_MOST",
    "GUARDRAIL_OUTCOMES",
    "NEVER",
    "NO_PROPENSITY",
    "REWARD",
    "VERDICT_OUTCOMES",
    "WEIGHTS",
    "AlarmState",
    "Comparison",
    "Evidence",
    "Finished",
    "Flags",
    "Guardrail",
    "GuardrailState",
    "Pace",
    "Verdict",
    "Watcher",
    "bound_of",
    "checked_guardrail",
    "comparison_error",
    "find_beaten",
    "no_evidence",
    "score",
    "see_all",
    "watchers_of",
]


def watchers_of(
    contextual: bool, imported: int = 0, guardrails: tuple[tuple[str, Guardrail], ...] = ()
) -> tuple[Watcher, ...]:
    """List the watchers of a bandit, each behind those whose findings it needs.

    Parameters
    ----------
    contextual : bool
        Whether the policy chooses by contexts.
    imported : int
        How many of the first decisions come from an old log.
    guardrails : tuple of (str, Guardrail)
        By name. Without any, their code is not compiled.
    """
    rails = (GuardrailWatcher(guardrails),) if guardrails else ()
    return (AlarmWatcher(contextual, imported), VerdictWatcher(), *rails)
