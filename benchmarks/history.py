"""What a prior learned from old arms is worth to AgePrior, on listening services.

    python benchmarks/history.py --jobs 2

Each seed is a service of its own, with its own 200 old arms of 200 closed decisions each. AgePrior is played
with and without the old arms, and the Gaussian filter with them. Seeds 1001 to 1020 were used for nothing
else. The script prints regret per decision, mean and standard error over the services, and the ratio to the
filter's mean.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy: processes share the cores, not threads
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

from accrual.engine.batches import play_batches
from accrual.policies.age_prior.history import with_history
from accrual.policies.age_prior.policy import AgePrior
from accrual.policies.gaussian_filter import filter_from
from accrual.studies.gallery.listening import (
    ListeningService,
    listening,
    listening_new,
    old_listeners,
    service,
)

FIRST, SERVICES = 1001, 20
FILTER = "Gaussian filter with history"


def small(seed: int) -> ListeningService:
    """40 shows, 10 decisions a day for 120 days: little to learn a prior from on the way."""
    return ListeningService(service(40, 120, 10, 100 + seed, 0, 0.4), old_listeners(200 + seed, 0.4), seed)


KINDS = {"200 arms": listening, "60 arms, one replaced daily": listening_new, "40 arms, 10 a day": small}


def play(kind: str, seed: int) -> dict[str, float]:
    """Regret per decision of every player."""
    entry = KINDS[kind](seed)
    twice = with_history(AgePrior(), [2.0 * pay for pay in entry.old])
    players: dict[str, Any] = {
        FILTER: filter_from(entry.old),
        "AgePrior": AgePrior(),
        "AgePrior with history": with_history(AgePrior(), entry.old),
        "AgePrior, old arms paid twice as much": twice,
    }
    days = play_batches(entry.service, players, 1, entry.seed)
    made = entry.service.days * entry.service.batch
    return dict(zip(players, (days[:, 0].sum(axis=1) / made).tolist(), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--services", type=int, default=SERVICES)
    given = parser.parse_args()
    seeds = range(FIRST, FIRST + given.services)
    with ProcessPoolExecutor(given.jobs) as pool:
        for kind in KINDS:
            rows = list(pool.map(play, [kind] * len(seeds), seeds))
            regret = {player: np.array([row[player] for row in rows]) for player in rows[0]}
            plain = regret["AgePrior"]
            for player, figures in regret.items():
                error, paired = (x.std(ddof=1) / len(x) ** 0.5 for x in (figures, figures - plain))
                print(
                    f"{kind}: {player}: {figures.mean():.3f} ± {error:.3f}, worst {figures.max():.2f}, "
                    f"{figures.mean() / regret[FILTER].mean():.2f} of the filter's; "
                    f"{(figures - plain).mean():+.3f} ± {paired:.3f} to AgePrior",
                    flush=True,
                )


if __name__ == "__main__":
    main()
