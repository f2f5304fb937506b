"""The outermost layer: it admits or refuses every request, reads its body, and adds headers to the answer.

The two routes of the traffic are answered here, without the framework. Other requests go on to the framework.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.routing import Route, Router

from accrual.core.errors import InputError
from accrual.service.admission import Admission, Headers, RequestHead, require_scope
from accrual.service.metrics import Metrics
from accrual.service.refusals import MEDIA_TYPE, Refusal, try_later
from accrual.service.settings import Settings
from accrual.service.traffic_routes import TrafficRoutes
from accrual.store.base import StoreError

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Scope = MutableMapping[str, Any]

ROUTE = "accrual.route"  # in a scope: the pattern of a route that is answered without the framework
ANSWERED = "accrual.answered"  # in a scope's state: what to call when the request has been answered
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_SAFE = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]
_FRESH = [(b"cache-control", b"no-store")]
_JSON = [(b"content-type", b"application/json"), *_FRESH, *_SAFE]
_PROBLEM = [(b"content-type", MEDIA_TYPE.encode()), *_FRESH, *_SAFE]
_BANDITS = "/v1/bandits/"
_REQUEST_ID = re.compile(rb"[\w.:/+=-]{1,100}")  # what is taken over from a header into the log

log = logging.getLogger("accrual.service")


class ServiceApp:
    """The whole service as an ASGI application, around the framework's router.

    Parameters
    ----------
    app : Router
        Answers everything but the routes of the traffic.
    """

    def __init__(
        self, app: Router, traffic: TrafficRoutes, admission: Admission, settings: Settings, metrics: Metrics
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._routes: dict[Any, str] = {
            route.endpoint: route.path for route in app.routes if isinstance(route, Route)
        }
        self._admission = admission
        self._traffic = traffic
        self._body = settings.body
        self._access_log = settings.access_log

    @property
    def keys_required(self) -> bool:
        """Whether a request needs a key now."""
        return self._admission.keys_required

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            await self._respond(scope, receive, send)
        finally:
            answered = scope.get("state", {}).get(ANSWERED)
            if answered is not None:
                answered()

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = finished = False
        begun, request_id = time.perf_counter(), _request_id(scope["headers"])
        own = (b"x-request-id", request_id)

        def note(status: int) -> None:
            """Count and log the request, whose answer begins now."""
            seconds = time.perf_counter() - begun
            route = scope.get(ROUTE) or self._routes.get(scope.get("endpoint"), "none")
            self._metrics.answered(route, status, seconds)
            if self._access_log:
                _note(scope, status, seconds, request_id)

        async def answer(status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
            nonlocal started, finished
            started = finished = True
            note(status)
            length = (b"content-length", str(len(body)).encode())
            await send({"type": "http.response.start", "status": status, "headers": [length, own, *headers]})
            await send({"type": "http.response.body", "body": body})

        async def pass_on(message: Message) -> None:
            nonlocal started, finished
            if message["type"] == "http.response.start":
                started = True
                note(message["status"])
                message["headers"] = [*message["headers"], own, *_SAFE]
                if not any(name == b"cache-control" for name, _ in message["headers"]):
                    message["headers"] += _FRESH
            else:
                finished = not message.get("more_body", False)
            await send(message)

        try:
            head = RequestHead(scope["headers"])
            path = scope["path"]
            if b"%" in scope["raw_path"] and path.startswith("/v1"):
                raise Refusal("not-found", "no address of this service contains an escape (%)")
            key = self._admission.admit(path, head)
            body = await read_body(receive, head.length, self._body)
            if scope["method"] == "POST":
                if body and not head.media.lower().startswith(b"application/json"):
                    raise Refusal("media-type", "send the header Content-Type: application/json")
                name, _, rest = path.removeprefix(_BANDITS).partition("/")
                if path.startswith(_BANDITS) and rest in ("pieces", "decisions"):
                    scope[ROUTE] = f"{_BANDITS}{{bandit}}/{rest}"
                    require_scope(key, "write")
                    if scope["query_string"]:
                        raise Refusal("invalid", "this address takes no query parameters")
                    handle = self._traffic.pieces if rest == "pieces" else self._traffic.decisions
                    await answer(200, _JSON, await handle(name, body))
                    return
            scope["accrual.key"] = key
            scope["app"] = self  # so that the router raises an error for an unknown address
            await self._app(scope, _replay(body, receive), pass_on)
        except ClientGone:
            pass
        except Exception as error:
            refusal = self._refusal(error, scope, request_id)
            if not started:
                await answer(refusal.status, [*_PROBLEM, *refusal.headers], refusal.body)
            elif not finished:
                raise  # the connection is cut, so that nobody takes half an answer for a whole one

    def _refusal(self, error: Exception, scope: Scope, request_id: bytes) -> Refusal:
        """Return the refusal that answers an error."""
        if isinstance(error, Refusal):
            return error
        if isinstance(error, InputError):
            return Refusal("invalid", str(error))
        which = {"method": scope["method"], "request": request_id.decode()}
        if isinstance(error, StoreError):
            log.error("the store failed", extra={"error": str(error), **which})
            return try_later("store", "the database cannot be used now; try again")
        if isinstance(error, HTTPException):
            return self._not_there(scope["path"])
        log.error("a request failed", exc_info=error, extra=which)
        return Refusal("internal", "the service has a fault; its log says more")

    def _not_there(self, path: str) -> Refusal:
        routes = [route for route in self._app.routes if isinstance(route, Route)]
        methods = {
            method for route in routes if route.path_regex.match(path) for method in route.methods or ()
        }
        if re.fullmatch(f"{_BANDITS}[^/]+/(pieces|decisions)", path):
            methods.add("POST")
        if not methods:
            return Refusal("not-found", "nothing has this address; /v1/openapi.json lists the routes")
        allow = ", ".join(sorted(methods))
        return Refusal("method", f"this address takes: {allow}", [(b"allow", allow.encode())])


class ClientGone(Exception):
    """The client closed the connection before its request was complete."""


async def read_body(receive: Receive, length: bytes, most: int) -> bytes:
    """Return the whole body, or refuse a body of more than `most` bytes.

    `length` is the Content-Length header, if there is one. The bytes are counted all the same.
    """
    if len(length) > 18 or (length and int(length) > most):
        raise _too_large(most)
    message = await receive()
    body: bytes = message.get("body", b"")
    while message.get("more_body", False) and message["type"] == "http.request":
        if len(body) > most:
            raise _too_large(most)
        message = await receive()
        body += message.get("body", b"")
    if message["type"] != "http.request":
        raise ClientGone
    if len(body) > most:
        raise _too_large(most)
    return body


def _too_large(most: int) -> Refusal:
    close = [(b"connection", b"close")]  # the rest of the body is not read, so no other request can follow
    return Refusal("too-large", f"a body may have at most {most:,} bytes", close)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that returns a body which was read before, and then what follows it."""
    unread = True

    async def again() -> Message:
        nonlocal unread
        if unread:
            unread = False
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return again


def _request_id(headers: Headers) -> bytes:
    """Return the id of a request: what a proxy or client has sent as X-Request-Id, or a new one."""
    for name, value in headers:
        if name == b"x-request-id" and _REQUEST_ID.fullmatch(value):
            return value
    return os.urandom(8).hex().encode()


def _note(scope: Scope, status: int, seconds: float, request_id: bytes) -> None:
    extra: dict[str, Any] = {
        "method": scope["method"], "path": scope["path"], "status": status, "seconds": round(seconds, 6),
        "request": request_id.decode(),
    }  # fmt: skip
    log.info("answered", extra=extra)
