"""Admit a request or refuse it: its host, its site, its key, and the rate of its key."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Iterable

from accrual.service.keys import EVERYONE, NOBODY, Key, KeyRing
from accrual.service.refusals import Refusal, try_later
from accrual.service.settings import Settings

Headers = Iterable[tuple[bytes, bytes]]

OPEN = frozenset({"/v1/openapi.json"})  # needs no key, like every path outside of `_WITH_KEY`
_WITH_KEY = ("/v1/", "/metrics")
_PROBES = frozenset({"/healthz", "/readyz", "/metrics"})  # are asked for under any address of the machine
_BEARER = b"bearer "
_CHALLENGE = [(b"www-authenticate", b'Bearer realm="accrual"')]
_OTHER_SITES = frozenset({b"cross-site", b"same-site"})


class RequestHead:
    """The headers of a request that decide whether it is admitted and how it is read."""

    __slots__ = ("authorization", "host", "length", "media", "origin", "site")

    def __init__(self, headers: Headers) -> None:
        host = authorization = None
        self.length = self.media = self.origin = self.site = b""
        for name, value in headers:
            if name == b"host":
                if host is not None:
                    raise Refusal("malformed", "there are two Host headers; send one")
                host = value
            elif name == b"authorization":
                if authorization is not None:
                    raise Refusal("malformed", "there are two Authorization headers; send one")
                authorization = value
            elif name == b"content-type":
                self.media = value
            elif name == b"content-length":
                self.length = value
            elif name == b"sec-fetch-site":
                self.site = value
            elif name == b"origin":
                self.origin = value
        self.host = host or b""
        self.authorization = authorization or b""


class Admission:
    """Admit requests, or refuse them."""

    def __init__(self, settings: Settings, ring: KeyRing) -> None:
        self._names = settings.names
        self._known: set[bytes] = set()  # Host headers that were good before
        self._ring = ring
        self._rate = settings.rate
        self._buckets: dict[str, tuple[float, float]] = {}  # by key: requests left, and at what time

    @property
    def keys_required(self) -> bool:
        """Whether a request needs a key now."""
        return self._ring.required

    def admit(self, path: str, head: RequestHead) -> Key:
        """Return the key of a request, or refuse the request."""
        if head.host not in self._known and path not in _PROBES:
            self._check_host(head.host)
        if not path.startswith(_WITH_KEY) or path in OPEN:
            return NOBODY if self._ring.required else EVERYONE
        # Old browsers send no Sec-Fetch-Site, but an Origin if the page comes from another host.
        if head.site in _OTHER_SITES or (head.origin and head.origin.partition(b"://")[2] != head.host):
            raise Refusal("cross-site", "a browser sent this request for a page of another site")
        if self._ring.stale:  # a key may have been revoked since
            raise try_later("store", "the keys cannot be read now; try again")
        key = self._key(head.authorization) if self._ring.required else EVERYONE
        if self._rate:
            self._count(key.id)
        return key

    def _check_host(self, host: bytes) -> None:
        text = host.decode("latin-1").lower()
        name, colon, port = text.rpartition(":")
        if not colon or not port.isdecimal():
            name = text
        if name not in self._names and not _is_address(name):
            raise Refusal(
                "host", f"{name[:100]!r} is not a name of this service; its `hosts` setting lists the names"
            )
        if len(self._known) < len(self._names) * 4:
            self._known.add(host)

    def _key(self, authorization: bytes) -> Key:
        if not authorization:
            raise Refusal("no-key", "send the header Authorization: Bearer KEY", _CHALLENGE)
        if authorization[: len(_BEARER)].lower() != _BEARER:
            raise Refusal("bad-key", "the Authorization header must read: Bearer KEY", _CHALLENGE)
        key = self._ring.find(authorization[len(_BEARER) :].strip().decode("latin-1"))
        if key is None:
            raise Refusal("bad-key", "the key is unknown, or has been revoked", _CHALLENGE)
        return key

    def _count(self, id_: str) -> None:
        """Count a request against its key's rate, with a token bucket that holds the requests of a second."""
        now = time.monotonic()
        left, when = self._buckets.get(id_, (self._rate, now))
        left = min(left + (now - when) * self._rate, max(self._rate, 1.0))
        if left < 1.0:
            raise try_later("rate", f"this key may send {self._rate:g} requests a second")
        self._buckets[id_] = (left - 1.0, now)


def _is_address(name: str) -> bool:
    """Return whether a Host is an IP address: a page of another site cannot make a browser send one."""
    bare = name[1:-1] if name.startswith("[") and name.endswith("]") else name
    try:
        ipaddress.ip_address(bare)
    except ValueError:
        return False
    return True


def require_scope(key: Key, scope: str) -> None:
    """Refuse a request whose key lacks a scope."""
    if scope not in key.scopes:
        has = ", ".join(sorted(key.scopes))
        raise Refusal("scope", f"this needs a key with the scope {scope}; the key has {has}")
