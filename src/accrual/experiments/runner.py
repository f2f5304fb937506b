"""The runner: cells over threads, one file each, and nothing computed twice.

A cell's file is named by the hash of all that determines its numbers and appears whole or not
at all. So a run that was killed goes on where it was, and what it leaves in the end is the same
to the byte as without the kill.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accrual.core.errors import InputError, need, whole
from accrual.core.random import ROUND_MOST, RUN_MOST
from accrual.engine.progress import hidden
from accrual.engine.simulate import simulate
from accrual.experiments import rows
from accrual.experiments.cells import Cell, code_hash, cut, make_problem, versions
from accrual.experiments.curves import curves_of
from accrual.experiments.settings import BLOCKS, HORIZON, RUNS, SEED, Setting, select
from accrual.experiments.view import View
from accrual.problem import Problem

_LOCK = ".lock"


@dataclass(frozen=True)
class Options:
    """What to run, and where."""

    out: Path
    only: Sequence[str] = ()
    runs: int = RUNS
    horizon: int = HORIZON
    jobs: int | None = None
    fresh: bool = False
    spotify: Path | None = None
    settings: list[Setting] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", select(self.only))
        whole("runs", self.runs, 1, RUN_MOST)
        whole("horizon", self.horizon, 100, ROUND_MOST)
        if self.jobs is not None:
            whole("jobs", self.jobs, 1, 1024)

    @property
    def command(self) -> str:
        """The command that gives these numbers, whatever the folder and the number of threads."""
        words = ["accrual paper", *(f"--only {word}" for word in self.only)]
        words += [f"--runs {self.runs}"] if self.runs != RUNS else []
        words += [f"--horizon {self.horizon}"] if self.horizon != HORIZON else []
        words += ["--spotify PATH"] if self.spotify is not None else []
        return " ".join(words)


@dataclass(frozen=True)
class Summary:
    """What a run did."""

    cells: int
    kept: int
    policy_rounds: int  # computed now
    seconds: float


def run(options: Options) -> Summary:
    """Compute what is missing and leave cells, curves and manifest in ``options.out``."""
    need("pyarrow.parquet", "frames")
    started = time.monotonic()
    blocks = dict.fromkeys(block for setting in options.settings for block in setting.blocks)
    problems = {
        name: make_problem(name, options.spotify)
        for name in dict.fromkeys(BLOCKS[block].problem for block in blocks)
    }
    plan = {
        block: cut(BLOCKS[block], problems[BLOCKS[block].problem], options.horizon, options.runs)
        for block in blocks
    }
    cells = [cell for part in plan.values() for cell in part]
    with _folder(options.out) as store:
        for cell in cells if options.fresh else ():
            (store / cell.name).unlink(missing_ok=True)
        todo = [cell for cell in cells if not _stored(store, cell)]
        # The heavy ones first, so that no thread is left alone with one at the end.
        todo.sort(key=lambda cell: -cell.work)
        kept = len(cells) - len(todo)
        _compute(todo, store, options, kept)
        rows.write_curves(options.out / rows.CURVES, curves_of(options.settings, problems, options.horizon))
        manifest = _manifest(options, plan, problems)
        rows.write(options.out / rows.MANIFEST, (rows.canonical(manifest) + "\n").encode())
    return Summary(len(cells), kept, sum(cell.policy_rounds for cell in todo), time.monotonic() - started)


@contextlib.contextmanager
def _folder(out: Path) -> Iterator[Path]:
    """The folder of the cells, ours alone, swept of what a killed run left half-written."""
    store = out / rows.CELLS
    try:
        store.mkdir(parents=True, exist_ok=True)
        lock = os.open(out / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise InputError(f"cannot write to {error.filename or out}: {error.strerror}") from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"another accrual paper is at work in {out}; choose another --out") from None
        for partial in (*store.glob(".*.part*"), *out.glob(".*.part*")):
            partial.unlink(missing_ok=True)
        yield store
    finally:
        os.close(lock)


def _stored(store: Path, cell: Cell) -> bool:
    """Whether the cell is on disk, whole; a damaged file is refused, not silently replaced."""
    try:
        found = rows.read_cell(store / cell.name)
        if found.identity != cell.identity:
            raise rows.Damaged(f"{store / cell.name} is damaged (it is another cell's)")
    except FileNotFoundError:
        return False
    except rows.Damaged as error:
        raise InputError(
            f"{error}; delete it and run again: that cell alone is computed anew, the others are kept"
        ) from error
    return True


def _compute(todo: list[Cell], store: Path, options: Options, kept: int) -> None:
    jobs = options.jobs or os.cpu_count() or 1

    def work(cell: Cell) -> Cell:
        with hidden():
            result = simulate(
                cell.problem, cell.policies, cell.horizon, cell.runs, SEED,
                checkpoints=cell.identity["checkpoints"], threads=1,
            )  # fmt: skip
        found = rows.CellRows(
            cell.identity, result.labels, cell.runs, result.rounds, result.regret, result.pulls
        )
        rows.write_cell(store / cell.name, found)
        return cell

    done = kept
    with View(todo, kept) as view, ThreadPoolExecutor(jobs) as pool:
        pending: set[Future[Cell]] = {pool.submit(work, cell) for cell in todo}
        try:
            while pending:  # short waits let Ctrl-C through
                finished, pending = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
                for future in finished:
                    view.finished(future.result())
                    done += 1
        except BaseException as error:
            for future in pending:
                future.cancel()
            if isinstance(error, OSError):
                raise InputError(
                    f"cannot write {error.filename or store}: {error.strerror}; "
                    f"{done} of {kept + len(todo)} cells are done and kept: make room and run again"
                ) from error
            raise


def _manifest(options: Options, plan: dict[str, list[Cell]], problems: dict[str, Problem]) -> dict[str, Any]:
    return {
        "format": rows.FORMAT,
        "command": options.command,
        "horizon": options.horizon,
        "runs": options.runs,
        "seed": SEED,
        "code": code_hash(),
        "versions": versions(),
        "settings": [_entry(setting, options, problems) for setting in options.settings],
        "blocks": {block: [cell.name for cell in part] for block, part in plan.items()},
    }


def _entry(setting: Setting, options: Options, problems: dict[str, Problem]) -> dict[str, Any]:
    problem = problems[BLOCKS[setting.blocks[0]].problem]
    data = None
    if setting.id == "spotify":
        data = "real" if options.spotify is not None else "synthetic"
    return {
        "id": setting.id,
        "title": setting.title + (" (synthetic sample)" if data == "synthetic" else ""),
        "blocks": setting.blocks,
        "data": data,
        "window": problem.window,
        "groups": problem.groups,
        "arms": problem.arms,
        "means": problem.means.tolist(),
        "learners": [
            {
                "label": learner.label,
                "kind": learner.kind,
                "printed": setting.printed.get(learner) if options.horizon == HORIZON else None,
            }
            for learner in setting.learners
        ],
    }
