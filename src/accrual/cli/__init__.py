"""The `accrual` command. `app` lists the commands; each has its own file."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

_STOPPED = 130  # what shells report for a command that Ctrl-C ended
_GRACE = 0.3  # seconds for an orderly stop


def main() -> int:
    """Run the command line and return the exit code."""
    if sys.argv[1:] == ["--version"]:  # needs nothing that a bare install lacks
        from accrual.core.version import VERSION

        print(f"accrual {VERSION}")
        return 0
    signal.signal(signal.SIGINT, _interrupt)
    if sys.stdout is None:  # the caller has closed it
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (until the process ends)
    else:
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(_Stdout(1, "w", closefd=False)),
            encoding=sys.stdout.encoding, errors="replace", line_buffering=sys.stdout.isatty(),
        )  # fmt: skip
    from accrual.core.errors import MissingExtra, need

    try:
        need("typer", "cli")
        from accrual.cli.app import run

        code = run(sys.argv[1:])
    except MissingExtra as error:
        print(f"accrual: {error}", file=sys.stderr)
        code = 2
    except KeyboardInterrupt:
        code = _STOPPED
    if code == _STOPPED:
        _leave()
    return code


class _Stdout(io.FileIO):
    """A stdout whose reader may stop reading, as `head` does; the command goes on and writes its files."""

    _lost = False  # whether writing has failed

    def write(self, data: Any) -> int:
        """Write, or drop what cannot be read any more; an error other than that is raised once."""
        if not self._lost:
            try:
                return super().write(data)
            except OSError as error:
                self._lost = True
                if not isinstance(error, BrokenPipeError):
                    raise
        return len(data)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, so that no half-written file stays; after `_GRACE` seconds end in any case.

    A thread that is inside the compiler cannot be interrupted, and Python would wait for it.
    """
    last = threading.Timer(_GRACE, _leave)
    last.daemon = True
    last.start()
    raise KeyboardInterrupt


def _leave() -> None:
    """End the process at once, without Python's own cleanup, which takes a good part of a second."""
    show_cursor = "\x1b[?25h" if sys.stderr.isatty() else ""  # a progress bar hides it
    os.write(2, f"{show_cursor}accrual: stopped\n".encode())
    os._exit(_STOPPED)
