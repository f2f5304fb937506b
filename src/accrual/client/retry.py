"""When a call is sent again, and the error for one that failed."""

from __future__ import annotations

import json
import random
from typing import Any

AGAIN = frozenset({408, 429, 502, 503, 504})
_FIRST, _LONGEST = 0.1, 5.0  # seconds
_PATIENCE = 30.0  # the most that a service may ask to wait


class ServiceError(Exception):
    """The service refused, or could not be reached.

    Attributes
    ----------
    status : int
        The HTTP status; 0 where there was no answer.
    kind : str
        What was wrong, in a word, as in the service's table of problems.
    """

    def __init__(self, status: int, kind: str, detail: str) -> None:
        super().__init__(f"{detail} ({kind}, {status})" if status else detail)
        self.status = status
        self.kind = kind


def pause(attempt: int, retry_after: str | None) -> float:
    """Return the seconds to wait after a failed attempt: what the service asked for, or a random time that
    grows with each attempt (the first is 1).
    """
    if retry_after is not None and retry_after.isdecimal():
        return min(float(retry_after), _PATIENCE)
    return random.uniform(0.0, min(_LONGEST, _FIRST * 2.0**attempt))


def error_of(status: int, body: bytes) -> ServiceError:
    """Make the error that a problem document describes."""
    try:
        problem: Any = json.loads(body)
        kind = str(problem["type"]).rpartition(":")[2]
        return ServiceError(status, kind, str(problem["detail"]))
    except (ValueError, KeyError, TypeError):
        return ServiceError(status, "unreadable", "the answer is not a problem document")
