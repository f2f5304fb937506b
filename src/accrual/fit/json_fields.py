"""Read JSON values as the dataclasses they were written from, or name the field that is wrong.

msgspec would do this too, but it ignores unknown keys of dataclasses, and the dataclasses of
`accrual.fit.schema` must be there in an install that has no msgspec.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from accrual.core.errors import InputError, only


def read_fields(kind: Any, value: Any, path: str, where: str = "") -> Any:
    """Give `value` as what a field is declared to be; errors name the file's `path` and `where` in it."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)

    def wrong(needed: str) -> InputError:
        return InputError(f"{path}: {where or 'it'} must be {needed}, not {repr(value)[:60]}")

    read: Callable[..., Any]
    if origin in {types.UnionType, typing.Union}:
        return None if value is None else read_fields(arguments[0], value, path, where)
    if is_dataclass(kind):
        if not isinstance(value, dict):
            raise wrong("an object")
        hints = typing.get_type_hints(kind)
        prefix = f"{where}." if where else ""
        names = [one.name for one in fields(kind)]
        only(f"key of {where or 'the file'} in {path}", value, names)
        for name in names:
            if name not in value:
                raise InputError(f"{path}: {prefix}{name} is missing")
        read = typing.cast(Callable[..., Any], kind)
        return read(**{name: read_fields(hints[name], value[name], path, prefix + name) for name in names})
    if origin in {Sequence, list}:
        if not isinstance(value, list):
            raise wrong("a list")
        return tuple(read_fields(arguments[0], one, path, f"{where}[{i}]") for i, one in enumerate(value))
    if origin in {Mapping, dict}:
        if not isinstance(value, dict):
            raise wrong("an object")
        return {key: read_fields(arguments[1], one, path, f"{where}.{key}") for key, one in value.items()}
    return _array(arguments, value, wrong) if origin is np.ndarray else _scalar(kind, value, wrong)


def _scalar(kind: Any, value: Any, wrong: Callable[[str], InputError]) -> Any:
    if kind in {float, int} and (isinstance(value, bool) or not isinstance(value, (int, float))):
        raise wrong("a number")
    if kind is float and not _finite(value):
        raise wrong("a finite number")
    if kind is int and (not isinstance(value, int) or value < 0):
        raise wrong("a whole number of at least 0")
    if kind in {str, bool} and not isinstance(value, kind):
        raise wrong({str: "text", bool: "true or false"}[kind])
    return float(value) if kind is float else value


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _array(arguments: Any, value: Any, wrong: Any) -> Any:
    whole = "int" in str(arguments[1])
    try:
        array = np.array(value if isinstance(value, list) else None, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise wrong("a list of numbers") from None
    if array.ndim != 1 or not np.isfinite(array).all():
        raise wrong("a list of finite numbers")
    if whole and ((array < 0) | (array != np.floor(array)) | (array > 2**53)).any():
        raise wrong("a list of whole numbers of at least 0")
    return array.astype(np.int64) if whole else array
