"""Read answers as the types of `results`. Fields that a newer service adds are left out."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")


def read(kind: type[T], answer: Any) -> T:
    """Make a value of `kind` from an answer's JSON.

    Examples
    --------
    >>> from accrual.client.results import Decision
    >>> read(Decision, {"id": 0, "arm": "jazz", "at": 1.0, "propensity": None, "new": True})
    Decision(id=0, arm='jazz', at=1.0, propensity=None)
    """
    wanted: Any = kind
    found: T = _reader(wanted)(answer)
    return found


@cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    """Return a function that reads JSON as a value of `kind`: a class of `results`, or what is in one."""
    parts = [part for part in get_args(kind) if part is not NoneType]
    if hasattr(kind, "__dataclass_fields__"):
        fields = {name: _reader(hint) for name, hint in get_type_hints(kind).items()}
        return lambda found: kind(**{name: fields[name](found[name]) for name in fields if name in found})
    if get_origin(kind) is UnionType:
        return _union_reader(parts)
    if get_origin(kind) is list:
        part = _reader(parts[0])
        return lambda found: [part(one) for one in found]
    if get_origin(kind) is dict:
        part = _reader(parts[1])
        return lambda found: {name: part(one) for name, one in found.items()}
    if get_origin(kind) is tuple:
        each = [_reader(part) for part in get_args(kind)]
        return lambda found: tuple(part(one) for part, one in zip(each, found, strict=True))
    return lambda found: found


def _union_reader(parts: list[Any]) -> Callable[[Any], Any]:
    """Return a function that reads JSON as one of several types: classes differ in their `kind`."""
    if len(parts) == 1:
        part = _reader(parts[0])
        return lambda found: None if found is None else part(found)
    if not all(hasattr(part, "__dataclass_fields__") for part in parts):  # text and numbers
        return lambda found: found
    kinds = {name: _reader(part) for part in parts for name in get_args(get_type_hints(part)["kind"])}
    return lambda found: kinds[found["kind"]](found)
