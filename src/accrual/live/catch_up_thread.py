"""Keeping up with other workers: a thread that folds what they write, as they write it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from accrual.store.base import Store, StoreClosed, StoreError

_WAIT = 0.3  # seconds that it waits for events at a time; it stops within as many

log = logging.getLogger("accrual.live")


class Staleness(NamedTuple):
    """How far a worker's state may be behind the log."""

    events: int  # in the log, and not folded here
    seconds: float  # since all that was in the log had been folded; 0 if all is


class CatchUpThread:
    """Folds a bandit's log as it grows, until it is stopped.

    Parameters
    ----------
    store : Store
    bandit : int
        Its number in the store.
    position : callable
        Gives how far the log has been folded.
    catch_up : callable
        Folds the rest.
    """

    def __init__(
        self, store: Store, bandit: int, position: Callable[[], int], catch_up: Callable[[], int]
    ) -> None:
        self._store = store
        self._bandit = bandit
        self._position = position
        self._catch_up = catch_up
        self._abreast = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name=f"follow-{bandit}", daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        while not self._stop.is_set():
            try:
                if self._store.wait(self._bandit, self._position(), _WAIT):
                    looked = time.monotonic()
                    self._catch_up()  # which ends when there is no more
                    self._abreast = looked
                else:
                    self._abreast = time.monotonic()
            except StoreClosed:
                return
            except StoreError:  # out of reach for now; the staleness says so
                self._stop.wait(_WAIT)
            except Exception:  # whatever it is, the next events are to be folded too
                log.exception("following a log failed; it is tried again", extra={"bandit": self._bandit})
                self._stop.wait(_WAIT)

    def staleness(self) -> Staleness:
        """Ask the store where the log ends, and return how far behind it this worker is now."""
        behind = max(self._store.head(self._bandit) - self._position(), 0)
        return Staleness(behind, time.monotonic() - self._abreast if behind else 0.0)

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        with suppress(RuntimeError):  # called by the thread itself
            self._thread.join(2 * _WAIT)
