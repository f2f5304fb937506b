"""A few of each arm's closed decisions, to play again."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from accrual.core.errors import need
from accrual.core.groups import NUDGE
from accrual.fit.gather import Totals
from accrual.fit.schema import Sample
from accrual.fit.tables import Log

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_OF_ARM, _LEAST, _OF_ALL = 2_000, 20, 100_000
_PIECES = 2_000_000  # in all samples together, about


def sample_size(log: Log) -> int:
    """How many decisions of each arm to keep: so many that the file stays handy."""
    each = max(log.counts.pieces / log.counts.decisions, 1.0)
    most = min(_OF_ALL, _PIECES / each) / len(log.arms)
    return int(min(_OF_ARM, max(_LEAST, most)))


def draw_samples(
    log: Log, totals: Totals, window: float, means: list[float | None], size: int
) -> list[Sample]:
    """For each arm the decisions at evenly spaced ranks of its totals, scaled to its mean.

    No chance is involved; among decisions of the same total a hash decides.
    """
    chosen = []
    for arm in range(len(log.arms)):
        numbers, _ = totals.of(arm)
        count = min(size, len(numbers))
        ranks = ((np.arange(count) + 0.5) * (len(numbers) / max(count, 1))).astype(np.int64)
        chosen.append(np.sort(numbers[ranks]))
    decisions, ages, values = _pieces(log, np.concatenate(chosen), window)
    samples = []
    for numbers, mean in zip(chosen, means, strict=True):
        first = np.searchsorted(decisions, numbers)
        last = np.searchsorted(decisions, numbers, side="right")
        mine = np.concatenate([np.arange(a, b) for a, b in zip(first, last, strict=True)] or [first])
        paid = values[mine]
        logged = paid.sum() / max(len(numbers), 1)
        scale = mean / logged if mean is not None and logged > 0.0 else 1.0
        samples.append(Sample(float(scale), last - first, ages[mine], paid))
    return samples


def _pieces(log: Log, chosen: Ints, window: float) -> tuple[Ints, Floats, Floats]:
    """The pieces of those decisions that came within the window, in order."""
    table = need("pyarrow", "fit").table({"decision": np.sort(chosen)})
    log.connection.register("chosen", table)
    try:
        columns = log.connection.execute(
            "SELECT paid.decision::BIGINT AS decision, age, value FROM paid JOIN chosen "
            "ON paid.decision = chosen.decision WHERE age * $1 < $2 ORDER BY 1, 2, 3",
            [NUDGE, window],
        ).fetchnumpy()
    finally:
        log.connection.unregister("chosen")
    decision, age, value = (np.asarray(columns[name]) for name in ("decision", "age", "value"))
    return decision, age, value
