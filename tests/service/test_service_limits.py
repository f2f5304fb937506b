"""What is too large, too slow or too strange: refused, nothing stored, and others served meanwhile."""

from __future__ import annotations

import contextlib
import json
import socket

import pytest
from tests.serving import BODY, Service, problem, serving, wait_until

HEAD = b"POST /v1/bandits/plays/pieces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
PIECE: dict[str, object] = {"decision": 0, "value": 0.5, "key": "good"}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("limits"), body=20_000, body_seconds=1.0) as service:
        service.post("/v1/bandits", BODY)
        service.post("/v1/bandits/plays/decisions")
        yield service


@pytest.fixture(autouse=True)
def unharmed(service):
    """Check after each test that nothing was stored and that the service still answers."""
    before = service.events()
    yield
    assert service.events() == before
    assert service.get("/healthz").status_code == 200


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer else 0


def kind(answer: bytes) -> str:
    body = answer.partition(b"\r\n\r\n")[2]
    return str(json.loads(body)["type"]).rpartition(":")[2]


def read(connection: socket.socket) -> bytes:
    got = b""
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(65536):
            got += part
    return got


def test_a_body_said_to_be_too_large(service):
    answer = service.post("/v1/bandits/plays/pieces", [PIECE] * 900)
    assert (answer.status_code, problem(answer)) == (413, "too-large")
    answer = service.raw(HEAD + b"Content-Length: 99999999999999999999\r\n\r\n{}")
    assert status(answer) in (400, 413)


@pytest.mark.parametrize("path", ["/v1/bandits/plays/pieces", "/v1/bandits", "/v1/bandits/plays/arms"])
def test_an_endless_body(service, path):
    """In chunks, with no length: counted as they come, and cut off soon after the limit."""
    head = HEAD.replace(b"/v1/bandits/plays/pieces", path.encode())
    with service.connect() as connection:
        connection.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
        chunk = b"1000\r\n" + b"[" * 4096 + b"\r\n"
        sent = 0
        try:
            while sent < 50_000_000:
                connection.sendall(chunk)
                sent += len(chunk)
        except OSError:
            pass  # it was cut off
        assert sent < 50_000_000
        with contextlib.suppress(ConnectionResetError):
            answer = connection.recv(65536)
            assert not answer or status(answer) == 413


def test_a_body_that_dribbles(service):
    with service.connect() as connection:
        connection.sendall(HEAD + b"Content-Length: 100\r\n\r\n{")
        answer = read(connection)
    assert (status(answer), kind(answer)) == (408, "slow")


def test_a_body_that_dribbles_after_the_answer(service):
    """One answer, and then the end: nothing else could be read from this connection."""
    with service.connect() as connection:
        connection.sendall(HEAD.replace(b"localhost", b"elsewhere") + b"Content-Length: 100\r\n\r\n{")
        answer = read(connection)
    assert (status(answer), answer.count(b"HTTP/1.1")) == (421, 1)


def stopped_halfway(service: Service) -> list[socket.socket]:
    """Open a hundred connections that stop within the head, within the body, or before either."""
    parts = [HEAD, HEAD[:20], HEAD + b"Content-Length: 100\r\n\r\n{", b""]
    connections = []
    for i in range(100):
        connection = service.connect()
        connection.sendall(parts[i % len(parts)])
        connections.append(connection)
    return connections


def test_many_slow_clients_hold_up_nobody(tmp_path):
    """Others are answered while all slow clients still have minutes left."""
    with serving(tmp_path, body_seconds=600.0) as service, contextlib.ExitStack() as held:
        connections = [held.enter_context(connection) for connection in stopped_halfway(service)]
        for _ in range(20):
            assert service.get("/healthz").status_code == 200
        assert not any(map(gone, connections))


def test_slow_clients_are_told_that_they_were_slow(service):
    answers = []
    for connection in stopped_halfway(service):
        answers.append(read(connection))
        connection.close()
    assert {kind(answer) for answer in answers if answer} == {"slow"}


def test_a_head_that_does_not_end(service):
    with service.connect() as connection:
        connection.sendall(HEAD)
        sent = 0
        try:
            while sent < 10_000_000:
                connection.sendall(b"X-More: " + b"x" * 1000 + b"\r\n")
                sent += 1010
        except OSError:
            pass
        assert sent < 10_000_000
    with service.connect() as connection:
        connection.sendall(HEAD + b"X-Long: " + b"x" * 40_000)
        answer = read(connection)
    assert (status(answer), kind(answer)) == (431, "head")


@pytest.mark.parametrize(
    "path",
    [
        "/v1/bandits/../bandits/plays/pieces", "/v1/bandits/plays/../plays/pieces",
        "/v1/./bandits/plays/pieces", "//v1/bandits/plays/pieces", "/v1//bandits/plays/pieces",
        "/v1/bandits//pieces",
        "/v1/bandits/plays/pieces/", "/v1/bandits/plays%2fpieces", "/v1/bandits/%2e%2e/pieces",
        "/v1/bandits/plays%00/pieces", "/v1/bandits/plays/pieces%00", "/V1/bandits/plays/pieces",
        "/v1/bandits/" + "x" * 10_000 + "/pieces", "/v1/bandits/..%2f..%2fetc%2fpasswd/pieces",
        "/v1/bandits/%ff%fe/pieces", "/v1/bandits/plays'--/pieces", "/v1/bandits/plays%0d%0aX:y/pieces",
    ],
)  # fmt: skip
def test_tricks_with_paths(service, path):
    body = json.dumps(PIECE).encode()
    head = HEAD.replace(b"/v1/bandits/plays/pieces", path.encode())
    answer = service.raw(head + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    assert status(answer) in (400, 404, 405, 422), answer[:200]
    assert b"root:" not in answer


def test_long_and_strange_ids(service):
    changes: list[dict[str, object]] = [
        {"key": "x" * 10_000}, {"key": "a\x00b"}, {"key": "\u202e"}, {"key": 5}, {"decision": "0"},
        {"decision": 1e300}, {"decision": True}, {"decision": 0.5}, {"decision": [0]}, {"value": True},
        {"age": -1}, {"age": 1e300}, {"at": -5}, {"extra": 1},
    ]  # fmt: skip
    for change in changes:
        answer = service.post("/v1/bandits/plays/pieces", PIECE | change)
        assert answer.status_code == 422, change
        assert problem(answer) == "invalid"
    for id_ in ("9" * 10_000, "-1", "1e3", "0x1", "%00"):
        answer = service.get(f"/v1/bandits/plays/decisions/{id_}/explain")
        assert answer.status_code in (404, 422), id_
    long = service.post("/v1/bandits/plays/arms", {"name": "x" * 9_000})
    assert (long.status_code, len(long.content) < 1_000) == (422, True)


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x00" * 1000, b"GET\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20,
        HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}{}{}",
        HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        HEAD + b"Content-Length: -5\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)  # fmt: skip
def test_what_is_not_http(service, garbage):
    with service.connect() as connection:
        with contextlib.suppress(OSError):
            connection.sendall(garbage)
        answer = read(connection)
    assert status(answer) in (0, 400, 408)


def gone(connection: socket.socket) -> bool:
    """Whether the other end has closed it."""
    connection.setblocking(False)
    try:
        return connection.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False


def test_too_many_connections(tmp_path):
    with serving(tmp_path, connections=20) as service:
        held = [service.connect() for _ in range(40)]  # they say nothing, so others may take their place
        wait_until(lambda: sum(map(gone, held)) >= 20)
        assert service.get("/healthz").status_code == 200  # who has asked for something stays connected
        for connection in held:
            connection.close()
        wait_until(
            lambda: service.raw(b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n").find(b" 200 ") > 0
        )


def test_who_hangs_up_before_the_answer_is_counted_once_at_most(tmp_path):
    body = json.dumps(PIECE).encode()
    with serving(tmp_path) as service:
        service.post("/v1/bandits", BODY)
        service.post("/v1/bandits/plays/decisions")
        for _ in range(50):
            with service.connect() as connection:
                connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        assert service.post("/v1/bandits/plays/pieces", PIECE).status_code == 200
        assert pieces(service) == 1


def pieces(service: Service) -> int:
    return sum(event["kind"] == "piece" for event in service.events())
