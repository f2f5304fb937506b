"""A disk that is full, or fails, and recovers, time and again. Runs under `disk.c`."""

from __future__ import annotations

import errno
import json
import shutil
import sys
from pathlib import Path

import numpy as np
from tests.proof import disk, load

from accrual.core.errors import InputError
from accrual.store.base import StoreError


def main(root: Path, faults: int, heeds: bool) -> None:
    """Print how many appends were acknowledged, how many refused, and how many of the former are lost."""
    chance = np.random.default_rng(faults)
    seen, shadow, left = (root / name for name in ("live", "disk", "left"))
    seen.mkdir()
    disk.watch(seen, shadow)
    store, bandit = load.start(seen / "plays.db")
    acknowledged = refused = lost = 0
    for number in range(faults):
        error = [errno.ENOSPC, errno.EIO][chance.integers(2)]
        disk.fail(error, ["", ".db", "-wal"][chance.integers(3)], int(chance.integers(100)))
        failures = 0
        for _ in range(40):
            try:
                store.append(bandit.number, load.items(acknowledged), 0.0)
                acknowledged += 1
            except StoreError:
                failures += 1
                if not heeds:
                    acknowledged += 1
            if failures == 3:
                break
        refused += failures
        if number % 4 == 0:  # a restart does not help, and does no harm
            store.close()
            try:
                store, bandit = load.start(seen / "plays.db")
            except (StoreError, InputError):
                disk.fail(0)
                store, bandit = load.start(seen / "plays.db")
        disk.fail(0)
        if number % 4 == 1:  # were the power to go now
            disk.survivors(seen, shadow, left)
            lost += max(acknowledged - load.kept(left / "plays.db"), 0)
            shutil.rmtree(left)
        store.append(bandit.number, load.items(acknowledged), 0.0)  # it works again, for all that failed
        acknowledged += 1
        found = load.whole(store.read(bandit.number, 0, 1 << 30))
        lost += acknowledged - max(found, 0)
        if lost:
            break
    store.close()
    broken = load.kept(seen / "plays.db") != acknowledged
    figures = {"acknowledged": acknowledged, "refused": refused, "lost": lost, "broken": broken}
    print(json.dumps(figures))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "heeds")
