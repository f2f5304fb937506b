"""Uvicorn's handling of a connection, with limits that it lacks: on size, time and number."""

from __future__ import annotations

from asyncio import AbstractEventLoop, TimerHandle
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from accrual.service.problems import MEDIA_TYPE, Refusal, later

HEAD_MOST = 32_768  # bytes
_TOGETHER = 65_536  # bytes


class _Transport:
    """A transport that sends what is written in one turn of the loop at once: a head with its body."""

    def __init__(self, transport: Any, loop: AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._parts: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)
        self._size += len(data)
        if self._size > _TOGETHER:
            self._flush()

    def _flush(self) -> None:
        if self._parts and not self._transport.is_closing():
            self._transport.write(b"".join(self._parts))
        self._parts.clear()
        self._size = 0

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Protocol(HttpToolsProtocol):
    """A connection. Whoever sends half a request, or an endless head, is cut off.

    Parameters
    ----------
    seconds : float
        A request's head, and then its body, must arrive within this.
    """

    _reading: str | None = "head"  # or the body, or nothing: all has come
    _bytes = 0
    _timer: TimerHandle | None = None

    def __init__(self, *given: Any, seconds: float, **named: Any) -> None:
        super().__init__(*given, **named)
        self._seconds = seconds
        self._most = self.limit_concurrency
        self.limit_concurrency = None  # it is seen to here, before a request is read

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.transport = cast(Any, _Transport(transport, self.loop))
        if self._most is not None and len(self.connections) > self._most:
            self._refuse(later("busy", f"{self._most:,} connections are open; try again"))
        else:
            self._watch()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():  # it has been refused, and is not read to the end
            return
        self._bytes += len(data)
        super().data_received(data)
        if self._reading is None:
            return
        if self._reading == "head" and self._bytes > HEAD_MOST:
            self._refuse(Refusal("head", f"a request's head may have {HEAD_MOST:,} bytes"))
        elif self._timer is None:
            self._watch()

    def on_message_begin(self) -> None:
        self._reading = "head"
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._reading = "body"
        self._bytes = 0
        self._unwatch()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._reading = None
        self._unwatch()
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unwatch()
        super().connection_lost(exc)

    def _watch(self) -> None:
        self._timer = self.loop.call_later(self._seconds, self._too_slow)

    def _unwatch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        self._timer = None
        if self._reading is not None:
            what = f"a request's {self._reading} must arrive within {self._seconds:g} seconds"
            self._refuse(Refusal("slow", what))

    def _refuse(self, refusal: Refusal) -> None:
        if self.transport.is_closing():
            return
        if self._reading == "body" and self.cycle.response_started:  # it was answered all the same
            self.transport.close()
            return
        body = refusal.body
        head = (
            f"HTTP/1.1 {refusal.status} Refused\r\ncontent-type: {MEDIA_TYPE}\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n"
        )
        more = b"".join(name + b": " + value + b"\r\n" for name, value in refusal.headers)
        self.transport.write(head.encode() + more + b"\r\n" + body)
        self.transport.close()
