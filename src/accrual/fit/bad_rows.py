"""Count the rows of a log that cannot be read, and list them in a file."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

from accrual.fit.reading import CheckedColumn, Reading
from accrual.fit.tables import Log

_HEAD = ("file", "row", "column", "role", "value", "needed")


def skip_bad_rows(log: Log, cells: Iterable[CheckedColumn], reading: Reading) -> None:
    """Count the rows of which some cell is not what is needed, and list those cells in the reading's file."""
    bad_cells = [
        (label, row, cell.source.names[cell.column], cell.role, text, cell.needed)
        for cell in cells
        for label, row, text in cell.bad_rows(log)
    ]
    log.counts.bad_rows += len({line[:2] for line in bad_cells})
    if reading.bad_rows_file is None or not bad_cells:
        return
    path = Path(reading.bad_rows_file)
    begun = log.counts.bad_rows > len({line[:2] for line in bad_cells})  # by the decisions' rows
    with path.open("a" if begun else "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        if not begun:
            writer.writerow(_HEAD)
        writer.writerows(sorted(bad_cells))
