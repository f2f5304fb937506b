"""Whether the snapshots in a store are what the events come to."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from accrual.live import config, log_follower
from accrual.live.contexts import told_by_store
from accrual.live.kernels import CLOSED, FIRST, NEXT, RINGS
from accrual.live.ledger import Ledger
from accrual.live.log_follower import check_events
from accrual.policies.catalog import DEFAULT
from accrual.store.base import BanditRow, Store, StoreDamaged
from accrual.store.events import Events

_CHUNK = 1 << 17  # events read at a time

Arrays = dict[str, npt.NDArray[Any]]


def learned(ledger: Ledger) -> Arrays:
    """Return all arrays of a ledger, in an order that does not depend on where in memory its rows lie."""
    arrays = ledger.arrays()
    rows, where, paid, contexts = (arrays.pop(name) for name in ("queues.rows", "where", "paid", "contexts"))
    first, made = arrays["counts"][FIRST], arrays["counts"][NEXT]
    waiting = {name: arrays.pop(name)[np.arange(first, made) & (len(where) - 1)] for name in RINGS}
    used = where[where != CLOSED]
    used = used[np.argsort(rows["id"][used])]
    names = [name for name in rows.dtype.names or () if name not in ("next", "before", "source")]
    return {
        **{name: array for name, array in arrays.items() if not name.startswith("queues.")},
        **{f"pending.{name}": rows[name][used] for name in names},
        "pending.paid": paid[used],
        **waiting,
        "pending.contexts": contexts[used],
    }


def same_bits(one: Arrays, other: Arrays) -> bool:
    """Return whether two sets of arrays are equal, to the bit."""
    return one.keys() == other.keys() and all(
        one[name].shape == other[name].shape and one[name].tobytes() == other[name].tobytes() for name in one
    )


def refold(store: Store, row: BanditRow, ledger: Ledger, upto: int) -> Ledger:
    """Fold the log into a new `ledger` of the bandit's, up to a position, with no help from a snapshot."""
    position = len(ledger.arms)
    while position < upto:
        events = store.read(row.number, position, _CHUNK)
        check_events(ledger, position, events)
        inside = int(np.searchsorted(events.seq, upto, side="right"))
        part = Events._make(column[:inside] for column in events)
        ledger.extend(part, *told_by_store(store, row.number, ledger, part))
        position = int(events.seq[-1])
    return ledger


def verify_snapshots(store: Store) -> tuple[int, list[str]]:
    """Compare snapshots with the refold; return how many were compared, and what was wrong with them.

    Those of other versions of the code, and of policies that are not of the catalog, are left out:
    nothing reads them.
    """
    compared, found = 0, []
    for name in store.names():
        row = store.find(name)
        assert row is not None
        if row.config.get("own_policy", True):
            continue
        given = config.read(row.config, None, name)
        for policy in {repr(policy): policy for policy in (given.policy, DEFAULT)}.values():
            ledger = given.ledger(policy)
            form = log_follower.form_of(ledger)
            try:
                kept = store.load_snapshot(row.number, form) if form else None
            except StoreDamaged as error:
                found.append(f"the snapshot of {name!r}: {error}")
                continue
            if kept is None:
                continue
            compared += 1
            arrays = log_follower.unpack_snapshot(kept[1])
            if arrays is None:
                found.append(f"the snapshot of {name!r} at {kept[0]:,} is damaged")
                continue
            restored = given.ledger(policy)
            restored.restore(arrays)
            if not same_bits(learned(restored), learned(refold(store, row, ledger, kept[0]))):
                found.append(f"the snapshot of {name!r} at {kept[0]:,} is not what the events come to")
    return compared, found
