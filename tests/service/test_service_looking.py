"""Looking at a service: many viewers, a state that fails, settings that differ, bandits that are gone."""

from __future__ import annotations

import asyncio
import gc
import resource
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import pytest
from tests.serving import BODY, problem, serving

import accrual as ac
from accrual.live.archive import delete, erase_due
from accrual.live.commit import Decide
from accrual.live.ledger import Ledger
from accrual.service import bandit_pool
from accrual.service.bandit_pool import BanditPool
from accrual.service.metrics import Metrics
from accrual.service.refusals import Refusal
from accrual.store.base import StoreDamaged, StoreError
from accrual.store.memory import MemoryStore
from accrual.store.sqlite.store import SQLiteStore


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("looking")) as service:
        yield service


def test_another_floor_or_other_shares_are_a_conflict(service):
    """On a bandit without a floor they were answered 200, and applied or not, as it happened."""
    body = BODY | {"name": "without"}
    assert service.post("/v1/bandits", body).status_code == 201
    for other in ({"floor": 0.3}, {"shares": {"jazz": [0.2, 0.9]}}):
        answer = service.post("/v1/bandits", body | other)
        assert (answer.status_code, problem(answer)) == (409, "conflict")
    assert service.post("/v1/bandits", body).status_code == 200
    made = service.post("/v1/bandits/without/decisions").json()["decisions"]
    assert made[0]["propensity"] is None
    floored = BODY | {"name": "with", "floor": 0.3, "shares": {"jazz": [0.2, 0.9]}}
    assert service.post("/v1/bandits", floored).status_code == 201
    assert service.post("/v1/bandits", floored).status_code == 200
    others: list[dict[str, Any]] = [
        {"floor": 0.0}, {"floor": 0.2}, {"shares": {}}, {"shares": {"jazz": [0.2, 0.8]}}
    ]  # fmt: skip
    assert [service.post("/v1/bandits", floored | other).status_code for other in others] == [409] * 4


def test_the_same_bandit_again_folds_nothing(service, monkeypatch):
    body = BODY | {"name": "again"}
    assert service.post("/v1/bandits", body).status_code == 201
    monkeypatch.setattr(ac.Bandit, "_start", lambda *_: pytest.fail("a second bandit was opened"))
    assert service.post("/v1/bandits", body).status_code == 200


def test_a_bandit_keeps_the_clock_that_it_was_made_with():
    """Simulated traffic has a clock of its own. It was lost when the new bandit was opened to be served."""

    async def decide(pool):
        served = await pool.find("plays")
        (answer,) = await served.submit((Decide(1),))
        return answer.at

    async def play():
        pool = BanditPool(MemoryStore(), Metrics(), 100)
        await pool.create("plays", {"jazz": 1.0, "rock": 1.0}, "1d", {"clock": lambda: 1e9})
        times = [await decide(pool)]
        await pool.archive("plays")
        await pool.restore("plays")
        times.append(await decide(pool))
        await pool.close()
        return times

    assert asyncio.run(play()) == [1e9, 1e9]


def test_viewers_share_one_state_and_hold_up_nobody_else(service, monkeypatch):
    """Eight viewers took all threads that read the store, keys too."""
    at = "/v1/bandits/watched"
    assert service.post("/v1/bandits", BODY | {"name": "watched"}).status_code == 201
    service.post(f"{at}/decisions", {"n": 5})
    computed: list[int] = []
    begun, go_on = threading.Event(), threading.Event()
    state = ac.Bandit.state

    def slow(bandit: ac.Bandit) -> Any:
        computed.append(1)
        begun.set()
        assert go_on.wait(60)
        return state(bandit)

    monkeypatch.setattr(ac.Bandit, "state", slow)
    answers: list[Any] = []
    viewers = [threading.Thread(target=lambda: answers.append(service.get(f"{at}/state"))) for _ in range(8)]
    for viewer in viewers:
        viewer.start()
    assert begun.wait(60)
    try:
        assert service.get(at).status_code == 200  # which reads the store
        assert service.post(f"{at}/decisions").status_code == 200
    finally:
        go_on.set()
    for viewer in viewers:
        viewer.join()
    assert [answer.status_code for answer in answers] == [200] * 8
    assert {answer.json()["decisions"] for answer in answers} <= {5, 6}
    assert len(computed) == 1


def test_a_slow_state_is_shown_for_a_while(monkeypatch):
    """Its age was counted from before it was computed, so one that took half a second was never fresh."""
    times = iter([100.0, 102.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(times))
    assert bandit_pool.fresh_until(time.monotonic()) == 102.0 + 4 * 2.0


def test_one_state_that_fails_leaves_the_other_metrics(service, monkeypatch):
    for name in ("sound", "failing"):
        assert service.post("/v1/bandits", BODY | {"name": name}).status_code == 201
        service.post(f"/v1/bandits/{name}/decisions", {"n": 3})
    state = ac.Bandit.state

    def failing(bandit: ac.Bandit) -> Any:
        if bandit.name == "failing":
            raise IndexError("a damaged arm")
        return state(bandit)

    monkeypatch.setattr(ac.Bandit, "state", failing)
    answer = service.get("/metrics")
    assert answer.status_code == 200
    assert "accrual_states_failed 1.0" in answer.text
    assert service.get("/v1/bandits/failing/state").status_code == 500
    monkeypatch.undo()
    assert "accrual_states_failed 0.0" in service.get("/metrics").text


def test_too_many_arms_are_refused(service, monkeypatch):
    monkeypatch.setattr("accrual.live.request_checks.ARMS_MOST", 3)
    at = "/v1/bandits/many"
    assert service.post("/v1/bandits", BODY | {"name": "many"}).status_code == 201
    assert service.post(f"{at}/arms", {"name": "soul"}).status_code == 200
    answer = service.post(f"{at}/arms", {"name": "folk"})
    assert 400 <= answer.status_code < 500
    assert "at most 3 arms" in answer.json()["detail"]
    assert service.post(f"{at}/arms", {"name": "soul"}).json()["status"] == "again"


# A full disk.


def test_a_probe_writes_to_the_disk(tmp_path):
    """It set a row to what it was, which SQLite does not write: a full disk was not noticed."""
    store = SQLiteStore(str(tmp_path / "plays.db"))
    store.create("plays", {}, [], False, 0.0)
    wal = Path(f"{tmp_path}/plays.db-wal")
    version = store._file.read(
        lambda connection: connection.execute("SELECT * FROM accrual_version").fetchall()
    )
    before = wal.stat().st_size
    store.probe()
    assert wal.stat().st_size > before
    assert version == store._file.read(
        lambda connection: connection.execute("SELECT * FROM accrual_version").fetchall()
    )
    limit, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (wal.stat().st_size, most))  # stands for the full disk
    try:
        with pytest.raises(StoreError, match="cannot be written"):
            store.probe()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))
    store.probe()
    assert [row.name for row in [store.find("plays")] if row] == ["plays"]
    store.close()


# Bandits that are gone.


def test_a_worker_lets_go_of_a_bandit_that_was_erased():
    """One that missed the archiving kept the bandit for good, also when there was a new one of its name."""

    async def run() -> None:
        store = MemoryStore()
        pool = BanditPool(store, Metrics(), 100)
        for name in ("gone", "new", "stays"):
            await pool.create(name, {"a": 1.0, "b": 1.0}, 50, {})
        for name in ("gone", "new"):
            row = delete(store, name)
            store.amend(row.number, {"erase_at": 0.0})
        assert sorted(erase_due(store)) == ["gone", "new"]
        ac.Bandit(["c", "d"], 50, store=store, name="new")
        await pool.open_all()
        with pytest.raises(Refusal, match="no bandit is called"):
            await pool.find("gone")
        assert (await pool.find("new")).arms == ["c", "d"]
        assert (await pool.find("stays")).arms == ["a", "b"]
        await pool.close()

    asyncio.run(run())


async def none_left(made: list[weakref.ref[Ledger]]) -> bool:
    """Whether all are freed, once threads have put down what they worked on last."""
    for _ in range(1000):
        if all(ledger() is None for ledger in made):
            return True
        await asyncio.sleep(0.01)
    return False


def test_archiving_and_a_damaged_bandit_leave_nothing_in_memory(monkeypatch):
    """Each archiving, and each of the tries to open a damaged bandit, left a whole ledger behind."""
    made: list[weakref.ref[Ledger]] = []
    first = Ledger.__init__

    def noted(ledger: Ledger, *given: Any, **named: Any) -> None:
        made.append(weakref.ref(ledger))
        first(ledger, *given, **named)

    async def run() -> None:
        store = MemoryStore()
        pool = BanditPool(store, Metrics(), 100)
        await pool.create("plays", {"a": 1.0, "b": 1.0}, 50, {})  # which compiles
        gc.collect()
        gc.disable()
        monkeypatch.setattr(Ledger, "__init__", noted)
        for _ in range(3):
            await pool.archive("plays")
            await pool.restore("plays")
            await pool.find("plays")
        await pool.archive("plays")
        assert len(made) >= 3
        assert await none_left(made)
        await pool.restore("plays")
        made.clear()

        def damaged(*_: Any) -> None:
            raise StoreDamaged("a block is damaged")

        monkeypatch.setattr(MemoryStore, "read", damaged)
        monkeypatch.setattr(bandit_pool.log, "disabled", True)  # pytest keeps what is logged, with its frames
        for _ in range(3):
            await pool.open_all()
        assert list(pool.failures) == ["plays"]
        assert len(made) >= 3
        assert await none_left(made)
        await pool.close()

    try:
        asyncio.run(run())
    finally:
        gc.enable()


# Several workers.

_WORKER = """
import sys
from accrual.service.metrics import Metrics
metrics = Metrics()
metrics.pending.set(float(sys.argv[1]))
metrics.verdict.labels("winner").set(float(sys.argv[1]))
metrics.waiting.set(float(sys.argv[1]))
print(metrics.page().decode())
"""


def test_gauges_are_those_of_the_worker_that_was_asked_last(tmp_path):
    """They were the largest of all workers', also of one that had not been asked for hours."""
    pages = [
        subprocess.run(
            [sys.executable, "-c", textwrap.dedent(_WORKER), value],
            env={"PROMETHEUS_MULTIPROC_DIR": str(tmp_path), "PYTHONPATH": ":".join(sys.path)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for value in ("100", "7")
    ]
    assert "accrual_pending 7.0" in pages[1]
    assert 'accrual_verdict{outcome="winner"} 7.0' in pages[1]
    assert "accrual_waiting 107.0" in pages[1]  # of each worker its own
