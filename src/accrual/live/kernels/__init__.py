"""The compiled part of a ledger: what each event does to the statistics, and which arms would be chosen.

`compile_kernels` makes the kernels of a policy; `KernelState` is what they work on. `Pending` holds the
decisions whose window is not over. Only `accrual.live` uses this.
"""

from __future__ import annotations

from accrual.live.kernels.arrays import CHOOSE, LOST, OF_ARM, OVER, RECENT, KernelState, Rules
from accrual.live.kernels.folding import Kernels, compile_kernels
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
    no_trial_pending,
    none_pending,
    with_arms,
    with_room,
)

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
    "KernelState",
    "Kernels",
    "OpenSums",
    "Pending",
    "Queues",
    "Rules",
    "close",
    "compile_kernels",
    "no_trial_pending",
    "none_pending",
    "with_arms",
    "with_room",
]
