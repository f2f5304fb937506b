"""Run the service in one process, or in several that share a socket."""

from __future__ import annotations

import logging
import logging.config
import os
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from typing import Any, cast

import msgspec
import uvicorn
from prometheus_client.multiprocess import mark_process_dead

from accrual.core.errors import InputError
from accrual.service.app import Simulation, create, prepare
from accrual.service.connections import Limits
from accrual.service.metrics import DIRECTORY
from accrual.service.settings import Settings

_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message", "taskName"}
_MINUTE = 60.0  # seconds
_MOST = 100  # warnings and errors with the same text in a minute
_BACKLOG = 128  # connections that may wait; one turn of the event loop may accept them all
_DESCRIPTORS = 200  # file descriptors that the process needs beside its connections
_PAUSE = 0.5  # seconds before a worker that has died is replaced

log = logging.getLogger("accrual.service")


def serve(
    settings: Settings, started: Callable[[str, bool], None], simulation: Simulation | None = None
) -> None:
    """Serve until a signal comes.

    Parameters
    ----------
    started : callable
        Called before the first request, with the address and whether requests need a key.
    simulation : Simulation, optional
        Simulated traffic, in one process.
    """
    if simulation is not None and settings.workers > 1:
        raise InputError("simulated traffic runs in one process: use --demo with --workers 1")
    _need_descriptors(settings.connections)
    with bound(settings) as listener:
        if settings.workers == 1:
            app = create(settings, simulation)
            started(_address(listener), app.keys_required)
            uvicorn.Server(config_of(settings, app)).run(sockets=[listener])
        else:
            ring = prepare(settings)  # errors are raised before any process starts
            started(_address(listener), ring.required)
            ring.close()
            _several(settings, listener)


def config_of(settings: Settings, app: Any) -> uvicorn.Config:
    """Return the configuration with which uvicorn runs the service."""
    return uvicorn.Config(
        app,
        http=cast(
            Any,
            Limits(settings.body_seconds, settings.body, settings.connections, settings.address_connections),
        ),
        ws="none",
        lifespan="on",
        log_config=logging_config(),
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=_BACKLOG,
        timeout_keep_alive=60,
        timeout_graceful_shutdown=settings.stop_seconds,
    )


def _need_descriptors(connections: int) -> None:
    """Raise the limit on file descriptors so that connections cannot use them up, or refuse to start."""
    try:
        import resource
    except ImportError:  # not on this system
        return
    needed = connections + 2 * _BACKLOG + _DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise InputError(
            f"{connections:,} connections need {needed:,} file descriptors, and the system allows {hard:,}: "
            f"--set connections={max(hard - needed + connections, 1)}, or raise the limit (ulimit -n)"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _several(settings: Settings, listener: socket.socket) -> None:
    with tempfile.TemporaryDirectory(prefix="accrual-metrics-") as folder:
        os.environ[DIRECTORY] = folder  # before any process starts
        logging.config.dictConfig(logging_config())
        Workers(settings, listener).run()


def _work(settings: Settings, listener: socket.socket) -> None:
    """Serve in a process of its own."""
    uvicorn.Server(config_of(settings, create(settings))).run(sockets=[listener])


class Workers:
    """The worker processes, which accept connections at one socket. A worker that has died is replaced.

    SIGTERM and SIGINT end all of them; each first answers the requests that it has.
    """

    def __init__(self, settings: Settings, listener: socket.socket) -> None:
        self._settings = settings
        self._listener = listener
        self._stopping = False
        self._processes: list[SpawnProcess] = []

    def run(self) -> None:
        """Start the workers, and return when a signal has ended them."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)
        for _ in range(self._settings.workers):
            self._start()
        while not self._stopping:
            ended = wait([process.sentinel for process in self._processes])
            if not self._stopping:
                self._replace(ended)
        self._stop()  # also a worker that was started when the signal came
        for process in self._processes:
            process.join()

    def _start(self) -> None:
        # Not by a fork, which would copy the locks of threads that the copy does not have.
        process = get_context("spawn").Process(target=_work, args=(self._settings, self._listener))
        process.start()
        self._processes.append(process)

    def _replace(self, ended: Sequence[object]) -> None:
        """Start a worker for each that has ended, whose metrics are then left out."""
        for process in [process for process in self._processes if process.sentinel in ended]:
            process.join()
            mark_process_dead(process.pid)  # type: ignore[no-untyped-call]
            self._processes.remove(process)
            extra = {"worker": process.pid, "exit_code": process.exitcode}
            log.error("a worker has ended; another is started", extra=extra)
            time.sleep(_PAUSE)  # if it cannot start, it is not started hundreds of times a second
            self._start()

    def _stop(self, *_: object) -> None:
        self._stopping = True
        for process in self._processes:
            process.terminate()  # uvicorn answers what is under way


def bound(settings: Settings) -> socket.socket:
    """Bind a socket to the address of the settings, or raise an `InputError` that says why not."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise InputError(f"cannot listen on {settings.host}:{settings.port}: {error.strerror}") from None
    listener.set_inheritable(True)
    return listener


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


class JsonLines(logging.Formatter):
    """Write a record's time, level, text and extra fields as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": round(record.created, 3),
            "level": record.levelname.lower(),
            "text": record.getMessage(),
            "process": os.getpid(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in _OWN}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line, enc_hook=str).decode()


class FewOfEach(logging.Filter):
    """Let at most a hundred warnings and errors with the same text pass in a minute.

    So nobody can fill a disk by sending requests that fail. The first line of the next minute says as
    `left_out` how many were left out.
    """

    def __init__(self) -> None:
        super().__init__()
        self._counts: dict[str, tuple[float, int]] = {}  # of each text: when its minute began, and how many

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to write a record."""
        if record.levelno < logging.WARNING:
            return True
        now, text = time.monotonic(), str(record.msg)
        begun, count = self._counts.get(text, (-_MINUTE, 0))
        if now - begun >= _MINUTE:
            if count > _MOST:
                record.left_out = count - _MOST
            begun, count = now, 0
        self._counts[text] = (begun, count + 1)
        return count < _MOST


def logging_config() -> dict[str, Any]:
    """Return the configuration for `logging.config.dictConfig`: lines of JSON on stderr, with warnings."""
    logging.captureWarnings(True)
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": "accrual.service.server.JsonLines"}},
        "filters": {"few": {"()": "accrual.service.server.FewOfEach"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json", "filters": ["few"]}},
        "loggers": {
            "accrual": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
            "asyncio": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
            "py.warnings": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
            "uvicorn": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
        },
    }
