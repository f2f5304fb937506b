"""`make bench-peers`, second part: contexts and pieces, here and in other libraries.

All policies get the same contexts and the same luck, because draws depend on seed, run and round alone. The
other libraries' documentation knows one reward for a decision. So they get the total when the window has
closed, or each piece as it arrives, as a reward of its own.
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

import accrual as ac
from accrual.core.errors import MissingExtra, need
from accrual.core.jit.compiler import kernel
from accrual.engine.general_feed import (
    ContextArrays,
    GeneralFeed,
    GeneralRunFeed,
    age_of,
    count_pieces,
    piece_of,
    power_of,
    world_of,
)
from accrual.problems.contexts import PIECES_MOST
from accrual.problems.gallery import ENTRIES

NAMES = ("ctx-same", "ctx-cross", "ctx-sparse")
HORIZON, RUNS, SEED = 20_000, 5, 17
CLOSED, PIECES = "after the window", "each piece a reward"

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Peer(Protocol):
    """A learner of another library."""

    def choose(self, x: Floats) -> tuple[int, float]:
        """Choose an arm; also give the chance that it had."""
        ...

    def learn(self, x: Floats, arm: int, chance: float, reward: float) -> None:
        """Learn from a reward of an earlier choice."""
        ...


class River:
    """river's LinUCB with its own defaults; the constant is a feature, since its model has none."""

    def __init__(self, river: Any, arms: int, run: int) -> None:
        self._policy, self._arms = river.LinUCBDisjoint(seed=run), list(range(arms))

    def choose(self, x: Floats) -> tuple[int, float]:
        return self._policy.pull(self._arms, context=dict(enumerate(x.tolist()))), 1.0

    def learn(self, x: Floats, arm: int, chance: float, reward: float) -> None:
        self._policy.update(arm, dict(enumerate(x.tolist())), reward)


class VowpalWabbit:
    """VW's contextual bandit; its chances are drawn from here."""

    def __init__(self, vw: Any, arguments: str, arms: int, run: int) -> None:
        self._space = vw.Workspace(f"{arguments} --quiet")
        self._arms, self._with_arms = arms, "_adf" in arguments
        self._dice = np.random.default_rng(run)

    def choose(self, x: Floats) -> tuple[int, float]:
        chances = np.array(self._space.predict(self._example(x)))
        arm = int(self._dice.choice(self._arms, p=chances / chances.sum()))
        return arm, float(chances[arm])

    def learn(self, x: Floats, arm: int, chance: float, reward: float) -> None:
        self._space.learn(self._example(x, arm, f"{-reward:.6g}:{chance:.6g} "))

    def _example(self, x: Floats, arm: int = -1, cost: str = "") -> Any:
        features = " ".join(f"f{j}:{value:.8g}" for j, value in enumerate(x[1:]))  # it adds a constant itself
        if not self._with_arms:  # actions are counted from 1
            return f"{arm + 1}:{cost}| {features}" if cost else f"| {features}"
        chosen = [f"0:{cost}" if k == arm else "" for k in range(self._arms)]
        return [f"shared |U {features}", *(f"{text}|A arm{k}" for k, text in enumerate(chosen))]


@kernel
def pieces_of(
    arrays: ContextArrays, caps: Floats, feed: GeneralFeed, means: Floats, counts: Ints, ages: Ints
) -> None:
    """Write how many pieces each arm would pay in each round, and their ages."""
    for i in range(len(means)):
        x, u = feed.x[arrays.window + i], feed.u[i]
        for arm in range(len(caps)):
            counts[i, arm] = count_pieces(arrays, caps, arm, means[i, arm], u)
            power = power_of(arrays, arm, x)
            for j in range(counts[i, arm]):
                ages[i, arm, j] = age_of(arrays.window, power, u[2 + j])


def play(peer: Peer, problem: ac.Problem, horizon: int, key: tuple[int, int], each_piece: bool) -> float:
    """Play one run, (seed, number), as `accrual.simulate` plays it; return the regret."""
    world, window, arms = world_of(problem), problem.window, len(problem.caps)
    source = GeneralRunFeed(world, key, max(512, window))
    counts = np.zeros((source.span, arms), np.int64)
    ages = np.zeros((source.span, arms, PIECES_MOST), np.int64)
    size = piece_of(world.arrays, world.caps, 0)
    arriving: list[list[tuple[Floats, int, float, float]]] = [[] for _ in range(horizon + window)]
    regret = 0.0
    for start in range(0, horizon, source.span):
        length = min(source.span, horizon - start)
        feed, means = source.read(length), source.means[:length]
        pieces_of(world.arrays, world.caps, feed, means, counts, ages)
        for i in range(length):
            x, now = feed.x[window + i].copy(), start + i
            arm, chance = peer.choose(x)
            regret += float(means[i].max() - means[i, arm])
            if each_piece:
                for age in ages[i, arm, : counts[i, arm]]:
                    arriving[now + age].append((x, arm, chance, size))
            else:
                arriving[now + window - 1].append((x, arm, chance, float(counts[i, arm] * size)))
            for observation in arriving[now]:
                peer.learn(*observation)
            arriving[now] = []
    return regret


def main(runs: int) -> int:
    """Print everybody's regret on the same problems."""
    try:
        river, vw = need("river.bandit", "peers"), need("vowpalwabbit", "peers")
    except MissingExtra as error:
        print(error, file=sys.stderr)
        return 2
    for name in NAMES:
        problem = ENTRIES[name].problem
        arms = len(problem.caps)
        peers: dict[str, Callable[[int], Peer]] = {
            f"{_version('river')}, LinUCBDisjoint": partial(River, river, arms),
            **{
                f"{_version('vowpalwabbit')}, {text}": partial(VowpalWabbit, vw, text, arms)
                for text in (f"--cb_explore {arms}", "--cb_explore_adf --squarecb -q UA")
            },
        }
        print(f"\n{name}: regret after {HORIZON:,} decisions, window {problem.window:,}, {runs} runs")
        own = {"accrual, AgeLinTS": ac.AgeLinTS(), "accrual, LinUCB waiting": ac.LinUCB()}
        final = ac.simulate(problem, own, HORIZON, runs, SEED, checkpoints=1).final_regret
        least = float(final[0].mean())
        for label, regret in zip(own, final, strict=True):
            _say(label, regret, least)
        for label, make in peers.items():
            for how in (CLOSED, PIECES):
                found = [play(make(run), problem, HORIZON, (SEED, run), how == PIECES) for run in range(runs)]
                _say(f"{label}, {how}", np.array(found), least)
    return 0


def _say(label: str, regret: Floats, least: float) -> None:
    error = regret.std(ddof=1) / np.sqrt(len(regret)) if len(regret) > 1 else np.nan
    ratio = regret.mean() / least
    print(f"  {label:<78} {regret.mean():7.0f} ± {error:4.0f} {ratio:7.2f} times AgeLinTS", flush=True)


def _version(name: str) -> str:
    return f"{name} {importlib.metadata.version(name)}"


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else RUNS))
