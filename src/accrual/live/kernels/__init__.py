"""The compiled part of a ledger: what each event does to the statistics, and what would be chosen."""

from __future__ import annotations

from accrual.live.kernels.folding import Fold, fold, new_arm_cap, new_arm_window
from accrual.live.kernels.pending import (
    CLOSED,
    FIRST,
    LATE,
    NEXT,
    OLDEST,
    RINGS,
    SHUT,
    USED,
    OpenSums,
    Pending,
    Queues,
    close,
    none_pending,
    room_for,
    with_arms,
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
    "OLDEST",
    "OVER",
    "RECENT",
    "RINGS",
    "SHUT",
    "USED",
    "Fold",
    "KernelState",
    "OpenSums",
    "Pending",
    "Queues",
    "Rules",
    "close",
    "fold",
    "new_arm_cap",
    "new_arm_window",
    "none_pending",
    "room_for",
    "with_arms",
    "with_room",
]
