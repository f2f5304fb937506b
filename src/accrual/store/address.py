"""Addresses of databases: `sqlite:///plays.db`, `postgresql://user@host/name`."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

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


# An address, in which a character that has a meaning is written as % and two digits in names and passwords.
_HOST = r"(\[[^]/?#@]*\]|[^]:/?#@[,]*)(:\d+)?"
_POSTGRES = re.compile(
    r"(?P<scheme>postgres(ql)?://)"
    r"((?P<user>[^:/?#@\[\]]*)(:[^/?#@\[\]]*)?@)?"
    rf"(?P<rest>{_HOST}(,{_HOST})*"
    r"(/[^?#@]*)?"
    r"(\?[^=&#@]+=[^&#]*(&[^=&#@]+=[^&#]*)*)?)"
)
_NO_CHARACTER = re.compile(r"%(?!(?!00)[0-9A-Fa-f]{2})")  # libpq's complaint would show the password
_SECRET = re.compile(r"(?i)((?:^|[?&])[^=&]*pass[^=&]*=)[^&]*")


def _postgres_address(url: str) -> Address:
    """Return the address, unless it can be read in two ways: then a part of a password might be shown."""
    parts = _POSTGRES.fullmatch(url)
    if not parts or _NO_CHARACTER.search(url):
        raise InputError(
            f"{_without_secrets(url)} cannot be read: write postgresql://USER:PASSWORD@HOST:PORT/NAME, and "
            "in a name or password %25 for %, %40 for @, %2F for /, %3F for ?, %23 for #, "
            "%5B for [, %5D for ]"
        )
    who = "" if parts["user"] is None else f"{parts['user']}@"
    return Address("postgresql", url, parts["scheme"] + who + _SECRET.sub(r"\1...", parts["rest"]))


def _without_secrets(url: str) -> str:
    """Return what can be shown of an address that cannot be read: its scheme, and what follows the last @."""
    scheme, rest = re.fullmatch(r"(\w*:?/*)(.*)", url, re.DOTALL).groups()  # type: ignore[union-attr]
    rest = re.sub(r".*@", "...@", rest, flags=re.DOTALL) if "@" in rest else re.sub(r":[^/?]*", ":...", rest)
    return scheme + _SECRET.sub(r"\1...", rest)


def parse(url: str) -> Address:
    """Return the address that `url` means.

    Examples
    --------
    >>> parse("sqlite:///plays.db")
    Address(scheme='sqlite', place='plays.db', shown='sqlite:///plays.db')
    >>> print(parse("postgresql://ann:secret@db.example/plays"))
    postgresql://ann@db.example/plays
    >>> print(parse("postgresql://ann:a%2Fb@db.example/plays?user=ann&password=secret&sslpassword=key"))
    postgresql://ann@db.example/plays?user=ann&password=...&sslpassword=...
    """
    if url.startswith(_SQLITE) and len(url) > len(_SQLITE):
        place = url[len(_SQLITE) :]
        if place.startswith(":memory:"):
            raise InputError("a store in memory would keep nothing; leave `store` out instead")
        return sqlite_address(place)
    if url.startswith(("postgresql://", "postgres://")):
        return _postgres_address(url)
    shown = _without_secrets(url)
    raise InputError(
        f"unknown database {shown!r}; write sqlite:///FILE (four slashes for a path from the root) "
        "or postgresql://USER@HOST/NAME"
    )
