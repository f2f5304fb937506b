"""What forgetting gains where means change, and costs where they do not; and how the alarm does.

    python benchmarks/drift.py forgetting
    python benchmarks/drift.py alarm

Ten arms whose decisions pay 1 or nothing, at one time within a window of 100 rounds; their chances to pay
are uniform from 0.05 to 0.5. `redealt`: all chances are drawn anew every 5,000 of 40,000 rounds. `halfway`:
once, after 20,000. `still`: never. Regret is against the best arm of each decision's own round. "Restarted"
is AgePrior that is told of every change and begins again.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

import numpy as np

import accrual as ac
from accrual.experiments.families import lumps, plain

ARMS, WINDOW, HORIZON = 10, 100, 40_000
CHANGES = {"redealt": list(range(5001, HORIZON, 5000)), "halfway": [HORIZON // 2 + 1], "still": []}
DEALS, RUNS = 10, 4
HALF_LIVES = (300, 1000, 3000, 10_000)


def dealt(number: int, seed: int) -> list[ac.Problem]:
    """Make so many problems, with chances of their own."""
    dice = np.random.default_rng([20_261_116, seed])
    return [plain(WINDOW, lumps(*dice.uniform(0.05, 0.5, ARMS))) for _ in range(number)]


def restarted(problems: Sequence[ac.Problem], changes: Sequence[int], seed: int) -> list[float]:
    """Give the regret of each run of an AgePrior that begins again with every change."""
    lengths = np.diff([1, *changes, HORIZON + 1])
    parts = [
        ac.simulate(problem, [ac.AgePrior()], int(length), RUNS, seed).final_regret[0]
        for problem, length in zip(problems, lengths, strict=True)
    ]
    return list(np.sum(parts, axis=0))


def forgetting() -> None:
    """Print regret and its standard error, for each problem and policy."""
    policies: list[ac.Policy] = [ac.AgePrior(), *(ac.AgePrior(half_life=h) for h in HALF_LIVES)]
    policies += [ac.AgeIMED(), ac.IMED()]
    for name, changes in CHANGES.items():
        rows: dict[str, list[float]] = {}
        for deal in range(DEALS):
            problems = dealt(len(changes) + 1, deal)
            result = ac.simulate(ac.ChangingProblem(problems, changes), policies, HORIZON, RUNS, seed=deal)
            for label, regret in zip(result.labels, result.final_regret, strict=True):
                rows.setdefault(label, []).extend(regret)
            rows.setdefault("restarted", []).extend(restarted(problems, changes, deal))
        for label, regret in rows.items():
            error = np.std(regret, ddof=1) / math.sqrt(len(regret))
            shown = f"{np.mean(regret):8,.0f} ± {error:.0f}, worst {max(regret):,.0f}"
            print(f"{name:8} {label:28} {shown}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("what", choices=["forgetting"])
    {"forgetting": forgetting}[parser.parse_args().what]()


if __name__ == "__main__":
    main()
