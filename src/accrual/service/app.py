"""The whole service as one ASGI application."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Protocol

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from accrual.core.errors import InputError
from accrual.service import dashboard
from accrual.service.admission import Admission, require_scope
from accrual.service.bandit_pool import BanditPool
from accrual.service.bandit_routes import BanditRoutes
from accrual.service.edge import ServiceApp
from accrual.service.keys import KeyRing, create_key_command, is_new, ready_keys
from accrual.service.messages import HealthOut, ReadyOut
from accrual.service.metrics import MEDIA_TYPE as METRICS_TYPE
from accrual.service.metrics import Metrics
from accrual.service.openapi import openapi_document
from accrual.service.operations import Call, Operation, route_of
from accrual.service.refusals import try_later
from accrual.service.settings import Settings
from accrual.service.traffic_routes import TrafficRoutes
from accrual.store.backends import open_store
from accrual.store.base import StoreError

_PAUSE = 1.0  # seconds before a background task that failed is started again
_OPEN_AGAIN = 30.0  # seconds after which a bandit that could not be opened is tried again
_READ_KEYS = 2.0  # seconds between two readings of the keys
_MEASURE = 5.0  # seconds between two measurements of the gauges that differ between workers

log = logging.getLogger("accrual.service")


class Simulation(Protocol):
    """Simulated traffic that a service runs beside the requests, such as `accrual.studies.demo.Demo`."""

    async def run(self, bandits: BanditPool, traffic: TrafficRoutes) -> None:
        """Make decisions and pieces until cancelled."""

    def operations(self) -> list[Operation]:
        """Return the routes for what only the simulation knows."""


def prepare(settings: Settings) -> KeyRing:
    """Make the tables of a new database and read the keys. Raise an `InputError` if a key is missing."""
    no_key = InputError(
        f"listening on {settings.host}, which other machines can reach, needs a key: "
        f"{create_key_command(settings.store)}"
    )
    if not settings.loopback and is_new(settings.store):
        raise no_key  # before a file is made
    ring = KeyRing(ready_keys(settings.store), required=not settings.loopback)
    if not settings.loopback and not ring.good:
        ring.close()
        raise no_key
    return ring


def create(settings: Settings, simulation: Simulation | None = None) -> ServiceApp:
    """Make the application. It opens the store when it starts and closes it when it stops."""
    ring = prepare(settings)
    metrics = Metrics()
    bandits = BanditPool(open_store(settings.store), metrics, settings.queue)
    traffic = TrafficRoutes(bandits.find)
    service = _Service(bandits, ring, metrics)
    rows = [*BanditRoutes(bandits).operations(), *service.operations()]
    if simulation is not None:
        service.beside["demo"] = lambda: simulation.run(bandits, traffic)
        rows += simulation.operations()
    description = msgspec.json.encode(openapi_document([*rows, *traffic.operations()]))

    async def openapi(request: Request) -> Response:
        return Response(description, media_type="application/json")

    routes = [
        *map(route_of, rows),
        Route("/metrics", service.metrics_page),
        Route("/v1/openapi.json", openapi),
        *dashboard.routes(lambda: ring.required, simulation is not None),
    ]
    router = Router(routes, redirect_slashes=False, lifespan=service.lifespan)
    return ServiceApp(router, traffic, Admission(settings, ring), settings, metrics)


class _Service:
    """The health of the service, and what runs beside the requests."""

    def __init__(self, bandits: BanditPool, ring: KeyRing, metrics: Metrics) -> None:
        self._bandits = bandits
        self._ring = ring
        self._metrics = metrics
        self._opened = asyncio.Event()
        self._stopping = False
        self.beside: dict[str, Callable[[], Awaitable[None]]] = {}  # other tasks, run when all is open

    def operations(self) -> list[Operation]:
        """Return the routes for monitoring."""
        return [
            Operation("health", "GET", "/healthz", None, self.health, HealthOut),
            Operation("ready", "GET", "/readyz", None, self.ready, ReadyOut),
        ]

    async def health(self, call: Call) -> HealthOut:
        """Check that the process answers."""
        return HealthOut("alive")

    async def ready(self, call: Call) -> ReadyOut:
        """Check whether the service can store and decide now, and count the bandits that it cannot serve."""
        await self.check()
        return ReadyOut("ready", len(self._bandits.failures))

    async def metrics_page(self, request: Request) -> Response:
        """Answer Prometheus."""
        require_scope(request.scope["accrual.key"], "read")
        await self._bandits.compute(self._bandits.measure)
        return Response(self._metrics.page(), headers={"content-type": METRICS_TYPE})

    @asynccontextmanager
    async def lifespan(self, app: object) -> AsyncIterator[None]:
        # Imported modules stay, so the garbage collector need not visit them again. Requests leave little
        # that is not freed at once, so it may run seldom.
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)
        jobs = {"open": self._open, "keys": self._read_keys, "measure": self._measure}
        jobs |= {name: partial(self._when_open, job) for name, job in self.beside.items()}
        tasks = [asyncio.create_task(supervise(name, job, self._metrics)) for name, job in jobs.items()]
        try:
            yield
        finally:
            self._stopping = True
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._ring.close()  # first: it only reads, and the last to close a SQLite file cleans it up
            await self._bandits.close()
            log.info("stopped")

    async def check(self) -> None:
        """Refuse if the service is not ready."""
        if self._stopping:
            raise try_later("stopping", "the service is stopping")
        if not self._opened.is_set():
            raise try_later("store", "the bandits are being opened")
        if self._ring.stale:
            raise try_later("store", "the keys cannot be read")
        await self._bandits.check()

    async def _open(self) -> None:
        while True:
            await self._bandits.open_all()
            if not self._opened.is_set():
                self._opened.set()
                log.info("ready")  # also from a worker that takes the place of another
            await asyncio.sleep(_OPEN_AGAIN)

    async def _measure(self) -> None:
        while True:
            await asyncio.sleep(_MEASURE)
            await self._bandits.read(self._bandits.measure_worker)

    async def _when_open(self, job: Callable[[], Awaitable[None]]) -> None:
        await self._opened.wait()
        await job()

    async def _read_keys(self) -> None:
        while True:
            await asyncio.sleep(_READ_KEYS)
            await self._bandits.read(self._ring.refresh)


async def supervise(name: str, job: Callable[[], Awaitable[None]], metrics: Metrics) -> None:
    """Run a background task until it returns. If it raises, log and count that, and start it again."""
    while True:
        try:
            await job()
            return
        except Exception as error:
            metrics.task_failures.labels(name).inc()
            known = isinstance(error, InputError | StoreError)  # the message says what is wrong
            extra = {"task": name, "error": str(error)}
            log.error("a background task failed", exc_info=None if known else error, extra=extra)
            await asyncio.sleep(_PAUSE)
