"""The `accrual` command. `app` lists the commands; each has its own file."""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType

_STOPPED = 130  # what shells report for a command that Ctrl-C ended
_GRACE = 0.3  # seconds for an orderly stop


def main() -> int:
    """Run the command line and return the exit code."""
    signal.signal(signal.SIGINT, _interrupt)
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


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Stop in order, so that nothing half-written stays; but stop within a second in any case.

    A worker that is inside the compiler cannot be asked to stop, and Python would wait for it.
    """
    last = threading.Timer(_GRACE, _leave)
    last.daemon = True
    last.start()
    raise KeyboardInterrupt


def _leave() -> None:
    """End now, without Python's own clearing up, which takes a good part of a second."""
    show_cursor = "\x1b[?25h" if sys.stderr.isatty() else ""  # a progress bar hides it
    os.write(2, f"{show_cursor}accrual: stopped\n".encode())
    os._exit(_STOPPED)
