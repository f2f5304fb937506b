"""Bytes on a connection: offers of other protocols, requests one behind the other, heads that are too large,
and clients that do not read."""

from __future__ import annotations

import asyncio
import gc
import json
import re
import shutil
import socket
import subprocess
import threading
import time
from typing import Any

import pytest
from tests.serving import BODY, Service, problem, serving, wait_until
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from accrual.service import app, messages
from accrual.service.connections import HEAD_MOST

OFFERS = {
    "curl": b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAA\r\n",
    "websocket": b"Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
    "anything": b"connection: upgrade\r\nupgrade: foo/2, h2c\r\n",
}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with serving(
        tmp_path_factory.mktemp("wire"), body_seconds=1.0, connections=40, address_connections=30
    ) as it:
        assert it.post("/v1/bandits", BODY).status_code == 201
        yield it


def request(
    body: bytes = b"", more: bytes = b"", path: bytes = b"decisions", method: bytes = b"POST"
) -> bytes:
    head = method + b" /v1/bandits/plays/" + path + b" HTTP/1.1\r\nHost: localhost\r\n"
    if body:
        head += b"Content-Type: application/json\r\n"
    if b"chunked" not in more and method == b"POST":
        head += b"Content-Length: %d\r\n" % len(body)
    return head + more + b"\r\n" + body


LAST = request(more=b"Connection: close\r\n", method=b"GET", path=b"state")


def answers(got: bytes) -> list[tuple[int, dict[str, Any]]]:
    """Every status and document."""
    found = []
    while got:
        head, _, got = got.partition(b"\r\n\r\n")
        length = int(re.search(rb"content-length: (\d+)", head)[1])  # type: ignore[index]
        found.append((int(head[9:12]), json.loads(got[:length])))
        got = got[length:]
    return found


def slowly(service: Service, parts: list[bytes]) -> bytes:
    """What comes back for bytes in packets of their own, until the other end closes."""
    with service.connect() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for part in parts:
            connection.sendall(part)
            time.sleep(0.05)
        got = b""
        while part := connection.recv(65536):
            got += part
    return got


# Offers of another protocol.


@pytest.mark.parametrize("offer", OFFERS)
@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("packets", ["one", "body apart", "bytes"])
def test_an_offer_is_ignored_and_the_body_read(service, offer, framing, packets):
    """The body was dropped, so that one key made a new decision each time; or it was taken for a request."""
    key = f"{offer} {framing} {packets}"
    body = json.dumps({"n": 3, "key": key}).encode()
    if framing == "length":
        asked = request(body, OFFERS[offer])
    else:
        chunks = b"5\r\n" + body[:5] + b"\r\n%x\r\n" % (len(body) - 5) + body[5:] + b"\r\n0\r\n\r\n"
        more = OFFERS[offer] + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
        asked = request(more=more) + chunks
    start = asked.index(b"\r\n\r\n") + 4
    both = asked + asked + LAST
    if packets == "one":
        parts = [both]
    elif packets == "body apart":
        parts = [asked[:start], asked[start:], asked[:start], asked[start:], LAST]
    else:
        parts = [both[i : i + 97] for i in range(0, len(both), 97)]
    first, second, last = answers(slowly(service, parts))
    assert (first[0], second[0], last[0]) == (200, 200, 200)
    assert len(first[1]["decisions"]) == 3
    assert (first[1]["again"], second[1]["again"]) == (False, True)
    assert first[1]["decisions"] == second[1]["decisions"]
    assert last[1]["name"] == "plays"


def test_a_body_behind_an_offer_is_never_a_request(service):
    """Smuggling: what a proxy sent as a body was answered as a request of its own."""
    before = service.post("/v1/bandits/plays/decisions").json()["decisions"][0]["id"]
    hidden = request()
    got = answers(slowly(service, [request(hidden, OFFERS["curl"])[: -len(hidden)], hidden, LAST]))
    assert [status for status, _ in got] == [400, 200]
    assert got[0][1]["type"].endswith(":malformed")
    assert service.post("/v1/bandits/plays/decisions").json()["decisions"][0]["id"] == before + 1


def test_many_offers_in_one_packet(service):
    """Each is answered in its turn; none is answered inside another."""
    got = answers(service.raw(request(more=OFFERS["anything"]) * 300 + LAST))
    assert [status for status, _ in got] == [200] * 301
    ids = [one["decisions"][0]["id"] for _, one in got[:-1]]
    assert ids == list(range(ids[0], ids[0] + 300))


@pytest.mark.parametrize(
    "head",
    [
        b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",  # HTTP/2 from the first byte on
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nContent-Length: 4\r\n"
        + OFFERS["curl"]
        + b"\r\n",
    ],
)
def test_what_is_no_request_is_refused_after_those_before_it(service, head):
    got = answers(service.raw(request() + head + request()))
    assert [status for status, _ in got] == [200, 400]


def test_an_offer_with_a_body_that_cannot_be_framed(service):
    """It was an error that nobody caught: a traceback in the log, and no answer."""
    head = b"POST /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: identity\r\n"
    got = answers(service.raw(head + OFFERS["curl"] + b"\r\nabc"))
    assert [status for status, _ in got] == [400]


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl_that_offers_http_2(service):
    body = json.dumps({"n": 2, "key": "from curl"})
    command = ["curl", "-s", "--http2", f"{service.url}/v1/bandits/plays/decisions", "-d", body]
    command += ["-H", "Content-Type: application/json"]
    first, second = (
        json.loads(subprocess.run(command, capture_output=True, check=True).stdout) for _ in "ab"
    )
    assert len(first["decisions"]) == 2
    assert first["decisions"] == second["decisions"]


# Heads.


@pytest.mark.parametrize("size", [HEAD_MOST + 100, 50_000, 70_000, 200_000])
@pytest.mark.parametrize("headers", [1, 40])
def test_a_large_head_is_refused_however_it_comes(service, size, headers):
    """Only heads that came in several packets used to be measured."""
    more = b"".join(b"X-%03d: " % i + b"a" * (size // headers) + b"\r\n" for i in range(headers))
    got = answers(service.raw(request() + request(more=more) + request()))
    assert [status for status, _ in got] == [200, 431]


def test_a_head_within_the_limit_behind_a_large_body(service):
    """The bytes of the body were counted as the head's, and the first answer was lost."""
    body = b" " * (HEAD_MOST + 5_000) + b'{"n": 2}'
    with service.connect() as connection:
        connection.sendall(request(body) + LAST[:20])
        time.sleep(0.1)
        connection.sendall(LAST[20:])
        got = b""
        while part := connection.recv(65536):
            got += part
    assert [status for status, _ in answers(got)] == [200, 200]


def test_half_a_head_behind_a_request(service):
    """The request is answered; then the half is refused when its time is over."""
    got = answers(service.raw(request() + LAST[:20]))
    assert [status for status, _ in got] == [200, 408]


def test_a_client_that_has_sent_all_still_gets_the_answer(service):
    with service.connect() as connection:
        connection.sendall(request() + LAST[:20])
        connection.shutdown(socket.SHUT_WR)
        got = b""
        while part := connection.recv(65536):
            got += part
    assert [status for status, _ in answers(got)] == [200]


# Requests one behind the other.


def test_requests_wait_in_bytes_and_are_answered_in_order(service):
    """A request behind another is not even parsed before that one is answered; bodies end where they end."""
    one = request(b'{"key": "%d"}')
    chunked = request(more=b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n")
    chunks = b"8\r\n\r\n\r\n    \r\n2\r\n{}\r\n0\r\n\r\n"  # what ends a body stands in it too
    sent = b"".join(one % i + chunked + chunks + request() for i in range(10, 60)) + LAST
    for parts in ([sent], [sent[i : i + 7] for i in range(0, len(sent), 7)]):
        with service.connect() as connection:
            for part in parts:
                connection.sendall(part)
            got = b""
            while part := connection.recv(65536):
                got += part
        found = answers(got)
        assert [status for status, _ in found] == [200] * 151
        assert [document["again"] for _, document in found[:150]] == [parts != [sent], False, False] * 50


def test_a_connection_has_one_request_at_a_time(tmp_path, monkeypatch):
    """256 KB became 6,393 requests in memory, 112 MB 6.7 GB, while nobody had a key."""
    begun, go_on = threading.Event(), threading.Event()

    async def slow(*_: object) -> object:
        begun.set()
        await asyncio.to_thread(go_on.wait, 60)
        return messages.HealthOut("alive")

    monkeypatch.setattr(app._Service, "health", slow)
    asked = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with serving(tmp_path) as service, service.connect() as connection:
        before = cycles()
        try:
            connection.sendall(asked * 6_000)
            assert begun.wait(20)
            assert service.get("/v1/openapi.json").status_code == 200  # what has come has been read
            assert cycles() - before <= 3
            connection.settimeout(0.5)
            with pytest.raises(TimeoutError):  # it is not read on
                connection.sendall(asked * 1_000_000)
        finally:
            go_on.set()
            connection.close()
        wait_until(lambda: cycles() - before <= 3, 20)


def cycles() -> int:
    """How many requests uvicorn has in memory."""
    gc.collect()
    return sum(isinstance(one, RequestResponseCycle) for one in gc.get_objects())


# Bodies.


@pytest.mark.parametrize("method", [b"GET", b"HEAD", b"PUT", b"DELETE", b"OPTIONS", b"PATCH", b"POST"])
@pytest.mark.parametrize("path", [b"/healthz", b"/v1/bandits", b"/nowhere"])
def test_a_large_body_is_refused_whatever_the_method(service, method, path):
    """`GET /healthz` with 1.5 GB was answered with 200, and all of it read."""
    got = service.raw(
        method + b" " + path + b" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1500000000\r\n\r\n"
    )
    assert got[9:12] == b"413"
    assert b"connection: close" in got
    if method != b"HEAD":
        assert answers(got)[0][1]["type"].endswith(":too-large")


@pytest.mark.parametrize("host", [b"localhost", b"elsewhere"])
@pytest.mark.parametrize("chunked", [False, True])
def test_an_endless_body_behind_an_answer_is_cut_off(service, host, chunked):
    """A request for another host is answered at once; its body was then read for ever."""
    framing = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: 1000000000"
    with service.connect() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: " + host + b"\r\n" + framing + b"\r\n\r\n")
        part = b"10000\r\n" + bytes(65536) + b"\r\n" if chunked else bytes(65536)
        with pytest.raises(ConnectionError):
            connection.sendall(part * 1_500)


def test_who_is_still_sending_gets_the_refusal(service):
    """The connection was closed with bytes to read, so the system cut it off and the answer was lost."""
    with service.connect() as connection:
        head = request(b" " * 2_000_000)[:-2_000_000]
        connection.sendall(head)
        for _ in range(5):
            time.sleep(0.05)
            connection.sendall(b" " * 10_000)
        got = connection.recv(65536)
        assert got[9:12] == b"413"
        assert connection.recv(65536) == b""


# Connections.


def test_a_client_that_does_not_read_is_cut_off(service):
    """Answers that nobody takes held a connection for ever."""
    asked = b"GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", service.port))
        connection.settimeout(20)
        cut = False
        end = time.monotonic() + 20
        while not cut and time.monotonic() < end:
            try:
                connection.sendall(asked * 50)
                time.sleep(0.02)
            except OSError as error:
                cut = isinstance(error, ConnectionError)
        assert cut


def test_idle_connections_make_room(service):
    """As many as may be open, from several addresses, which say nothing: others are served all the same."""
    idle = []
    try:
        for i in range(60):
            connection = socket.socket()
            connection.bind((f"127.0.0.{2 + i % 3}", 0))
            connection.connect(("127.0.0.1", service.port))
            connection.sendall(request())
            connection.settimeout(5)
            assert connection.recv(12) == b"HTTP/1.1 200"
            idle.append(connection)
        assert service.raw(LAST)[9:12] == b"200"
    finally:
        for connection in idle:
            connection.close()


def test_one_address_does_not_take_them_all(service):
    taken = [service.connect() for _ in range(35)]
    try:
        time.sleep(0.2)
        refused = [connection for connection in taken if _answered(connection)]
        assert 4 <= len(refused) <= 7
        other = socket.create_connection(("127.0.0.1", service.port), 5, ("127.0.0.9", 0))
        other.sendall(LAST)
        assert other.recv(12) == b"HTTP/1.1 200"
        other.close()
    finally:
        for connection in taken:
            connection.close()
    assert problem(service.get("/v1/bandits/none/state")) == "unknown-bandit"


def _answered(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return b" 503 " in connection.recv(100)
    except BlockingIOError:
        return False
