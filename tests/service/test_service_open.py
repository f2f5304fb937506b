"""Nothing is stored that cannot be served; a bandit that cannot be opened does not hold up the others."""

from __future__ import annotations

import asyncio
import logging
from contextlib import closing

import pytest
from tests.serving import BODY, problem, serving

import accrual as ac
from accrual.service import app, bandit_pool
from accrual.service.metrics import Metrics
from accrual.store.address import parse
from accrual.store.sqlite import connect_sqlite

DOCUMENTED = "TPUCBFRG(alpha=50, spread=begin)"  # the example of the documentation


@pytest.fixture(autouse=True)
def _logs(monkeypatch):
    """What is logged goes on to pytest; the service's own settings would keep it."""
    for module in (bandit_pool, app):
        monkeypatch.setattr(module, "log", logging.getLogger("seen"))


def test_the_documented_policy_is_served_and_opens_again(tmp_path):
    """A window of 10 was tried in place of the bandit's own, after it had been stored."""
    with serving(tmp_path) as service:
        made = service.post("/v1/bandits", BODY | {"window": 100, "policy": DOCUMENTED})
        assert made.status_code == 201
        assert service.post("/v1/bandits/plays/decisions").status_code == 200
    with serving(tmp_path) as service:
        assert service.get("/readyz").json() == {"status": "ready", "not_served": 0}
        assert service.post("/v1/bandits/plays/decisions").json()["decisions"][0]["id"] == 1


def test_what_cannot_be_served_is_not_stored(tmp_path):
    with serving(tmp_path) as service:
        made = service.post("/v1/bandits", BODY | {"window": 10, "policy": DOCUMENTED})
        assert problem(made) == "invalid"
        assert service.get("/v1/bandits").json() == {"bandits": [], "archived": [], "not_served": []}


def test_one_that_cannot_be_opened_is_named_and_the_others_are_served(tmp_path, caplog):
    with serving(tmp_path) as service:
        for name in ("plays", "broken", "songs"):
            assert service.post("/v1/bandits", BODY | {"name": name}).status_code == 201
    place = parse(f"sqlite:///{tmp_path}/s.db")
    with closing(connect_sqlite(place, "rw")) as connection:  # as a newer one would be
        connection.execute("UPDATE bandit SET config = '{\"arms\": 5}' WHERE name = 'broken'")
    with serving(tmp_path) as service:
        assert service.get("/readyz").json() == {
            "status": "ready",
            "not_served": 1,
        }  # no name: no key is asked for
        for name in ("plays", "songs"):
            assert service.post(f"/v1/bandits/{name}/decisions").status_code == 200
        for _ in range(2):
            assert problem(service.post("/v1/bandits/broken/decisions")) == "not-served"
        listed = service.get("/v1/bandits").json()
        assert [bandit["name"] for bandit in listed["not_served"]] == ["broken"]
        assert listed["not_served"][0]["why"]
        assert "accrual_bandits_not_served 1.0" in service.get("/metrics").text
    said = [record for record in caplog.records if record.getMessage() == "a bandit is not served"]
    assert {record.__dict__["bandit"] for record in said} == {"broken"}


@pytest.mark.parametrize(
    "error", [ac.InputError("no file"), ValueError("anything"), OSError("no descriptor")]
)
def test_a_task_that_fails_is_logged_counted_and_started_again(error, caplog, monkeypatch):
    monkeypatch.setattr(app, "_PAUSE", 0.0)
    metrics, left = Metrics(), [error, error]

    async def job() -> None:
        if left:
            raise left.pop()

    asyncio.run(app.supervise("keys", job, metrics))
    assert not left
    assert b'accrual_task_failures_total{task="keys"} 2.0' in metrics.page()
    assert [record.__dict__["task"] for record in caplog.records] == ["keys", "keys"]
