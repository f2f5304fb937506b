"""What is answered when something is wrong: problem documents, as RFC 9457 has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

MEDIA_TYPE = "application/problem+json"


class Kind(NamedTuple):
    """A way in which a request can fail."""

    status: int
    title: str


# The names end a problem's `type`, and are what a program should go by.
KINDS: dict[str, Kind] = {
    "malformed": Kind(400, "The request cannot be read"),
    "no-key": Kind(401, "A key is needed"),
    "bad-key": Kind(401, "The key is not good"),
    "scope": Kind(403, "The key does not allow this"),
    "cross-site": Kind(403, "Pages of other sites may not call the service"),
    "not-found": Kind(404, "There is no such thing"),
    "unknown-bandit": Kind(404, "There is no such bandit"),
    "unknown-decision": Kind(404, "There is no such decision"),
    "unknown-arm": Kind(404, "There is no such arm"),
    "method": Kind(405, "This cannot be done here"),
    "slow": Kind(408, "The request took too long to arrive"),
    "conflict": Kind(409, "Something else is there already"),
    "not-served": Kind(409, "The bandit cannot be served"),
    "no-arms": Kind(409, "There is nothing to choose from"),
    "too-large": Kind(413, "The request is too large"),
    "media-type": Kind(415, "The body must be JSON"),
    "host": Kind(421, "The service has another name"),
    "invalid": Kind(422, "The request says something that cannot be"),
    "future": Kind(422, "The piece's age lies in the future"),
    "early": Kind(422, "The piece is older than its decision"),
    "rate": Kind(429, "Too many requests"),
    "head": Kind(431, "The request's head is too large"),
    "internal": Kind(500, "Something is wrong with the service"),
    "busy": Kind(503, "Too much is waiting to be stored"),
    "store": Kind(503, "The database cannot be used now"),
    "stopping": Kind(503, "The service is stopping"),
}


class Problem(msgspec.Struct):
    """The document."""

    type: str
    title: str
    status: int
    detail: str


class Refusal(Exception):
    """Why a request is refused.

    Parameters
    ----------
    kind : str
        A key of `KINDS`.
    detail : str
        What was wrong, and what would be right.
    headers : sequence of pairs of bytes
    """

    def __init__(self, kind: str, detail: str, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        super().__init__(detail)
        self.kind = kind
        self.status = KINDS[kind].status
        self.headers = list(headers)

    @property
    def body(self) -> bytes:
        """The document, as JSON."""
        kind = KINDS[self.kind]
        return msgspec.json.encode(
            Problem(f"urn:accrual:problem:{self.kind}", kind.title, kind.status, str(self))
        )


def later(kind: str, detail: str, seconds: int = 1) -> Refusal:
    """A refusal that asks to try again after some seconds."""
    return Refusal(kind, detail, [(b"retry-after", str(seconds).encode())])
