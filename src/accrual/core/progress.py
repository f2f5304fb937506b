"""Show the progress of a computation: a bar on a terminal, lines of text elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any

COMPILING = "compiling, once for each version"
_PATIENCE = 0.5  # seconds before anything is shown: shorter work needs no progress
_hidden: ContextVar[bool] = ContextVar("hidden", default=False)
_stop: ContextVar[threading.Event | None] = ContextVar("stop", default=None)


_shown: set[Progress] = set()  # all that are shown now


def say_compiling() -> None:
    """Say that something is compiled, wherever progress is shown."""
    for progress in tuple(_shown):
        progress.say_compiling()


class Stopped(Exception):
    """Raised in work that has to stop (see `stop_when_set`)."""


@contextmanager
def no_progress_bar() -> Iterator[None]:
    """Show no progress within the block, for callers that show it themselves."""
    token = _hidden.set(True)
    try:
        yield
    finally:
        _hidden.reset(token)


@contextmanager
def stop_when_set(stop: threading.Event) -> Iterator[None]:
    """Make work within the block raise `Stopped` soon after `stop` is set.

    Only the main thread receives Ctrl-C, so this is how work in another thread is stopped.
    """
    token = _stop.set(stop)
    try:
        yield
    finally:
        _stop.reset(token)


def _in_notebook() -> bool:
    """Return whether this runs in a notebook, whose kernel is always IPython's."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return type(shell).__name__ == "ZMQInteractiveShell"


class Progress:
    """Counts the work that threads have done, and shows it.

    Parameters
    ----------
    total : int
        All the work.
    unit : str
        What the work is counted in.
    show : bool, optional
        Whether to show anything. Unless given, only on a terminal or in a notebook.
    """

    def __init__(self, total: int, unit: str = "policy-rounds", show: bool | None = None) -> None:
        self._total, self._unit = total, unit
        self._terminal = sys.stderr.isatty()
        automatic = (self._terminal or _in_notebook()) and not _hidden.get()
        self._shown = automatic if show is None else show
        self._stop = _stop.get()
        self._lock = threading.Lock()
        self._done = 0
        self._started: float | None = time.monotonic()
        self._said = False
        self._display: _Bar | _Lines | None = None

    def __enter__(self) -> Progress:
        if self._shown:
            _shown.add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        _shown.discard(self)
        if isinstance(self._display, _Bar):
            self._display.close()

    def advance(self, amount: int) -> None:
        """Count `amount` more as done."""
        if self._stop is not None and self._stop.is_set():
            raise Stopped
        if not self._shown:
            return
        with self._lock:
            self._done += amount
            now = time.monotonic()
            self._started = now if self._started is None else self._started
            if self._display is None and now - self._started > _PATIENCE:
                self._display = self._open()
            if self._display is not None:
                self._display.update(self._done)

    def say_compiling(self) -> None:
        """Say once that something is compiled. The work itself begins after that, and may be short."""
        with self._lock:
            if not self._said and self._display is None:
                self._said, self._started = True, None
                print(COMPILING, file=sys.stderr, flush=True)

    def _open(self) -> _Bar | _Lines:
        try:
            import rich.progress  # noqa: F401
        except ImportError:
            return _Lines(self._total, self._unit)
        return (_Bar if self._terminal else _Lines)(self._total, self._unit)


class _Bar:
    """A bar that moves, drawn by rich on a terminal; it disappears when the work is done."""

    def __init__(self, total: int, unit: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        text = TextColumn("{task.percentage:>3.0f} % of {task.total:.3g} " + unit)
        columns: Any = (BarColumn(), text, TimeRemainingColumn())
        self._bar = RichProgress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("", total=total)
        self._bar.start()

    def update(self, done: int) -> None:
        """Redraw the bar."""
        self._bar.update(self._task, completed=done)

    def close(self) -> None:
        """Remove the bar."""
        self._bar.stop()


class _Lines:
    """A line of text for each tenth of the work."""

    def __init__(self, total: int, unit: str) -> None:
        self._total, self._unit = total, unit
        self._tenths = 0

    def update(self, done: int) -> None:
        """Print a line if another tenth is done."""
        tenths = 10 * done // self._total
        if tenths > self._tenths:
            self._tenths = tenths
            print(f"{10 * tenths} % of {self._total:.3g} {self._unit}", file=sys.stderr, flush=True)
