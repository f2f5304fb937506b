"""A bandit's clock. While the clock is wrong by a leap, nothing is stored.

Time in a log never goes back. If one event were stored with a time a year ahead, all later events would have
that time too, for a year.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta

from accrual.store.base import Store, StoreError

LEAP = 3600.0  # seconds: a clock may be corrected by up to this much while it is in use


def _elapsed() -> float:
    """Return the seconds since some moment, which nobody can set; on Linux they include sleep."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)


class SteadyClock:
    """Returns the time; raises `StoreError` if the time has moved by an hour more or less than has elapsed.

    Parameters
    ----------
    source : callable
        Returns the time in seconds since 1970.
    elapsed : callable
        Returns the seconds since some moment.

    Examples
    --------
    >>> now = [1000.0, 1001.0, 31_537_001.0, 1003.0]
    >>> clock = SteadyClock(lambda: now.pop(0), elapsed=lambda: 0.0)
    >>> clock(0.0), clock(0.0)
    (1000.0, 1001.0)
    >>> clock(0.0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    accrual.store.base.StoreError: the clock has leapt ahead by 365 days, 0:00:00; ...
    >>> clock(0.0)  # it was corrected
    1003.0
    """

    def __init__(self, source: Callable[[], float], elapsed: Callable[[], float] = _elapsed) -> None:
        self._source = source
        self._elapsed = elapsed
        self._last: tuple[float, float] | None = None
        self._lock = threading.Lock()

    def __call__(self, last: float) -> float:
        """Return the time; `last` is the time of the log's last event."""
        with self._lock:
            now, elapsed = float(self._source()), self._elapsed()
            before, then = self._last or (now, elapsed)
            leap = now - before - (elapsed - then)
            if abs(leap) > LEAP:
                way = "ahead" if leap > 0 else "back"
                raise StoreError(
                    f"the clock has leapt {way} by {_span(leap)}; nothing is stored until it is corrected, "
                    "or, if it is right now, this process is restarted"
                )
            if last - now > LEAP:
                raise StoreError(
                    f"the last event of the log is {_span(last - now)} ahead of the clock, so one of them is "
                    "wrong; correct the clock, or restore a backup from before that event"
                )
            self._last = (now, elapsed)
            return now


def _span(seconds: float) -> timedelta:
    return timedelta(seconds=round(abs(seconds)))


def clock_of(store: Store, rounds: bool, own: Callable[[], float] | None) -> Callable[[float], float]:
    """Return a bandit's clock, which takes the time of the last event: the user's own, or the store's.

    A bandit that counts rounds needs no clock: its log gives the time.
    """
    if rounds:
        return lambda last: 0.0
    return SteadyClock(store.clock) if own is None else lambda last: own()
