"""The requests of both clients, as plain data: checked here, sent by `Client` or `AsyncClient`."""

from __future__ import annotations

import json
import math
import random
import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial, wraps
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar
from urllib.parse import quote

import httpx

from .errors import InputError, ServiceError, error_of, whole
from .reading import read
from .results import (
    BanditInfo,
    BanditState,
    ContextWorth,
    Decision,
    EventPage,
    Explanation,
    Piece,
    PieceResult,
)

T = TypeVar("T")
P = ParamSpec("P")
_ERRORS = (TypeError, ValueError, AttributeError, LookupError, RecursionError)  # of data of the wrong shape
_AGAIN = frozenset({408, 429, 502, 503, 504})  # HTTP statuses after which a call is sent again
_FIRST, _LONGEST = 0.1, 5.0  # seconds
_PATIENCE = 30.0  # seconds: the longest pause that a service may ask for
Context = Mapping[str, str | bool | float | None]  # a value for each feature of a bandit, or of its arms
BATCH_MOST = 1_000  # decisions or pieces in one request


class Call(NamedTuple, Generic[T]):
    """A request, and how to read its answer. A request that is sent again is counted once."""

    method: str
    path: str
    body: Any
    make: Callable[[Any], T]  # makes the result from the answer

    def request(self) -> dict[str, Any]:
        """Return the arguments of httpx's `request`, or raise an `InputError` if JSON cannot hold them."""
        try:
            request: dict[str, Any] = {"method": self.method, "url": httpx.URL(self.path)}
        except httpx.InvalidURL as error:
            raise InputError(f"this cannot be sent: {error}") from error
        if self.body is not None:
            try:
                request["content"] = json.dumps(self.body, allow_nan=False, default=_plain).encode()
            except _ERRORS as error:
                raise InputError(f"this cannot be sent as JSON: {error}") from error
            request["headers"] = {"Content-Type": "application/json"}
        return request

    def read(self, status: int, answer: bytes) -> T:
        """Return the result, or raise a `ServiceError` if the answer does not come from accrual's service."""
        try:
            return self.make(json.loads(answer) if answer else None)
        except _ERRORS as error:
            detail = "the answer does not come from accrual's service; is the address right?"
            raise ServiceError(status, "unreadable", detail) from error


def _checked(make: Callable[P, Call[T]]) -> Callable[P, Call[T]]:
    """Let a function that makes a call raise an `InputError` for arguments of the wrong shape."""

    @wraps(make)
    def checked(*given: P.args, **named: P.kwargs) -> Call[T]:
        try:
            return make(*given, **named)
        except InputError:
            raise
        except _ERRORS as error:
            raise InputError(f"{make.__name__}: this cannot be sent: {error}") from error

    return checked


def options(url: str, key: str | None, timeout: float) -> dict[str, Any]:
    """Return the options of an httpx client, or raise an `InputError` that names the wrong one.

    Examples
    --------
    >>> options("localhost", None, 10.0)
    Traceback (most recent call last):
    accrual.client.errors.InputError: url must be an address such as http://127.0.0.1:8000, not 'localhost'
    """
    try:
        parts = httpx.URL(url)
        good = parts.scheme in ("http", "https") and bool(parts.host) and not re.search(r"[\s%]", parts.host)
    except (httpx.InvalidURL, *_ERRORS):
        good = False
    if not good:
        raise InputError(f"url must be an address such as http://127.0.0.1:8000, not {url!r}")
    if key is not None and not (isinstance(key, str) and re.fullmatch(r"[!-~]+", key)):
        raise InputError("key must be as `accrual keys create` printed it")
    if _number("timeout", timeout) <= 0.0:
        raise InputError(f"timeout must be more than 0 seconds, not {timeout!r}")
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return {"base_url": url, "headers": headers, "timeout": timeout}


def pause_after(answer: httpx.Response | httpx.RequestError, attempt: int, attempts: int) -> float:
    """Return the seconds to wait before the next attempt, or raise a `ServiceError` if there is none.

    The pause is what the service asked for, or a random time whose limit doubles with each attempt.

    Parameters
    ----------
    answer : Response or RequestError
        An answer that is not a success, or why there is no answer.
    attempt : int
        The number of the attempt, from 1.
    attempts : int
        The most attempts.
    """
    asked = None
    if isinstance(answer, httpx.Response):
        if answer.status_code not in _AGAIN or attempt >= attempts:
            raise error_of(answer.status_code, answer.content)
        asked = answer.headers.get("retry-after")
    elif attempt >= attempts:
        raise ServiceError(0, "unreachable", f"no answer: {answer or type(answer).__name__}") from answer
    if asked is not None and asked.isdecimal():
        return min(float(asked), _PATIENCE)
    return random.uniform(0.0, min(_LONGEST, _FIRST * 2.0**attempt))


@_checked
def create(name: str, arms: Sequence[str] | Mapping[str, float], window: int | str,
           settings: Mapping[str, Any]) -> Call[BanditInfo]:  # fmt: skip
    """Make a bandit. The same request sent again is no error."""
    given = {key: value for key, value in settings.items() if value is not None}
    if "about" in given:
        known = {arm: values for arm, values in given["about"].items() if values is not None}
        given["about"] = {arm: _values("about an arm", values) for arm, values in known.items()}
    if isinstance(arms, Mapping):
        arms = {arm: _number("cap", cap) for arm, cap in arms.items()}
    elif not isinstance(arms, str):
        arms = list(arms)
    body = {"name": name, "arms": arms, "window": window, **given}
    return Call("POST", "/v1/bandits", body, partial(read, BanditInfo))


@_checked
def names() -> Call[list[str]]:
    """List the names of all bandits."""
    return Call("GET", "/v1/bandits", None, lambda found: [bandit["name"] for bandit in found["bandits"]])


@_checked
def archive(bandit: str) -> Call[BanditInfo]:
    """Stop serving a bandit. All its data are kept."""
    return Call("POST", _of(bandit, "archive"), None, partial(read, BanditInfo))


@_checked
def restore(bandit: str) -> Call[BanditInfo]:
    """Serve an archived or deleted bandit again."""
    return Call("POST", _of(bandit, "restore"), None, partial(read, BanditInfo))


@_checked
def delete(bandit: str, grace: str) -> Call[BanditInfo]:
    """Archive a bandit and permanently erase it after `grace`."""
    address = f"/v1/bandits/{quote(bandit, safe='')}?grace={quote(grace, safe='')}"
    return Call("DELETE", address, None, partial(read, BanditInfo))


@_checked
def decide(
    bandit: str, n: int, key: str | None, context: Context | Sequence[Context] | None = None
) -> Call[list[Decision]]:
    """Make decisions. Without a key, one is drawn here, so that a second sending decides nothing new."""
    body: dict[str, Any] = {"n": whole("n", n, 1, BATCH_MOST), "key": _key(key) or _new_key()}
    if context is not None:
        one = isinstance(context, Mapping)
        body["context"] = _values("a context", context) if one else [_values("a context", c) for c in context]
    return Call("POST", _of(bandit, "decisions"), body, _decisions)


def _decisions(found: Any) -> list[Decision]:
    return read(list[Decision], found["decisions"])


@_checked
def observe(bandit: str, piece: Piece) -> Call[PieceResult]:
    """Send a piece."""
    return Call("POST", _of(bandit, "pieces"), _piece(piece), partial(read, PieceResult))


@_checked
def observe_many(bandit: str, pieces: Sequence[Piece]) -> Call[list[PieceResult]]:
    """Send up to 1,000 pieces."""
    body = [_piece(piece) for piece in pieces]
    return Call("POST", _of(bandit, "pieces"), body, partial(read, list[PieceResult]))


def _piece(piece: Piece) -> dict[str, Any]:
    """Check a piece and write it as JSON.

    A piece without key, age and time would count each time it is sent, so it gets a key here.
    """
    body = {name: value for name, value in vars(piece).items() if value is not None}
    body["decision"] = whole("decision", piece.decision, 0)
    for name in ("value", "age", "at"):  # an age may also be "1d", and a time a text or a datetime
        if name in body and (name == "value" or not isinstance(body[name], str | datetime | timedelta)):
            body[name] = _number(name, body[name])
    if not body.keys() & {"key", "age", "at"}:
        body["key"] = _new_key()
    _key(body.get("key"))
    return body


def _number(name: str, value: Any) -> float:
    """Return a number that JSON can hold. Numpy's numbers are taken, text and NaN are not."""
    try:
        number = math.nan if isinstance(value, str | bytes | bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{name} must be a finite number, not {value!r}")
    return number


def _values(what: str, given: Any) -> dict[str, Any]:
    """Return the values of features for JSON. Numpy's values are taken, and NaN means not known."""
    if not isinstance(given, Mapping):
        raise InputError(f"{what} must be features with their values, not {given!r}")
    plain = {name: value.item() if hasattr(value, "item") else value for name, value in given.items()}
    unknown = {name for name, value in plain.items() if isinstance(value, float) and math.isnan(value)}
    return {name: None if name in unknown else value for name, value in plain.items()}


def _key(key: Any) -> str | None:
    if key is not None and not isinstance(key, str):
        raise InputError(f"key must be text, not {key!r}")
    return key


def _new_key() -> str:
    """Draw a new key. It begins with the time, so that a database stores keys of one time together."""
    return f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(10)}"


@_checked
def add_arm(
    bandit: str, name: str, cap: float, window: float | None, about: Context | None = None
) -> Call[None]:
    """Add an arm. The same request sent again is no error."""
    body: dict[str, Any] = {"name": name, "cap": _number("cap", cap)}
    if window is not None:
        body["window"] = window
    if about is not None:
        body["about"] = _values("about an arm", about)
    return Call("POST", _of(bandit, "arms"), body, _nothing)


@_checked
def retire_arm(bandit: str, name: str) -> Call[None]:
    """Never choose an arm again."""
    return Call("POST", _of(bandit, "arms/retire"), {"name": name}, _nothing)


def _plain(given: Any) -> Any:
    """Write for JSON what Python users give: the type of a feature, a time, a number or a list of numpy."""
    if given is bool:
        return "bool"
    if isinstance(given, datetime):
        return given.isoformat()
    if isinstance(given, timedelta):
        return f"{given.total_seconds():f}s"
    if hasattr(given, "tolist") and not isinstance(given, type):
        return given.tolist()
    raise TypeError(f"JSON cannot hold {given!r}")


@_checked
def close(bandit: str, decision: int) -> Call[None]:
    """Close a decision."""
    return Call("POST", _of(bandit, f"decisions/{whole('decision', decision, 0)}/close"), None, _nothing)


@_checked
def state(bandit: str) -> Call[BanditState]:
    """Return what is known about every arm."""
    return Call("GET", _of(bandit, "state"), None, partial(read, BanditState))


@_checked
def context_worth(bandit: str) -> Call[ContextWorth]:
    """Return what contexts are worth."""
    return Call("GET", _of(bandit, "contexts"), None, partial(read, ContextWorth))


@_checked
def explain(bandit: str, decision: int) -> Call[Explanation]:
    """Explain why a decision chose its arm."""
    at = _of(bandit, f"decisions/{whole('decision', decision, 0)}/explain")
    return Call("GET", at, None, partial(read, Explanation))


@_checked
def events(bandit: str, after: int, limit: int) -> Call[EventPage]:
    """Read a part of the log, in order."""
    query = f"after={whole('after', after, 0)}&limit={whole('limit', limit, 1)}"
    return Call("GET", _of(bandit, f"export?{query}"), None, partial(read, EventPage))


def _of(bandit: str, what: str) -> str:
    return f"/v1/bandits/{quote(bandit, safe='')}/{what}"


def _nothing(found: Any) -> None:
    return None
