"""JSON values as the dataclasses they were written from, or an error that names the field."""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from accrual.core.errors import InputError


def typed(kind: Any, value: Any, path: str, where: str = "") -> Any:
    """`value` as what a field is declared to be; `where` in the file at `path` it stands."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)

    def wrong(needed: str) -> InputError:
        return InputError(f"{path}: {where or 'it'} must be {needed}, not {repr(value)[:60]}")

    read: Callable[..., Any]
    if origin in {types.UnionType, typing.Union}:
        return None if value is None else typed(arguments[0], value, path, where)
    if is_dataclass(kind):
        if not isinstance(value, dict):
            raise wrong("an object")
        hints = typing.get_type_hints(kind)
        prefix = f"{where}." if where else ""
        for one in fields(kind):
            if one.name not in value:
                raise InputError(f"{path}: {prefix}{one.name} is missing")
        read = typing.cast(Callable[..., Any], kind)
        return read(
            **{f.name: typed(hints[f.name], value[f.name], path, prefix + f.name) for f in fields(kind)}
        )
    if origin in {Sequence, list}:
        if not isinstance(value, list):
            raise wrong("a list")
        return tuple(typed(arguments[0], one, path, f"{where}[{i}]") for i, one in enumerate(value))
    if origin in {Mapping, dict}:
        if not isinstance(value, dict):
            raise wrong("an object")
        return {key: typed(arguments[1], one, path, f"{where}.{key}") for key, one in value.items()}
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
