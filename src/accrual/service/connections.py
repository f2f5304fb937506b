"""Limits that uvicorn lacks: on the number of connections, and on the size and time of requests.

A `LimitedProtocol` stands between the transport of a connection and uvicorn's own protocol.
"""

from __future__ import annotations

import re
from asyncio import AbstractEventLoop, Protocol, TimerHandle, Transport, get_event_loop
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from accrual.service.edge import ANSWERED
from accrual.service.refusals import MEDIA_TYPE, Refusal, try_later

HEAD_MOST = 32_768  # bytes
_END = b"\r\n\r\n"  # ends a head, and a body in chunks
_TOGETHER = 65_536  # bytes: what is written at once at most
_CONTINUE = b"HTTP/1.1 100 "  # the answer is still to come
_UPGRADE = re.compile(rb"(?<=\r\n)upgrade(?=:)", re.IGNORECASE)
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)", re.IGNORECASE)


@dataclass(eq=False)
class Limits:
    """The limits, and the connections that are open. Uvicorn calls this object for each new connection.

    Parameters
    ----------
    seconds : float
        A request's head must arrive within this time, then its body; and the client must read the answer
        within it.
    body : int
        Bytes of a request's body.
    connections : int
        How many connections may be open.
    address_connections : int
        How many connections one address may have open.
    """

    seconds: float
    body: int
    connections: int
    address_connections: int
    open: set[LimitedProtocol] = field(default_factory=set)

    def __call__(
        self,
        config: Any,
        server_state: Any,
        app_state: dict[str, Any],
        _loop: AbstractEventLoop | None = None,
    ) -> LimitedProtocol:
        """Return the protocol of a new connection."""
        limited = LimitedProtocol(self, _loop or get_event_loop())
        state = {**app_state, ANSWERED: limited.answered}
        limited.server = HttpToolsProtocol(config, server_state, state, _loop)
        return limited

    def refusal(self, new: LimitedProtocol) -> Refusal | None:
        """Return why a new connection is refused, or None. An idle connection may be closed to admit it."""
        if sum(one.address == new.address for one in self.open) > self.address_connections:
            return try_later(
                "busy", f"this address has {self.address_connections:,} connections open; try again"
            )
        if len(self.open) > self.connections:
            idle = [one for one in self.open if one.idle and one is not new]
            if not idle:
                return try_later("busy", f"{self.connections:,} connections are open; try again")
            # Close one that has sent no request yet, or else the one that has been idle longest.
            chosen = min(idle, key=lambda one: (one.used, one.active))
            chosen.flush()
            chosen.transport.close()
        return None


class LimitedTransport:
    """The transport that uvicorn sees: the transport of the connection, within the limits."""

    def __init__(self, limited: LimitedProtocol, transport: Transport) -> None:
        self._limited = limited
        self._transport = transport

    def write(self, data: bytes) -> None:
        """Send `data`, unless the connection is being closed."""
        self._limited.send(data)

    def is_closing(self) -> bool:
        """Return whether nothing more can be sent."""
        return self._limited.closing

    def close(self) -> None:
        """Close the connection. The client has some seconds to read what was sent."""
        self._limited.close()

    def resume_reading(self) -> None:
        """Go on reading, unless a request waits until the one before it is answered."""
        if not self._limited.holding:
            self._transport.resume_reading()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class LimitedProtocol(Protocol):
    """A connection. It passes one request at a time to uvicorn, the next when that one is answered.

    The connection is closed if the client sends half a request or an endless head, or does not read. A
    request may offer another protocol (`Upgrade: h2c`). The offer is ignored, as RFC 9110 allows.
    """

    server: HttpToolsProtocol  # uvicorn's own protocol
    transport: Transport
    address: str | None = None
    used = False  # whether a request has arrived
    writing = False  # whether a part of the current answer has been sent
    holding = False  # whether reading waits until the current request is answered

    def __init__(self, limits: Limits, loop: AbstractEventLoop) -> None:
        self._limits = limits
        self._loop = loop
        self._parser = httptools.HttpRequestParser(self)  # finds the ends of heads and bodies
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._reading: Literal["head", "body"] | None = None  # None: no request, or a whole one
        self._answering = False
        self._client_done = False  # whether the client has closed its side, and may still read
        self._server_done = False  # whether this side is closed, so that what arrives is discarded
        self._parts: list[bytes] = []  # what to send at the end of this turn of the event loop
        self._buffer = bytearray()  # what has arrived and uvicorn does not have yet
        self._left: int | None = None  # bytes of the body that are missing; None: it comes in chunks
        self._body = 0  # bytes of the current body
        self._arriving: TimerHandle | None = None  # until a head or body must have arrived
        self._taking: TimerHandle | None = None  # until the client must have read what was sent
        self.active = loop.time()

    @property
    def closing(self) -> bool:
        """Whether nothing more is read or sent."""
        return self._server_done or self.transport.is_closing()

    @property
    def idle(self) -> bool:
        """Whether no request waits for its answer."""
        return not self._answering and not self.closing

    def close(self) -> None:
        """Close the connection when the client has read the answer, or when its time for that is over.

        While the client is still sending, what arrives is discarded, up to the limit of a body. If bytes
        were left unread, the operating system would reset the connection, and the answer would be lost.
        """
        if self.closing:
            return
        self.flush()
        self._arriving = _cancelled(self._arriving)
        self._must_take()
        if self._reading is None and not self._buffer:
            self.transport.close()
            return
        self._server_done = True
        self._body = 0
        self._buffer.clear()
        self.transport.write_eof()
        self.transport.resume_reading()

    def send(self, data: bytes) -> None:
        """Send `data` at the end of this turn of the event loop, so that a head goes with its body."""
        if self.closing:
            return
        self.writing = not data.startswith(_CONTINUE)
        if not self._parts:
            self._loop.call_soon(self.flush)
        self._parts.append(data)
        if sum(map(len, self._parts)) > _TOGETHER:  # so that the transport can ask for a pause
            self.flush()

    def flush(self) -> None:
        """Send what waits to be sent."""
        if self._parts and not self.closing:
            self.transport.write(b"".join(self._parts))
        self._parts.clear()

    def answered(self) -> None:
        """Go on with the next request, because the current one has been answered."""
        if self.closing:
            return
        self._answering = self.writing = False
        self.active = self._loop.time()
        if self.holding:
            self.holding = False
            self.transport.resume_reading()
            self._advance()
        if self._client_done and not self._answering:
            self.close()

    # Calls of the transport.

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        peer = transport.get_extra_info("peername")
        self.address = peer[0] if peer else None
        self._limits.open.add(self)
        self.server.connection_made(cast(Any, LimitedTransport(self, transport)))
        refusal = self._limits.refusal(self)
        if refusal is not None:
            self._refuse(refusal)
        else:
            self._must_arrive()

    def data_received(self, data: bytes) -> None:
        if self.closing:
            self._body += len(data)
            if self._body > self._limits.body:
                self.transport.abort()
            return
        self.active = self._loop.time()
        self._buffer += data
        self._advance()

    def eof_received(self) -> bool:
        """Return whether to keep the connection, to answer a request that has arrived whole."""
        self.flush()
        self._client_done = self._answering and self._reading is None and not self.closing
        return self._client_done

    def pause_writing(self) -> None:
        self.server.pause_writing()
        self._must_take()

    def resume_writing(self) -> None:
        if not self.closing:  # otherwise the client must still read the rest in time
            self._taking = _cancelled(self._taking)
        self.server.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._limits.open.discard(self)
        self.server.connection_lost(exc)
        self._arriving = _cancelled(self._arriving)
        self._taking = _cancelled(self._taking)
        self._buffer.clear()
        del self._parser, self.server  # they refer to this object, which would be freed much later

    # Reading.

    def _advance(self) -> None:
        """Pass what has arrived to uvicorn, at most up to the end of one request."""
        while self._buffer and not self.closing:
            if self._reading is None:
                if self._answering:
                    self.holding = True
                    self.transport.pause_reading()
                    return
                self._reading = "head"
            part = self._next_part()
            if len(part) > HEAD_MOST and self._reading == "head":
                self._refuse(Refusal("head", f"a request's head may have {HEAD_MOST:,} bytes"))
                return
            if not part or not self._parse(part):
                break
            self.server.data_received(part)
        if self._reading is not None and self._arriving is None and not self.closing:
            self._must_arrive()

    def _next_part(self) -> bytes:
        """Take bytes from the buffer, at most up to the end of the current head or body.

        A head is taken when it is whole or too long.
        """
        size = len(self._buffer)
        if self._reading == "body" and self._left is not None:
            size = min(size, self._left)
            self._left -= size
        else:
            end = self._buffer.find(_END)
            if end >= 0:
                size = end + len(_END)
            elif self._reading == "body":
                size = max(size - len(_END) + 1, 0)  # the last bytes may be the start of the end
            elif size <= HEAD_MOST:
                size = 0
        part = bytes(self._buffer[:size])
        del self._buffer[:size]
        return _UPGRADE.sub(b"ignored", part) if self._reading == "head" else part

    def _parse(self, part: bytes) -> bool:
        """Parse a part of a request; return whether to pass it to uvicorn. Refuse what is not HTTP."""
        if self._reading == "body":
            self._body += len(part)
            if not self._answering and self._body > self._limits.body:
                self.close()  # the request was answered without its body, which is too large
                return False
        else:
            length = _LENGTH.search(part)
            self._left = int(length[1][:19]) if length else None
        try:
            self._parser.feed_data(part)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._refuse(Refusal("malformed", "this is not an HTTP/1.1 request"))
            return False
        return True

    def on_headers_complete(self) -> None:
        """Note that a head has arrived. Httptools calls this."""
        self._arriving = _cancelled(self._arriving)
        self._reading = "body"
        self._body = 0
        self._answering = self.used = True

    def on_message_complete(self) -> None:
        """Note that a request has arrived whole. Httptools calls this."""
        self._arriving = _cancelled(self._arriving)
        self._reading = None

    # Time limits and refusals.

    def _must_arrive(self) -> None:
        self._arriving = self._loop.call_later(self._limits.seconds, self._too_slow)

    def _must_take(self) -> None:
        if self._taking is None:
            self._taking = self._loop.call_later(self._limits.seconds, self.transport.abort)

    def _too_slow(self) -> None:
        what = f"a request's {self._reading or 'head'} must arrive within {self._limits.seconds:g} seconds"
        self._refuse(Refusal("slow", what))

    def _refuse(self, refusal: Refusal) -> None:
        """Send a refusal, unless the request is answered already, and close the connection."""
        if not self.writing and (self._answering or self._reading != "body"):
            body = refusal.body
            head = (
                f"HTTP/1.1 {refusal.status} Refused\r\ncontent-type: {MEDIA_TYPE}\r\n"
                f"content-length: {len(body)}\r\nconnection: close\r\n"
            )
            more = b"".join(name + b": " + value + b"\r\n" for name, value in refusal.headers)
            self.send(head.encode() + more + b"\r\n" + body)
        self.close()


def _cancelled(timer: TimerHandle | None) -> TimerHandle | None:
    """Cancel a timer, and return None in its place."""
    if timer is not None:
        timer.cancel()
    return None
