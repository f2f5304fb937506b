"""Reading a request's body, counted as it comes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from accrual.service.refusals import Refusal

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Scope = MutableMapping[str, Any]

_CLOSE = [(b"connection", b"close")]  # the rest of the body is not read, so no other request can follow


class ClientGone(Exception):
    """The client closed the connection before its request was complete."""


async def read_body(receive: Receive, length: bytes, most: int) -> bytes:
    """Return the whole body, or refuse it if it is larger than `most` bytes.

    `length` is what the Content-Length header says, if there is one; the bytes are counted all the same.
    """
    if len(length) > 18 or (length and int(length) > most):
        raise _too_large(most)
    message = await receive()
    body: bytes = message.get("body", b"")
    while message.get("more_body", False) and message["type"] == "http.request":
        if len(body) > most:
            raise _too_large(most)
        message = await receive()
        body += message.get("body", b"")
    if message["type"] != "http.request":
        raise ClientGone
    if len(body) > most:
        raise _too_large(most)
    return body


def _too_large(most: int) -> Refusal:
    return Refusal("too-large", f"a body may have {most:,} bytes", _CLOSE)
