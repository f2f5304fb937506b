"""`make bench-peers`: UCB1 without delay, here and in other libraries, and what they make of pieces."""

from __future__ import annotations

import importlib.metadata
import sys
import time
from typing import Any

import numpy as np

import accrual as ac
from accrual.core.errors import MissingExtra, need
from accrual.studies.bench import measure

CHANCES = [0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6]
HORIZON = 10_000


def main() -> int:
    """Measure, print the ratios, and show what the others make of a reward in pieces."""
    try:
        river, mabwiser = need("river.bandit", "peers"), need("mabwiser.mab", "peers")
    except MissingExtra as error:
        print(error, file=sys.stderr)
        return 2
    rewards = np.random.default_rng(0).random((HORIZON, len(CHANCES))) < CHANCES
    ours = accrual_cost()
    print(f"UCB1, {len(CHANCES)} Bernoulli arms, no delay, {HORIZON:,} rounds, one core:")
    for name, cost in {
        _version("accrual"): ours,
        _version("river"): river_cost(river, rewards),
        _version("mabwiser"): mabwiser_cost(mabwiser, rewards),
    }.items():
        print(f"  {name:<18} {cost:>12,.0f} ns per round {cost / ours:>10,.0f} times accrual's")
    print("One decision whose reward of 1.0 arrives as ten pieces of 0.1:")
    for name, (pulls, mean) in {"river": river_pieces(river), "mabwiser": mabwiser_pieces(mabwiser)}.items():
        print(f"  {name:<18} learns {pulls} pulls, mean {mean:.1f}")
    return 0


def accrual_cost() -> float:
    """Nanoseconds per round; a hundred runs, because one would be over in a millisecond."""
    laws = [ac.BernoulliLaw(p) for p in CHANCES]
    problem = ac.Problem(caps=[1.0] * len(CHANCES), window=1, groups=1, laws=laws)
    return measure(problem, [ac.UCB1()], HORIZON, runs=100)


def river_cost(river: Any, rewards: Any) -> float:
    """The same for river."""
    policy = river.UCB(delta=1, seed=0)
    arms = list(range(len(CHANCES)))
    began = time.process_time()
    for row in rewards:
        arm = policy.pull(arms)
        policy.update(arm, float(row[arm]))
    return (time.process_time() - began) * 1e9 / HORIZON


def mabwiser_cost(mabwiser: Any, rewards: Any) -> float:
    """The same for MABWiser."""
    arms = list(range(len(CHANCES)))
    bandit = mabwiser.MAB(arms, mabwiser.LearningPolicy.UCB1(alpha=1.0), seed=0)
    bandit.fit(arms, rewards[0].astype(float))
    began = time.process_time()
    for row in rewards:
        arm = bandit.predict()
        bandit.partial_fit([arm], [float(row[arm])])
    return (time.process_time() - began) * 1e9 / HORIZON


def river_pieces(river: Any) -> tuple[int, float]:
    """Pulls and mean that river's UCB holds after the ten pieces."""
    policy = river.UCB(delta=1, seed=0)
    for _ in range(10):
        policy.update("arm", 0.1)
    return policy._counts["arm"], policy._rewards["arm"].get()


def mabwiser_pieces(mabwiser: Any) -> tuple[int, float]:
    """Pulls and mean that MABWiser's UCB1 holds after the ten pieces."""
    bandit = mabwiser.MAB(["arm", "other"], mabwiser.LearningPolicy.UCB1(alpha=1.0), seed=0)
    bandit.fit(["arm"], [0.1])
    for _ in range(9):
        bandit.partial_fit(["arm"], [0.1])
    return int(bandit._imp.arm_to_count["arm"]), float(bandit._imp.arm_to_mean["arm"])


def _version(name: str) -> str:
    return f"{name} {importlib.metadata.version(name)}"


if __name__ == "__main__":
    sys.exit(main())
