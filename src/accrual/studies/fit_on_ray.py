"""Fit a log on a Ray cluster: an actor reads each part of the log, and reads it again if it dies."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from accrual.core.errors import InputError
from accrual.logs.parts import Part, PartedLog, part_readings
from accrual.logs.read import Reading, is_url
from accrual.logs.tables import LogFacts
from accrual.runs.cells import code_hash, versions
from accrual.runs.on_ray import RETRIES, OnRay, brief, connected

_CLOSING = 10.0  # seconds to delete temporary files
_CORES = 0.01  # that an actor reserves: all must run at the same time, however few cores are free


class PartActor:
    """A part of a log on some node; refusals come back as text, because Ray loses the class of an error."""

    def __init__(
        self, decisions: str, pieces: str | None, reading: Reading, identity: tuple[Any, str]
    ) -> None:
        self._part = Part(decisions, pieces, reading)
        self._identity = identity

    def call(self, method: str, *given: Any) -> tuple[str, Any]:
        """Call a method of the part; return a refusal, empty if there is none, and the result."""
        ours = (versions(), code_hash())
        node = socket.gethostname()
        if ours != self._identity:
            return f"node {node} has other versions of accrual or its libraries; install the same", None
        try:
            return "", getattr(self._part, method)(*given)
        except InputError as error:
            return f"node {node}: {error}", None


@contextmanager
def open_on_ray(
    decisions: Any, pieces: Any, columns: Mapping[str, str] | None, options: Mapping[str, Any], where: OnRay
) -> Iterator[LogFacts]:
    """Open a log on a cluster in as many parts as `where` has jobs, or else as the cluster has cores.

    Parameters
    ----------
    decisions, pieces : path
        Files on storage that all nodes see under the same path.
    columns, options : mapping
        As `accrual.open_log` takes them.
    where : OnRay
    """
    reading = Reading.made(columns, options)
    given = [None if one is None else _shared(one) for one in (decisions, pieces)]
    with connected(where.address, where.jobs) as ray:
        count = where.jobs or max(1, int(ray.cluster_resources().get("CPU", 1)))
        actor = ray.remote(num_cpus=_CORES, max_restarts=RETRIES, max_task_retries=RETRIES)(PartActor)
        identity = (versions(), code_hash())
        workers = [actor.remote(*given, each, identity) for each in part_readings(reading, count)]
        try:
            yield PartedLog(_caller(ray, workers))
        finally:
            ray.wait([worker.call.remote("close") for worker in workers], num_returns=count, timeout=_CLOSING)
            for worker in workers:
                ray.kill(worker)


def _shared(given: Any) -> str:
    if not isinstance(given, str | Path) or is_url(given):
        raise InputError("--engine ray reads files that all nodes see: give a path, not a frame or a URL")
    return str(Path(given).absolute())


def _caller(ray: Any, workers: Sequence[Any]) -> Callable[..., list[Any]]:
    def everywhere(method: str, *given: Any) -> list[Any]:
        shared = [ray.put(one) for one in given]
        references = [worker.call.remote(method, *shared) for worker in workers]
        while True:  # short waits let Ctrl-C through
            _, waiting = ray.wait(references, num_returns=len(references), timeout=0.5)
            if not waiting:
                break
        try:
            answers = ray.get(references)
        except ray.exceptions.RayError as error:
            raise InputError(f"a part of the log was lost: {brief(error)}") from error
        for refusal, _ in answers:
            if refusal:
                raise InputError(refusal)
        return [answer for _, answer in answers]

    return everywhere
