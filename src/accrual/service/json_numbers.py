"""Numbers in JSON: 174.0 is the whole number 174, as JSON Schema has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec


def json_reader(kind: Any) -> Callable[[bytes], Any]:
    """Read JSON as something of `kind`.

    Examples
    --------
    >>> json_reader(list[int])(b"[1, 174.0]")
    [1, 174]
    """
    decode = msgspec.json.Decoder(kind).decode

    def read(body: bytes) -> Any:
        try:
            return decode(body)
        except msgspec.ValidationError as error:  # which is rare, so what follows need not be fast
            try:
                found = _plain(msgspec.json.decode(body))
            except RecursionError:
                raise error from None
            return msgspec.convert(found, kind)

    return read


def whole(value: Any) -> Any:
    """A number without a fraction as a whole one; anything else as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _plain(found: Any) -> Any:
    if isinstance(found, list):
        return [_plain(one) for one in found]
    if isinstance(found, dict):
        return {name: _plain(one) for name, one in found.items()}
    return whole(found)
