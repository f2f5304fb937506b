"""Run cells on threads or on a cluster: one file for each, and nothing computed twice.

A cell's file is named by the hash of all that determines its numbers, and appears whole or not at all. So a
run that was killed can be continued. In the end its files are the same to the byte as those of a run that was
not killed, wherever they were computed.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from accrual.core.errors import InputError, need, whole
from accrual.core.files import try_lock
from accrual.core.progress import no_progress_bar, stop_when_set
from accrual.engine.simulate import simulate
from accrual.runs import rows
from accrual.runs.cells import Cell

_LOCK = ".lock"
JOBS_MOST = 100_000
_ON_GPU = 24  # cells at a time: with the driver's own streams, no more than a GPU has queues


@dataclass(frozen=True)
class Summary:
    """What a run did."""

    cells: int
    reused: int  # cells that were on disk
    policy_rounds: int  # computed now
    seconds: float


class Executor(Protocol):
    """Where cells are computed."""

    def run(self, cells: Sequence[Cell], store: Path) -> Generator[Cell, None, None]:
        """Compute all cells into the folder `store`; yield each when its file is there.

        Closing the generator stops the work.
        """
        ...


@dataclass(frozen=True)
class Local:
    """This machine: `jobs` cells at a time, all cores unless given."""

    jobs: int | None = None

    def __post_init__(self) -> None:
        if self.jobs is not None:
            whole("jobs", self.jobs, 1, JOBS_MOST)

    def run(self, cells: Sequence[Cell], store: Path) -> Generator[Cell, None, None]:
        """Compute the cells on threads."""
        # One cell of a few hundred chains leaves most of a GPU idle, so a GPU gets many at a time.
        usual = _ON_GPU if any(cell.device != "cpu" for cell in cells) else os.cpu_count() or 1
        jobs = self.jobs or usual
        stop = threading.Event()
        with ThreadPoolExecutor(jobs) as pool:
            owners: dict[Future[None], Cell] = {
                pool.submit(_until, stop, cell, store): cell for cell in cells
            }
            pending = set(owners)
            try:
                while pending:  # short waits let Ctrl-C through
                    finished, pending = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
                    for future in finished:
                        future.result()
                        yield owners[future]
            finally:
                stop.set()
                for future in pending:
                    future.cancel()


def _until(stop: threading.Event, cell: Cell, store: Path) -> None:
    with stop_when_set(stop):
        compute(cell, store)


def run_cells(cells: Sequence[Cell], out: Path, executor: Executor) -> Summary:
    """Compute the cells that are not yet in ``out/cells``, and leave the others as they are.

    Parameters
    ----------
    cells : sequence of Cell
        See `accrual.runs.cells.cut`.
    out : Path
        The folder; made if it is missing, and locked while this runs.

    Raises
    ------
    InputError
        If the folder cannot be written or is in use, or if a file in it is damaged.
    """
    with locked_folder(out) as store:
        return compute_missing(cells, store, executor)


@contextlib.contextmanager
def locked_folder(out: Path) -> Iterator[Path]:
    """Lock a folder, delete the half-written files of a killed run, and yield the folder of the cells."""
    store = out / rows.CELLS
    try:
        store.mkdir(parents=True, exist_ok=True)
        lock = os.open(out / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise InputError(f"cannot write to {error.filename or out}: {error.strerror}") from None
    try:
        if not try_lock(lock):
            raise InputError(f"another accrual is at work in {out}; choose another --out")
        for partial in (*store.glob(".*.part*"), *out.glob(".*.part*")):
            partial.unlink(missing_ok=True)
        yield store
    finally:
        os.close(lock)


def compute_missing(cells: Sequence[Cell], store: Path, executor: Executor, fresh: bool = False) -> Summary:
    """Do what `run_cells` does for a caller that holds the folder's lock (see `locked_folder`).

    With `fresh`, compute all cells again.
    """
    need("pyarrow.parquet", "frames")
    started = time.monotonic()
    for cell in cells if fresh else ():
        (store / cell.name).unlink(missing_ok=True)
    todo = [cell for cell in cells if not _stored(store, cell)]
    # The heavy cells first, so that at the end no thread works alone on one of them.
    todo.sort(key=lambda cell: -cell.work)
    reused = done = len(cells) - len(todo)
    try:
        with CellProgress(todo, reused) as view, contextlib.closing(_started(executor, todo, store)) as work:
            for cell in work:
                view.finished(cell)
                done += 1
    except OSError as error:
        raise InputError(
            f"cannot write {error.filename or store}: {error.strerror}; "
            f"{done} of {len(cells)} cells are done and kept: make room and run again"
        ) from error
    return Summary(len(cells), reused, sum(cell.policy_rounds for cell in todo), time.monotonic() - started)


def compute(cell: Cell, store: Path) -> None:
    """Simulate one cell and put its file into `store`, on this thread."""
    with no_progress_bar():
        result = simulate(
            cell.problem, cell.policies, cell.horizon, cell.runs, cell.identity["seed"], cell.device,
            checkpoints=cell.identity["checkpoints"], threads=1,
        )  # fmt: skip
    cell_rows = rows.CellRows(
        cell.identity, result.labels, cell.runs, result.rounds, result.regret, result.pulls
    )
    rows.write_cell(store / cell.name, cell_rows)


def _started(executor: Executor, todo: Sequence[Cell], store: Path) -> Generator[Cell, None, None]:
    """Start the executor, unless there is nothing to do."""
    if todo:
        yield from executor.run(todo, store)


def _stored(store: Path, cell: Cell) -> bool:
    """Return whether the cell is on disk; refuse a damaged file."""
    try:
        stored = rows.read_cell(store / cell.name)
        if stored.identity != cell.identity:
            raise rows.DamagedCell(f"{store / cell.name} is damaged (it is another cell's)")
    except FileNotFoundError:
        return False
    except rows.DamagedCell as error:
        raise InputError(f"{error}; delete it and run again: only that cell is computed again") from error
    return True


class CellProgress:
    """Shows on stderr how many cells are done, how fast, and how long the others will take.

    Speed is in millions of policy-rounds a second. Without a terminal, progress is plain lines.
    """

    def __init__(self, cells: list[Cell], reused: int) -> None:
        self._left: dict[str, int] = {}
        for cell in cells:
            self._left[cell.block] = self._left.get(cell.block, 0) + 1
        self._cells, self._reused, self._done = len(cells), reused, 0
        self._work = sum(cell.work for cell in cells)
        self._rounds = 0
        self._started = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> CellProgress:
        more = f", {self._reused} already done" if self._reused else ""
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
