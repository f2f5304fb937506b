"""Uvicorn's handling of a connection, with limits that it lacks: on size, time and number."""

from __future__ import annotations

from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable
from typing import Any, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from accrual.service.refusals import MEDIA_TYPE, Refusal, try_later

HEAD_MOST = 32_768  # bytes
_TOGETHER = 65_536  # bytes
_FRAMING = (b"content-length", b"transfer-encoding")  # what says where a body ends


class JoiningTransport:
    """A transport that sends all that is written in one turn of the loop together: a head with its body.

    Once it is closed, the other end has `seconds` to take what is left.
    """

    def __init__(self, transport: Any, loop: AbstractEventLoop, seconds: float) -> None:
        self._transport = transport
        self._loop = loop
        self._seconds = seconds
        self._parts: list[bytes] = []
        self._size = 0
        self.ending: TimerHandle | None = None

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
        if self.ending is None:
            self.ending = self._loop.call_later(self._seconds, self._transport.abort)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class _Deadline:
    """A job that runs after `seconds`, unless it is stopped before."""

    def __init__(self, loop: AbstractEventLoop, seconds: float) -> None:
        self._loop = loop
        self._seconds = seconds
        self._timer: TimerHandle | None = None

    @property
    def running(self) -> bool:
        """Whether the job is still to run."""
        return self._timer is not None

    def start(self, job: Callable[[], None]) -> None:
        """Run `job` after the time, in place of the job of before."""
        self.stop()
        self._timer = self._loop.call_later(self._seconds, self._run, job)

    def stop(self) -> None:
        """Do not run the job."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _run(self, job: Callable[[], None]) -> None:
        self._timer = None
        job()


class LimitedProtocol(HttpToolsProtocol):
    """A connection, cut off when the client sends half a request or an endless head, or does not read.

    A request may offer another protocol (`Upgrade: h2c`). There is none, so the offer is ignored, as
    RFC 9110 has it: the request is read to the end of its body and answered, and so are those behind it.

    Parameters
    ----------
    seconds : float
        A request's head, and then its body, must arrive within this; and what is answered must be taken.
    address_most : int
        How many connections one address may have open.
    """

    _reading: str | None = "head"  # or the body, or nothing: all has come
    _head = 0  # bytes of the present head, as far as it has been understood
    _size = 0  # bytes of the present packet
    _others = False  # whether some of it belongs to an earlier request
    _packets = 0  # bytes of the packets that had the present head alone
    _ended = False  # whether the other end has said all, and may still listen
    _replaying = False  # whether the parser is being told again where a body ends
    _refusal: Refusal | None = None  # to be sent when the requests before it have been answered

    def __init__(self, *given: Any, seconds: float, address_most: int, **named: Any) -> None:
        super().__init__(*given, **named)
        self._seconds = seconds
        self._address_most = address_most
        self._most = self.limit_concurrency
        self.limit_concurrency = None  # it is seen to here, before a request is read
        self._active = self.loop.time()
        self._arriving = _Deadline(self.loop, seconds)  # for the rest of a head or body
        self._writing = _Deadline(self.loop, seconds)  # for the client to read what was sent

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.transport = cast(Any, JoiningTransport(transport, self.loop, self._seconds))
        same = [one for one in self.connections if self.client and _client(one) == self.client[0]]
        if len(same) > self._address_most:
            self._refuse(
                try_later("busy", f"this address has {self._address_most:,} connections open; try again")
            )
        elif self._most is not None and len(self.connections) > self._most and not _make_room(self):
            self._refuse(try_later("busy", f"{self._most:,} connections are open; try again"))
        else:
            self._arriving.start(self._too_slow)

    @property
    def idle(self) -> bool:
        """Whether there is no request to be answered."""
        return not self.transport.is_closing() and self._answered

    @property
    def _answered(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def data_received(self, data: bytes) -> None:
        if self._stopped:  # it has been refused, and is not read to the end
            return
        self._active = self.loop.time()
        self._unset_keepalive_if_required()
        self._size = len(data)
        self._others = self._reading == "body"
        self._feed(data)
        self._packets += self._size
        if self._reading is None or self._stopped:
            return
        if self._reading == "head" and self._packets > HEAD_MOST:
            self._refuse(_head_too_large())
        elif not self._arriving.running:
            self._arriving.start(self._too_slow)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Return whether to keep the connection, for the answers to requests that came whole."""
        self._ended = self._reading != "body" and not self._answered
        return self._ended

    @property
    def _stopped(self) -> bool:
        """Return whether nothing more is read."""
        return self._refusal is not None or self.transport.is_closing()

    def _feed(self, data: bytes) -> None:
        left = memoryview(data)
        while True:
            try:
                self.parser.feed_data(left)
                return
            except httptools.HttpParserUpgrade as offer:
                # The parser takes what follows the head for the other protocol. A new one goes on from here,
                # once it has been told how the body is framed.
                left = left[offer.args[0] :]
                framing = [name + b": " + value + b"\r\n" for name, value in self.headers if name in _FRAMING]
                self.parser = httptools.HttpRequestParser(self)
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
                self._replaying = True
                self.parser.feed_data(b"POST / HTTP/1.1\r\n" + b"".join(framing) + b"\r\n")
                self._replaying = False
            except httptools.HttpParserError:
                self._refuse(Refusal("malformed", "this is not a request of HTTP/1.1"))
                return

    # What the parser finds.

    def on_message_begin(self) -> None:
        if not self._replaying:
            self._reading = "head"
            self._head = 0
            self._packets = -self._size if self._others else 0
            super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        if not self._replaying:
            self._head += len(url)
            super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._replaying:
            self._head += len(name) + len(value) + 4
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self._replaying or self._stopped:
            return
        self._arriving.stop()
        if self._head > HEAD_MOST:
            self._refuse(_head_too_large())
            return
        super().on_headers_complete()  # which fails where the address makes no sense
        self._reading = "body"

    def on_body(self, body: bytes) -> None:
        if not self._stopped:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if self._stopped or self.parser.should_upgrade():  # then the body is still to be read
            return
        self._reading = None
        self._others = True
        self._arriving.stop()
        super().on_message_complete()

    # What becomes of the answers.

    def on_response_complete(self) -> None:
        self._active = self.loop.time()
        last = not self.pipeline
        super().on_response_complete()
        if last and self._refusal is not None:
            _send(self.transport, self._refusal)
        elif last and self._ended:
            self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._writing.start(self.transport.abort)

    def resume_writing(self) -> None:
        self._writing.stop()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._arriving.stop()
        self._writing.stop()
        super().connection_lost(exc)
        ending = cast(Any, self.transport).ending
        if ending is not None:
            ending.cancel()

    def _too_slow(self) -> None:
        if self._reading is not None:
            what = f"a request's {self._reading} must arrive within {self._seconds:g} seconds"
            self._refuse(Refusal("slow", what))

    def _refuse(self, refusal: Refusal) -> None:
        """Read no more, and say why, after the requests before it have been answered."""
        if self._stopped:
            return
        self._arriving.stop()
        if self._reading == "body":
            if self.cycle.response_started:  # it was answered all the same
                self.transport.close()
                return
            if not self.pipeline:
                _send(self.transport, refusal)
                return
            self.pipeline.popleft()  # it is not to be answered, but those before it are
        elif self._answered:
            _send(self.transport, refusal)
            return
        self._refusal = refusal


def _send(transport: Any, refusal: Refusal) -> None:
    """Answer with a refusal, and close the connection."""
    body = refusal.body
    head = (
        f"HTTP/1.1 {refusal.status} Refused\r\ncontent-type: {MEDIA_TYPE}\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n"
    )
    more = b"".join(name + b": " + value + b"\r\n" for name, value in refusal.headers)
    transport.write(head.encode() + more + b"\r\n" + body)
    transport.close()


def _make_room(new: LimitedProtocol) -> bool:
    """Close a connection that waits for a request, for a new one; return False if none waits.

    First those that have sent no request yet, then the one that has waited longest.
    """
    others = [other for other in new.connections if isinstance(other, LimitedProtocol) and other is not new]
    idle = [other for other in others if other.idle]
    if not idle:
        return False
    min(idle, key=lambda other: (other.cycle is not None, other._active)).transport.close()
    return True


def _head_too_large() -> Refusal:
    return Refusal("head", f"a request's head may have {HEAD_MOST:,} bytes")


def _client(connection: Any) -> str | None:
    """Return the address at a connection's other end."""
    client = connection.client
    return client[0] if client else None
