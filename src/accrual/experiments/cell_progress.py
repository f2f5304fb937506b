"""Show on stderr how many cells are done, how fast, and how long the others will take.

Without a terminal these are plain lines. Speed is in millions of policy-rounds a second.
"""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from accrual.experiments.cells import Cell


class CellProgress:
    """Shows the progress of a run on stderr."""

    def __init__(self, cells: list[Cell], kept: int) -> None:
        self._left: dict[str, int] = {}
        for cell in cells:
            self._left[cell.block] = self._left.get(cell.block, 0) + 1
        self._cells, self._kept, self._done = len(cells), kept, 0
        self._work = sum(cell.work for cell in cells)
        self._rounds = 0
        self._started = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> CellProgress:
        more = f", {self._kept} already done" if self._kept else ""
        _say(f"{self._cells} cells to compute{more}")
        if self._cells and sys.stderr.isatty():
            self._open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def finished(self, cell: Cell) -> None:
        """Note a cell that is on disk."""
        block = cell.block
        self._done += 1
        self._rounds += cell.policy_rounds
        self._left[block] -= 1
        seconds = time.monotonic() - self._started
        if self._bar is not None:
            self._bar.update(
                self._bar.task_ids[0],
                advance=cell.work,
                description=block,
                cells=f"{self._done}/{self._cells}",
                speed=f"  {self._rounds / seconds / 1e6:.1f} M/s",
            )
        if self._left[block] == 0:
            left = sum(1 for count in self._left.values() if count)
            line = f"{seconds:6.1f} s  {block} done, {left} of {len(self._left)} blocks left"
            self._bar.console.print(line, highlight=False) if self._bar is not None else _say(line)

    def _open(self) -> None:
        try:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
        except ImportError:
            return
        self._bar = Progress(
            TextColumn("{task.description:<20}"),
            BarColumn(bar_width=16),
            TextColumn("{task.percentage:>3.0f} %  cells {task.fields[cells]}{task.fields[speed]}  left"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
            speed_estimate_period=60,
        )
        self._bar.add_task("starting", total=self._work, cells=f"0/{self._cells}", speed="")
        self._bar.start()


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
