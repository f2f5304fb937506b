"""How long the ledger takes for a decision and for a piece.

Ten arms and a window of 100. Every round makes one decision, which finishes as many groups as a
decision has, and then sends four pieces of decisions up to a window old: most out of order. Run
it on a quiet machine: the median of single calls is what is shown.
"""

from __future__ import annotations

import time

import numpy as np

from accrual.live.ledger import Ledger
from accrual.policy.catalog import CATALOG, make

SETTINGS: dict[str, dict[str, object]] = {
    "AgeUCB": {"alpha": 20},
    "TPUCBEW": {"alpha": 20},
    "TPUCBFR": {"alpha": 20},
    "TPUCBFRG": {"alpha": 20, "spread": "begin"},
}
ARMS, WINDOW, ROUNDS, PIECES = 10, 100, 20_000, 4


def main() -> None:
    print(f"{'':18s}{'decide':>10s}{'observe':>10s}{'observe_many':>14s}   microseconds, median")
    for name in CATALOG:
        policy = make(name, **SETTINGS.get(name, {}))
        if policy.immediate:
            continue
        ledger = Ledger(policy, [1.0] * ARMS, WINDOW)
        dice = np.random.default_rng(0)
        back = dice.integers(0, WINDOW, (ROUNDS, PIECES))
        values = dice.random((ROUNDS, PIECES)) / PIECES
        ages = (back * dice.random((ROUNDS, PIECES))).astype(np.int64)
        decide, observe, many = [], [], []
        clock = time.perf_counter
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
        ids = dice.integers(ROUNDS - WINDOW // 2, ROUNDS, 10_000)
        for _ in range(20):
            start = clock()
            ledger.observe_many(ids, np.full(len(ids), 1e-6), dice.integers(0, WINDOW, len(ids)))
            many.append((clock() - start) / len(ids))
        figures = [1e6 * float(np.median(times)) for times in (decide[1000:], observe[1000:], many[1:])]
        print(f"{name:18s}{figures[0]:10.2f}{figures[1]:10.2f}{figures[2]:14.3f}", flush=True)


if __name__ == "__main__":
    main()
