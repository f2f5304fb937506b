"""Errors that say in one line what is wrong and what would be right."""

from __future__ import annotations

import difflib
import importlib
import math
from collections.abc import Iterable
from types import ModuleType
from typing import Any


class InputError(ValueError):
    """Raised for wrong input; the message says what would be right."""


class MissingExtra(ImportError):
    """Raised if an optional dependency is not installed; the message names the install command."""


def unknown(what: str, given: object, options: Iterable[str], meant: str | None = None) -> InputError:
    """Return the error for a name that is not among `options`; it suggests the one meant, or the nearest.

    Examples
    --------
    >>> unknown("spread", "begn", ["begin", "middle", "end"])
    InputError("unknown spread 'begn'; did you mean 'begin'? (one of: begin, middle, end)")
    """
    names = list(options)
    if not names:
        return InputError(f"unknown {what} {given!r}: there is no {what}")
    spellings = {name.lower(): name for name in reversed(names)}
    near = difflib.get_close_matches(str(given).lower(), spellings, n=1, cutoff=0.5)
    likely = meant if meant in names else next((spellings[one] for one in near), None)
    hint = f"; did you mean {likely!r}?" if likely is not None else ""
    return InputError(f"unknown {what} {given!r}{hint} (one of: {', '.join(names)})")


def only(what: str, given: Iterable[str], options: Iterable[str]) -> None:
    """Refuse the first name in `given` that is not among `options`.

    Examples
    --------
    >>> only("option", ["seed"], ["seed", "clock", "skew"])
    >>> only("option", ["seed", "cloc"], ["seed", "clock", "skew"])
    Traceback (most recent call last):
        ...
    accrual.core.errors.InputError: unknown option 'cloc'; did you mean 'clock'? (one of: seed, clock, skew)
    """
    names = list(options)
    for name in given:
        if name not in names:
            raise unknown(what, name, names)


def need(module: str, extra: str) -> ModuleType:
    """Import an optional module, or raise `MissingExtra` that names the extra to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.split(".", maxsplit=1)[0]
        raise MissingExtra(
            f"this needs {package}, which is not installed: pip install 'accrual[{extra}]'"
        ) from error


def as_number(value: Any) -> float:
    """Return a number as a float, and NaN for all else: text, and True and False, which are no numbers.

    Examples
    --------
    >>> as_number(3), as_number(True), as_number("3"), as_number(None)
    (3.0, nan, nan, nan)
    """
    if type(value) is float:  # the common case, fast
        return value
    try:
        if isinstance(value, bool | str | bytes) or getattr(value, "dtype", None) == "bool":
            return math.nan
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def positive(name: str, value: Any) -> float:
    """Return `value` as a float above 0, or raise an `InputError` that names it."""
    if not 0.0 < as_number(value) < math.inf:
        raise InputError(f"{name} must be a positive number, not {value!r}")
    return float(value)


def not_negative(name: str, value: Any) -> float:
    """Return `value` as a float of 0 or more, or raise an `InputError` that names it."""
    if not 0.0 <= as_number(value) < math.inf:
        raise InputError(f"{name} must be 0 or more, not {value!r}")
    return float(value)


def flag(name: str, value: Any) -> bool:
    """Return `value` if it is True or False, or raise an `InputError` that names it."""
    if not isinstance(value, bool):
        raise InputError(f"{name} must be True or False, not {value!r}")
    return value


def whole(name: str, value: Any, least: int, most: int | None = None) -> int:
    """Return `value` as an int within [least, most], or raise an `InputError` that names it."""
    limit = f"from {least} to {most}" if most is not None else f"of at least {least}"
    if not as_number(value).is_integer() or not least <= int(value) <= (math.inf if most is None else most):
        raise InputError(f"{name} must be a whole number {limit}, not {value!r}")
    return int(value)


def divides(name: str, value: int, window: int) -> int:
    """Return `window // value`, or raise an `InputError` that names the divisors nearby.

    Examples
    --------
    >>> divides("alpha", 20, 100)
    5
    """
    if window % value:
        divisors = [d for d in range(1, window + 1) if window % d == 0]
        near = [
            max((d for d in divisors if d < value), default=0),
            min((d for d in divisors if d > value), default=0),
        ]
        shown = " and ".join(str(d) for d in near if d)
        raise InputError(
            f"{name} must divide the window: {value} does not divide {window} (nearest: {shown})"
        )
    return window // value
