"""What finished decisions say: the verdict, guardrails, and alarms for arms that no longer pay as they did.

Each is a `Watcher`; `watchers_of` lists them. `STREAM_KINDS` lists the kinds of streams beside the reward,
each with its own watcher. Other rooms may use `Guardrail`, the states (`Verdict`,
`GuardrailState`, `AlarmState`), their outcomes, and the evidence with its scores, which a plan plays with.
"""

from __future__ import annotations

from collections.abc import Sequence

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
from accrual.live.watch.guardrails import GUARDRAIL_OUTCOMES, Guardrail, GuardrailState
from accrual.live.watch.streams import REWARD, STREAMS_MOST, DeclaredStream, Stream
from accrual.live.watch.verdicts import VERDICT_OUTCOMES, Verdict, VerdictWatcher
from accrual.live.watch.watcher import NEVER, Comparison, Finished, Flags, Pace, Watcher, see_all
from accrual.store.events import NO_STREAM

__all__ = [
    "BETS",
    "GUARDRAIL_OUTCOMES",
    "NEVER",
    "NO_PROPENSITY",
    "NO_STREAM",
    "REWARD",
    "STREAMS_MOST",
    "STREAM_KINDS",
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
    "Stream",
    "Verdict",
    "Watcher",
    "bound_of",
    "comparison_error",
    "find_beaten",
    "no_evidence",
    "score",
    "see_all",
    "watchers_of",
]


STREAM_KINDS: dict[str, type[Stream]] = {kind.kind: kind for kind in (Guardrail,)}
"""The kinds of streams beside the reward."""


def watchers_of(
    contextual: bool, imported: int = 0, streams: Sequence[tuple[str, Stream]] = ()
) -> tuple[Watcher, ...]:
    """List the watchers of a bandit, each behind those whose findings it needs.

    Parameters
    ----------
    contextual : bool
        Whether the policy chooses by contexts.
    imported : int
        How many of the first decisions come from an old log.
    streams : sequence of (str, Stream)
        The streams beside the reward, by name. For a kind that the bandit does not have, nothing is compiled.
    """
    watchers: list[Watcher] = [AlarmWatcher(contextual, imported), VerdictWatcher()]
    declared = [DeclaredStream(number, *stream) for number, stream in enumerate(streams)]
    for kind in STREAM_KINDS.values():
        own = [stream for stream in declared if isinstance(stream.settings, kind)]
        if own:
            watchers.append(kind.watcher(own))
    return tuple(watchers)
