"""Print tables and sentences without breaking a number, and check that files can be written."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from accrual.core.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

PICTURES = (".png", ".svg", ".pdf")
_ANY_WIDTH = 10_000  # of a line that no terminal shows
_NAME_LEAST = 16  # characters to which the names in a table's first column may be folded
_GAP = 3  # characters between two columns


def line_width() -> int:
    """Count the characters in a line: the terminal's, or what COLUMNS says; unlimited in a file or a pipe."""
    if sys.stdout.isatty() or "COLUMNS" in os.environ:
        return shutil.get_terminal_size().columns
    return _ANY_WIDTH


def say(line: str) -> None:
    """Print a sentence, broken between words where a terminal's line ends."""
    print(_broken(line))


def _broken(line: str) -> str:
    """Break a sentence into lines, but never within a number or between a number and its unit."""
    whole = re.sub(r"(?<=\d) (?=%|[a-z]{1,2}\b)", "\N{NO-BREAK SPACE}", line)
    lines = textwrap.fill(whole, line_width(), break_long_words=False, break_on_hyphens=False)
    return lines.replace("\N{NO-BREAK SPACE}", " ")


def utc(at: float) -> str:
    """Write a time in seconds since 1970 as a day and a time of day, in UTC."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at))


def console() -> Console:
    """Return the console for stdout: with colours on a terminal, plain text elsewhere."""
    from rich.console import Console

    system: Literal["auto"] | None = "auto" if sys.stdout.isatty() else None
    return Console(markup=False, highlight=False, emoji=False, width=line_width(), color_system=system)


def show_table(head: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Print a table, and an empty line after it.

    Names are in the first column and may be folded. Figures are never broken: where the line is too
    short, columns at the right are left out and named in a line below.
    """
    from rich import box
    from rich.table import Table

    out = console()
    shown = _columns_that_fit([*zip(head, *rows, strict=True)], out.width)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for i, name in enumerate(head[:shown]):
        figures = i > 0 and name != ""
        table.add_column(name, justify="right" if figures else "left", overflow="fold", no_wrap=i > 0)
    for row in rows:
        table.add_row(*row[:shown])
    if title:
        out.print(_broken(title), style="bold")
    out.print(table)
    if shown < len(head):
        say(f"columns left out, as the terminal is too narrow: {', '.join(filter(None, head[shown:]))}")
    out.print()


def _columns_that_fit(columns: Sequence[Sequence[str]], width: int) -> int:
    """Count the columns that fit into a line, the first one folded if need be; at least two."""
    from rich.cells import cell_len

    sizes = [max(map(cell_len, column)) for column in columns]
    room = width - min(sizes[0], _NAME_LEAST)
    for i, size in enumerate(sizes[1:], 1):
        room -= size + _GAP
        if room < 0:
            return max(i, 2)
    return len(sizes)


def writable(path: Path, endings: Sequence[str], new_folder: bool = False) -> None:
    """Check, before any long work, that a file can be written to `path`.

    With `new_folder`, its folder need not be there yet; it is enough that it could be made.
    """
    if path.suffix not in endings:
        raise InputError(f"cannot write {path}: its name must end in {' or '.join(endings)}")
    if path.exists() and not path.is_file():
        raise InputError(f"cannot write {path}: it is there and is not a file")
    target = Path(os.path.realpath(path))
    if target.is_file() and not os.access(target, os.W_OK):
        raise InputError(f"cannot write {path}: the file there is read-only")
    folder = target.parent
    while new_folder and not folder.exists():
        folder = folder.parent
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
