"""Uvicorn's reading of requests, with limits that it lacks: on a head's size and time, on connections."""

from __future__ import annotations

from asyncio import TimerHandle
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from accrual.service.problems import MEDIA_TYPE, Refusal, later

HEAD_MOST = 32_768  # bytes
HEAD_SECONDS = 10.0


class Protocol(HttpToolsProtocol):
    """A connection. Whoever sends half a head, or an endless one, is cut off."""

    _reading_head = True
    _bytes = 0
    _timer: TimerHandle | None = None

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._most = self.limit_concurrency
        self.limit_concurrency = None  # it is seen to here, before a request is read

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if self._most is not None and len(self.connections) > self._most:
            self._refuse(later("busy", f"{self._most:,} connections are open; try again"))
        else:
            self._timer = self.loop.call_later(HEAD_SECONDS, self._too_slow)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():  # it has been refused, and is not read to the end
            return
        self._bytes += len(data)
        super().data_received(data)
        if not self._reading_head:
            return
        if self._bytes > HEAD_MOST:
            self._refuse(Refusal("head", f"a request's head may have {HEAD_MOST:,} bytes"))
        elif self._timer is None:
            self._timer = self.loop.call_later(HEAD_SECONDS, self._too_slow)

    def on_message_begin(self) -> None:
        self._reading_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._reading_head = False
        self._bytes = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _too_slow(self) -> None:
        self._timer = None
        if self._reading_head and not self.transport.is_closing():
            self._refuse(Refusal("slow", f"a request's head must arrive within {HEAD_SECONDS:g} seconds"))

    def _refuse(self, refusal: Refusal) -> None:
        if self.transport.is_closing():
            return
        body = refusal.body
        head = (
            f"HTTP/1.1 {refusal.status} Refused\r\ncontent-type: {MEDIA_TYPE}\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n"
        )
        more = b"".join(name + b": " + value + b"\r\n" for name, value in refusal.headers)
        self.transport.write(head.encode() + more + b"\r\n" + body)
        self.transport.close()
