"""What an event of each kind holds, by its own name.

The columns `value` and `age` of `Events` hold a decision's salt and window, and a new arm's cap and window,
as well as a piece's value and age; and `arm` holds a piece's stream: `EVENT_COLUMNS` says which. Compiled
code cannot look that up, so it calls these functions.
"""

from __future__ import annotations

from typing import Any

from accrual.core.jit import njit
from accrual.policy.base import Function
from accrual.store.event_schema import Events, Kind, event_column


def _field(kind: Kind, name: str) -> Function:
    """Compile a function that returns a field of event number `i` of a stretch of a log."""
    place = Events._fields.index(event_column(kind, name))

    @njit
    def field(events: Events, i: int) -> Any:
        return events[place][i]

    return field


decision_salt = _field(Kind.DECISION, "salt")
decision_window = _field(Kind.DECISION, "window")
piece_stream = _field(Kind.PIECE, "stream")
new_arm_cap = _field(Kind.ADD_ARM, "arm.cap")
new_arm_window = _field(Kind.ADD_ARM, "arm.window")
