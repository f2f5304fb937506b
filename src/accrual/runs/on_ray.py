"""Compute cells on a Ray cluster.

Workers write the files of cells themselves, so that no result is only in Ray's memory. A worker or node
that dies loses the cells that it was computing and no others. Ray gives those to another worker, and a cell
that is computed twice is the same file. Whatever happens to the cluster, the next start finds the finished
cells on disk and computes the others.
"""

from __future__ import annotations

import contextlib
import io
import logging
import math
import os
import platform
import signal
import socket
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import ModuleType
from typing import Any

from accrual.core.errors import InputError, need, whole
from accrual.problems.problem import Problem
from accrual.runs.cells import Cell, code_hash, own_code, versions
from accrual.runs.runner import JOBS_MOST, compute

RETRIES = 20  # of a cell whose worker died; a cell that kills every worker must fail at some point
_GONE = 45.0  # seconds without a head after which we give up; Ray ends the process after 60
_SPARE = 1000  # cells given to Ray beyond two for each core, so that a cluster sees how much work is left


@dataclass(frozen=True)
class OnRay:
    """A Ray cluster.

    Parameters
    ----------
    address : str, optional
        ``host:port`` of the head, or ``auto`` on a node of a running cluster. Without it, a Ray is
        started on this machine and stopped afterwards.
    jobs : int, optional
        Cells at a time; all cores of the cluster unless given.
    """

    address: str | None = None
    jobs: int | None = None

    def __post_init__(self) -> None:
        need("ray", "ray")
        if self.jobs is not None:
            whole("jobs", self.jobs, 1, JOBS_MOST)
        if self.address not in (None, "auto"):
            _place(str(self.address))

    def run(self, cells: Sequence[Cell], store: Path) -> Generator[Cell, None, None]:
        """Compute the cells as Ray tasks."""
        with connected(self.address, self.jobs) as ray, _marked(store) as mark:
            yield from self._run(ray, cells, mark)

    def _run(self, ray: ModuleType, cells: Sequence[Cell], mark: Path) -> Generator[Cell, None, None]:
        task = ray.remote(max_retries=RETRIES)(_work)
        # A problem made of a log may be large: it goes to each node once, not with every cell.
        distinct = {id(cell.problem): cell.problem for cell in cells}
        problems = {key: ray.put(problem) for key, problem in distinct.items()}
        waiting = list(reversed(cells))
        pending: dict[Any, Cell] = {}
        head, room = _Head(ray.get_runtime_context().gcs_address), 0
        while waiting or pending:
            if head.check():
                room = self._room(ray)
            while waiting and len(pending) < room:
                cell = waiting.pop()
                # On a GPU, a cell takes all of it.
                place = task.options(num_cpus=1, num_gpus=1 if cell.device == "cuda" else 0)
                pending[place.remote(problems[id(cell.problem)], _rest(cell), str(mark))] = cell
            # Wait for the first that is ready, in short waits that let Ctrl-C through. Then take all.
            ray.wait(list(pending), timeout=0.2)
            finished, _ = ray.wait(list(pending), num_returns=len(pending), timeout=0)
            for reference in finished:
                cell = pending.pop(reference)
                try:
                    refused = ray.get(reference)
                except ray.exceptions.RayError as error:
                    raise InputError(f"{cell.block}: {brief(error)}; what is done is kept") from error
                if refused:
                    raise InputError(refused)
                yield cell

    def _room(self, ray: ModuleType) -> int:
        """Return how many cells Ray should have at a time; the cores of a cluster may change."""
        if self.jobs is not None and self.address is not None:  # a Ray of our own has no more cores
            return self.jobs
        return _SPARE + 2 * int(ray.cluster_resources().get("CPU", 1))


def _work(problem: Problem, rest: dict[str, Any], mark: str) -> str | None:
    """Compute a cell on a worker; return one line that says why it cannot be computed, or None."""
    node, cell = socket.gethostname(), Cell(problem=problem, **rest)
    if not os.path.exists(mark):
        return f"node {node} does not see {Path(mark).parent}: --out must be on storage that all nodes share"
    for what, ours, theirs in (
        ("versions", versions(), cell.identity["versions"]),
        ("accrual's source", code_hash()[:16], cell.identity["code"][:16]),
        ("modules of policies", own_code(problem, cell.policies), cell.identity["own_code"]),
    ):
        if ours != theirs:
            return f"node {node} has other {what} than this machine: {ours}, not {theirs}; install the same"
    try:
        compute(cell, Path(mark).parent)
    except OSError as error:
        return f"node {node} cannot write {error.filename or Path(mark).parent}: {error.strerror}"
    return None


def _rest(cell: Cell) -> dict[str, Any]:
    """Copy a cell without its problem."""
    return {field.name: getattr(cell, field.name) for field in fields(cell) if field.name != "problem"}


class _Head:
    """Watches whether the cluster's head can be reached; without it Ray would soon end this process."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._seen, self._asked = time.monotonic(), -math.inf

    def check(self) -> bool:
        """Check every other second whether the head answers; raise `InputError` when it is gone."""
        now = time.monotonic()
        if now - self._asked < 2:
            return False
        self._asked = now
        if _reachable(self._address):
            self._seen = now
            return True
        if now - self._seen > _GONE:
            raise InputError(
                "the Ray head does not answer any more; what is done is kept: start it and run again"
            )
        return False


def _reachable(address: str) -> bool:
    try:
        socket.create_connection(_place(address), timeout=2).close()
    except OSError:
        return False
    return True


def _place(address: str) -> tuple[str, int]:
    """Split an address into host and port."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise InputError(
            f"--address is host:port of a Ray head, or auto, not {address!r}; run accrual on a node of the "
            "cluster (for example by ray job submit), where its storage is"
        )
    return host.strip("[]"), int(port)


@contextlib.contextmanager
def _marked(store: Path) -> Iterator[Path]:
    """Write a file into `store` by which a worker can tell that it sees the same storage."""
    mark = store.absolute() / f".{os.urandom(8).hex()}.part"
    mark.touch()
    try:
        yield mark
    finally:
        mark.unlink(missing_ok=True)


@contextlib.contextmanager
def connected(address: str | None, jobs: int | None) -> Iterator[ModuleType]:
    """Connect to Ray, or start it; stop afterwards what was started here."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray would send statistics of its use
    ray = need("ray", "ray")
    if ray.is_initialized():
        yield ray
        return
    if address not in (None, "auto") and not _reachable(str(address)):
        raise InputError(f"no Ray head answers at {address}")  # Ray would try for many minutes
    try:
        if address is None:
            # Ray itself makes a token for this, without which no one else can run code here.
            given: dict[str, Any] = {"num_cpus": jobs or os.cpu_count(), "include_dashboard": False}
        else:
            given = {}
        with _stderr_silenced():
            ray.init(address or "local", log_to_driver=False, logging_level=logging.ERROR, **given)
    except Exception as error:  # of any kind: a node that is too slow to start raises a plain one
        where = "start Ray here" if address is None else f"use the Ray cluster at {address}"
        hint = f"this machine has Ray {ray.__version__} and Python {platform.python_version()}"
        if isinstance(error, ConnectionError) and address != "auto":  # the port answered, Ray did not
            hint += "; see whether RAY_AUTH_MODE and the token are the cluster's"
        raise InputError(f"cannot {where}: {brief(error)} ({hint})") from None
    try:
        # Ray writes to stdout about nodes that died.
        with contextlib.redirect_stdout(io.StringIO()), _interrupt_once():
            yield ray
    finally:
        ray.shutdown()


@contextlib.contextmanager
def _interrupt_once() -> Iterator[None]:
    """Let Ctrl-C raise an exception and do nothing else, so that there is time to stop Ray's processes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _stderr_silenced() -> Iterator[None]:
    """Silence stderr, also for compiled code; an exception says what matters."""
    saved = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(nowhere)


def brief(error: Exception) -> str:
    """Shorten an error of Ray's to one line; the error of a task ends with that of its worker."""
    text = str(error).strip()
    return " ".join(text.splitlines()[-1:] if "Traceback" in text else text.split())[:300]
