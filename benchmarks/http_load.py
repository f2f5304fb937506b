"""A load generator: many kept-alive connections from one event loop, each with one request at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import uvloop

Make = Callable[[], bytes]


@dataclass
class Tally:
    """What came back."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)  # in seconds
    statuses: dict[int, int] = field(default_factory=dict)
    lost: int = 0  # connections that ended with a request under way

    @property
    def rate(self) -> float:
        """Requests a second."""
        return len(self.latencies) / self.seconds

    @property
    def errors(self) -> int:
        """Answers other than 2xx, and requests without one."""
        return self.lost + sum(n for status, n in self.statuses.items() if not 200 <= status < 300)

    def quantile(self, q: float) -> float:
        """In milliseconds."""
        return float(np.quantile(self.latencies, q)) * 1e3 if self.latencies else float("nan")


def request(path: str, body: bytes, host: str, key: str | None = None) -> bytes:
    """A POST, as bytes."""
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    if key is not None:
        head += f"Authorization: Bearer {key}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


class _Connection(asyncio.Protocol):
    def __init__(self, make: Make, tally: Tally, pace: Callable[[], float], on_body: Callable[[bytes], None]):
        self._make, self._tally, self._pace, self._on_body = make, tally, pace, on_body
        self._got = b""
        self._sent = 0.0
        self.stopping = False
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._next()

    def _next(self) -> None:
        wait = self._pace()
        if wait > 0:
            asyncio.get_running_loop().call_later(wait, self._send)
        else:
            self._send()

    def _send(self) -> None:
        if self.stopping:
            self._transport.close()
            return
        self._sent = time.perf_counter()
        self._transport.write(self._make())

    def data_received(self, data: bytes) -> None:
        got = self._got + data if self._got else data
        end = got.find(b"\r\n\r\n")
        if end < 0:
            self._got = got
            return
        start = got.find(b"content-length: ") + 16
        size = int(got[start : got.find(b"\r", start)])
        if len(got) < end + 4 + size:
            self._got = got
            return
        self._got = b""
        self._tally.latencies.append(time.perf_counter() - self._sent)
        self._sent = 0.0
        status = int(got[9:12])
        self._tally.statuses[status] = self._tally.statuses.get(status, 0) + 1
        self._on_body(got[end + 4 :])
        self._next()

    def connection_lost(self, error: Exception | None) -> None:
        if self._sent:
            self._tally.lost += 1
        if not self.done.done():
            self.done.set_result(None)


async def _load(
    port: int, make: Make, connections: int, seconds: float, rate: float, on_body: Callable[[bytes], None]
) -> Tally:
    loop = asyncio.get_running_loop()
    tally = Tally()
    start = loop.time()
    sent = 0

    def pace() -> float:
        """How long to wait before the next request."""
        nonlocal sent
        sent += 1
        return start + sent / rate - loop.time() if rate else 0.0

    made = [
        (await loop.create_connection(lambda: _Connection(make, tally, pace, on_body), "127.0.0.1", port))[1]
        for _ in range(connections)
    ]
    begin = time.perf_counter()
    await asyncio.sleep(seconds)
    tally.seconds = time.perf_counter() - begin
    counted = len(tally.latencies)
    for connection in made:
        connection.stopping = True
    await asyncio.wait([connection.done for connection in made], timeout=30)
    del tally.latencies[counted:]
    return tally


def load(
    port: int,
    make: Make,
    connections: int = 64,
    seconds: float = 5.0,
    rate: float = 0.0,
    on_body: Callable[[bytes], None] = lambda _: None,
) -> Tally:
    """Send what `make` makes for some seconds; as fast as it is answered, or `rate` a second."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_load(port, make, connections, seconds, rate, on_body))
