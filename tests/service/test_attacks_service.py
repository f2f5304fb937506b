"""Attacks on a running service: keys that cannot be read, foreign pages, full disks."""

from __future__ import annotations

import json
import logging
import os
import resource
import subprocess
import sys
import threading
import time
import tracemalloc
from contextlib import closing

import httpx
import pytest
from tests.postgres import server
from tests.service.test_service_keys import bearer, made, url
from tests.serving import BODY, Process, problem, serving, wait_until

import accrual as ac
from accrual.cli.app import run
from accrual.core.errors import InputError
from accrual.live.ledger import Ledger
from accrual.service import app, bandit_pool, json_input, messages
from accrual.service import keys as keyring
from accrual.service import server as json_logs
from accrual.service.refusals import Refusal
from accrual.service.server import _need_descriptors
from accrual.store.backends import open_store
from accrual.store.base import StoreError
from accrual.store.sqlite.store import SQLiteStore

JSON = {"Content-Type": "application/json"}
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


@pytest.mark.slow  # longer than keys may go unread
def test_keys_are_read_without_a_file_descriptor(tmp_path, capsys):
    """Whoever used up all of them kept revoked keys good."""
    key = made(tmp_path, capsys, "read", "admin")
    with Process(tmp_path) as process:
        service = process.ready()
        assert service.post("/v1/bandits", BODY, headers=bearer(key)).status_code == 201
        number = process.process.pid
        _, hard = resource.prlimit(number, resource.RLIMIT_NOFILE)
        resource.prlimit(number, resource.RLIMIT_NOFILE, (3, hard))  # it has more than three open already
        for _ in range(int(2 * keyring.STALE) + 4):  # over the connection that there is
            assert service.get(STATE, headers=bearer(key)).status_code == 200
            time.sleep(0.5)
        assert run(["keys", "revoke", key.split("_")[1], "--store", url(tmp_path)]) == 0
        wait_until(lambda: service.get(STATE, headers=bearer(key)).status_code == 401, 20)


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
    """Only the page that holds the key is changed, so that opening the file finds nothing wrong."""
    made(tmp_path, capsys, "read")
    table = keyring.ready_keys(url(tmp_path))
    digest = table.all()[0].digest
    table.close()
    file = tmp_path / "s.db"
    assert file.read_bytes().count(digest) == 1
    file.write_bytes(file.read_bytes().replace(digest, digest[::-1]))
    table = keyring.ready_keys(url(tmp_path))
    with pytest.raises(StoreError, match=r"the keys cannot be read: .*I/O"):
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


@pytest.mark.parametrize(
    "headers",
    [b"Host:\r\nHost: localhost", b"Host: localhost\r\nHost: localhost", b"Host: localhost\r\nHost:"],
)
def test_two_hosts_are_refused(shared, headers):
    """An empty one first was not counted, so that a proxy and the service could go by different ones."""
    got = shared.raw(b"GET /v1/bandits HTTP/1.1\r\nConnection: close\r\n" + headers + b"\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 400")
    assert b"two Host headers" in got


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
    store._file.writer.execute("PRAGMA query_only = ON")  # type: ignore[union-attr]
    with pytest.raises(StoreError, match="cannot be written"):
        store.probe()
    store.close()


def test_not_ready_while_nothing_can_be_stored(tmp_path, monkeypatch):
    monkeypatch.setattr(bandit_pool, "_PROBE", 0.0)
    opened: list[SQLiteStore] = []
    first = SQLiteStore.probe

    def probe(store: SQLiteStore) -> None:
        opened.append(store)
        first(store)

    monkeypatch.setattr(SQLiteStore, "probe", probe)
    with serving(tmp_path) as service:
        writer = opened[0]._file.writer
        assert writer is not None
        writer.execute("PRAGMA query_only = ON")
        assert problem(service.get("/readyz")) == "store"
        writer.execute("PRAGMA query_only = OFF")
        assert service.get("/readyz").status_code == 200


# Clocks.


def test_a_leap_of_the_clock_stores_nothing(tmp_path, monkeypatch):
    """One event a year ahead froze a bandit: all that came later was of that time."""
    ahead = [0.0]
    monkeypatch.setattr(SQLiteStore, "clock", lambda self: time.time() + ahead[0])
    with serving(tmp_path) as service:
        assert service.post("/v1/bandits", BODY | {"window": "60d"}).status_code == 201
        made = service.post("/v1/bandits/plays/decisions").json()["decisions"][0]
        for leap in (365 * 86400.0, -365 * 86400.0):
            ahead[0] = leap
            assert problem(service.post("/v1/bandits/plays/decisions")) == "store"
            assert problem(service.post("/v1/bandits/plays/pieces", {"decision": 0, "value": 1})) == "store"
            assert problem(service.get("/readyz")) == "store"
        ahead[0] = 0.0
        assert service.get("/readyz").status_code == 200
        again = service.post("/v1/bandits/plays/decisions").json()["decisions"][0]
        assert made["at"] <= again["at"] < made["at"] + 3600
        assert service.post("/v1/bandits/plays/pieces", {"decision": 0, "value": 1}).json()["age"] < 3600


def test_the_way_back_from_a_leap(tmp_path):
    """A log that is ahead of the clock is refused; a backup from before the leap goes on."""
    place, monday = f"sqlite:///{tmp_path}/s.db", tmp_path / "monday.db"
    now = time.time()
    with ac.Bandit(["a", "b"], "60d", store=place, clock=lambda: now) as bandit:
        bandit.decide(n=3)
    assert run(["db", "backup", place, str(monday)]) == 0
    with ac.Bandit.open(place, clock=lambda: now + 365 * 86400 + 600) as bandit:  # tests may be slow
        bandit.decide(n=2)
    said = r"365 days, .* ahead of the clock.* restore a backup from before that event"
    with ac.Bandit.open(place) as bandit, pytest.raises(StoreError, match=said):
        bandit.decide()
    assert run(["db", "restore", f"sqlite:///{tmp_path}/back.db", str(monday)]) == 0
    with ac.Bandit.open(f"sqlite:///{tmp_path}/back.db") as bandit:
        assert bandit.decide().id == 3


def test_the_clock_is_that_of_the_database(monkeypatch):
    """A worker whose own clock is a year ahead does not spoil the others."""
    with closing(open_store(server().tables())) as store:
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + 365 * 86400)
        with ac.Bandit(["a", "b"], "60d", store=store) as bandit:
            assert abs(bandit.decide().at - now) < 600


# What a bandit is made with.


@pytest.mark.parametrize(
    "wrong",
    [
        {"policy": "AgeIMED(k0='x')"},
        {"policy": "AgeTS(k0=None)"},
        {"policy": "AgeIMED(buckets=100000000)"},
        {"arms": {"a": 5e-324}},
    ],
)
def test_what_cannot_be_is_refused_and_not_stored(shared, wrong):
    assert problem(shared.post("/v1/bandits", BODY | {"name": "wrong"} | wrong)) == "invalid"
    assert problem(shared.get("/v1/bandits/wrong")) == "unknown-bandit"


def test_numbers_beyond_reason_are_refused():
    """1e308 left sums that were no numbers, and a cap of 5e-324 no estimate."""
    with pytest.raises(InputError, match="cap of arm 'a' must be"):
        ac.Bandit({"a": 5e-324}, 10)
    bandit = ac.Bandit(["a"], 10)
    bandit.decide()
    with pytest.raises(InputError, match=r"at most 1e\+09 in size, a billion times the largest cap"):
        bandit.observe(0, 1e308, age=0)


def test_a_huge_piece_taken_back_leaves_small_sums_right():
    """1e15 in and out again took away what small pieces had paid."""
    bandit = ac.Bandit(["a"], 10, allow_negative=True)
    bandit.decide()
    bandit.observe(0, 0.1, age=0)
    with pytest.warns(UserWarning, match="more in all than its arm's cap"):
        bandit.observe(0, 1e9, age=0)
    bandit.observe(0, -1e9, age=0)
    assert bandit.state().arms[0].observed == pytest.approx(0.1, abs=2e-7)


def test_a_whole_number_may_have_a_point(shared):
    """JSON Schema takes 3.0 for the integer 3."""
    body = b'{"n": 3.0, "key": "with a point"}'
    answer = shared.http.post("/v1/bandits/plays/decisions", content=body, headers=JSON)
    assert len(answer.json()["decisions"]) == 3
    piece = b'[{"decision": 0.0, "value": 1}]'
    assert shared.http.post("/v1/bandits/plays/pieces", content=piece, headers=JSON).status_code == 200
    made = b'{"name": "point", "arms": {"a": 1}, "window": 80.0, "groups": 8.0, "seed": 1.0}'
    assert shared.http.post("/v1/bandits", content=made, headers=JSON).status_code == 201
    for wrong in (b'{"n": 3.5}', b'{"n": "3"}', b'{"n": true}'):
        answer = shared.http.post("/v1/bandits/plays/decisions", content=wrong, headers=JSON)
        assert problem(answer) == "invalid"


# Bodies that are not valid.


@pytest.mark.parametrize(
    ("start", "part"),
    [(b"[", b"[],"), (b"[", b"1.0,"), (b'[{"decision":0.0,"value":1},', b"[],"), (b'{"a":[', b"{},")],
)
def test_a_large_body_is_not_made_into_objects_before_it_is_refused(start, part):
    """A megabyte of lists stalled the service for up to two seconds while each became an object."""
    read = json_input.json_reader(messages.PiecesIn)
    body = start + part * 260_000 + b"0]" + b"}" * start.startswith(b"{")
    tracemalloc.start()
    try:
        with pytest.raises(Refusal) as raised:
            read(body)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert raised.value.kind == "invalid"
    assert most < 1_000_000


@pytest.mark.parametrize(
    ("field", "body"),
    [
        ("value", b'{"decision": 0, "value": 1e400}'),
        ("decision", b'{"decision": 1e400, "value": 1}'),
        ("[1].value", b'[{"decision": 0, "value": 1}, {"decision": 0, "value": -1e999}]'),
        ("decision", b'{"decision": 1e300, "value": 1}'),
    ],
)
def test_a_number_out_of_range_is_named(shared, field, body):
    """The detail said where a number was out of range as "[...]"."""
    answer = shared.http.post("/v1/bandits/plays/pieces", content=body, headers=JSON)
    assert problem(answer) == "invalid"
    assert answer.json()["detail"].startswith(field)


# What is logged and shown.


def test_requests_that_make_no_sense_do_not_fill_the_log(tmp_path):
    """Each left a traceback in the log, without a key."""
    wrong = b"POST / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: x\r\nTransfer-Encoding: identity\r\n\r\n"
    with Process(tmp_path) as process:
        service = process.ready()
        for line in (wrong, b"GET http://[ HTTP/1.1\r\n\r\n", b"\x00\r\n\r\n"):
            for _ in range(150):
                service.raw(line)
        assert len((tmp_path / "log").read_text().splitlines()) < 120


def test_warnings_of_one_text_are_counted_and_not_all_written(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    few = json_logs.FewOfEach()

    def passes(text: str, level: int = logging.ERROR) -> logging.LogRecord | None:
        record = logging.makeLogRecord({"msg": text, "levelno": level})
        return record if few.filter(record) else None

    assert sum(passes("the store failed") is not None for _ in range(250)) == 100
    assert passes("another text") is not None
    assert all(passes("answered", logging.INFO) for _ in range(250))
    now[0] += 60.0
    first = passes("the store failed")
    assert first is not None
    assert first.__dict__["left_out"] == 150
    second = passes("the store failed")
    assert second is not None
    assert "left_out" not in second.__dict__


def test_warnings_are_logged_as_json():
    """numpy's were lines of text amid those of JSON."""
    code = (
        "import logging.config, numpy, warnings; from accrual.service.server import logging_config\n"
        "logging.config.dictConfig(logging_config())\n"
        "numpy.float64(1e308) * numpy.float64(10)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    (line,) = done.stderr.splitlines()
    assert json.loads(line)["level"] == "warning"
    assert "overflow" in json.loads(line)["text"]


@pytest.mark.parametrize(
    "place",
    [
        "postgresql://ann:se/cr@t@127.0.0.1:1/x",
        "postgresql://127.0.0.1:1/x?user=ann&sslpassword=se/cr@t",
        "postgresql://127.0.0.1:1/x?PASSWORD=se/cr@t&user=ann",
        "postgresql://ann:secr%40t%zz@127.0.0.1:1/x",
        "postgresql://ann:secr%40t%00@127.0.0.1:1/x",
        "mysql://ann:se/cr@t@127.0.0.1/x",
    ],
)
def test_no_password_is_ever_shown(place, capsys):
    assert run(["db", "verify", place]) == 2
    shown = capsys.readouterr().err
    assert "cr" not in shown.replace("accrual", "")
    assert "se/" not in shown


def test_a_state_after_a_failed_fold_is_whole(tmp_path, monkeypatch):
    """Half of a fold was shown as if it were all."""
    with ac.Bandit(["a", "b"], 40, store=f"sqlite:///{tmp_path}/s.db") as bandit:
        bandit.decide(n=10)
        extend = Ledger.extend

        def fail(self, events) -> None:
            extend(self, type(events)(*(column[:2] for column in events)))
            raise MemoryError

        monkeypatch.setattr(Ledger, "extend", fail)
        bandit.decide(n=5)  # they are stored, so they are answered
        monkeypatch.setattr(Ledger, "extend", extend)
        state = bandit.state()
        assert (state.position, state.decisions) == (17, 15)


def test_explaining_holds_up_nobody(tmp_path, monkeypatch):
    """Eight readers of `explain` on a long log made everything else wait."""
    with serving(tmp_path) as service:
        assert service.post("/v1/bandits", BODY).status_code == 201
        service.post("/v1/bandits/plays/decisions")
        begun, go_on = threading.Semaphore(0), threading.Event()

        def slow(*_: object) -> None:
            begun.release()
            go_on.wait(30)
            raise InputError("no decision")

        monkeypatch.setattr(ac.Bandit, "explain", slow)
        threads = [
            threading.Thread(target=httpx.get, args=(f"{service.url}/v1/bandits/plays/decisions/0/explain",),
                             kwargs={"timeout": 60})
            for _ in range(bandit_pool._REFOLDS)
        ]  # fmt: skip
        for thread in threads:
            thread.start()
        assert begun.acquire(timeout=10)
        try:
            explain = f"{service.url}/v1/bandits/plays/decisions/0/explain"
            wait_until(lambda: httpx.get(explain, timeout=1).status_code == 503, 20)
            assert service.get("/readyz").status_code == 200
            assert service.get(STATE).status_code == 200
            assert service.post("/v1/bandits/plays/decisions").status_code == 200
        finally:
            go_on.set()
            for thread in threads:
                thread.join()
