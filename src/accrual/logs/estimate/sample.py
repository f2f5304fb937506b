"""The closed decisions that a fit keeps, with the true ages and values of their pieces."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from accrual.core.errors import need
from accrual.core.groups import NUDGE
from accrual.logs.estimate.passes import Hashes, Totals
from accrual.logs.fitted import Sample
from accrual.logs.tables import Log, LogFacts

Floats = npt.NDArray[np.float64]

_OF_ARM, _LEAST, _OF_ALL = 2_000, 20, 100_000
_PIECES = 2_000_000  # in all samples together, about


def sample_size(log: LogFacts) -> int:
    """Choose how many decisions of each arm to keep, so that the file does not become too large."""
    each = max(log.counts.pieces / log.counts.decisions, 1.0)
    most = min(_OF_ALL, _PIECES / each) / len(log.arms)
    return int(min(_OF_ARM, max(_LEAST, most)))


def draw_samples(
    log: LogFacts, totals: Totals, window: float, means: list[float | None], size: int
) -> list[Sample]:
    """Give for each arm the decisions at evenly spaced ranks of its totals, scaled to its mean.

    No chance is involved; among decisions of the same total a hash decides. They are in order of time.
    """
    chosen = []
    for arm in range(len(log.arms)):
        hashes, _, at = totals.of(arm)
        count = min(size, len(hashes))
        ranks = ((np.arange(count) + 0.5) * (len(hashes) / max(count, 1))).astype(np.int64)
        chosen.append(hashes[ranks][np.lexsort((hashes[ranks], at[ranks]))])
    parts = log.each(pieces_of, np.concatenate(chosen), window)
    owner, ages, values = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.lexsort((values, ages, owner))
    owner, ages, values = owner[order], ages[order], values[order]
    samples = []
    for hashes, mean in zip(chosen, means, strict=True):
        first = np.searchsorted(owner, hashes)
        last = np.searchsorted(owner, hashes, side="right")
        mine = np.concatenate([np.arange(a, b) for a, b in zip(first, last, strict=True)] or [first])
        paid = values[mine]
        logged = paid.sum() / max(len(hashes), 1)
        scale = mean / logged if mean is not None and logged > 0.0 else 1.0
        samples.append(Sample(float(scale), last - first, ages[mine], paid))
    return samples


def pieces_of(log: Log, chosen: Hashes, window: float) -> tuple[Hashes, Floats, Floats]:
    """Give the pieces of those decisions that came within the window: hash, age, value."""
    table = need("pyarrow", "fit").table({"hash": np.unique(chosen)})
    log.connection.register("chosen", table)
    try:
        columns = log.connection.execute(
            "SELECT numbers.hash, age, value FROM paid JOIN "
            "(SELECT decided.rowid AS number, chosen.hash FROM decided "
            "JOIN chosen ON hash(decided.id) = chosen.hash) AS numbers "
            "ON paid.decision = numbers.number WHERE age * $1 < $2",
            [NUDGE, window],
        ).fetchnumpy()
    finally:
        log.connection.unregister("chosen")
    hashed, age, value = (np.asarray(columns[name]) for name in ("hash", "age", "value"))
    return hashed.astype(np.uint64), age.astype(np.float64), value.astype(np.float64)
