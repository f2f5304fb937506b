"""How long the live side takes: a decision, a piece, a durable event, a start.

    python benchmarks/live.py                       # all of it, with a store of 1 million events
    python benchmarks/live.py store --events 10000000

`ledger` and `bandit`: ten arms and a window of 100. Every round makes one decision, which finishes as many
groups as a decision has, and then sends four pieces of decisions up to a window old, most of them out of
order. Times are medians of single calls. `store`: durable pieces through a bandit on SQLite, beside sqlite3
itself with the same rows in the same tables, in turns in one run; then how long a store takes to open, with
its snapshot and without. `floor`: a decision with a floor and without, and a state with its verdict.
`contexts`: what `decide` adds to the compiled loop if decisions have contexts, and how fast a log with
contexts is folded. Run it on a quiet machine; ratios suffer less from noise than times.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import accrual as ac
from accrual.core.features import Features
from accrual.live.ledger import Ledger
from accrual.live.log_follower import details_from_store
from accrual.policies.catalog import CATALOG
from accrual.store.base import NewDecisions, NewPiece, StoreRequest
from accrual.store.events import insert_into
from accrual.store.sqlite.store import SQLiteStore

ARMS, WINDOW, ROUNDS, PIECES = 10, 100, 20_000, 4
NAMES = [f"arm {i}" for i in range(ARMS)]
clock = time.perf_counter
# Contexts of 10 numbers, the constant included.
FEATURES: dict[str, dict[str, Any]] = {
    "nine numbers": {f"x{j}": (0, 1) for j in range(9)},
    "levels and flags": {"a": ["r", "s", "t"], "b": ["u", "v", "w"], "c": bool, "d": bool, "e": bool},
}


def micros(times: list[float]) -> float:
    return 1e6 * float(np.median(times))


def ledger() -> None:
    print(f"{'ledger':18s}{'decide':>10s}{'observe':>10s}   microseconds, median")
    for name in CATALOG:
        ledger = Ledger(CATALOG[name].example(20), [1.0] * ARMS, WINDOW)
        dice = np.random.default_rng(0)
        back = dice.integers(0, WINDOW, (ROUNDS, PIECES))
        values = dice.random((ROUNDS, PIECES)) / PIECES
        ages = (back * dice.random((ROUNDS, PIECES))).astype(np.int64)
        decide, observe = [], []
        for now in range(ROUNDS):
            start = clock()
            ledger.decide(now)
            decide.append(clock() - start)
            ids = np.maximum(now - back[now], 0)
            if now % 2:
                for id_, value, age in zip(
                    ids.tolist(), values[now].tolist(), ages[now].tolist(), strict=True
                ):
                    start = clock()
                    ledger.observe(id_, value, age)
                    observe.append(clock() - start)
        figures = [micros(times) for times in (decide[1000:], observe[1000:])]
        print(f"{name:18s}{figures[0]:10.2f}{figures[1]:10.2f}", flush=True)


def bandit() -> None:
    bandit, plain = ac.Bandit(NAMES, WINDOW), Ledger(ac.AgeIMED(), [1.0] * ARMS, WINDOW)
    dice = np.random.default_rng(0)
    back = dice.integers(0, WINDOW, (ROUNDS, PIECES))
    ids = np.maximum(np.arange(ROUNDS)[:, None] - back, 0)
    ages = (dice.random((ROUNDS, PIECES)) * (np.arange(ROUNDS)[:, None] - ids + 1)).astype(np.int64)
    values = dice.random((ROUNDS, PIECES)) / PIECES / 10  # so that no total is above the cap
    pieces = np.stack([ids, values, ages], axis=-1).tolist()
    times: dict[str, list[float]] = {"decide": [], "observe": [], "Ledger.decide": []}
    for now in range(ROUNDS):
        start = clock()
        bandit.decide()
        times["decide"].append(clock() - start)
        start = clock()
        plain.decide(now + 1)
        times["Ledger.decide"].append(clock() - start)
        for id_, value, age in pieces[now]:
            start = clock()
            bandit.observe(int(id_), value, age=age)
            times["observe"].append(clock() - start)
    print("\nin memory, AgeIMED, microseconds, median; limit for decide 15")
    for name, found in times.items():
        print(f"  {name:16s}{micros(found[1000:]):8.2f}")


def floor() -> None:
    """Decide with a floor of 0.1 and without, in turns; and look at the state after many decisions."""
    print("\nin memory, AgeIMED, microseconds of processor time for a decision, in turns; limit 1.05")
    for arms in (2, 10):
        rivals = [ac.Bandit(NAMES[:arms], WINDOW, floor=share, seed=1) for share in (0.0, 0.1)]
        blocks: list[list[float]] = [[], []]
        for block in range(400):
            order = (0, 1) if block % 2 else (1, 0)
            for place in order:
                decide = rivals[place].decide
                start = time.thread_time()  # others may use the machine meanwhile
                for _ in range(250):
                    decide()
                blocks[place].append((time.thread_time() - start) / 250)
        plain, floored = (np.array(times[20:]) for times in blocks)
        print(
            f"  {arms:2d} arms: without {micros(list(plain)):.2f}, with {micros(list(floored)):.2f}, "
            f"the median of ratios {np.median(floored / plain):.3f}",
            flush=True,
        )
    print("state() with its verdict, ten arms, milliseconds of processor time, median of 50; limit 20")
    bandit, made = ac.Bandit(NAMES, WINDOW, floor=0.1, seed=1), 0
    for decisions in (10_000, 100_000, 1_000_000):
        while made < decisions:
            ids = [one.id for one in bandit.decide(n=min(decisions - made, 10_000))][::7]
            bandit.observe_many(ids, [0.5] * len(ids))
            made = bandit.state().decisions
        times = []
        for _ in range(50):
            start = time.thread_time()
            bandit.state()
            times.append(time.thread_time() - start)
        print(f"  {decisions:9,d} decisions {1e-3 * micros(times):8.2f}", flush=True)


def contexts(events: int) -> None:
    """Decide for contexts, in turns with the compiled loop alone; then fold a log with contexts."""
    print("\nin memory, AgeLinTS, ten arms, contexts of 10 numbers, microseconds, median; the rest: limit 15")
    for title, features in FEATURES.items():
        dice, people, live, compiled = np.random.default_rng(0), [], [], []
        bandit = ac.Bandit(NAMES, WINDOW, features=features)
        declared = Features(features)
        plain = Ledger(bandit.policy, [1.0] * ARMS, WINDOW, features=declared)
        people = [visitor(features, dice) for _ in range(1000)]
        known = np.array([declared.stored(one) for one in people])
        for block in range(ROUNDS // 100):
            part = slice(block % 10 * 100, block % 10 * 100 + 100)
            for one in people[part]:
                start = clock()
                bandit.decide(context=one)
                live.append(clock() - start)
            start = clock()
            plain.make(block + 1.0, 100, contexts=known[part])
            compiled.append((clock() - start) / 100)
        whole, inner = micros(live[1000:]), micros(compiled[10:])
        print(f"  {title:20s}decide {whole:6.2f}, compiled loop {inner:5.2f}, the rest {whole - inner:6.2f}")
    filled = ac.Bandit(NAMES, window=1000, features=features)
    fill(filled, events, filled.choice(len(people), context=people).contexts)
    log = filled._store.read(0, len(NAMES), events)
    contexts = details_from_store(filled._store, 0, plain, log).contexts
    for _ in range(2):  # the first compiles
        ledger = filled._config.ledger()
        start = time.process_time()
        ledger.extend(log, contexts)
        rate = len(log.seq) / (time.process_time() - start)
    print(f"  a log of {len(log.seq):,} events: {rate:,.0f} folded in a second; limit 1,000,000", flush=True)


def visitor(features: dict[str, Any], dice: np.random.Generator) -> dict[str, Any]:
    """Draw a context."""
    return {
        name: bool(dice.integers(2)) if kind is bool
        else str(dice.choice(kind)) if isinstance(kind, list) else dice.random()
        for name, kind in features.items()
    }  # fmt: skip


def store(events: int) -> None:
    with tempfile.TemporaryDirectory(dir=os.environ.get("ACCRUAL_BENCH_DIR")) as folder:
        durable(Path(folder))
        start_up(Path(folder) / "large.db", events)


def durable(folder: Path) -> None:
    """Pieces in batches, in turns with sqlite3 alone."""
    bandit = ac.Bandit(NAMES, window=10**6, store=f"sqlite:///{folder}/ours.db")
    bandit.decide(n=1000)
    SQLiteStore(str(folder / "bare.db")).close()  # the same tables
    bare = sqlite3.connect(folder / "bare.db", isolation_level=None)
    bare.execute("PRAGMA synchronous = FULL")
    dice, sent = np.random.default_rng(0), 0
    print("\ndurable pieces a second   bandit      sqlite3   ratio; limit 0.5")
    for size in (1, 10, 100, 1000):
        ours, theirs = [], []
        for _ in range(max(100, min(3_000, 100_000 // size))):  # enough for checkpoints to even out
            ids, keys = dice.integers(0, 1000, size).tolist(), [f"key-{sent + i}" for i in range(size)]
            values = (1e-6 * dice.random(size)).tolist()
            start = clock()
            bandit.observe_many(ids, values, ages=[0.0] * size, keys=keys)
            ours.append(clock() - start)
            rows = [
                (1, sent + i, id_, key, value, 0.0, True, 1.0, False, None)
                for i, (id_, key, value) in enumerate(zip(ids, keys, values, strict=True))
            ]
            start = clock()
            bare.execute("BEGIN IMMEDIATE")
            bare.executemany(insert_into("piece"), rows)
            bare.execute("COMMIT")
            theirs.append(clock() - start)
            sent += size
        rates = [size * len(times) / sum(times) for times in (ours, theirs)]
        print(
            f"  batches of {size:4d}     {rates[0]:12,.0f} {rates[1]:12,.0f} {rates[0] / rates[1]:7.2f}",
            flush=True,
        )
    for threads in (1, 8, 32):
        print(f"  one by one, {threads:2d} threads {together(bandit, threads):8,.0f}")
    bare.close()
    bandit.close()


def together(bandit: ac.Bandit, threads: int) -> float:
    """Single pieces a second from so many threads, which share transactions."""
    each = 2000 // threads

    def work(mine: int) -> None:
        for i in range(each):
            bandit.observe(i % 1000, 0.5, age=0, key=f"{threads} {mine} {i}")

    crowd = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
    start = clock()
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join()
    return threads * each / (clock() - start)


def start_up(path: Path, events: int) -> None:
    """A store of so many events: a decision and four pieces at a time."""
    with ac.Bandit(NAMES, window=1000, store=f"sqlite:///{path}") as bandit:
        fill(bandit, events)

    def opened() -> float:
        start = clock()
        with ac.Bandit.open(f"sqlite:///{path}") as bandit:
            took = clock() - start
            assert bandit._follower.position == bandit._store.head(1)
        return took

    size = sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))
    opened()  # compiles
    with_snapshot = opened()
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM snapshot")
    connection.commit()
    connection.close()
    without = opened()
    print(f"\na store of {events:,} events, {size / 1e6:,.0f} MB")
    print(f"  opened with its snapshot in {with_snapshot:.2f} s; limit 2")
    print(f"  opened without: {without:.2f} s, {events / without:,.0f} events a second; limit 1,000,000")


def fill(bandit: ac.Bandit, events: int, people: Sequence[bytes] | None = None) -> None:
    dice, made, store = np.random.default_rng(0), 0, bandit._store
    number = bandit._row.number
    while made * (PIECES + 1) < events:
        n = 2000
        arms, back = dice.integers(0, ARMS, n).tolist(), dice.integers(0, 1000, (n, PIECES))
        values = (dice.random((n, PIECES)) / PIECES).tolist()
        items: list[StoreRequest] = []
        for i in range(n):
            whom = None if people is None else (people[i % len(people)],)
            items.append(NewDecisions((arms[i],), (1000.0,), contexts=whom))
            for piece in range(PIECES):
                id_ = max(made + i - int(back[i, piece]), 0)
                age = float((made + i - id_) // (piece + 1))
                items.append(NewPiece(id_, values[i][piece], age, None, f"{made + i}-{piece}"))
        store.append(number, items, 0.0)
        made += n
        bandit.catch_up()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("part", nargs="?", choices=["ledger", "bandit", "floor", "contexts", "store"])
    parser.add_argument("--events", type=int, default=1_000_000, help="in the store that is opened or folded")
    given = parser.parse_args()
    parts: dict[str, Callable[[], None]] = {
        "ledger": ledger, "bandit": bandit, "floor": floor,
        "contexts": lambda: contexts(given.events), "store": lambda: store(given.events),
    }  # fmt: skip
    for name, part in parts.items():
        if given.part in (None, name):
            part()


if __name__ == "__main__":
    main()
