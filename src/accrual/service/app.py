"""The whole service as one ASGI application."""

from __future__ import annotations

import asyncio
import gc
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from typing import Protocol

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from accrual.core.errors import InputError
from accrual.service import dashboard, messages
from accrual.service.admission import Admission, require_scope
from accrual.service.asgi import ServiceApp
from accrual.service.bandit_pool import BanditPool
from accrual.service.bandit_routes import router
from accrual.service.keys import KeyRing, ready_keys
from accrual.service.metrics import MEDIA_TYPE as METRICS_TYPE
from accrual.service.metrics import Metrics
from accrual.service.openapi import openapi_document
from accrual.service.refusals import MEDIA_TYPE, Refusal, try_later
from accrual.service.settings import Settings
from accrual.service.supervision import supervise
from accrual.service.traffic_routes import TrafficRoutes
from accrual.store.address import parse
from accrual.store.base import StoreError
from accrual.store.url import open_store

_OPEN_AGAIN = 30.0  # seconds after which a bandit that could not be opened is tried again
_READ_KEYS = 2.0  # seconds after which a new or revoked key is known of, at the latest

log = logging.getLogger("accrual.service")


class Simulation(Protocol):
    """Simulated traffic that a service runs beside the requests, such as `accrual.demo.Demo`."""

    async def run(self, bandits: BanditPool, traffic: TrafficRoutes) -> None:
        """Make decisions and pieces until cancelled."""

    def routes(self) -> APIRouter:
        """Return routes that say what only the simulation can know."""


def prepare(settings: Settings) -> KeyRing:
    """A new database gets its tables; and whether keys are in order, before anything listens."""
    ring = KeyRing(ready_keys(settings.store), required=not settings.loopback)
    if not settings.loopback and not ring.good:
        ring.close()
        raise InputError(
            f"to listen on {settings.host}, beyond this machine, needs a key: "
            f"accrual keys create --store {parse(settings.store)} --scope read --scope write"
        )
    return ring


def create(settings: Settings, simulation: Simulation | None = None) -> ServiceApp:
    """The application, with simulated traffic if given. It opens the store when it starts and closes it
    when it stops.
    """
    ring = prepare(settings)
    store = open_store(settings.store)
    metrics = Metrics()
    bandits = BanditPool(store, metrics, settings.queue)
    traffic = TrafficRoutes(bandits.find)
    service = _Service(bandits, ring, metrics)
    if simulation is not None:
        service.beside["demo"] = lambda: simulation.run(bandits, traffic)

    app = FastAPI(
        title="accrual", version=version("accrual"), docs_url=None, redoc_url=None, openapi_url=None,
        lifespan=service.lifespan, redirect_slashes=False,
    )  # fmt: skip
    app.include_router(router(bandits))
    app.include_router(dashboard.router(lambda: ring.required, simulation is not None))
    if simulation is not None:
        app.include_router(simulation.routes())

    @app.get("/healthz", operation_id="health")
    async def health() -> messages.Health:
        """Whether the process answers."""
        return messages.Health(status="alive")

    @app.get("/readyz", operation_id="ready")
    async def ready() -> messages.Ready:
        """Whether the service can store and decide now, and which bandits it cannot serve."""
        await service.check()
        return messages.Ready(status="ready", not_served=sorted(bandits.failures))

    @app.get("/metrics", include_in_schema=False)
    async def page(request: Request) -> Response:
        require_scope(request.scope["accrual.key"], "read")
        await bandits.read(bandits.measure)
        return Response(metrics.page(), headers={"content-type": METRICS_TYPE})

    description = openapi_document(app)

    @app.get("/v1/openapi.json", include_in_schema=False)
    async def openapi() -> dict[str, object]:
        return description

    _explain_errors(app, description["paths"])
    return ServiceApp(app, traffic, Admission(settings, ring), settings, metrics)


class _Service:
    """What runs beside the requests."""

    def __init__(self, bandits: BanditPool, ring: KeyRing, metrics: Metrics) -> None:
        self._bandits = bandits
        self._ring = ring
        self._metrics = metrics
        self._opened = asyncio.Event()
        self._stopping = False
        self.beside: dict[str, Callable[[], Awaitable[None]]] = {}  # what else is to run, once all is open

    @asynccontextmanager
    async def lifespan(self, app: FastAPI) -> AsyncIterator[None]:
        # What has been imported stays: nobody need look through it for garbage again and again. And
        # requests leave little that is not freed at once.
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)
        jobs = {"open": self._open, "keys": self._read_keys}
        jobs |= {name: partial(self._later, job) for name, job in self.beside.items()}
        tasks = [asyncio.create_task(supervise(name, job, self._metrics)) for name, job in jobs.items()]
        try:
            yield
        finally:
            self._stopping = True
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._bandits.close()
            self._ring.close()
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
            self._opened.set()
            await asyncio.sleep(_OPEN_AGAIN)

    async def _later(self, job: Callable[[], Awaitable[None]]) -> None:
        await self._opened.wait()
        await job()

    async def _read_keys(self) -> None:
        while True:
            await asyncio.sleep(_READ_KEYS)
            await self._bandits.read(self._ring.refresh)


def _explain_errors(app: FastAPI, paths: Mapping[str, Mapping[str, object]]) -> None:
    """Whatever a route raises becomes a problem document."""
    shapes = [(re.compile(re.sub(r"{\w+}", "[^/]+", path)), operations) for path, operations in paths.items()]

    def answer(refusal: Refusal) -> Response:
        headers = {name.decode(): value.decode() for name, value in refusal.headers}
        return Response(refusal.body, refusal.status, headers, MEDIA_TYPE)

    @app.exception_handler(Refusal)
    async def refused(request: Request, refusal: Refusal) -> Response:
        return answer(refusal)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        # Where it was and what is wrong, without what was sent, which may be anything.
        found = [
            f"{'.'.join(map(str, one['loc']))}: {one['msg'].removeprefix('Value error, ')}"
            for one in error.errors()[:5]
        ]
        broken = any(one["type"] == "json_invalid" for one in error.errors())
        return answer(Refusal("malformed" if broken else "invalid", "; ".join(found)))

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        if error.status_code == 400:
            return answer(Refusal("malformed", "the body is not JSON"))
        path = request.scope["path"]
        methods = {method.upper() for shape, found in shapes if shape.fullmatch(path) for method in found}
        if error.status_code == 405 or methods:
            allow = ", ".join(sorted(methods or {"GET"}))
            refusal = Refusal("method", f"what can be done here: {allow}", [(b"allow", allow.encode())])
            return answer(refusal)
        return answer(Refusal("not-found", "nothing is here; /v1/openapi.json says what there is"))

    @app.exception_handler(StoreError)
    async def store(request: Request, error: StoreError) -> Response:
        log.error("the store failed", extra={"error": str(error)})
        return answer(try_later("store", "the database cannot be used now; try again"))

    @app.exception_handler(Exception)
    async def fault(request: Request, error: Exception) -> Response:
        return answer(Refusal("internal", "this is a fault of the service; its log says more"))

    @app.exception_handler(InputError)
    async def wrong(request: Request, error: InputError) -> Response:
        return answer(Refusal("invalid", str(error)))
