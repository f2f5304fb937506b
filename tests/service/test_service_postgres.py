"""Several processes of the service on one PostgreSQL database."""

from __future__ import annotations

import contextlib
import os
import signal
import threading

import httpx
import psutil
import pytest
from tests.postgres import server
from tests.service.test_service import value
from tests.serving import BODY, Process, wait_until

from accrual.client import Client
from accrual.core.errors import InputError
from accrual.service.app import prepare
from accrual.service.settings import Settings


def workers(process: Process) -> list[psutil.Process]:
    """The processes that serve, not the one that watches over them."""
    found = []
    for child in psutil.Process(process.process.pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it may be gone by now, or as good as gone
            if "multiprocessing.spawn" in " ".join(child.cmdline()):
                found.append(child)
    return found


def test_two_processes_share_a_bandit_and_one_is_killed(tmp_path):
    with Process(tmp_path, "--workers", "2", store=server().tables()) as process:
        service = process.ready()
        wait_until(lambda: len(workers(process)) == 2)
        assert service.post("/v1/bandits", BODY).status_code == 201
        ids: list[int] = []
        killed: list[psutil.Process] = []
        folders: list[str] = []

        def send(part: int) -> None:
            for i in range(15):  # a connection each time: it is the socket that shares them out
                with Client(service.url, attempts=1000, timeout=300) as client:
                    made = client.decide("plays", key=f"{part}-{i}")
                    client.observe("plays", made.id, 0.5, age=0)
                ids.append(made.id)
                if len(ids) == 40:
                    service.get("/metrics")
                    killed.append(workers(process)[0])
                    folders.append(killed[0].environ()["PROMETHEUS_MULTIPROC_DIR"])
                    os.kill(killed[0].pid, signal.SIGKILL)

        threads = [threading.Thread(target=send, args=(part,)) for part in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wait_until(lambda: len(workers(process)) == 2)  # another has taken its place
        wait_until(lambda: [line["text"] for line in process.lines()].count("ready") == 3)
        ended = next(line for line in process.lines() if line["text"].startswith("a worker has ended"))
        assert (ended["worker"], ended["exit_code"]) == (killed[0].pid, -signal.SIGKILL)
        files = os.listdir(folders[0])  # what the dead one measured last is not shown any more
        assert any(name.startswith("gauge") for name in files)
        assert not [name for name in files if name.startswith("gauge") and f"_{killed[0].pid}.db" in name]

        assert sorted(ids) == list(range(120))
        events = service.events()
        assert sum(event["kind"] == "piece" for event in events) == 120

        def state() -> dict[str, object]:
            with httpx.Client(base_url=service.url, timeout=300) as http:
                found = http.get("/v1/bandits/plays/state").json()
            return {key: found[key] for key in ("position", "decisions", "pending", "arms")}

        def abreast() -> bool:
            states = [state() for _ in range(12)]  # of either process
            return all(one == states[0] for one in states) and states[0]["decisions"] == 120

        wait_until(abreast)
        page = service.get("/metrics").text
        # Of all processes, also the one that is gone, which may have stored some that it did not count.
        assert 110 <= value(page, "accrual_decisions_total") <= 120
        assert value(page, "accrual_fold_lag_events") == 0
        assert process.stop() == 0


def test_a_database_without_tables_is_said():
    with pytest.raises(InputError, match="accrual db init"):
        prepare(Settings(store=server().database()))
