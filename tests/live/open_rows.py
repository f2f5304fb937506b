"""The rows of the decisions that still take pieces."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from accrual.live.kernels import CLOSED, Pending


def open_rows(pending: Pending) -> npt.NDArray[np.void]:
    """Return a copy of these rows, in no order."""
    rows: npt.NDArray[np.void] = pending.queues.rows
    rows = rows[pending.where[pending.where != CLOSED]]
    return np.compress(rows["closed"] == 0, rows)
