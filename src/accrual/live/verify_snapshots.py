"""Check that the snapshots in a store equal a fold of their events."""

from __future__ import annotations

import numpy as np

from accrual.live.config import read_config
from accrual.live.kernels import CLOSED, FIRST, RINGS
from accrual.live.ledger import Ledger
from accrual.live.log_follower import Arrays, fold_log, form_of, unpack_snapshot
from accrual.policies.catalog import DEFAULT
from accrual.store.base import BanditRow, Store, StoreDamaged


def learned(ledger: Ledger) -> Arrays:
    """Return all arrays of a ledger, in an order that does not depend on the places of its rows."""
    arrays = ledger.arrays()
    rows, where = arrays["pending.queues.rows"], arrays.pop("pending.where")
    first, made = ledger.pending_decisions.counts[FIRST], ledger.decisions
    rings = {f"pending.{name}": np.arange(first, made) & (len(where) - 1) for name in RINGS}
    used = where[where != CLOSED]
    used = used[np.argsort(rows["id"][used])]
    names = [name for name in rows.dtype.names or () if name not in ("next", "before", "source")]
    ordered = rings | {"pending.paid": used, "pending.contexts": used}
    return {
        **{
            name: array[ordered[name]] if name in ordered else array
            for name, array in arrays.items()
            if not name.startswith("pending.queues.")
        },
        **{f"rows.{name}": rows[name][used] for name in names},
    }


def same_bits(one: Arrays, other: Arrays) -> bool:
    """Return whether two sets of arrays are equal, to the bit."""
    return one.keys() == other.keys() and all(
        one[name].shape == other[name].shape and one[name].tobytes() == other[name].tobytes() for name in one
    )


def refold(store: Store, row: BanditRow, ledger: Ledger, upto: int) -> Ledger:
    """Fold the log up to a position into a new `ledger` of the bandit, without a snapshot; return it."""
    fold_log(store, row.number, ledger, len(ledger.arms), upto)
    return ledger


def verify_snapshots(store: Store) -> tuple[int, list[str]]:
    """Compare snapshots with the refold; return how many were compared, and what was wrong with them.

    Leave out snapshots of other versions of the code, and of policies that are not in the catalog: nothing
    reads them.
    """
    compared, found = 0, []
    for name in store.names():
        row = store.find(name)
        assert row is not None
        if row.config.get("own_policy", True):
            continue
        given = read_config(row.config, None, name)
        # Of two equal policies the bandit's own stays: only its ledger has the bandit's features.
        for policy in {repr(policy): policy for policy in (DEFAULT, given.policy)}.values():
            ledger = given.ledger(policy)
            form = form_of(ledger)
            try:
                snapshot = store.load_snapshot(row.number, form) if form else None
            except StoreDamaged as error:
                found.append(f"the snapshot of {name!r}: {error}")
                continue
            if snapshot is None:
                continue
            compared += 1
            arrays = unpack_snapshot(snapshot[1])
            if arrays is None:
                found.append(f"the snapshot of {name!r} at {snapshot[0]:,} is damaged")
                continue
            restored = given.ledger(policy)
            restored.restore(arrays)
            if not same_bits(learned(restored), learned(refold(store, row, ledger, snapshot[0]))):
                found.append(f"the snapshot of {name!r} at {snapshot[0]:,} is not the fold of the events")
    return compared, found
