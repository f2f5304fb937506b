"""The requests that a service takes: each as plain data, checked here and sent by either client."""

from __future__ import annotations

import functools
import json
import math
import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, ParamSpec, TypedDict, TypeVar
from urllib.parse import quote

import httpx

from .errors import InputError, ServiceError, whole
from .results import (
    BanditInfo,
    BanditState,
    ContextWorth,
    Decision,
    EventPage,
    Explanation,
    PieceResult,
    build,
    build_context_worth,
    build_events,
    build_explanation,
    build_state,
)

T = TypeVar("T")
P = ParamSpec("P")
_ERRORS = (TypeError, ValueError, AttributeError, LookupError, RecursionError)  # of data of the wrong shape
Context = Mapping[str, str | bool | float | None]  # a value for each feature of a bandit, or of its arms
BATCH_MOST = 1_000  # decisions or pieces in one request


class Piece(NamedTuple):
    """A piece to be sent."""

    decision: int
    value: float
    age: float | None = None
    at: float | None = None  # in place of the age: when it was paid
    key: str | None = None
    stream: str | None = None  # the guardrail that it is of; reward unless given


class PieceOptions(TypedDict, total=False):
    """What may be said of a piece beside its decision and value: the optional fields of `Piece`."""

    age: float | None
    at: float | None
    key: str | None
    stream: str | None


class Call(NamedTuple, Generic[T]):
    """A request, and how to read its answer. It may be sent again: it is counted once."""

    method: str
    path: str
    body: Any
    make: Callable[[Any], T]  # makes the result from the answer

    def request(self) -> dict[str, Any]:
        """Return what httpx is to send, or raise an `InputError` if JSON cannot say it."""
        try:
            request: dict[str, Any] = {"method": self.method, "url": httpx.URL(self.path)}
        except httpx.InvalidURL as error:
            raise InputError(f"this cannot be sent: {error}") from error
        if self.body is not None:
            try:
                request["content"] = json.dumps(self.body, allow_nan=False).encode()
            except _ERRORS as error:
                raise InputError(f"this cannot be sent as JSON: {error}") from error
            request["headers"] = {"Content-Type": "application/json"}
        return request

    def read(self, status: int, answer: bytes) -> T:
        """Return what the service answered, or raise a `ServiceError` if this is no answer of a service."""
        try:
            return self.make(json.loads(answer) if answer else None)
        except _ERRORS as error:
            detail = "the answer is not one of accrual's service; is this its address?"
            raise ServiceError(status, "unreadable", detail) from error


def _checked(make: Callable[P, Call[T]]) -> Callable[P, Call[T]]:
    """Let a function that makes a call raise an `InputError` for whatever it cannot make one of."""

    @functools.wraps(make)
    def checked(*given: P.args, **named: P.kwargs) -> Call[T]:
        try:
            return make(*given, **named)
        except InputError:
            raise
        except _ERRORS as error:
            raise InputError(f"{make.__name__}: this cannot be sent: {error}") from error

    return checked


def options(url: str, key: str | None, timeout: float) -> dict[str, Any]:
    """Return the options of an httpx client, or raise an `InputError` that says which makes no sense.

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


@_checked
def create(name: str, arms: Sequence[str] | Mapping[str, float], window: int | str,
           settings: Mapping[str, Any]) -> Call[BanditInfo]:  # fmt: skip
    """Make a bandit; the same request again is no error."""
    given = {key: value for key, value in settings.items() if value is not None}
    for key in {"features", "arm_features"} & given.keys():
        given[key] = {name: _declaration(kind) for name, kind in given[key].items()}
    listed = _arms(arms, given.pop("about", {}))
    body = {"name": name, "arms": listed, "window": window, **given}
    return Call("POST", "/v1/bandits", body, lambda found: build(BanditInfo, found))


def _arms(arms: Sequence[str] | Mapping[str, float], about: Mapping[str, Context]) -> list[dict[str, Any]]:
    """List arms as JSON has them, with their caps and what is known about each where that is given."""
    arms = arms if isinstance(arms, Mapping) else list(arms)
    for name in about:
        if name not in arms:
            raise InputError(f"about must be of the bandit's arms, not of {name!r}")
    caps = arms if isinstance(arms, Mapping) else {}
    given = {name: {"cap": _number("cap", cap)} for name, cap in caps.items()}
    known = {
        name: {"about": _values("about an arm", values)}
        for name, values in about.items()
        if values is not None
    }
    return [{"name": name, **given.get(name, {}), **known.get(name, {})} for name in arms]


@_checked
def names() -> Call[list[str]]:
    """List the names of all bandits."""
    return Call("GET", "/v1/bandits", None, lambda found: [bandit["name"] for bandit in found["bandits"]])


@_checked
def archive(bandit: str) -> Call[BanditInfo]:
    """Stop serving a bandit; all that it has is kept."""
    return Call("POST", _of(bandit, "archive"), None, lambda found: build(BanditInfo, found))


@_checked
def restore(bandit: str) -> Call[BanditInfo]:
    """Serve a bandit again that was archived or deleted."""
    return Call("POST", _of(bandit, "restore"), None, lambda found: build(BanditInfo, found))


@_checked
def delete(bandit: str, grace: str) -> Call[BanditInfo]:
    """Archive a bandit and erase it for good after `grace`."""
    address = f"/v1/bandits/{quote(bandit, safe='')}?grace={quote(grace, safe='')}"
    return Call("DELETE", address, None, lambda found: build(BanditInfo, found))


@_checked
def decide(
    bandit: str, n: int, key: str | None, context: Context | Sequence[Context] | None = None
) -> Call[list[Decision]]:
    """Make decisions. Without a key one is made here, so that sending it again decides nothing new."""
    body: dict[str, Any] = {"n": whole("n", n, 1, BATCH_MOST), "key": _key(key) or _new_key()}
    if context is not None:
        one = isinstance(context, Mapping)
        body["context"] = _values("a context", context) if one else [_values("a context", c) for c in context]
    return Call("POST", _of(bandit, "decisions"), body, _decisions)


def _decisions(found: Any) -> list[Decision]:
    return [build(Decision, decision) for decision in found["decisions"]]


@_checked
def observe(bandit: str, piece: Piece) -> Call[PieceResult]:
    """Send a piece."""
    return Call("POST", _of(bandit, "pieces"), _piece(piece), _result)


@_checked
def observe_many(bandit: str, pieces: Sequence[Piece]) -> Call[list[PieceResult]]:
    """Send up to 1,000 pieces."""
    body = [_piece(piece) for piece in pieces]
    return Call("POST", _of(bandit, "pieces"), body, lambda found: list(map(_result, found)))


def _piece(piece: Piece) -> dict[str, Any]:
    """Check a piece and write it as JSON has it.

    One with neither key, age nor time would count anew each time it is sent, so it gets a key here.
    """
    body: dict[str, Any] = {
        "decision": whole("decision", piece.decision, 0),
        "value": _number("value", piece.value),
    }
    if piece.age is not None:
        body["age"] = _number("age", piece.age)
    if piece.at is not None:
        body["at"] = _number("at", piece.at)
    key = _key(piece.key)
    if key is None and len(body) == 2:
        key = _new_key()
    stream = {} if piece.stream is None else {"stream": piece.stream}
    return body | stream if key is None else body | stream | {"key": key}


def _number(name: str, value: Any) -> float:
    """Return a number that JSON can say: numpy's numbers too, but neither text nor NaN."""
    try:
        number = math.nan if isinstance(value, str | bytes | bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{name} must be a finite number, not {value!r}")
    return number


def _values(what: str, given: Any) -> dict[str, Any]:
    """Return the values of features as JSON has them: numpy's too; NaN, which it has not, is not known."""
    if not isinstance(given, Mapping):
        raise InputError(f"{what}: features with their values, not {given!r}")
    plain = {name: value.item() if hasattr(value, "item") else value for name, value in given.items()}
    unknown = {name for name, value in plain.items() if isinstance(value, float) and math.isnan(value)}
    return {name: None if name in unknown else value for name, value in plain.items()}


def _key(key: Any) -> str | None:
    if key is not None and not isinstance(key, str):
        raise InputError(f"key must be text, not {key!r}")
    return key


def _new_key() -> str:
    """Make a key unlike any other. Keys of one time begin alike, so a database has them side by side."""
    return f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(10)}"


def _result(found: Any) -> PieceResult:
    return build(PieceResult, found)


@_checked
def add_arm(
    bandit: str, name: str, cap: float, window: float | None, about: Context | None = None
) -> Call[None]:
    """Add an arm; the same request again is no error."""
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


def _declaration(kind: Any) -> Any:
    """Return what a feature may be as JSON has it: `bool`, levels, or the two ends of a range."""
    if kind is bool:
        return "bool"
    if isinstance(kind, list | tuple):
        return list(kind)
    raise InputError(f"a feature must be ['de', 'us'], bool or (0, 50), for example, not {kind!r}")


@_checked
def close(bandit: str, decision: int) -> Call[None]:
    """Refuse further pieces of a decision."""
    return Call("POST", _of(bandit, f"decisions/{whole('decision', decision, 0)}/close"), None, _nothing)


@_checked
def state(bandit: str) -> Call[BanditState]:
    """Show what is known of every arm."""
    return Call("GET", _of(bandit, "state"), None, build_state)


@_checked
def context_worth(bandit: str) -> Call[ContextWorth]:
    """Show what contexts are worth: reward per decision with and without."""
    return Call("GET", _of(bandit, "contexts"), None, build_context_worth)


@_checked
def explain(bandit: str, decision: int) -> Call[Explanation]:
    """Explain why a decision fell as it did."""
    return Call(
        "GET", _of(bandit, f"decisions/{whole('decision', decision, 0)}/explain"), None, build_explanation
    )


@_checked
def events(bandit: str, after: int, limit: int) -> Call[EventPage]:
    """Read some of the log, in order."""
    query = f"after={whole('after', after, 0)}&limit={whole('limit', limit, 1)}"
    return Call("GET", _of(bandit, f"export?{query}"), None, build_events)


def _of(bandit: str, what: str) -> str:
    return f"/v1/bandits/{quote(bandit, safe='')}/{what}"


def _nothing(found: Any) -> None:
    return None
