"""How the shares of the arms have changed over time, read from the log."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from accrual.service.bandit_pool import ServedBandit
from accrual.service.messages import HistoryOut
from accrual.store.event_schema import Events, Kind

_STRETCHES = 40
_LENGTH = 1_000  # events of a stretch, where the log is too long to be read in whole
_LEAST = 100  # decisions of a stretch, where there are as many


def share_history(served: ServedBandit, head: int) -> HistoryOut:
    """Count each arm's decisions in up to 40 stretches of the log up to the position `head`.

    A short log is read as a whole, a long one in samples at even distances. Only the store is read, so
    decisions go on meanwhile.
    """
    if head <= _STRETCHES * _LENGTH:
        stretches = _split(_decisions(served, 0, head))
    else:
        starts = np.linspace(0, head - _LENGTH, _STRETCHES).astype(int)
        stretches = [_decisions(served, int(after), _LENGTH) for after in starts]
    served.learn_arms()
    arms = served.arms
    found = [stretch for stretch in stretches if len(stretch.seq)]
    return HistoryOut(
        arms=arms,
        at=[float(stretch.at[-1]) for stretch in found],
        decisions=[int(stretch.decision[-1]) + 1 for stretch in found],
        counts=[np.bincount(stretch.arm, minlength=len(arms)).tolist() for stretch in found],
    )


def _decisions(served: ServedBandit, after: int, limit: int) -> Events:
    """Read the bandit's own decisions from a stretch of the log: none that come from an old log."""
    events = served.events(after, limit)
    chosen = (events.kind == Kind.DECISION) & (events.decision >= served.imported)
    return Events._make(column[chosen] for column in events)


def _split(events: Events) -> list[Events]:
    count = len(events.seq)
    parts: npt.NDArray[np.int64] = np.linspace(
        0, count, int(np.clip(count // _LEAST, 1, _STRETCHES)) + 1
    ).astype(np.int64)
    return [
        Events._make(column[first:last] for column in events) for first, last in itertools.pairwise(parts)
    ]
