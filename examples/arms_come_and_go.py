"""Arms that are added and retired while decisions are pending.

A site shows one article at a time; readers read on for up to 20 rounds. A better article is
published in round 1000, and in round 2000 the best one is taken down. What was shown before that
is still being read, and still teaches.

Run it: python examples/arms_come_and_go.py
"""

import numpy as np

import accrual as ac
from accrual.live.ledger import Ledger

WINDOW = 20
MEANS = [0.30, 0.45, 0.60]  # the third does not exist at first

dice = np.random.default_rng(2)
ledger = Ledger(ac.AgeIMED(), caps=[1.0, 1.0], window=WINDOW)
reading: list[tuple[int, int, float]] = []  # decision, its round, what it pays per round

shown = np.zeros(3, int)
print("rounds        shown: A, B, C   in play")
for now in range(1, 3001):
    if now == 1001:
        ledger.add_arm(cap=1.0)
    if now == 2001:
        ledger.retire_arm(2)
    (decision,) = ledger.decide(now)
    shown[decision.arm] += 1
    reading.append((decision.id, now, MEANS[decision.arm] * dice.uniform(0, 2) / WINDOW))
    reading = [(id_, start, rate) for id_, start, rate in reading if now - start < WINDOW]
    for id_, start, rate in reading:
        ledger.observe(id_, rate, age=now - start)
    if now % 500 == 0:
        print(f"{now - 499:4d} - {now:4d}   {shown}   {''.join('ABC'[arm] for arm in ledger.arms.in_play)}")
        shown[:] = 0

ledger.tick(now=4000)
totals = ledger.stats.paid.sum(axis=1) / ledger.stats.pulls
print("\nmean total, as learned:", ", ".join(f"{m:.2f}" for m in totals), " true:", MEANS)
