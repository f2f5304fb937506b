"""What can be asked of a service: each call as plain data, sent by either client."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote

T = TypeVar("T")


class Decision(NamedTuple):
    """A decision that was made."""

    id: int
    arm: str
    at: float  # its round, or its time in seconds since 1970


class Piece(NamedTuple):
    """A piece to be sent."""

    decision: int
    value: float
    age: float | None = None
    at: float | None = None  # in place of the age: when it was paid
    key: str | None = None


class PieceResult(NamedTuple):
    """What became of a piece."""

    status: str  # stored, late or again; in a batch also conflict, unknown, future, early or invalid
    late: bool = False
    age: float | None = None
    detail: str = ""
    warning: str = ""  # text if the decision has paid more in all than its arm's cap


class Call(NamedTuple, Generic[T]):
    """A request, and how to read its answer. Safe to send again, whatever became of it before."""

    method: str
    path: str
    body: Any
    read: Callable[[Any], T]


def create(name: str, arms: Sequence[str] | Mapping[str, float], window: int | str,
           settings: Mapping[str, Any]) -> Call[dict[str, Any]]:  # fmt: skip
    """Make a bandit; the same again is no error."""
    if isinstance(arms, Mapping):
        listed: list[Any] = [{"name": arm, "cap": cap} for arm, cap in arms.items()]
    else:
        listed = [{"name": arm} for arm in arms]
    given = {key: value for key, value in settings.items() if value is not None}
    return Call("POST", "/v1/bandits", {"name": name, "arms": listed, "window": window, **given}, dict)


def names() -> Call[list[str]]:
    """The names of all bandits."""
    return Call("GET", "/v1/bandits", None, lambda found: [bandit["name"] for bandit in found["bandits"]])


def decide(bandit: str, n: int, key: str | None) -> Call[list[Decision]]:
    """Decide. Without a key of the caller's, one is made, so that a retry decides nothing new."""
    body = {"n": n, "key": key or _new_key()}
    return Call("POST", _of(bandit, "decisions"), body, _decisions)


def _decisions(found: Any) -> list[Decision]:
    return [Decision(one["id"], one["arm"], one["at"]) for one in found["decisions"]]


def observe(bandit: str, piece: Piece) -> Call[PieceResult]:
    """Send a piece."""
    return Call("POST", _of(bandit, "pieces"), _piece(piece), _result)


def observe_many(bandit: str, pieces: Sequence[Piece]) -> Call[list[PieceResult]]:
    """Send up to 1,000 pieces."""
    body = [_piece(piece) for piece in pieces]
    return Call("POST", _of(bandit, "pieces"), body, lambda found: [_result(one) for one in found])


def _piece(piece: Piece) -> dict[str, Any]:
    """A piece with neither age nor time has no key but one of its own, so it gets one here."""
    if piece.key is None and piece.age is None and piece.at is None:
        piece = piece._replace(key=_new_key())
    return {name: value for name, value in piece._asdict().items() if value is not None}


def _new_key() -> str:
    """Unlike any other. Those of one time begin alike, so that a database has them side by side."""
    return f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(10)}"


def _result(found: Any) -> PieceResult:
    texts = found.get("detail", ""), found.get("warning", "")
    return PieceResult(found["status"], found.get("late", False), found.get("age"), *texts)


def add_arm(bandit: str, name: str, cap: float, window: float | None) -> Call[None]:
    """Add an arm; the same again is no error."""
    body = {"name": name, "cap": cap} | ({} if window is None else {"window": window})
    return Call("POST", _of(bandit, "arms"), body, _nothing)


def retire_arm(bandit: str, name: str) -> Call[None]:
    """Never choose an arm again."""
    return Call("POST", _of(bandit, "arms/retire"), {"name": name}, _nothing)


def close(bandit: str, decision: int) -> Call[None]:
    """Nothing more will come for a decision."""
    return Call("POST", _of(bandit, f"decisions/{decision:d}/close"), None, _nothing)


def state(bandit: str) -> Call[dict[str, Any]]:
    """What is known of every arm."""
    return Call("GET", _of(bandit, "state"), None, dict)


def explain(bandit: str, decision: int) -> Call[dict[str, Any]]:
    """Why a decision fell as it did."""
    return Call("GET", _of(bandit, f"decisions/{decision:d}/explain"), None, dict)


def events(bandit: str, after: int, limit: int) -> Call[dict[str, Any]]:
    """Some of the log, in order."""
    return Call("GET", _of(bandit, f"export?after={after:d}&limit={limit:d}"), None, dict)


def _of(bandit: str, what: str) -> str:
    return f"/v1/bandits/{quote(bandit, safe='')}/{what}"


def _nothing(found: Any) -> None:
    return None
