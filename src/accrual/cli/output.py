"""What the commands print and write."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from accrual.core.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

PICTURES = (".png", ".svg", ".pdf")


def console() -> Console:
    """stdout: with colours on a terminal, plain text of any width elsewhere."""
    from rich.console import Console

    out = Console(markup=False, highlight=False, emoji=False)
    if not out.is_terminal:
        out = Console(markup=False, highlight=False, emoji=False, width=10_000, color_system=None)
    return out


def show_table(head: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Print a table, and an empty line after it; columns of figures go to the right."""
    from rich import box
    from rich.table import Table

    out = console()
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for i, name in enumerate(head):
        figures = i > 0 and name != ""
        table.add_column(name, justify="right" if figures else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    if title:
        out.print(title, style="bold")
    out.print(table)
    out.print()


def number(value: float) -> str:
    """A figure for a table: whole from a thousand on, four digits below, a dash for none."""
    if math.isnan(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


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
