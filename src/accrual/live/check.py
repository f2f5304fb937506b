"""Whether events that were read can be folded: compiled code looks at no bounds."""

from __future__ import annotations

import numpy as np

from accrual.live.guards import REWARD
from accrual.live.ledger import Ledger
from accrual.store.base import StoreDamaged
from accrual.store.event_schema import Events, Kind, event_column

_CLOSE = int(Kind.CLOSE)


def check_events(ledger: Ledger, after: int, events: Events) -> None:
    """Complain of events beyond position `after` that cannot follow on what `ledger` has folded."""
    seq, kind, at, propensity = events.seq, events.kind, events.at, events.propensity
    decision, arm, value, age = events.decision, events.arm, events.value, events.age
    made = kind == Kind.DECISION
    added = kind == Kind.ADD_ARM
    decisions = ledger.decisions + np.cumsum(made) - made  # before each event
    arms = len(ledger.arms) + np.cumsum(added) - added
    features = ledger.visitors.added + np.cumsum(kind == Kind.ADD_FEATURE) - 1
    known = ledger.visitors.features is not None  # an observer's ledger has none, whatever the bandit has
    cap = getattr(events, event_column(Kind.ADD_ARM, "arm.cap"))
    window = np.where(
        made,
        getattr(events, event_column(Kind.DECISION, "window")),
        getattr(events, event_column(Kind.ADD_ARM, "arm.window")),
    )
    stream = getattr(events, event_column(Kind.PIECE, "stream"))
    of_decision = (kind == Kind.PIECE) | (kind == _CLOSE)
    rules = {
        "is at a position before the one before it": np.diff(seq, prepend=after) < 1,
        "is of no kind that there is": (kind < 0) | (kind > max(Kind)),
        "is before the one before it": ~(np.diff(at, prepend=max(ledger.now, -1e300)) >= 0)
        | ~np.isfinite(at),
        "is a decision out of order": made & (decision != decisions),
        "is of no decision that there is": of_decision & ((decision < 0) | (decision >= decisions)),
        "is of no arm that there is": (made | (kind == Kind.RETIRE_ARM)) & ((arm < 0) | (arm >= arms)),
        "is an arm out of order": added & (arm != arms),
        "is a feature out of order": (kind == Kind.ADD_FEATURE) & known & (arm != features),
        "is of no stream that there is": (kind == Kind.PIECE)
        & ((stream < REWARD) | (stream >= len(ledger.guardrails))),
        "has a value or an age that cannot be": ~np.isfinite(value) | ~np.isfinite(age) | ~(age >= 0),
        "has a window that cannot be": (made | added) & ~((window > 0) & (window <= ledger.span)),
        "has a propensity that cannot be": ~((propensity >= 0) & (propensity <= 1)),
        "has a cap that cannot be": added & ~(cap > 0),
    }
    for wrong, where in rules.items():
        if where.any():
            raise StoreDamaged(f"damaged: event {int(seq[np.argmax(where)])} {wrong}; see accrual db verify")
