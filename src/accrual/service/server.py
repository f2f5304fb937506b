"""Running the service: one process, or several that share a socket."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Callable

import uvicorn
from uvicorn.supervisors import Multiprocess

from accrual.service.app import create, prepare
from accrual.service.logs import logging_config
from accrual.service.metrics import DIRECTORY
from accrual.service.protocol import Protocol
from accrual.service.settings import Settings


def serve(settings: Settings, started: Callable[[str, bool], None]) -> None:
    """Serve until a signal comes.

    Parameters
    ----------
    settings : Settings
    started : callable
        Told the address, and whether keys are asked for, before the first request.
    """
    ring = prepare(settings)  # here too, so that what is wrong is said before any process starts
    config = uvicorn.Config(
        functools.partial(create, settings),
        factory=True,
        host=settings.host,
        port=settings.port,
        http=Protocol,
        ws="none",
        lifespan="on",
        log_config=logging_config(),
        access_log=False,
        server_header=False,
        proxy_headers=False,
        workers=settings.workers,
        limit_concurrency=settings.connections,
        timeout_keep_alive=60,
        timeout_graceful_shutdown=settings.stop_seconds,
        timeout_worker_healthcheck=30,  # a process that compiles is slow to answer, not dead
    )
    keys = ring.required
    ring.close()
    socket = config.bind_socket()
    host, port = socket.getsockname()[:2]
    started(f"http://{f'[{host}]' if ':' in host else host}:{port}", keys)
    if settings.workers == 1:
        uvicorn.Server(config).run(sockets=[socket])
        return
    with tempfile.TemporaryDirectory(prefix="accrual-metrics-") as folder:
        os.environ[DIRECTORY] = folder  # before any process starts: where their counts meet
        Multiprocess(config, sockets=[socket]).run()
