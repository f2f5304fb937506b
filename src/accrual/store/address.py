"""Addresses of databases: `sqlite:///plays.db`, `postgresql://user@host/name`."""

from __future__ import annotations

import os
import re
from typing import NamedTuple
from urllib.parse import urlsplit

from accrual.core.errors import InputError

_SQLITE = "sqlite:///"


class Address(NamedTuple):
    """Where a database is."""

    scheme: str  # the name of its backend: "sqlite" or "postgresql"
    place: str  # a path, or the address as given
    shown: str  # the address without a password

    def __str__(self) -> str:
        return self.shown


def sqlite_address(path: str | os.PathLike[str]) -> Address:
    """Return the address of a SQLite file."""
    return Address("sqlite", os.fspath(path), _SQLITE + os.fspath(path))


def _without_secrets(url: str) -> str:
    """Return an address without its passwords, which may have any character up to the last @."""
    place, mark, query = url.partition("?")
    place = re.sub(r"(//[^:@]*):.*@", r"\1@", place)
    return place + mark + re.sub(r"(?i)((?:^|&)[^=&]*pass[^=&]*=)[^&]*", r"\1...", query)


def parse(url: str) -> Address:
    """Return the address that `url` means.

    Examples
    --------
    >>> parse("sqlite:///plays.db")
    Address(scheme='sqlite', place='plays.db', shown='sqlite:///plays.db')
    >>> print(parse("postgresql://ann:secret@db.example/plays"))
    postgresql://ann@db.example/plays
    >>> print(parse("postgresql://ann:a/b@c@db.example/plays?user=ann&password=secret&sslpassword=key"))
    postgresql://ann@db.example/plays?user=ann&password=...&sslpassword=...
    """
    if url.startswith(_SQLITE) and len(url) > len(_SQLITE):
        place = url[len(_SQLITE) :]
        if place.startswith(":memory:"):
            raise InputError("a store in memory would keep nothing; leave `store` out instead")
        return sqlite_address(place)
    if urlsplit(url).scheme in ("postgresql", "postgres"):
        return Address("postgresql", url, _without_secrets(url))
    shown = _without_secrets(url)
    raise InputError(
        f"unknown database {shown!r}; write sqlite:///FILE (four slashes for a path from the root) "
        "or postgresql://USER@HOST/NAME"
    )
