"""AgePrior in the simulator of Impatient Bandits (McDonald et al., KDD 2023), beside their own beliefs.

    git clone https://github.com/spotify-research/impatient-bandits
    python benchmarks/impatient.py impatient-bandits --repetitions 12

The environment, the beliefs and the loop are theirs: shows that are active on some of 59 days, 50 decisions a
day. The traces are drawn as their notebook "generate-synthetic-data" draws them, with its seed, and kept in
the folder of `--traces`. There are three cases: 200 shows and 50 shows for 180 days, and 60 of 400 shows at a
time for 340 days, the oldest of them replaced by a new one every day. The notebooks always play the same 200
or 50 shows; with `--any-shows` every repetition draws its own. The script prints regret per decision,
mean and standard error over repetitions. Their beliefs start from 200 older shows; so does what is marked
"with history" here, and nothing else.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import importlib
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from accrual.core.arrays import Floats
from accrual.live.ledger import Ledger
from accrual.policies.age_prior.history import with_history
from accrual.policies.age_prior.policy import AgePrior
from accrual.policies.base import Policy
from accrual.policies.gaussian_filter import filter_from

DAYS, SHOWS, TRACES, OLD, BATCH, AT_A_TIME = 59, 600, 10_000, 200, 50, 60
OLD_DECISIONS = 200  # of an older show, for AgePrior; their beliefs use all of its traces


def traces(folder: Path) -> Any:
    """Return shows x traces x days: draw them as the authors' notebook does, or read them again."""
    path = folder / "impatient-traces.npy"
    if not path.exists():
        days = np.arange(DAYS)
        dice = np.random.default_rng(42)
        lower = np.linalg.cholesky(1.2 * np.exp(-np.abs(days[:, None] - days) / 8.0))
        weekly = -np.abs(np.sin(np.pi * days / 7))
        drawn = np.zeros((SHOWS, TRACES, DAYS), np.uint8)
        for show in drawn:
            centre = 1.0 / (1.0 + np.exp(0.4 - 0.1 * dice.normal()))
            k = dice.uniform(0.7, 1.5)
            rates = -0.5 + 0.1 * lower @ dice.normal(size=DAYS)
            chances = 1.0 / (1.0 + np.exp(-rates - dice.uniform(0.1, 1.0) * weekly))
            show[:] = dice.binomial(1, chances, (TRACES, DAYS))
            left = dice.geometric(dice.beta(k * centre, k * (1 - centre), size=TRACES)) - 1
            show[left[:, None] <= days] = 0
        np.save(path, drawn)
    return np.load(path)


class Ours:
    """A policy of accrual, called as their `BayesianBandit` is."""

    def __init__(self, policy: Policy, seed: int) -> None:
        self._policy, self._seed, self.t = policy, seed, 0
        self._ledger: Ledger | None = None
        self._number: dict[Any, int] = {}
        self._playing: list[Any] = []
        self._made: list[list[tuple[int, Floats]]] = []  # for each day, ids and traces

    def act(self, n_actions: int, admissible: Sequence[Any]) -> list[Any]:
        """Choose the day's shows, after the pieces of all days before have arrived."""
        if self._ledger is None:
            self._ledger = Ledger(
                self._policy, [float(DAYS)] * len(admissible), DAYS, self._seed, watchers=()
            )
            self._number = {show: number for number, show in enumerate(admissible)}
        for day in range(max(self.t - DAYS, 0), self.t):
            age = self.t - 1 - day
            for id_, trace in self._made[day]:
                if trace[age]:
                    self._ledger.observe(id_, float(trace[age]), age)
        for show in set(self._playing) - set(admissible):
            self._ledger.retire_arm(self._number[show])
        for show in admissible:
            if show not in self._number:
                self._number[show] = self._ledger.add_arm(float(DAYS))
        self._playing = list(admissible)
        shows = {number: show for show, number in self._number.items()}
        self._decisions = self._ledger.decide(self.t, n_actions)
        self._made.append([])
        return [shows[decision.arm] for decision in self._decisions]

    def update(self, item: Any, trace: Floats) -> None:
        """Keep the trace of the day's next decision, whose pieces arrive day by day."""
        place = len(self._made[-1])
        self._made[-1].append((self._decisions[place].id, trace[0]))

    def step(self) -> None:
        self.t += 1


def trial(env: Any, agent: Any, playing: Callable[[int], list[Any]], horizon: int) -> float:
    """Return the regret per decision: the loop of the authors' notebooks."""
    means = {show: law.mean_sum for show, law in env.dists.items()}
    regret = 0.0
    for day in range(horizon):
        shows = playing(day)
        actions = agent.act(BATCH, admissible=shows)
        for action in actions:
            agent.update(action, env.step(action, day))
        agent.step()
        regret += max(means[show] for show in shows) - np.mean([means[action] for action in actions])
    return float(regret / horizon)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("clone", type=Path, help="the folder of spotify-research/impatient-bandits")
    parser.add_argument("--traces", type=Path, default=Path(), help="where to keep the traces (354 MB)")
    parser.add_argument("--repetitions", type=int, default=12)
    parser.add_argument("--theirs", type=int, default=4, help="repetitions of their beliefs, which are slow")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--any-shows", action="store_true", help="other shows in every repetition")
    parser.add_argument("--case", action="append", help="200, 50 or daily; all unless given")
    parser.add_argument("--player", action="append", help="a part of a player's name; all unless given")
    given = parser.parse_args()
    sys.path.insert(0, str(given.clone / "lib"))
    theirs = importlib.import_module("impatient_bandits")
    data = traces(given.traces)
    helper = theirs.StickinessHelper.from_data({show: data[show].astype(float) for show in range(OLD)})
    old = [data[show][:OLD_DECISIONS] / DAYS for show in range(OLD)]
    prior = {
        "prior_mvec": helper.prior_mvec, "prior_cmat": helper.prior_cmat, "noise_cmat": helper.noise_cmat,
    }  # fmt: skip

    def belief(kind: Any) -> Callable[[list[Any], int], Any]:
        def make(shows: list[Any], seed: int) -> Any:
            dice = np.random.default_rng(seed)
            return theirs.BayesianBandit({show: kind(**prior, seed=dice) for show in shows})

        return make

    def policy(it: Policy | None) -> Callable[[list[Any], int], Any]:
        assert it is not None
        return lambda shows, seed: Ours(it, seed)

    players: dict[str, Callable[[list[Any], int], Any]] = {
        "AgePrior": policy(AgePrior()),
        "AgePrior with history": policy(with_history(AgePrior(), old)),
        "GaussianFilter with history": policy(filter_from([data[show] / DAYS for show in range(OLD)])),
        "their Progressive with history": belief(theirs.ProgressiveBelief),
        "their Oracle with history": belief(theirs.OracleBelief),
    }
    cases = {"200": (200, 180), "50": (50, 180), "daily": (400, 400 - AT_A_TIME)}
    for case in given.case or cases:
        count, horizon = cases[case]
        shows = list(range(OLD, OLD + count))
        for name, make in players.items():
            if given.player and not any(part in name for part in given.player):
                continue
            figures = []
            begin = time.process_time()
            for k in range(given.theirs if name.startswith("their") else given.repetitions):
                dice = np.random.default_rng([given.seed, k])
                if given.any_shows:
                    shows = dice.permutation(np.arange(OLD, SHOWS))[:count].tolist()
                env = theirs.Environment(
                    {show: theirs.EmpiricalDistribution(data[show].copy(), seed=dice) for show in shows}
                )
                order = dice.permutation(shows).tolist() if case == "daily" else shows

                def playing(day: int, order: list[Any] = order, all_: bool = case != "daily") -> list[Any]:
                    return order if all_ else order[day : day + AT_A_TIME]

                agent = make(order, 1000 * given.seed + k)
                figures.append(trial(env, agent, playing, horizon))
            error = np.std(figures, ddof=1) / len(figures) ** 0.5 if len(figures) > 1 else np.nan
            print(
                f"{case}: {name}: {np.mean(figures):.3f} ± {error:.3f} ({len(figures)} repetitions, "
                f"{(time.process_time() - begin) / len(figures):.1f} s each)",
                flush=True,
            )


if __name__ == "__main__":
    main()
