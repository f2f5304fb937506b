"""The client's errors: what cannot be sent, and what the service refuses."""

from __future__ import annotations

import json
from typing import Any


class InputError(ValueError):
    """The caller gave something that cannot be sent. The message says what would be right."""


class ServiceError(Exception):
    """The service refused, or could not be reached.

    Attributes
    ----------
    status : int
        The HTTP status; 0 if there was no answer.
    kind : str
        What was wrong, in a word of the service's table of problems. It is `unreachable` if there was no
        answer, `unreadable` if the answer did not come from accrual's service, and `redirected` if it named
        another address.
    """

    def __init__(self, status: int, kind: str, detail: str) -> None:
        super().__init__(f"{detail} ({kind}, {status})" if status else detail)
        self.status = status
        self.kind = kind


def error_of(status: int, body: bytes) -> ServiceError:
    """Return the error that a problem document describes."""
    if 300 <= status < 400:
        detail = "the answer names another address, which is not followed"
        return ServiceError(status, "redirected", detail)
    try:
        problem: Any = json.loads(body)
        kind = str(problem["type"]).rpartition(":")[2]
        return ServiceError(status, kind, str(problem["detail"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return ServiceError(status, "unreadable", "the answer is not a problem document")


def whole(name: str, value: Any, least: int, most: int | None = None) -> int:
    """Return `value` as an int within [least, most], or raise an `InputError` that names it.

    Examples
    --------
    >>> whole("n", 3, 1, 1000)
    3
    """
    limit = f"from {least} to {most}" if most is not None else f"of at least {least}"
    try:
        number = int(value)
        exact = number == value and not isinstance(value, bool)
    except (TypeError, ValueError, OverflowError):
        exact = False
    if not exact or number < least or (most is not None and number > most):
        raise InputError(f"{name} must be a whole number {limit}, not {value!r}")
    return number
