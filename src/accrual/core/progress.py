"""A progress bar that appears only on a terminal, and only for work that takes a while."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any

_PATIENCE = 0.5  # seconds before a bar is worth showing
_hidden: ContextVar[bool] = ContextVar("hidden", default=False)
_stop: ContextVar[threading.Event | None] = ContextVar("stop", default=None)


class Stopped(Exception):
    """Raised in work that was told to stop (see `stop_when_set`)."""


@contextmanager
def no_progress_bar() -> Iterator[None]:
    """Show no progress bar within the block: for callers that show the progress themselves."""
    token = _hidden.set(True)
    try:
        yield
    finally:
        _hidden.reset(token)


@contextmanager
def stop_when_set(stop: threading.Event) -> Iterator[None]:
    """Have work within the block raise `Stopped` soon after `stop` is set.

    Only the main thread receives Ctrl-C, so work in another thread has to be told in this way.
    """
    token = _stop.set(stop)
    try:
        yield
    finally:
        _stop.reset(token)


class Progress:
    """Counts work done from any thread; draws with rich where that is installed."""

    def __init__(self, total: int, unit: str = "policy-rounds") -> None:
        self._total, self._unit = total, unit
        self._shown = sys.stderr.isatty() and not _hidden.get()
        self._stop = _stop.get()
        self._lock = threading.Lock()
        self._done = 0
        self._started = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, amount: int) -> None:
        """Note that `amount` more is done."""
        if self._stop is not None and self._stop.is_set():
            raise Stopped
        if not self._shown:
            return
        with self._lock:
            self._done += amount
            if self._bar is None and time.monotonic() - self._started > _PATIENCE:
                self._open()
            if self._bar is not None:
                self._bar.update(self._bar.task_ids[0], completed=self._done)

    def _open(self) -> None:
        try:
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as RichProgress
        except ImportError:
            self._shown = False
            return
        columns = (
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} % of {task.total:.3g} " + self._unit),
            TimeRemainingColumn(),
        )
        self._bar = RichProgress(*columns, console=Console(stderr=True), transient=True)
        self._bar.add_task("", total=self._total)
        self._bar.start()
