"""Uvicorn's reading of requests, with two limits that it lacks: a head's size, and its time."""

from __future__ import annotations

from asyncio import TimerHandle
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from accrual.service.problems import MEDIA_TYPE, Refusal

HEAD_MOST = 32_768  # bytes
HEAD_SECONDS = 10.0


class Protocol(HttpToolsProtocol):
    """A connection. Whoever sends half a head, or an endless one, is cut off."""

    _reading_head = True
    _bytes = 0
    _timer: TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._timer = self.loop.call_later(HEAD_SECONDS, self._too_slow)

    def data_received(self, data: bytes) -> None:
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
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()
