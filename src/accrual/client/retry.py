"""When to send a call again."""

from __future__ import annotations

import random

AGAIN = frozenset({408, 429, 502, 503, 504})  # statuses of HTTP
_FIRST, _LONGEST = 0.1, 5.0  # seconds
_PATIENCE = 30.0  # the most that a service may ask to wait


def pause(attempt: int, retry_after: str | None) -> float:
    """Give the seconds to wait after attempt number `attempt`, which counts from 1.

    That is what the service asked for, or a random time whose limit doubles with each attempt.
    """
    if retry_after is not None and retry_after.isdecimal():
        return min(float(retry_after), _PATIENCE)
    return random.uniform(0.0, min(_LONGEST, _FIRST * 2.0**attempt))
