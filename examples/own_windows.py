"""Windows that differ between arms and between decisions.

A shop sends mails of three kinds. A voucher is good for 5 days, so nothing comes after that; the
others may bring orders for 30 days. Some customers unsubscribe, which closes their decision early:
nothing more is taken for it. The ledger learns from every order as it comes in, and a decision is
finished when the window of its mail is over, whether it was closed before or not.

Run it: python examples/own_windows.py
"""

import numpy as np

import accrual as ac
from accrual.live.ledger import Ledger

MAILS = ["voucher", "new arrivals", "reminder"]
WINDOWS = [5, 30, 30]  # days
WORTH = [0.30, 0.45, 0.20]  # of the orders that a mail brings, as a share of the cap
DAYS = 120

dice = np.random.default_rng(1)
ledger = Ledger(ac.AgeIMED(), caps=[1.0, 1.0, 1.0], window=30, windows=WINDOWS)
orders: dict[int, list[tuple[int, float, int]]] = {}  # by day: decision, value, age
leavers: dict[int, list[int]] = {}  # by day: decisions whose customers unsubscribe
earned = np.zeros(3)

print("day   voucher  new arrivals  reminder   pending")
for day in range(DAYS + 30):
    for decision in ledger.decide(now=day, n=20) if day < DAYS else []:
        stays = window = WINDOWS[decision.arm]
        if dice.random() < 0.1:
            stays = int(dice.integers(1, window))
            leavers.setdefault(day + stays, []).append(decision.id)
        for age in map(int, dice.integers(0, window, size=3)):
            value = WORTH[decision.arm] * dice.uniform(0, 2) / 3
            if age < stays:
                orders.setdefault(day + age, []).append((decision.id, value, age))
                earned[decision.arm] += value
    for id_ in leavers.pop(day, []):
        ledger.close_decision(id_, now=day)
    for id_, value, age in orders.pop(day, []):
        assert ledger.observe(id_, value, age)
    if day < DAYS and day % 20 == 19:
        print(f"{day + 1:3d}" + "{:10d}{:14d}{:10d}".format(*ledger.stats.pulls) + f"{ledger.pending:10d}")

ledger.tick(now=DAYS + 30)
ends = ledger.policy.edges(30)
means = ledger.stats.paid / ledger.stats.seen
print("\nA mail's orders     in 5 days   in all   (in all, from the books)")
for arm, name in enumerate(MAILS):
    in_all = earned[arm] / ledger.stats.pulls[arm]
    print(f"{name:17s}{means[arm, ends <= 5].sum():10.3f}{means[arm].sum():10.3f}{in_all:12.3f}")
