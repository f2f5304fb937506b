"""Warn of pieces whose decisions have paid more in all than their arm's cap."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from accrual.live.kernel_state import OVER
from accrual.live.ledger import Ledger
from accrual.live.pending import CLOSED, FIRST
from accrual.store.base import Answer, NewPiece, Status

_ABOVE = (
    "this decision has paid more in all than its arm's cap of {cap:g}: what is said of the arm's mean "
    "stays true, but the policy chooses badly until the bandit is made anew with the true cap; {enough:g} "
    "would be enough for this decision"
)


def caps_exceeded(ledger: Ledger, ids: Sequence[int]) -> list[tuple[float, float] | None]:
    """Return for each decision the cap that it has paid more than, and its total.

    None if it has not paid more, or is not pending.
    """
    pending = ledger.pending_decisions
    number, where = np.array(ids, np.int64), pending.where
    places = np.where(number < pending.counts[FIRST], CLOSED, where[number & (len(where) - 1)])
    rows = pending.queues.rows[places]
    caps = ledger.arms.caps[rows["arm"]]
    above = (places != CLOSED) & (rows["total"] > caps * OVER)
    pairs = zip(caps.tolist(), rows["total"].tolist(), strict=True)
    return [pair if is_above else None for pair, is_above in zip(pairs, above.tolist(), strict=True)]


def enough(total: float) -> float:
    """Return a cap that a total fits into: 1, 2 or 5 times a power of ten.

    So few texts differ, and Python shows the same warning once.

    Examples
    --------
    >>> [enough(total) for total in (1.2, 2.0, 7.0, 130.0)]
    [2.0, 2.0, 10.0, 200.0]
    """
    unit = 10.0 ** math.floor(math.log10(total))
    return next(size * unit for size in (1.0, 2.0, 5.0, 10.0, 20.0) if size * unit >= total)


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
    exceeded = caps_exceeded(ledger, [decision for _, decision in pieces])
    for (i, _), pair in zip(pieces, exceeded, strict=True):
        if pair is not None:
            answers[i] = answers[i]._replace(warning=_ABOVE.format(cap=pair[0], enough=enough(pair[1])))
