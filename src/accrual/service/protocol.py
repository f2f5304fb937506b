"""Limits on a connection that uvicorn lacks: on size, time and number."""

from __future__ import annotations

import re
from asyncio import AbstractEventLoop, Protocol, TimerHandle, Transport, get_event_loop
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from accrual.service.asgi import ANSWERED
from accrual.service.refusals import MEDIA_TYPE, Refusal, try_later

HEAD_MOST = 32_768  # bytes
_END = b"\r\n\r\n"  # of a head, and of a body in chunks
_TOGETHER = 65_536  # bytes that are sent together at most
_GO_ON = b"HTTP/1.1 100 "  # the answer is still to come
_OFFER = re.compile(rb"(?<=\r\n)upgrade(?=:)", re.IGNORECASE)
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)", re.IGNORECASE)


@dataclass(eq=False)
class Limits:
    """The limits on connections, and the connections that are open. Uvicorn calls it for each new one.

    Parameters
    ----------
    seconds : float
        A request's head, and then its body, must arrive within this; and what is answered must be taken.
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
        """Return why a new connection is refused, if it is. An idle one may be closed in its favour."""
        if sum(one.address == new.address for one in self.open) > self.address_connections:
            return try_later(
                "busy", f"this address has {self.address_connections:,} connections open; try again"
            )
        if len(self.open) > self.connections:
            idle = [one for one in self.open if one.idle and one is not new]
            if not idle:
                return try_later("busy", f"{self.connections:,} connections are open; try again")
            # First those that have sent no request yet, then the one that has waited longest.
            chosen = min(idle, key=lambda one: (one.used, one.active))
            chosen.flush()
            chosen.transport.close()
        return None


class LimitedTransport:
    """What uvicorn takes for the transport of a connection: the transport itself, within the limits."""

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
        """Close the connection. The other end has some seconds to take what was sent."""
        self._limited.close()

    def resume_reading(self) -> None:
        """Go on reading, unless a request waits for the answer to the one before it."""
        if not self._limited.holding:
            self._transport.resume_reading()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class LimitedProtocol(Protocol):
    """A connection. Uvicorn gets its bytes within limits: one request, and the next when that is answered.

    It is cut off when the client sends half a request or an endless head, or does not read. A request
    may offer another protocol (`Upgrade: h2c`). There is none, so the offer is ignored, as RFC 9110 has it.
    """

    server: HttpToolsProtocol  # uvicorn's own protocol
    transport: Transport
    address: str | None = None
    used = False  # whether a request has come
    writing = False  # whether anything of the present answer has been sent
    holding = False  # whether nothing is read until the present request is answered

    def __init__(self, limits: Limits, loop: AbstractEventLoop) -> None:
        self._limits = limits
        self._loop = loop
        self._parser = httptools.HttpRequestParser(self)  # finds where heads and bodies end
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._reading: Literal["head", "body"] | None = None  # None: no request, or all of it
        self._answering = False
        self._ended = False  # whether the other end has said all, and may still listen
        self._said_all = False  # whether this end has, and throws away what comes
        self._parts: list[bytes] = []  # what is to be sent at the end of this turn of the loop
        self._buffer = bytearray()  # what has come and uvicorn has not got yet
        self._left: int | None = None  # bytes that the body still lacks; None: it comes in chunks
        self._body = 0  # bytes of the present body
        self._arriving: TimerHandle | None = None  # for the rest of a head or body
        self._taking: TimerHandle | None = None  # for the client to read what was sent
        self.active = loop.time()

    @property
    def closing(self) -> bool:
        """Whether nothing more is read or sent."""
        return self._said_all or self.transport.is_closing()

    @property
    def idle(self) -> bool:
        """Whether there is no request to be answered."""
        return not self._answering and not self.closing

    def close(self) -> None:
        """Close the connection, at the latest when the other end has not taken the answer in time.

        While that end is still sending, what comes is thrown away, up to a body's bytes: a system that
        has bytes left to read would cut the connection off at once, and the answer would be lost.
        """
        if self.closing:
            return
        self.flush()
        self._arriving = _cancelled(self._arriving)
        self._must_take()
        if self._reading is None and not self._buffer:
            self.transport.close()
            return
        self._said_all = True
        self._body = 0
        self._buffer.clear()
        self.transport.write_eof()
        self.transport.resume_reading()

    def send(self, data: bytes) -> None:
        """Send `data` with all else of this turn of the loop: a head goes with its body."""
        if self.closing:
            return
        self.writing = not data.startswith(_GO_ON)
        if not self._parts:
            self._loop.call_soon(self.flush)
        self._parts.append(data)
        if sum(map(len, self._parts)) > _TOGETHER:  # so that the transport can ask for a pause
            self.flush()

    def flush(self) -> None:
        """Send what is to be sent now."""
        if self._parts and not self.closing:
            self.transport.write(b"".join(self._parts))
        self._parts.clear()

    def answered(self) -> None:
        """Go on with the next request, as the present one has been answered."""
        if self.closing:
            return
        self._answering = self.writing = False
        self.active = self._loop.time()
        if self.holding:
            self.holding = False
            self.transport.resume_reading()
            self._advance()
        if self._ended and not self._answering:
            self.close()

    # What the transport says.

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
        """Return whether to keep the connection, for the answer to a request that came whole."""
        self.flush()
        self._ended = self._answering and self._reading is None and not self.closing
        return self._ended

    def pause_writing(self) -> None:
        self.server.pause_writing()
        self._must_take()

    def resume_writing(self) -> None:
        if not self.closing:  # else all that is left must be taken in time
            self._taking = _cancelled(self._taking)
        self.server.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._limits.open.discard(self)
        self.server.connection_lost(exc)
        self._arriving = _cancelled(self._arriving)
        self._taking = _cancelled(self._taking)
        self._buffer.clear()
        del self._parser, self.server  # they refer to this, which would be freed much later

    # What is read.

    def _advance(self) -> None:
        """Give uvicorn what has come: at most to the end of one request."""
        while self._buffer and not self.closing:
            if self._reading is None:
                if self._answering:
                    self.holding = True
                    self.transport.pause_reading()
                    return
                self._reading = "head"
            piece = self._piece()
            if len(piece) > HEAD_MOST and self._reading == "head":
                self._refuse(Refusal("head", f"a request's head may have {HEAD_MOST:,} bytes"))
                return
            if not piece or not self._understood(piece):
                break
            self.server.data_received(piece)
        if self._reading is not None and self._arriving is None and not self.closing:
            self._must_arrive()

    def _piece(self) -> bytes:
        """Take bytes off the buffer that end with the present head or body, or before it.

        A head is taken whole, or when it is too long.
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
                size = max(size - len(_END) + 1, 0)  # the rest may begin the end
            elif size <= HEAD_MOST:
                size = 0
        piece = bytes(self._buffer[:size])
        del self._buffer[:size]
        return _OFFER.sub(b"ignored", piece) if self._reading == "head" else piece

    def _understood(self, piece: bytes) -> bool:
        """Read a piece, and return whether uvicorn may have it. A request that makes no sense is refused."""
        if self._reading == "body":
            self._body += len(piece)
            if not self._answering and self._body > self._limits.body:
                self.close()  # it was answered without its body, which is too large
                return False
        else:
            length = _LENGTH.search(piece)
            self._left = int(length[1][:19]) if length else None
        try:
            self._parser.feed_data(piece)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._refuse(Refusal("malformed", "this is not a request of HTTP/1.1"))
            return False
        return True

    def on_headers_complete(self) -> None:
        """Note that a head has come (httptools calls this)."""
        self._arriving = _cancelled(self._arriving)
        self._reading = "body"
        self._body = 0
        self._answering = self.used = True

    def on_message_complete(self) -> None:
        """Note that a request has come whole (httptools calls this)."""
        self._arriving = _cancelled(self._arriving)
        self._reading = None

    # What takes too long, or is refused.

    def _must_arrive(self) -> None:
        self._arriving = self._loop.call_later(self._limits.seconds, self._too_slow)

    def _must_take(self) -> None:
        if self._taking is None:
            self._taking = self._loop.call_later(self._limits.seconds, self.transport.abort)

    def _too_slow(self) -> None:
        what = f"a request's {self._reading or 'head'} must arrive within {self._limits.seconds:g} seconds"
        self._refuse(Refusal("slow", what))

    def _refuse(self, refusal: Refusal) -> None:
        """Say why no more is read, unless the request is answered already, and close the connection."""
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
    """Cancel a timer, and return what stands for none."""
    if timer is not None:
        timer.cancel()
    return None
