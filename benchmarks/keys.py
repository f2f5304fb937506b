"""Batches of pieces with random keys and with rising keys, written to a SQLite file: `make bench-keys`.

Wall time depends on the disk and on other work on the machine, so processor time is shown too. The two kinds
of keys take turns.
"""

from __future__ import annotations

import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import numpy as np

from accrual.store.base import AddArm, NewDecisions, NewPiece
from accrual.store.sqlite.store import SQLiteStore

SIZE = 100  # pieces in a batch
DECISIONS = 20_000
TURN = 100  # batches


def keys(dice: Random) -> dict[str, Iterator[str]]:
    """Endless keys of both kinds, of one length."""
    random: Callable[[], str] = lambda: str(uuid.UUID(int=dice.getrandbits(128), version=4))  # noqa: E731
    return {"random": iter(random, None), "growing": (f"{i:036d}" for i in range(1 << 62))}


def main(pieces: int = 400_000) -> None:
    """Print rates, the ratio of their medians, and the slowest of a hundred batches."""
    dice = Random(0)
    made = keys(dice)
    walls: dict[str, list[float]] = {kind: [] for kind in made}
    works: dict[str, list[float]] = {kind: [] for kind in made}
    with tempfile.TemporaryDirectory() as folder:
        stores = {kind: SQLiteStore(str(Path(folder) / f"{kind}.db")) for kind in made}
        for store in stores.values():
            store.create("plays", {}, [AddArm("jazz", 1.0, 1e9)], rounds=True, now=0.0)
            for _ in range(DECISIONS // 1000):
                store.append(1, [NewDecisions((0,) * 1000, (1e9,) * 1000)], 0.0)
        for _ in range(pieces // (SIZE * TURN)):
            for kind, store in stores.items():
                for _ in range(TURN):
                    items = [
                        NewPiece(dice.randrange(DECISIONS), 0.5, 0.0, None, next(made[kind]))
                        for _ in range(SIZE)
                    ]
                    wall, work = time.perf_counter(), time.process_time()
                    store.append(1, items, 0.0)
                    walls[kind].append(time.perf_counter() - wall)
                    works[kind].append(time.process_time() - work)
        for store in stores.values():
            with closing(store):
                pass
    for kind in made:
        rates = [SIZE / float(np.mean(times[kind])) for times in (walls, works)]
        middle, slow, most = 1e3 * np.quantile(walls[kind], [0.5, 0.99, 1.0])
        print(
            f"{kind:8} {rates[0]:9,.0f} pieces a second, {rates[1]:9,.0f} by the processor's time; "
            f"a batch: p50 {middle:.2f} ms, p99 {slow:.1f} ms, most {most:.0f} ms"
        )
    for name, times in (("wall", walls), ("processor", works)):
        print(f"random over growing, {name} time: {np.mean(times['growing']) / np.mean(times['random']):.2f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
