"""Stretches of a log that add features: cut where the contexts of decisions get wider."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from accrual.core.errors import InputError
from accrual.live.contexts import Declared, Stored, Visitors
from accrual.store.events import Events, Kind


def stretches(
    visitors: Visitors, events: Events, contexts: Stored | None, features: Sequence[Declared]
) -> Iterator[tuple[Events, Stored | None, Declared | None]]:
    """Cut a stretch of a log behind each event that adds a feature.

    Yield each part, the contexts of its decisions, and the feature that is to be added after it; None after
    the last. To a ledger without features those that are added are nothing.

    Parameters
    ----------
    visitors : Visitors
        Of the ledger. The caller adds the feature before it asks for the next part.
    events : Events
    contexts : array, decisions x features, optional
        A number for each feature that there is at the end of the stretch.
    features : sequence
        Those that the stretch adds.
    """
    if visitors.features is None:
        yield events, contexts, None
        return
    had = len(visitors.features)
    places = np.flatnonzero(events.kind == Kind.ADD_FEATURE).tolist()
    if len(places) != len(features):
        raise InputError(f"a stretch of a log that adds {len(places)} features needs as many declared")
    if not places:
        yield events, contexts, None
        return
    made = events.kind == Kind.DECISION
    told = visitors.checked(int(np.count_nonzero(made)), contexts, had + len(features))
    start = first = 0
    for place, declared in zip([*places, len(made)], [*features, None], strict=True):
        upto = first + int(np.count_nonzero(made[start : place + 1]))
        part = Events._make(column[start : place + 1] for column in events)
        yield part, told[first:upto, : len(visitors.features or ())], declared
        start, first = place + 1, upto
