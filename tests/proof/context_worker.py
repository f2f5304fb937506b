"""A process that decides by contexts until killed: `python -m tests.proof.context_worker URL NUMBER`."""

from __future__ import annotations

import random
import sys

import accrual as ac

NAME = "visitors"
FEATURES = {"plan": ["free", "paid"], "new": bool, "visits": (0, 10)}


def open_bandit(url: str) -> ac.Bandit:
    return ac.Bandit(
        ["a", "b", "c"], window=60, policy="AgeLinTS", features=FEATURES, store=url, seed=7, name=NAME
    )


def visitor(chance: random.Random) -> dict[str, object]:
    """Somebody, whose plan may be unknown and visits missing or out of range."""
    plan, visits = chance.choice(["free", "paid", "other"]), chance.choice([None, 1, 4, 12])
    return {"plan": plan, "new": chance.random() < 0.5, "visits": visits}


def main(url: str, number: str) -> None:
    """Write a line after every decision that was acknowledged: its id, its arm and its plan."""
    chance = random.Random(number)
    bandit = open_bandit(url)
    while True:
        context = visitor(chance)
        decision = bandit.decide(context=context)
        print(decision.id, decision.arm, context["plan"], flush=True)
        if chance.random() < (0.7 if (context["plan"] == "free") == (decision.arm == "a") else 0.3):
            bandit.observe(decision.id, 1.0, key="one")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
