"""What a bandit has learned, and what its log says that it should have."""

from __future__ import annotations

from typing import Any

import numpy as np

import accrual as ac
from accrual.live.ledger import Ledger

Arrays = dict[str, Any]


def learned(ledger: Ledger) -> Arrays:
    """All that a fold comes to, but for the places in memory, which nobody chooses by."""
    arrays = ledger.arrays()
    counts, heap, rows, paid = (arrays.pop(f"pending.{name}") for name in ("counts", "heap", "rows", "paid"))
    del arrays["pending.where"]
    used = heap[: ledger.pending]
    used = used[np.argsort(rows["id"][used])]
    kept = [name for name in rows.dtype.names or () if name != "place"]
    return arrays | {
        "counts": counts,
        "pending": rows[used][kept],
        "paid": paid[used],
    }


def refold(bandit: ac.Bandit) -> Ledger:
    """The fold of the whole log, with no help from any snapshot."""
    ledger = bandit._config.ledger()
    ledger.extend(bandit._store.read(bandit._row.number, len(ledger.arms), 1 << 30))
    return ledger


def same_bits(one: Arrays, other: Arrays) -> bool:
    """Whether they are equal, to the bit."""
    return one.keys() == other.keys() and all(
        one[name].shape == other[name].shape and one[name].tobytes() == other[name].tobytes() for name in one
    )
