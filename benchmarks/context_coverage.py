"""How often the interval of what choosing by context is worth contains the truth, on simulated logs.

Each log has three arms, contexts of two flags and a number, uneven propensities that depend on the context,
and a fifth of its decisions open at the end. The truth is what the models that were fitted to the log would
truly gain, over the log's contexts. With `--live` the decisions are those of a live bandit: AgeLinTS with a
floor learns from pieces while it chooses, and is judged by its own propensities, in the order of time as the
service does, and in a random order as `accrual fit` does. Part of `make coverage`; `--logs 50` is quick.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd

from accrual.core.context_value import EFFECTIVE_LEAST, effective_decisions
from accrual.core.features import Features
from accrual.core.interval import mean_interval
from accrual.core.reward_model import Observed, Way, cross_fit, scores
from accrual.live.bandit import Bandit
from accrual.live.ledger import Ledger
from accrual.logs.estimate import FollowedDecisions, complete
from accrual.policies.age_lin.policy import AgeLinTS
from accrual.policies.floor import Limits

WINDOW = 100.0
# Effects of: always, flag, rare flag, number; of three arms.
CASES = {
    "useless contexts": [[0.30, 0.0, 0.0, 0.0], [0.35, 0.0, 0.0, 0.0], [0.30, 0.0, 0.0, 0.0]],
    "weak contexts": [[0.30, 0.1, 0.0, 0.0], [0.35, 0.0, 0.05, 0.0], [0.30, 0.0, 0.0, 0.08]],
    "strong contexts": [[0.20, 0.4, 0.0, 0.0], [0.35, -0.2, 0.1, 0.0], [0.20, 0.0, 0.4, 0.2]],
}
TILT = np.array([[0.0, 0.5, 0.0, 0.5], [0.2, 0.0, 0.5, 0.0], [0.0, -0.5, 0.0, 0.0]])


def log(effects: list[list[float]], n: int, seed: int) -> tuple[Observed, np.ndarray]:
    """A log and what each arm truly pays at each decision."""
    dice = np.random.default_rng(seed)
    x = np.stack([np.ones(n), dice.random(n) < 0.5, dice.random(n) < 0.2, dice.random(n)], axis=1)
    truth = x @ np.array(effects).T
    odds = np.exp(x @ TILT.T)
    chance = odds / odds.sum(axis=1, keepdims=True)
    arm = np.minimum((chance.cumsum(axis=1) < dice.random((n, 1))).sum(axis=1), 2)
    rows = np.arange(n)
    pays = np.flatnonzero(dice.random(n) < truth[rows, arm])
    followed = np.where(dice.random(n) < 0.2, dice.uniform(0, WINDOW, n), WINDOW)
    age = dice.uniform(0, WINDOW, len(pays))
    inside = age < followed[pays]
    own = chance[rows, arm]
    first = np.searchsorted(pays[inside], np.arange(n + 1))
    some = FollowedDecisions(
        arm, 1.0 / own, followed, followed, first, age[inside], np.ones(int(inside.sum()))
    )
    return Observed(x, arm, complete(some, 3, WINDOW), own, 3), truth


FEATURES = Features({"flag": bool, "rare": bool, "number": (0.0, 1.0)})
BATCH = 25  # decisions of a live log that are made together


def live_log(effects: list[list[float]], n: int, seed: int, floor: float) -> tuple[Observed, np.ndarray]:
    """The decisions of a bandit that learned from them, and what each arm truly pays at each."""
    dice = np.random.default_rng(seed)
    x = np.stack([np.ones(n), dice.random(n) < 0.5, dice.random(n) < 0.2, dice.random(n)], axis=1)
    truth = x @ np.array(effects).T
    ledger = Ledger(AgeLinTS(), [1.0] * 3, int(WINDOW), seed, limits=Limits(floor), features=FEATURES)
    arm, own, reward = np.zeros(n, np.int64), np.zeros(n), np.zeros(n)
    paying: dict[int, list[tuple[int, float]]] = {}  # by the batch before which it comes: decision and age
    for batch in range(n // BATCH):
        for number, age in paying.pop(batch, ()):
            ledger.observe(number, 1.0, age)
        rows = np.arange(batch * BATCH, (batch + 1) * BATCH)
        made = ledger.decide(1.0 + batch * BATCH, BATCH, contexts=x[rows, 1:])
        arm[rows], own[rows] = [one.arm for one in made], [one.propensity for one in made]
        reward[rows] = dice.random(BATCH) < truth[rows, arm[rows]]
        later = dice.integers(1, int(WINDOW) // BATCH, BATCH)
        for i, wait in zip(rows[reward[rows] > 0], later[reward[rows] > 0], strict=True):
            paying.setdefault(batch + int(wait), []).append((int(i), float(wait * BATCH - 1)))
    return Observed(x, arm, reward, own, 3), truth


def coverage(logs: Sequence[tuple[Observed, np.ndarray]], way: Way) -> dict[str, object]:
    """How often the interval holds, says yes, what is truly gained, and how wide it is."""
    held, yes, truths, widths = 0, 0, [], []
    for seen, truth in logs:
        found = cross_fit(seen, way)
        rows, single = np.flatnonzero(found.judged), found.single
        if effective_decisions(seen, found, found.choice) < EFFECTIVE_LEAST:
            continue  # then it is said that it cannot be told
        told = mean_interval(scores(seen, found, found.choice) - scores(seen, found, single))
        true = float((truth[rows, found.choice[rows]] - truth[rows, single[rows]]).mean())
        held += told.low <= true <= told.high
        yes += told.low > 0.0
        truths.append(true)
        widths.append(told.high - told.low)
    told_at_all = len(truths)
    if not told_at_all:
        return {"told": 0.0}
    return {
        "told": told_at_all / len(logs), "held": held / told_at_all, "said yes": yes / told_at_all,
        "truly gained": float(np.mean(truths)), "width": float(np.mean(widths)),
    }  # fmt: skip


def _contexts(features: Iterable[str], dice: np.random.Generator) -> list[dict[str, bool]]:
    return [dict(zip(features, row, strict=True)) for row in (dice.random((1000, 10)) < 0.5).tolist()]


def cost() -> None:
    """Print how long it takes to judge 50,000 decisions of a file, and how long decisions take meanwhile."""
    features = {f"flag{i}": bool for i in range(10)}
    dice = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        arms = {f"arm {i}": 1.0 for i in range(10)}
        bandit = Bandit(
            arms, 1000, policy="UCB1", store=f"sqlite:///{folder}/s.db", floor=0.1, features=features
        )
        for _ in range(55):
            made = bandit.decide(1000, context=_contexts(features, dice))
            paid = [one.id for one in made if dice.random() < 0.3]
            bandit.observe_many(paid, [1.0] * len(paid), [0.0] * len(paid))
        bandit.context_worth()  # what is compiled, is compiled
        before = time.process_time()
        bandit.context_worth()
        print(f"judging takes {time.process_time() - before:.2f} s of processor time")
        with ThreadPoolExecutor(1) as pool:
            for case in ("alone", "meanwhile"):
                start = time.perf_counter()
                judging = pool.submit(bandit.context_worth) if case == "meanwhile" else None
                took = []
                while time.perf_counter() - start < 5.0 if judging is None else not judging.done():
                    before = time.perf_counter()
                    bandit.decide(context={"flag0": True})
                    took.append(1e3 * (time.perf_counter() - before))
                middle, slow = np.quantile(took, [0.5, 0.99])
                took_all = time.perf_counter() - start
                print(f"{case}: {took_all:.2f} s, a decision takes {middle:.2f} ms (99 %: {slow:.2f} ms)")
        bandit.close()


def main() -> None:
    """Print coverage, mean width and how often the best arm is said to depend on the context."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--logs", type=int, default=400)
    options.add_argument("--live", action="store_true")
    options.add_argument("--floor", type=float, default=0.1)
    options.add_argument("--cost", action="store_true")
    given = options.parse_args()
    if given.cost:
        cost()
        return
    lines: list[dict[str, object]] = []
    for name, effects in CASES.items():
        for n in (2000, 10_000) if given.live else (500, 2000, 10_000):
            if given.live:
                made = [live_log(effects, n, seed, given.floor) for seed in range(given.logs)]
            else:
                made = [log(effects, n, seed) for seed in range(given.logs)]
            for way in ("in time", "forward") if given.live else ("forward",):
                lines.append({"contexts": name, "decisions": n, "order": way, **coverage(made, way)})
                print(pd.DataFrame(lines[-1:]).to_string(index=False, header=len(lines) == 1), flush=True)


if __name__ == "__main__":
    main()
