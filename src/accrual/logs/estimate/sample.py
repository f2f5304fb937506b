"""The closed decisions that a fit keeps, with the true ages and values of their pieces."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from accrual.core.arrays import Floats, Ints
from accrual.core.groups import is_within
from accrual.logs.estimate.blocks import decision_blocks
from accrual.logs.fitted import Sample
from accrual.logs.log import Log

Hashes = npt.NDArray[np.uint64]

_KEEP_MOST = 2_000_000
_SPARE = 20  # totals kept for each decision of a sample, at least
_OF_ARM, _LEAST, _OF_ALL = 2_000, 20, 100_000
_PIECES = 2_000_000  # in all samples together, about


def sample_size(log: Log) -> int:
    """Choose how many decisions of each arm to keep, so that the file does not become too large."""
    each = max(log.counts.pieces / log.counts.decisions, 1.0)
    most = min(_OF_ALL, _PIECES / each) / len(log.arms)
    return int(min(_OF_ARM, max(_LEAST, most)))


class ClosedTotals:
    """Totals of closed decisions, by arm: all of them, or as many as are enough, chosen by their hashes."""

    def __init__(self, arms: int, limit: int) -> None:
        self._limit = limit * _SPARE
        self._most = max(_KEEP_MOST, 2 * arms * self._limit)
        self.count = np.zeros(arms, np.int64)
        self.largest = np.full(arms, -np.inf)  # of all that were added
        # Hashes, arms, totals and times, block by block: to join them at each block would copy all each time.
        self._blocks: list[tuple[Hashes, Ints, Floats, Floats]] = []
        self._size = 0

    def add(self, hashed: Hashes, arm: Ints, total: Floats, at: Floats) -> None:
        """Add decisions."""
        self.count += np.bincount(arm, minlength=len(self.count))
        np.maximum.at(self.largest, arm, total)
        self._blocks.append((hashed, arm, total, at))
        self._size += len(hashed)
        if self._size > self._most:
            self._thin_out()

    def of(self, arm: int) -> tuple[Hashes, Floats, Floats]:
        """Return hashes, totals and times of an arm's decisions, by rising total, then by hash."""
        hashed, arms, total, at = self._joined()
        mine = np.flatnonzero(arms == arm)
        if self.count[arm] > self._limit and self.count.sum() > self._most:
            mine = mine[np.argsort(hashed[mine])[: self._limit]]  # those with the lowest hashes represent all
        order = mine[np.lexsort((hashed[mine], total[mine]))]
        return hashed[order], total[order], at[order]

    def _joined(self) -> tuple[Hashes, Ints, Floats, Floats]:
        if len(self._blocks) != 1:
            empty = (np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
            hashed, arm, total, at = (
                np.concatenate(column) for column in zip(empty, *self._blocks, strict=True)
            )
            self._blocks = [(hashed, arm, total, at)]
        return self._blocks[0]

    def _thin_out(self) -> None:
        """Keep of each arm only the decisions of the lowest hashes."""
        hashed, arm, total, at = self._joined()
        order = np.lexsort((hashed, arm))
        by_arm = arm[order]
        rank = np.arange(len(by_arm)) - np.searchsorted(by_arm, by_arm)
        kept = order[rank < self._limit]
        self._blocks, self._size = [(hashed[kept], arm[kept], total[kept], at[kept])], len(kept)


def draw_samples(
    log: Log, totals: ClosedTotals, window: float, means: list[float | None], size: int
) -> list[Sample]:
    """Return for each arm the decisions at evenly spaced ranks of its totals, scaled to its mean.

    No chance is involved: among decisions of the same total the hash decides. A sample is in order of time.
    """
    chosen = []
    for arm in range(len(log.arms)):
        hashes, _, at = totals.of(arm)
        count = min(size, len(hashes))
        ranks = ((np.arange(count) + 0.5) * (len(hashes) / max(count, 1))).astype(np.int64)
        chosen.append(hashes[ranks][np.lexsort((hashes[ranks], at[ranks]))])
    owner, ages, values = _pieces_of(log, np.concatenate(chosen), window)
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


def _pieces_of(log: Log, chosen: Hashes, window: float) -> tuple[Hashes, Floats, Floats]:
    """Return the pieces of the chosen decisions that came within the window: hash, age, value."""
    wanted = np.unique(chosen)
    found: list[tuple[Hashes, Floats, Floats]] = []
    for some, _, hashed in decision_blocks(log):
        place = np.minimum(np.searchsorted(wanted, hashed), len(wanted) - 1)
        mine = np.flatnonzero(wanted[place] == hashed)
        counts = np.diff(some.first)[mine]
        piece = np.arange(counts.sum()) + np.repeat(some.first[mine] - np.cumsum(counts) + counts, counts)
        piece = piece[is_within(some.age[piece], window)]
        owner = hashed[np.searchsorted(some.first, piece, side="right") - 1]
        found.append((owner, some.age[piece], some.value[piece]))
    hashes, ages, values = (np.concatenate(column) for column in zip(*found, strict=True))
    return hashes, ages, values
