"""What a bandit's log says that it should have learned."""

from __future__ import annotations

import accrual as ac
from accrual.live import verify_snapshots
from accrual.live.ledger import Ledger


def refold(bandit: ac.Bandit) -> Ledger:
    """The fold of the whole log, with no help from any snapshot."""
    store, row = bandit._store, bandit._row
    return verify_snapshots.refold(store, row, bandit._config.ledger(), store.head(row.number))
