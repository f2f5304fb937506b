"""How often the interval of what choosing by context is worth holds the truth, on simulated logs.

Each log has three arms, contexts of two flags and a number, uneven propensities that depend on the context,
and a fifth of its decisions open at the end. The truth is what the models that were fitted to the log would
truly gain, over the log's visitors. Part of `make coverage`; `--logs 50` is quick.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

from accrual.core.interval import mean_interval
from accrual.core.reward_model import Observed, cross_fit, scores
from accrual.fit.completed import PaidDecisions, complete

WINDOW, GROUPS = 100.0, 5
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
    paid = PaidDecisions(arm, 1.0 / own, followed, pays[inside], age[inside], np.ones(int(inside.sum())))
    return Observed(x, arm, complete(paid, 3, WINDOW, GROUPS), own, 3), truth


def main() -> None:
    """Print coverage, mean width and how often the best arm is said to depend on the context."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--logs", type=int, default=400)
    logs = options.parse_args().logs
    lines: list[dict[str, object]] = []
    for name, effects in CASES.items():
        for n in (500, 2000, 10_000):
            held = yes = 0
            truths, widths = [], []
            for seed in range(logs):
                seen, truth = log(effects, n, seed)
                found = cross_fit(seen, "forward")
                rows, single = np.flatnonzero(found.judged), found.single
                told = mean_interval(scores(seen, found, found.choice) - scores(seen, found, single))
                true = float((truth[rows, found.choice[rows]] - truth[rows, single[rows]]).mean())
                held += told.low <= true <= told.high
                yes += told.low > 0.0
                truths.append(true)
                widths.append(told.high - told.low)
            lines.append(
                {
                    "contexts": name, "decisions": n, "held": held / logs, "said yes": yes / logs,
                    "truly gained": np.mean(truths), "width": np.mean(widths),
                }
            )  # fmt: skip
            print(pd.DataFrame(lines[-1:]).to_string(index=False, header=len(lines) == 1), flush=True)


if __name__ == "__main__":
    main()
