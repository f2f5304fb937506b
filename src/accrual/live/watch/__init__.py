"""What finished decisions say: the verdict, guardrails, and alarms for arms that no longer pay as they did.

Each is a `Watcher`; `watchers_of` lists them. `STREAM_KINDS` lists the kinds of streams beside the reward,
each with its own watcher. Other rooms may use `Guardrail`, the states (`Verdict`,
`GuardrailState`, `AlarmState`), their outcomes, and the evidence with its scores, which a plan plays with.
"""

from __future__ import annotations

from collections.abc import Sequence

from accrual.live.watch.alarms import AlarmState as AlarmState
from accrual.live.watch.alarms import AlarmWatcher
from accrual.live.watch.evidence import BETS as BETS
from accrual.live.watch.evidence import NO_PROPENSITY as NO_PROPENSITY
from accrual.live.watch.evidence import WEIGHTS as WEIGHTS
from accrual.live.watch.evidence import Evidence as Evidence
from accrual.live.watch.evidence import bound_of as bound_of
from accrual.live.watch.evidence import comparison_error as comparison_error
from accrual.live.watch.evidence import find_beaten as find_beaten
from accrual.live.watch.evidence import no_evidence as no_evidence
from accrual.live.watch.evidence import score as score
from accrual.live.watch.guardrails import GUARDRAIL_OUTCOMES as GUARDRAIL_OUTCOMES
from accrual.live.watch.guardrails import Guardrail as Guardrail
from accrual.live.watch.guardrails import GuardrailState as GuardrailState
from accrual.live.watch.streams import REWARD as REWARD
from accrual.live.watch.streams import STREAMS_MOST as STREAMS_MOST
from accrual.live.watch.streams import DeclaredStream
from accrual.live.watch.streams import Stream as Stream
from accrual.live.watch.verdicts import VERDICT_OUTCOMES as VERDICT_OUTCOMES
from accrual.live.watch.verdicts import Verdict as Verdict
from accrual.live.watch.verdicts import VerdictWatcher
from accrual.live.watch.watcher import NEVER as NEVER
from accrual.live.watch.watcher import Comparison as Comparison
from accrual.live.watch.watcher import Finished as Finished
from accrual.live.watch.watcher import Flags as Flags
from accrual.live.watch.watcher import Pace as Pace
from accrual.live.watch.watcher import Watcher as Watcher
from accrual.live.watch.watcher import see_all as see_all
from accrual.store.events import NO_STREAM as NO_STREAM

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
