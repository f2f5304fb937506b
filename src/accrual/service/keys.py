"""Keys: random texts with scopes. The service keeps only their digests."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Iterable
from typing import NamedTuple

from accrual.core.errors import InputError, unknown
from accrual.store.address import parse
from accrual.store.backends import KeyRow, KeyTable, backend_of, make_tables, open_keys, schema_version

SCOPES = ("read", "write", "admin")
NAME_MOST = 100
STALE = 10.0  # seconds after which the keys last read are no longer trusted

_KEY = re.compile(r"acc_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_NOBODY = hashlib.sha256(b"nobody").digest()


class Key(NamedTuple):
    """The key of a request: its id and its scopes."""

    id: str
    scopes: frozenset[str]


EVERYONE = Key("", frozenset(SCOPES))  # of every request, if the service needs no keys
NOBODY = Key("", frozenset())  # of a request to an address that needs no key, if the service needs keys


def ready_keys(url: str) -> KeyTable:
    """Open the keys at `url`. A SQLite file that is not there yet is made first."""
    if is_new(url):
        make_tables(url)
    return open_keys(url)


def is_new(url: str) -> bool:
    """Return whether `url` is a database that would be made when it is first opened."""
    return backend_of(parse(url)).makes_itself and schema_version(url) is None


def create_key_command(url: str) -> str:
    """Return the command that makes the first key of a service, which may do everything."""
    return f"accrual keys create --store {parse(url)} {' '.join(f'--scope {scope}' for scope in SCOPES)}"


def new_key(name: str, scopes: Iterable[str], now: float) -> tuple[KeyRow, str]:
    """Make a key: return the row to store, and the text to show once.

    Examples
    --------
    >>> row, text = new_key("shop", ["write"], now=0.0)
    >>> text.startswith(f"acc_{row.id}_"), len(text)
    (True, 60)
    """
    wanted = frozenset(scopes)
    if not wanted:
        raise InputError(f"a key needs a scope: --scope {' or '.join(SCOPES)}")
    for scope in wanted:
        if scope not in SCOPES:
            raise unknown("scope", scope, SCOPES)
    if not (0 < len(name) <= NAME_MOST and name.isprintable()):
        raise InputError(f"a key's name must have 1 to {NAME_MOST} printable characters")
    id_ = secrets.token_hex(6)
    text = f"acc_{id_}_{secrets.token_urlsafe(32)}"
    return KeyRow(id_, name, wanted, _digest(text), now, None), text


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


class KeyRing:
    """The keys as last read. After 10 seconds without a reading the ring is `stale`.

    Parameters
    ----------
    required : bool
        Whether requests need a key even if none has ever been made.
    """

    def __init__(self, table: KeyTable, required: bool) -> None:
        self._table = table
        self._always = required
        self._rows: dict[str, KeyRow] = {}
        self.refresh()

    def refresh(self) -> None:
        """Read the keys from the database."""
        begun = time.monotonic()
        self._rows = {row.id: row for row in self._table.all()}
        self._read = begun

    def close(self) -> None:
        """Close the database."""
        self._table.close()

    @property
    def stale(self) -> bool:
        """Whether the keys were read so long ago that one may have been revoked since."""
        return time.monotonic() - self._read > STALE

    @property
    def required(self) -> bool:
        """Whether a request needs a key. It does from the first key on, even if all keys have ended."""
        return self._always or bool(self._rows)

    @property
    def good(self) -> int:
        """How many keys have not ended."""
        now = time.time()
        return sum(row.ends is None or now < row.ends for row in self._rows.values())

    def find(self, text: str) -> Key | None:
        """Return the key with this text; None if there is none or it has ended."""
        parts = _KEY.fullmatch(text)
        row = self._rows.get(parts[1]) if parts else None
        # An unknown id takes as long as a wrong secret.
        same = hmac.compare_digest(_digest(text), row.digest if row else _NOBODY)
        if row is None or not same or (row.ends is not None and time.time() >= row.ends):
            return None
        return Key(row.id, row.scopes)
