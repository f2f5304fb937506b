"""What forgetting gains if means change and costs if they do not, and how well the alarm works.

    python benchmarks/drift.py forgetting
    python benchmarks/drift.py alarm

Ten arms whose decisions pay 1 or nothing, at one time within a window of 100 rounds; their chances to pay
are uniform from 0.05 to 0.5. `redealt`: all chances are drawn anew every 5,000 of 40,000 rounds. `halfway`:
once, after 20,000. `still`: never. Regret is against the best arm of each decision's own round. "Restarted"
is AgePrior that begins again at every change, which it is told.

The alarm: ten arms, a window of 20 rounds, AgeIMED; the best arm changes halfway.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

import accrual as ac
from accrual.problems.families import lumps, plain

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.live.watching import first_alarms

ARMS, WINDOW, HORIZON = 10, 100, 40_000
CHANGES = {"redealt": list(range(5001, HORIZON, 5000)), "halfway": [HORIZON // 2 + 1], "still": []}
DEALS, RUNS = 10, 4
HALF_LIVES = (300, 1000, 3000, 10_000)


def dealt(number: int, seed: int) -> list[ac.Problem]:
    """Make so many problems, with chances of their own."""
    dice = np.random.default_rng([20_261_116, seed])
    return [plain(WINDOW, lumps(*dice.uniform(0.05, 0.5, ARMS))) for _ in range(number)]


def changing(problems: Sequence[ac.Problem], changes: Sequence[int]) -> ac.Problem:
    """Return a problem that changes from each of these to the next."""
    first, *later = problems
    laws = {at: problem.arm_laws for at, problem in zip(changes, later, strict=True)}
    return replace(first, changes=laws)


def restarted(problems: Sequence[ac.Problem], changes: Sequence[int], seed: int) -> list[float]:
    """Return the regret of each run of an AgePrior that begins again with every change."""
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
            result = ac.simulate(changing(problems, changes), policies, HORIZON, RUNS, seed=deal)
            for label, regret in zip(result.labels, result.final_regret, strict=True):
                rows.setdefault(label, []).extend(regret)
            rows.setdefault("restarted", []).extend(restarted(problems, changes, deal))
        for label, regret in rows.items():
            error = np.std(regret, ddof=1) / math.sqrt(len(regret))
            shown = f"{np.mean(regret):8,.0f} ± {error:.0f}, worst {max(regret):,.0f}"
            print(f"{name:8} {label:28} {shown}", flush=True)


def alarm() -> None:
    """Print how often the alarm is raised, and how many decisions after the change."""
    for chances, runs in [((0.3, 0.3), 1000), ((0.5, 0.5), 1000)]:
        found = first_alarms(chances, runs, 10_000)
        share = np.isfinite(found).mean()
        print(f"no change, {chances[0]}: {100 * share:.1f} % of {runs:,} runs have a false alarm", flush=True)
    for chances in [(0.5, 0.1), (0.5, 0.3), (0.5, 0.4), (0.5, 0.45), (0.5, 0.6), (0.5, 0.8)]:
        for rounds in (4000, 20_000):
            found = first_alarms(chances, 100, rounds)
            early = (found < rounds // 2).mean()
            delay = np.where(found < rounds // 2, np.nan, found - rounds // 2)
            low, middle, high = np.nanquantile(delay, [0.1, 0.5, 0.9], method="higher")
            print(
                f"{chances[0]} to {chances[1]} after {rounds // 2:,}: found in "
                f"{100 * np.isfinite(delay).mean():.0f} % (false before: {100 * early:.0f} %), "
                f"after {middle:,.0f} decisions (10 %: {low:,.0f}, 90 %: {high:,.0f})",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("what", choices=["forgetting", "alarm"])
    {"forgetting": forgetting, "alarm": alarm}[parser.parse_args().what]()


if __name__ == "__main__":
    main()
