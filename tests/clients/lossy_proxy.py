"""A proxy that loses requests and answers, and what the service has counted in the end."""

from __future__ import annotations

import random
import re
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.serving import Service


def message(connection: socket.socket) -> bytes:
    """A whole request or answer; nothing if the other end has closed."""
    got = b""
    while True:
        head, end, body = got.partition(b"\r\n\r\n")
        if end:
            length = re.search(rb"content-length: (\d+)", head, re.I)
            if len(body) >= (int(length[1]) if length else 0):
                return got
        part = connection.recv(1 << 16)
        if not part:
            return b""
        got += part


@contextmanager
def dropping(port: int, fate: Callable[[], str]) -> Iterator[int]:
    """A proxy to `port`; for each request `fate` says pass, before or after: when it hangs up."""
    listener = socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []

    def pump(client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", port)) as server:
            try:
                while request := message(client):
                    what = fate()
                    if what == "before":
                        return
                    server.sendall(request)
                    answer = message(server)
                    if what == "after":
                        return
                    client.sendall(answer)
            except OSError:
                return

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threads.append(threading.Thread(target=pump, args=(client,), daemon=True))
            threads[-1].start()

    acceptor = threading.Thread(target=accept, daemon=True)
    acceptor.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        acceptor.join(5)
        for thread in threads:
            thread.join(5)


def lossy(seed: int) -> Callable[[], str]:
    draw = random.Random(seed)
    return lambda: draw.choice(["pass", "pass", "pass", "before", "after"])


def counts(service: Service, bandit: str) -> tuple[int, Counter[float]]:
    """How many decisions there are, and how often each value of a piece."""
    events = service.events(bandit)
    values = Counter(event["value"] for event in events if event["kind"] == "piece")
    return sum(event["kind"] == "decision" for event in events), values
