"""The client, against a real service and a proxy that loses what passes through it."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import httpx
import numpy as np
import pytest
from tests.clients.lossy_proxy import counts, dropping, lossy
from tests.serving import serving

import accrual.client as typed
from accrual.client import AsyncClient, Client, Decision, InputError, Piece, ServiceError, calls
from accrual.client.calls import pause_after
from accrual.client.errors import error_of
from accrual.client.reading import read
from accrual.client.results import Guardrail
from accrual.core.version import VERSION

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("client")) as service:
        yield service


def test_what_a_client_can_do(service):
    with Client(service.url, timeout=300) as client:
        made = client.create("shop", {"jazz": 1.0, "rock": 2.0}, "7d", policy="AgeIMED", seed=3)
        assert made.arms == ["jazz", "rock"]
        assert client.create("shop", {"jazz": 1.0, "rock": 2.0}, "7d", policy="AgeIMED", seed=3) == made
        assert "shop" in client.names()
        one = client.decide("shop")
        assert isinstance(one, Decision)
        assert one.id == 0
        assert [decision.id for decision in client.decide_many("shop", 3, key="k")] == [1, 2, 3]
        assert [decision.id for decision in client.decide_many("shop", 3, key="k")] == [1, 2, 3]
        assert client.observe("shop", 0, 0.5, age=0).status == "stored"
        assert client.observe("shop", 0, 0.5, age=0).status == "again"  # its key follows from its age
        assert client.observe("shop", 0, 0.5).status == "stored"  # without one, each call is a piece
        assert client.observe("shop", 0, 0.5).status == "stored"
        results = client.observe_many("shop", [Piece(1, 0.5, key="a"), Piece(9, 0.5), Piece(1, 0.6, key="a")])
        assert [result.status for result in results] == ["stored", "unknown", "conflict"]
        assert results[0].warning is None
        assert "more in all than its arm's cap of 1" in (client.observe("shop", 0, 7.0).warning or "")
        with pytest.raises(ServiceError, match="unknown field 'flor'"):
            client.create("store", ["jazz"], 10, flor=0.5)
        client.add_arm("shop", "folk", 1.5)
        client.retire_arm("shop", "jazz")
        client.close_decision("shop", 1)
        assert client.state("shop").decisions == 4
        assert client.explain("shop", 0).arm == one.arm
        assert client.events("shop", limit=2).next == 2
        with pytest.raises(ServiceError, match="no decision has this id") as raised:
            client.observe("shop", 99, 0.5)
        assert (raised.value.status, raised.value.kind) == (404, "unknown-decision")


@pytest.mark.parametrize(
    ("piece", "says"),
    [
        (Piece(0, float("nan")), "value must be a finite number, not nan"),
        (Piece(0, np.float64("inf")), "value must be a finite number"),
        (Piece(0, "0.5"), "value must be a finite number, not '0.5'"),  # type: ignore[arg-type]
        (Piece(0, 0.5, age=float("nan")), "age must be a finite number"),
        (Piece("0", 0.5), "decision must be a whole number of at least 0, not '0'"),  # type: ignore[arg-type]
        (Piece(0, 0.5, key=7), "key must be text, not 7"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_sent_is_refused_in_one_line(piece, says):
    with Client("http://127.0.0.1:9", attempts=1) as client:
        with pytest.raises(InputError, match=re.escape(says)):
            client.observe_many("shop", [piece])
        with pytest.raises(InputError, match=re.escape(says)):
            client.observe("shop", piece.decision, piece.value, age=piece.age, key=piece.key)


def test_numbers_of_numpy_are_numbers(service):
    with Client(service.url, timeout=300) as client:
        client.create("numpy", {"jazz": np.float32(1.0)}, 100)  # type: ignore[dict-item]
        made = client.decide_many("numpy", np.int64(2))  # type: ignore[arg-type]
        id_, value = np.int64(made[0].id), np.float32(0.5)
        assert client.observe("numpy", id_, value, age=np.int32(0)).status == "stored"  # type: ignore[arg-type]
        assert client.state("numpy").arms[0].observed == 0.5


def test_ages_and_times_are_those_of_the_library(service):
    with Client(service.url, timeout=300) as client:
        client.create("times", ["jazz"], "1d", policy="LinUCB")
        made = client.decide("times")
        now = datetime.now(UTC)
        for when in ({"age": "0s"}, {"at": now}, {"at": now.isoformat()}, {"age": timedelta(0)}):
            options: Any = when
            assert client.observe("times", made.id, 0.1, key=str(when), **options).status == "stored"
        with pytest.raises(ServiceError, match="must be a time with its zone"):
            client.observe("times", made.id, 0.1, at=now.replace(tzinfo=None))


def test_a_client_says_what_is_known_about_arms(service):
    known = {"genre": ["jazz", "rock"], "minutes": (0, 60), "live": bool}
    given = {"arm_features": known, "about": {"b": {"genre": "rock", "live": True}}}
    with Client(service.url, timeout=300) as client:
        made = client.create("about", {"a": 1.0, "b": 2.0}, 100, **given)
        assert made.arm_features == {"genre": ["jazz", "rock"], "minutes": [0, 60], "live": "bool"}
        client.add_arm("about", "c", about={"minutes": 30})
        nothing = {"genre": None, "minutes": None, "live": None}
        assert {arm.name: arm.about for arm in client.state("about").arms} == {
            "a": nothing,
            "b": nothing | {"genre": "rock", "live": True},
            "c": nothing | {"minutes": 30},
        }
        assert client.events("about").events[-1].about == nothing | {"minutes": 30}
        with pytest.raises(ServiceError, match="unknown level"):
            client.add_arm("about", "d", about={"genre": "folk"})
        with pytest.raises(ServiceError, match="unknown arm 'z'"):
            client.create("more", ["a"], 100, arm_features=known, about={"z": {}})


def test_a_client_brings_neither_the_library_nor_what_it_computes_with():
    code = "import sys, accrual_client; print(*{name.partition('.')[0] for name in sys.modules})"
    where = {"PYTHONPATH": str(ROOT / "clients/python/src")}
    done = subprocess.run([sys.executable, "-c", code], env=where, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert {"accrual_client", "httpx"} <= loaded
    assert not loaded & {"accrual", "numpy", "numba", "scipy"}


def test_the_clients_have_the_version_of_the_library():
    package = json.loads((ROOT / "clients/typescript/package.json").read_text(encoding="utf-8"))
    assert typed.__version__ == package["version"] == VERSION


def test_the_example_of_the_readme_runs(service):
    text = (ROOT / "clients/python/README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, re.S)
    with Client(service.url, timeout=300) as client:
        client.create("plays", ["jazz", "rock"], "60d")
    exec(example.replace("http://127.0.0.1:8000", service.url), {})
    assert counts(service, "plays") == (1, Counter([0.7, 0.1, 0.2]))


def test_retries_through_a_bad_line_are_counted_once(service):
    with Client(service.url, timeout=300) as client:
        client.create("plain", ["jazz", "rock"], 100_000)
    ids: list[int] = []
    with dropping(service.port, lossy(1)) as port:

        def work(part: int) -> None:
            with Client(f"http://127.0.0.1:{port}", attempts=40, timeout=300) as client:
                for i in range(12):
                    made = client.decide("plain")
                    ids.append(made.id)
                    assert client.observe("plain", made.id, part + i / 100).status in ("stored", "again")
                batch = [Piece(ids[0], 100.0 + part, key=f"batch-{part}"), Piece(ids[1], 200.0 + part, age=0)]
                assert {result.status for result in client.observe_many("plain", batch)} <= {
                    "stored",
                    "again",
                }

        threads = [threading.Thread(target=work, args=(part,)) for part in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    decisions, values = counts(service, "plain")
    assert len(set(ids)) == decisions == 48
    assert len(values) == sum(values.values()) == 56


def test_a_client_without_keys_would_count_twice(service):
    """The control: the same line, and a new request in place of the same one again."""
    with Client(service.url, timeout=300) as client:
        client.create("control", ["jazz", "rock"], 100_000)
    with dropping(service.port, lossy(2)) as port:
        for _ in range(30):
            while True:
                try:
                    httpx.post(f"http://127.0.0.1:{port}/v1/bandits/control/decisions")
                    break
                except httpx.TransportError:
                    continue
    assert counts(service, "control")[0] > 30


def test_the_asynchronous_client_too(service):
    async def work(port: int) -> list[int]:
        async with AsyncClient(f"http://127.0.0.1:{port}", attempts=40, timeout=300) as client:
            await client.create("async", ["jazz", "rock"], 100_000)

            async def one(i: int) -> int:
                made = await client.decide("async")
                await client.observe("async", made.id, i / 100, age=0)
                return made.id

            ids = await asyncio.gather(*[one(i) for i in range(40)])
            assert (await client.state("async")).decisions >= 1
            with pytest.raises(ServiceError, match="no bandit is called"):
                await client.decide("nobody")
            return ids

    with dropping(service.port, lossy(3)) as port:
        ids = asyncio.run(work(port))
    decisions, values = counts(service, "async")
    assert len(set(ids)) == decisions == 40
    assert len(values) == sum(values.values()) == 40


def test_nobody_there():
    with Client("http://127.0.0.1:9", attempts=2) as client, pytest.raises(ServiceError) as raised:
        client.names()
    assert (raised.value.status, raised.value.kind) == (0, "unreachable")


NOT_SENT: list[Callable[[Client], object]] = [
    lambda client: client.decide(5),  # type: ignore[arg-type]
    lambda client: client.decide("\ud800"),
    lambda client: client.decide("x" * 100_000),
    lambda client: client.decide("b", context={"n": object()}),  # type: ignore[dict-item]
    lambda client: client.decide_many("b", 2, context=5),  # type: ignore[arg-type]
    lambda client: client.create("b", 5, 10),  # type: ignore[arg-type]
    lambda client: client.create("b", ["a"], 10, floor=float("nan")),
    lambda client: client.create("b", ["a"], 10, features={"country": str}),
    lambda client: client.create("b", ["a"], 10, prior={"a": {1, 2}}),
    lambda client: client.observe_many("b", [1]),  # type: ignore[list-item]
    lambda client: client.observe_many("b", None),  # type: ignore[arg-type]
    lambda client: client.add_arm("b", b"name"),  # type: ignore[arg-type]
    lambda client: Client(5),  # type: ignore[arg-type]
    lambda client: Client("localhost"),
    lambda client: Client("http://local host"),
    lambda client: Client("http://[::1"),
    lambda client: Client("http://localhost", key="a\nb"),
    lambda client: Client("http://localhost", key="é"),
    lambda client: Client("http://localhost", timeout="soon"),  # type: ignore[arg-type]
    lambda client: Client("http://localhost", attempts=0),
    lambda client: AsyncClient("localhost"),
]


def test_a_client_that_has_been_closed():
    client = Client("http://127.0.0.1:9", attempts=1)
    client.close()
    with pytest.raises(InputError, match="closed"):
        client.names()


@pytest.mark.parametrize("call", NOT_SENT)
def test_whatever_cannot_be_sent_is_an_error_of_the_client(call):
    """Errors of httpx, json and Python itself came through."""
    with Client("http://127.0.0.1:9", attempts=1) as client, pytest.raises(InputError):
        call(client)


@pytest.mark.parametrize(
    ("status", "headers", "body", "kind"),
    [
        (200, "", b"<html>", "unreadable"),
        (200, "", b"[]", "unreadable"),
        (200, "", b'{"decisions": [5]}', "unreadable"),
        (200, "", b'{"decisions": [{"id": 0}]}', "unreadable"),
        (200, "", b"[" * 100_000, "unreadable"),
        (200, "Content-Encoding: gzip\r\n", b"not gzip", "unreachable"),
        (500, "", b"[" * 100_000, "unreadable"),
        (307, "Location: /elsewhere\r\n", b"", "redirected"),
    ],
)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_whatever_is_answered_is_a_result_or_an_error_of_the_client(
    status, headers, body, kind, asynchronous
):
    """An answer of something else, such as a proxy's page, was an error of Python's own."""
    head = f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\nConnection: close\r\n{headers}\r\n"
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(head.encode() + body)

        thread = threading.Thread(target=answer)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"

        def ask() -> None:
            with Client(url, attempts=1) as client:
                client.decide("b")

        async def ask_asynchronously() -> None:
            async with AsyncClient(url, attempts=1) as client:
                await client.decide("b")

        with pytest.raises(ServiceError) as raised:
            asyncio.run(ask_asynchronously()) if asynchronous else ask()
        thread.join()
    assert raised.value.kind == kind


def test_what_a_service_asks_for_is_waited_for():
    for asked, pause in (("3", 3.0), ("3600", 30.0)):
        assert pause_after(httpx.Response(503, headers={"retry-after": asked}), 1, 5) == pause
    lost = httpx.ConnectError("refused")
    assert 0.0 <= pause_after(lost, 3, 5) <= 0.8
    assert all(pause_after(lost, 20, 21) <= 5.0 for _ in range(100))
    for last, kind in ((lost, "unreachable"), (httpx.Response(503, content=b""), "unreadable")):
        with pytest.raises(ServiceError) as raised:
            pause_after(last, 5, 5)
        assert raised.value.kind == kind
    assert error_of(502, b"<html>").kind == "unreadable"


def test_too_busy_is_tried_again(tmp_path):
    with serving(tmp_path, rate=3) as service, Client(service.url, attempts=4) as client:
        assert [client.names() for _ in range(6)] == [[]] * 6
        with Client(service.url, attempts=1) as hasty, pytest.raises(ServiceError, match="requests a second"):
            _ = [hasty.names() for _ in range(6)]


def test_contexts(service):
    """Made with features, decided by contexts, explained by features; what is wrong is refused."""
    features = {"plan": ["free", "paid"], "new": bool, "visits": (0, 50)}
    with Client(service.url, timeout=300) as client:
        made = client.create("by-context", ["a", "b"], 20, features=features, seed=1, policy="LinUCB")
        assert made.policy.startswith("LinUCB(")
        assert made.features == {"plan": ["free", "paid"], "new": "bool", "visits": [0.0, 50.0]}
        context: dict[str, str | bool | float | None] = {"plan": "paid", "new": True, "visits": 3}
        first = client.decide("by-context", key="k", context=context)
        assert client.decide("by-context", key="k", context=context) == first
        with pytest.raises(ServiceError, match="other contexts"):
            client.decide("by-context", key="k", context={**context, "visits": 4})
        with pytest.raises(ServiceError, match="did you mean 'plan'"):
            client.decide("by-context", context={"plans": "paid"})
        assert len(client.decide_many("by-context", 2, context=[context, {"plan": "other"}])) == 2
        with pytest.raises(ServiceError, match="list of 2 contexts"):
            client.decide_many("by-context", 2, context=[context])
        assert client.explain("by-context", first.id).context == {**context, "visits": 3.0}
        with pytest.raises(InputError, match="JSON cannot hold <class 'int'>"):
            client.create("wrong", ["a"], 20, features={"x": int})
        with pytest.raises(ServiceError, match="must be levels"):
            client.create("wrong", ["a"], 20, features={"plan": [1.0, "x"]})
        worth = client.context_worth("by-context")
        assert worth.more is None
        assert "a bandit with floor=0.05, for example, can tell" in worth.sentence
        client.create("no-features", ["a"], 20)
        with pytest.raises(ServiceError, match="no features"):
            client.decide("no-features", context=context)


@dataclass
class Cost:
    kind: Literal["cost"]
    currency: str


def test_streams_of_several_kinds_are_told_apart():
    cost, rail = {"kind": "cost", "currency": "€"}, {"kind": "guardrail", "cap": 2.0, "new": 1}
    found = read(dict[str, Cost | Guardrail], {"spent": cost, "refunds": rail})
    assert found == {"spent": Cost("cost", "€"), "refunds": Guardrail(kind="guardrail", cap=2.0)}


def test_guardrails(service):
    """A second stream of pieces: an arm that is worse on it is retired; the log and the metrics show it."""
    rails = {"refunds": {"kind": "guardrail", "margin": 0.1, "action": "retire"}}
    with Client(service.url, timeout=300) as client:
        with pytest.raises(ServiceError, match="needs a floor"):
            client.create("guarded", ["a", "b"], 2, streams=rails)
        made = client.create("guarded", ["a", "b"], 2, floor=0.5, streams=rails, seed=1)
        assert made.streams == {"refunds": Guardrail(kind="guardrail", cap=1.0, margin=0.1, action="retire")}
        assert client.create("guarded", ["a", "b"], 2, floor=0.5, streams=rails, seed=1) == made
        with pytest.raises(ServiceError, match="it differs: streams is"):
            client.create("guarded", ["a", "b"], 2, floor=0.5, seed=1)
        first = client.decide("guarded")
        assert client.observe("guarded", first.id, 0.0, age=0, stream="refunds").status == "stored"
        with pytest.raises(ServiceError, match="unknown stream 'refund'; did you mean 'refunds'"):
            client.observe("guarded", first.id, 0.0, age=0, stream="refund")
        for _ in range(200):
            one = client.decide("guarded")
            pieces = [Piece(one.id, 0.5, age=0)]
            if one.arm == "b":
                pieces.append(Piece(one.id, 1.0, age=0, stream="refunds"))
            assert {result.status for result in client.observe_many("guarded", pieces)} == {"stored"}
        time.sleep(0.6)  # a state may be half a second old
        (rail,) = client.state("guarded").guardrails
        assert [(arm.name, arm.worse, arm.retired) for arm in rail.arms] == [
            ("a", False, False),
            ("b", True, True),
        ]
        assert "Worse on refunds: b (retired)" in rail.sentence
        events = client.events("guarded", limit=1000).events
        assert {event.stream for event in events if event.kind == "piece"} == {None, "refunds"}
        assert [event.arm for event in events if event.kind == "retire_arm"] == ["b"]
    assert 'accrual_guardrails{outcome="worse_arms"} 1.0' in service.get("/metrics").text


def test_what_is_known_is_sent_as_json_has_it():
    """NaN is not known, numpy's values are plain ones, and arms may come one by one."""
    about = {"a": {"n": float("nan"), "k": np.int64(3), "new": np.bool_(True)}, "b": None}
    arms: Any = (arm for arm in "ab")
    body = calls.create("b", arms, 20, {"about": about}).body
    sent = json.loads(json.dumps(body, allow_nan=False))
    assert (sent["arms"], sent["about"]) == (["a", "b"], {"a": {"n": None, "k": 3, "new": True}})
    decide: Any = calls.decide("b", 1, None, {"n": float("nan")}).body
    assert decide["context"] == {"n": None}
    wrong: Any = "x"
    for ask in (
        lambda: calls.add_arm("b", "c", 1.0, None, wrong),
        lambda: calls.decide("b", 1, None, [wrong]),
    ):
        with pytest.raises(InputError, match="features with their values, not 'x'"):
            ask()
