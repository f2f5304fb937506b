"""An operation of the API as one row: its route, its scope, its messages, and what answers it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from accrual.service.admission import require_scope
from accrual.service.json_input import json_reader, read_query
from accrual.service.messages import WHOLE_MOST, NoQuery
from accrual.service.refusals import Refusal

_write = msgspec.json.Encoder().encode


class Call(NamedTuple):
    """A request, with its parameters and body read and checked."""

    path: Mapping[str, str]
    query: Any
    body: Any


class Operation(NamedTuple):
    """One row of the API's table. The docstring of `answer` describes it."""

    id: str
    method: str
    path: str
    scope: str | None  # which a key must have; None if no key is needed
    answer: Callable[..., Awaitable[Any]]
    out: Any  # the type of the answer
    takes: Any = None  # the type of the body
    body_optional: bool = False
    query: type[msgspec.Struct] = NoQuery
    created: bool = False  # whether `answer` returns a status, 201 or 200, with its message


def route_of(row: Operation) -> Route:
    """Return the framework's route of an operation."""
    read = None if row.takes is None else json_reader(row.takes)

    async def endpoint(request: Request) -> Response:
        if row.scope is not None:
            require_scope(request.scope["accrual.key"], row.scope)
        query = read_query(row.query, request.url.query)
        body = await request.body()
        given = None
        if read is not None and (body or not row.body_optional):
            given = read(body)
        answered = await row.answer(Call(request.path_params, query, given))
        status, message = answered if row.created else (200, answered)
        return Response(_write(message), status, media_type="application/json")

    return Route(row.path, endpoint, methods=[row.method])


def decision_id(call: Call) -> int:
    """Read a decision's id from an address."""
    text = call.path["id"]
    if not (text.isascii() and text.isdecimal() and len(text) <= 16 and int(text) <= WHOLE_MOST):
        raise Refusal("invalid", f"a decision's id must be a whole number of at least 0, not {text[:100]!r}")
    return int(text)
