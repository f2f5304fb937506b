"""Refusals of requests, as problem documents (RFC 9457)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

MEDIA_TYPE = "application/problem+json"


class ErrorKind(NamedTuple):
    """A way in which a request can fail."""

    status: int
    title: str


# The last word of a problem's `type`, for programs; its status and title.
KINDS: dict[str, ErrorKind] = {
    "malformed": ErrorKind(400, "The request cannot be read"),
    "no-key": ErrorKind(401, "A key is needed"),
    "bad-key": ErrorKind(401, "The key is unknown or has ended"),
    "scope": ErrorKind(403, "The key does not allow this"),
    "cross-site": ErrorKind(403, "Pages of other sites may not call the service"),
    "not-found": ErrorKind(404, "Nothing has this address"),
    "unknown-bandit": ErrorKind(404, "There is no such bandit"),
    "unknown-decision": ErrorKind(404, "There is no such decision"),
    "unknown-arm": ErrorKind(404, "There is no such arm"),
    "method": ErrorKind(405, "The address does not take this method"),
    "slow": ErrorKind(408, "The request took too long to arrive"),
    "conflict": ErrorKind(409, "The request conflicts with what is stored"),
    "not-served": ErrorKind(409, "The bandit cannot be served"),
    "archived": ErrorKind(409, "The bandit is archived"),
    "no-arms": ErrorKind(409, "Every arm has retired"),
    "too-large": ErrorKind(413, "The request is too large"),
    "media-type": ErrorKind(415, "The body must be JSON"),
    "host": ErrorKind(421, "The Host header does not name this service"),
    "invalid": ErrorKind(422, "The request is not valid"),
    "future": ErrorKind(422, "The piece's age is in the future"),
    "early": ErrorKind(422, "The piece is older than its decision"),
    "rate": ErrorKind(429, "Too many requests"),
    "head": ErrorKind(431, "The request's head is too large"),
    "internal": ErrorKind(500, "The service has a fault"),
    "busy": ErrorKind(503, "Too much is waiting to be stored"),
    "store": ErrorKind(503, "The database cannot be used now"),
    "stopping": ErrorKind(503, "The service is stopping"),
}


class ProblemDocument(msgspec.Struct):
    """A problem document: the answer to a refused request."""

    type: str
    title: str
    status: int
    detail: str


class Refusal(Exception):
    """The reason why a request is refused.

    Parameters
    ----------
    kind : str
        A key of `KINDS`.
    detail : str
        What was wrong, and what would be right.
    """

    def __init__(self, kind: str, detail: str, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        super().__init__(detail)
        self.kind = kind
        self.status = KINDS[kind].status
        self.headers = list(headers)

    @property
    def body(self) -> bytes:
        """The problem document, as JSON."""
        kind = KINDS[self.kind]
        return msgspec.json.encode(
            ProblemDocument(f"urn:accrual:problem:{self.kind}", kind.title, kind.status, str(self))
        )


def try_later(kind: str, detail: str) -> Refusal:
    """Return a refusal that asks to try again after a second."""
    return Refusal(kind, detail, [(b"retry-after", b"1")])
