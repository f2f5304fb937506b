"""Attacks on a running service: keys that cannot be read, foreign pages, full disks."""

from __future__ import annotations

import os
import resource
import sqlite3
import time
from contextlib import suppress

import pytest
from tests.serving import BODY, problem, serving, wait_until
from tests.test_service_keys import bearer, made, url

from accrual.cli.app import run
from accrual.core.errors import InputError
from accrual.service import app, served
from accrual.service import keys as keyring
from accrual.service.server import _need_descriptors
from accrual.store.base import StoreError
from accrual.store.sqlite import SQLiteStore

STATE = "/v1/bandits/plays/state"


# Keys.


def test_nobody_gets_in_while_keys_cannot_be_read(tmp_path, capsys, monkeypatch):
    """The reader died of an error that nobody caught, and a revoked key was good for ever."""
    monkeypatch.setattr(keyring, "STALE", 1.0)
    monkeypatch.setattr(app, "_READ_KEYS", 0.2)
    key = made(tmp_path, capsys, "read", "admin")
    with serving(tmp_path) as service:
        assert service.post("/v1/bandits", BODY, headers=bearer(key)).status_code == 201
        os.rename(tmp_path / "s.db", tmp_path / "away.db")
        wait_until(lambda: service.get(STATE, headers=bearer(key)).status_code == 503, 20)
        assert problem(service.get(STATE, headers=bearer(key))) == "store"
        assert service.get("/readyz").status_code == 503
        os.rename(tmp_path / "away.db", tmp_path / "s.db")
        wait_until(lambda: service.get(STATE, headers=bearer(key)).status_code == 200, 20)
        text = service.get("/metrics", headers=bearer(key)).text
        assert 'accrual_task_failures_total{task="keys"}' in text
        assert run(["keys", "revoke", key.split("_")[1], "--store", url(tmp_path)]) == 0
        wait_until(lambda: service.get(STATE, headers=bearer(key)).status_code == 401, 20)


def test_keys_are_read_without_a_file_descriptor(tmp_path, capsys, monkeypatch):
    """Whoever used up all of them kept revoked keys good."""
    monkeypatch.setattr(app, "_READ_KEYS", 0.1)
    monkeypatch.setattr(keyring, "STALE", 1.0)
    key = made(tmp_path, capsys, "read", "admin")
    with serving(tmp_path) as service:
        assert service.post("/v1/bandits", BODY, headers=bearer(key)).status_code == 201
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 20, hard))
        files: list[int] = []
        try:
            with suppress(OSError):  # too many open files
                while True:
                    files.append(os.open(os.devnull, os.O_RDONLY))
            time.sleep(1.5)
            assert service.get(STATE, headers=bearer(key)).status_code == 200  # on the connection it has
        finally:
            for file in files:
                os.close(file)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_connections_leave_descriptors_for_the_rest():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        _need_descriptors(1_000)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= 1_400
        with pytest.raises(InputError, match=r"file descriptors, and the system allows .*--set connections="):
            _need_descriptors(10**9)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("action", ["revoke", "rotate"])
def test_a_key_ends_at_once_whatever_the_clock_says(tmp_path, capsys, monkeypatch, action):
    """With a clock an hour ahead, a revoked key was good for another hour."""
    key = made(tmp_path, capsys, "read")
    monkeypatch.setattr(time, "time", lambda: time.time_ns() / 1e9 + 3600.0)
    assert run(["keys", action, key.split("_")[1], "--store", url(tmp_path)]) == 0
    monkeypatch.undo()
    ring = keyring.KeyRing(keyring.ready_keys(url(tmp_path)), required=True)
    assert ring.find(key) is None
    ring.close()


def test_a_changed_key_is_refused(tmp_path, capsys):
    key = made(tmp_path, capsys, "read")
    run(["keys", "revoke", key.split("_")[1], "--store", url(tmp_path)])
    with sqlite3.connect(tmp_path / "s.db") as connection:
        connection.execute("UPDATE api_key SET ends = 9e9")
    connection.close()
    table = keyring.ready_keys(url(tmp_path))
    with pytest.raises(StoreError, match="a key"):
        table.all()
    table.close()


# Other sites.


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1"},  # another port is another place
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_a_page_of_another_site_is_refused(shared, headers):
    answer = shared.post("/v1/bandits/plays/decisions", headers=headers)
    assert problem(answer) == "cross-site"


def test_the_page_itself_is_let_in(shared):
    answer = shared.post("/v1/bandits/plays/decisions", headers={"Origin": shared.url})
    assert answer.status_code == 200


def test_two_authorizations_are_refused(shared):
    got = shared.raw(
        b"GET /v1/bandits HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        b"Authorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n"
    )
    assert got.startswith(b"HTTP/1.1 400")


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("shared")) as service:
        assert service.post("/v1/bandits", BODY).status_code == 201
        yield service


# What cannot be stored.


def test_a_probe_finds_a_full_disk(tmp_path):
    """On a full disk the service said that it was ready. The limit on pages stands for the disk."""
    store = SQLiteStore(str(tmp_path / "plays.db"))
    store.probe()
    store._writer.execute("PRAGMA query_only = ON")  # type: ignore[union-attr]
    with pytest.raises(StoreError, match="cannot be written"):
        store.probe()
    store.close()


def test_not_ready_while_nothing_can_be_stored(tmp_path, monkeypatch):
    monkeypatch.setattr(served, "_PROBE", 0.0)
    opened: list[SQLiteStore] = []
    first = SQLiteStore.probe

    def probe(store: SQLiteStore) -> None:
        opened.append(store)
        first(store)

    monkeypatch.setattr(SQLiteStore, "probe", probe)
    with serving(tmp_path) as service:
        writer = opened[0]._writer
        assert writer is not None
        writer.execute("PRAGMA query_only = ON")
        assert problem(service.get("/readyz")) == "store"
        writer.execute("PRAGMA query_only = OFF")
        assert service.get("/readyz").status_code == 200
