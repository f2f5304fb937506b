"""Several workers on one PostgreSQL: every key is accepted once, and all learn the same."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from tests.postgres import server

from accrual.live.config import read_config
from accrual.live.verify_snapshots import learned, refold
from accrual.store.admin import verify
from accrual.store.backends import open_reader
from accrual.store.base import AddArm, NewDecisions
from accrual.store.postgres.store import PostgresStore

RACES = [pytest.param(2, 4_000, id="quick"), pytest.param(4, 200_000, id="long", marks=pytest.mark.slow)]
SHARED = [pytest.param(2, 40, id="quick"), pytest.param(4, 1_000, id="long", marks=pytest.mark.slow)]
CONTROL = (4, 8_000)
DECISIONS = 1_000


def started(*arguments: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.proof.postgres_worker", *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def answers(job: str, url: str, workers: int, total: int) -> tuple[list[Any], float]:
    """What each worker was told, and how long it took."""
    raced = total // 10
    processes = [started(job, url, i, DECISIONS, workers, total, raced) for i in range(workers)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    start = time.perf_counter()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    told = [json.loads(process.communicate()[0]) for process in processes]
    return told, time.perf_counter() - start


@pytest.mark.parametrize(("workers", "total"), RACES)
def test_exactly_one_acceptance_for_a_key(workers, total, say):
    """A tenth of the pieces is sent by every worker at once, some with bodies that differ."""
    url = server().tables()
    store = PostgresStore(url)
    bandit = store.create("raced", {}, [AddArm("a", 1.0, 80.0)], False, 0.0).number
    store.append(bandit, [NewDecisions((0,) * DECISIONS, (80.0,) * DECISIONS)], 0.0)
    told, seconds = answers("race", url, workers, total)
    stored = defaultdict(list)
    others = defaultdict(set)
    for worker in told:
        for key, (status, seq) in worker.items():
            if status == "stored":
                stored[key].append(seq)
            else:
                others[key].add((status, seq))
    assert len(stored) == total
    assert all(len(seqs) == 1 for seqs in stored.values())
    for key, seen in others.items():
        assert seen <= {("again", stored[key][0]), ("conflict", 0)}
        assert int(key) % 3 == 0 or ("conflict", 0) not in seen
    assert len(others) == total // 10
    assert any(("conflict", 0) in seen for seen in others.values())
    rows = server().execute("SELECT key, seq FROM piece", url)
    assert {row[0]: [row[1]] for row in rows} == stored
    assert len(rows) == total
    with open_reader(url) as reader:
        assert verify(reader) == []
    store.close()
    sent = sum(len(worker) for worker in told)
    say(
        f"PostgreSQL, {workers} workers x 16 connections: {total:,} pieces in {sent:,} deliveries, "
        f"{total // 10:,} raced by all: one acceptance for each key ({sent / seconds:,.0f} a second)"
    )


def test_control_looking_before_inserting(say):
    """Without the constraint some keys are accepted twice."""
    url = server().tables()
    server().execute("CREATE TABLE naive (key TEXT, value FLOAT8)", url)
    server().execute("CREATE INDEX ON naive (key)", url)
    workers, total = CONTROL
    told, _ = answers("race_naively", url, workers, total)
    accepted: dict[str, int] = defaultdict(int)
    for worker in told:
        for key, (status, _) in worker.items():
            accepted[key] += status == "stored"
    doubled = sum(count > 1 for count in accepted.values())
    assert doubled > 0
    say(
        f"control, looking before inserting: {doubled:,} of {total // 10:,} raced keys accepted twice or more"
    )


@pytest.mark.parametrize(("workers", "rounds"), SHARED)
def test_all_workers_learn_the_same(workers, rounds, say):
    """To the bit, from one log that all of them write; and nobody is far behind."""
    url = server().tables()
    total = 3 + workers * rounds * 10
    processes = [started("share", url, i, rounds, total) for i in range(workers)]
    told = [json.loads(process.communicate()[0]) for process in processes]
    assert all(worker["learned"] == told[0]["learned"] for worker in told)
    store = PostgresStore(url)
    row = store.find("shared")
    assert row is not None
    ledger = read_config(row.config, None, "shared").ledger
    for upto, same in ((total, True), (total - 1, False)):  # the second is the control: one event less
        arrays = learned(refold(store, row, ledger(), upto))
        found = {name: array.tobytes().hex() for name, array in arrays.items()}
        assert (found == told[0]["learned"]) == same
    store.close()
    lags = np.concatenate([worker["lags"] for worker in told])
    seconds = np.concatenate([worker["seconds"] for worker in told])
    say(
        f"PostgreSQL, {workers} workers on one bandit: {total:,} events, the same to the bit; staleness when "
        f"asked: median {np.median(lags):.0f} events, most {lags.max():.0f} events, {seconds.max():.2f} s"
    )
