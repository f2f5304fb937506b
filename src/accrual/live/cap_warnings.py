"""Warn of pieces whose decisions have paid more in all than their arm's cap."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from accrual.live.kernel_state import OVER
from accrual.live.ledger import Ledger
from accrual.live.pending import CLOSED, FIRST
from accrual.store.base import Answer, NewPiece, Status

_ABOVE = (
    "this decision has paid more in all than its arm's cap of {cap:g}: what is said of the arm's mean "
    "stays true, but the policy chooses badly until the bandit is made anew with the true cap"
)


def caps_exceeded(ledger: Ledger, ids: Sequence[int]) -> list[float | None]:
    """Return for each decision the cap that it has paid more than: None if it has not, or is not pending."""
    pending = ledger.pending_decisions
    number, where = np.array(ids, np.int64), pending.where
    places = np.where(number < pending.counts[FIRST], CLOSED, where[number & (len(where) - 1)])
    rows = pending.queues.rows[places]
    caps = ledger.arms.caps[rows["arm"]]
    above = (places != CLOSED) & (rows["total"] > caps * OVER)
    return [cap if is_above else None for cap, is_above in zip(caps.tolist(), above.tolist(), strict=True)]


def add_cap_warnings(ledger: Ledger, asks: Sequence[object], answers: list[Answer]) -> None:
    """Put a warning into the answer of each learned piece whose decision has paid more than the cap."""
    pieces = [
        (i, ask.decision)
        for i, (ask, answer) in enumerate(zip(asks, answers, strict=True))
        if isinstance(ask, NewPiece)
        and ask.stream is None
        and answer.status in (Status.STORED, Status.AGAIN)
        and not answer.late
    ]
    caps = caps_exceeded(ledger, [decision for _, decision in pieces])
    for (i, _), cap in zip(pieces, caps, strict=True):
        if cap is not None:
            answers[i] = answers[i]._replace(warning=_ABOVE.format(cap=cap))
