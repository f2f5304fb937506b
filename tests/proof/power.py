"""Power cuts, one after the other, each on what the one before has left. Runs under `disk.c`."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections import Counter
from pathlib import Path

import numpy as np
from tests.proof import disk, load

FRESH = 20  # cuts from one empty folder to the next


def live(folder: Path, number: int, synchronous: str, told: int) -> None:
    """Append and acknowledge, with one byte for each, until the power goes."""
    store, bandit = load.start(folder / "plays.db")
    if synchronous == "NORMAL":
        assert store._file.writer is not None
        store._file.writer.execute("PRAGMA synchronous = NORMAL")
    while True:
        store.append(bandit.number, load.items(number), 0.0)
        os.write(told, b".")
        number += 1


def main(root: Path, cuts: int, synchronous: str, survival: str) -> None:
    """Print how many appends were acknowledged, how many of them were lost, and how often more was wrong."""
    chance = np.random.default_rng(cuts)
    load.kept(root / "unwatched.db")  # imports what it needs, for all forks
    seen, shadow, left, copy = (root / name for name in ("live", "disk", "left", "copy"))
    total = lost = broken = 0
    at: Counter[str] = Counter()
    for number in range(cuts):
        if number % FRESH == 0:
            shutil.rmtree(left, ignore_errors=True)
            seen.mkdir()
            acknowledged = 0
        else:
            left.rename(seen)
        # Anywhere, which is mostly in the log, or in the database itself: a checkpoint.
        where, after = [("", chance.integers(400)), (".db", chance.integers(60))][chance.integers(2)]

        def life(told: int, start: int = acknowledged, where: str = where, after: int = int(after)) -> None:
            disk.watch(seen, shadow)
            disk.cut(where, after)
            live(seen, start, synchronous, told)

        told = len(disk.until_cut(life))
        total += told
        acknowledged += told
        at[(shadow / "cut").read_text().strip()] += 1
        disk.survivors(seen, shadow, left, chance if survival == "some" else None)
        shutil.copytree(left, copy)
        found = load.kept(copy / "plays.db")
        broken += found < 0
        lost += max(acknowledged - found, 0)
        acknowledged = max(min(acknowledged, found), 0)
        for folder in (seen, shadow, copy):
            shutil.rmtree(folder)
    print(json.dumps({"acknowledged": total, "lost": lost, "broken": broken, "at": dict(at.most_common())}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4])
