"""The compiled part of a ledger: what each event does to the statistics, and which arms would be chosen.

`make_kernel` makes the kernel of a policy; `KernelState` is what it works on. `Pending` holds the
decisions whose window is not over. Only `accrual.live` uses this.
"""

from __future__ import annotations

from accrual.live.kernels.arrays import BATCH, CHOOSE, LOST, OF_ARM, OVER, RECENT, KernelState, Rules
from accrual.live.kernels.folding import (
    DECIDE,
    EXAMPLES,
    FOLD,
    LEARN,
    NO_ROOM,
    TRY,
    make_kernel,
)
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
    "BATCH",
    "CHOOSE",
    "CLOSED",
    "DECIDE",
    "EXAMPLES",
    "FIRST",
    "FOLD",
    "LATE",
    "LEARN",
    "LOST",
    "NEXT",
    "NO_ROOM",
    "OF_ARM",
    "OLDEST",
    "OVER",
    "RECENT",
    "RINGS",
    "SHUT",
    "TRY",
    "USED",
    "KernelState",
    "OpenSums",
    "Pending",
    "Queues",
    "Rules",
    "close",
    "make_kernel",
    "no_trial_pending",
    "none_pending",
    "with_arms",
    "with_room",
]
