"""The compiled part of a ledger: what each event does to the statistics, and what would be chosen."""

from __future__ import annotations

from accrual.live.kernels.folding import Fold, fold, new_arm_cap, new_arm_window
from accrual.live.kernels.pending import (
    CLOSED,
    FIRST,
    LATE,
    NEXT,
    RINGS,
    SHUT,
    USED,
    Pending,
    Queues,
    close,
    none_pending,
    open_rows,
    room_for,
    with_room,
)
from accrual.live.kernels.state import CHOOSE, LOST, OF_ARM, OVER, RECENT, KernelState, Rules

__all__ = [
    "CHOOSE",
    "CLOSED",
    "FIRST",
    "LATE",
    "LOST",
    "NEXT",
    "OF_ARM",
    "OVER",
    "RECENT",
    "RINGS",
    "SHUT",
    "USED",
    "Fold",
    "KernelState",
    "Pending",
    "Queues",
    "Rules",
    "close",
    "fold",
    "new_arm_cap",
    "new_arm_window",
    "none_pending",
    "open_rows",
    "room_for",
    "with_room",
]
