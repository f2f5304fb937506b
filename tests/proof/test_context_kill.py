"""Workers that decide by contexts are killed: what is left is what the log says."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from tests.postgres import server
from tests.proof import context_worker
from tests.proof.folds import refold

from accrual.live.verify_snapshots import learned, same_bits

pytestmark = pytest.mark.slow  # AgeLinTS takes long to compile


def run_and_kill(url: str, workers: int, kills: int) -> dict[int, tuple[str, str]]:
    """Kill one worker after the other; what was acknowledged, by the decision's id: arm and plan."""
    chance, started = random.Random(kills), 0
    acknowledged: dict[int, tuple[str, str]] = {}

    def start() -> subprocess.Popen[str]:
        nonlocal started
        started += 1
        command = [sys.executable, "-m", "tests.proof.context_worker", url, str(started)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def end(worker: subprocess.Popen[str]) -> None:
        os.kill(worker.pid, signal.SIGKILL)
        for line in worker.communicate()[0].splitlines():
            words = line.split()
            if line.endswith(("free", "paid", "other")):  # the last line may be cut off
                acknowledged[int(words[0])] = (words[1], words[2])

    running = [start() for _ in range(workers)]
    for number in range(kills):
        place = number % workers
        out = running[place].stdout
        assert out is not None
        first = out.readline().split()  # it is at work
        acknowledged[int(first[0])] = (first[1], first[2])
        time.sleep(chance.uniform(0.0, 0.5))
        end(running[place])
        running[place] = start()
    for worker in running:
        end(worker)
    return acknowledged


@pytest.mark.parametrize(("database", "workers"), [("sqlite", 1), ("postgresql", 2)])
def test_what_is_left_is_what_the_log_says(database, workers, tmp_path, say):
    url = f"sqlite:///{tmp_path}/visitors.db" if database == "sqlite" else server().tables()
    context_worker.open_bandit(url).close()  # compiled once, for all of them
    acknowledged = run_and_kill(url, workers, kills=12)
    assert len(acknowledged) > 100
    chance = random.Random(1)
    visitors = [context_worker.visitor(chance) for _ in range(200)]
    found = []
    for _ in range(2):  # the second time from the snapshot that closing leaves
        with context_worker.open_bandit(url) as bandit:
            features = bandit.features
            assert features is not None
            contexts = [features.stored(one) for one in visitors]
            for ledger in (bandit._follower.ledger, refold(bandit)):
                arrays = learned(ledger)
                found.append((arrays, ledger.choose(ledger.now + 1.0, 200, 0.0, 0, contexts)))
            for id_, (arm, plan) in acknowledged.items():
                told = bandit.explain(id_)
                assert (told.arm, told.context["plan"]) == (arm, None if plan == "other" else plan)
    first, choices = found[0]
    assert all(same_bits(first, arrays) and choices == chosen for arrays, chosen in found)
    assert len(set(choices)) > 1
    other = {**first, "stats.estimate": np.nextafter(first["stats.estimate"], np.inf)}
    assert not same_bits(first, other)  # the control: another bit
    say(
        f"{database}, {workers} workers by context, 12 times kill -9: {len(acknowledged):,} decisions, all "
        "there; statistics and 200 next choices the same to the bit, opened twice and refolded"
    )
