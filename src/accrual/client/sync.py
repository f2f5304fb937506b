"""The client for code that waits for each answer."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, Unpack

import httpx

from . import calls
from .calls import Call, Piece, PieceOptions, options
from .errors import InputError, ServiceError, error_of, whole
from .results import BanditInfo, BanditState, ContextWorth, Decision, EventPage, Explanation, PieceResult
from .retry import AGAIN, pause

T = TypeVar("T")


class Client:
    """Ask a decision service. A call that gets no answer is sent again, and counted once.

    Threads may share a client.

    Parameters
    ----------
    url : str
    key : str, optional
        As `accrual keys create` printed it.
    timeout : float
        Seconds to wait for an answer.
    attempts : int
        How often a call is sent at most, when there is no answer or the service asks to try again.

    Examples
    --------
    >>> client = Client("http://127.0.0.1:8000")
    >>> client.close()
    """

    def __init__(self, url: str, key: str | None = None, timeout: float = 10.0, attempts: int = 5) -> None:
        self._http = httpx.Client(**options(url, key, timeout))
        self._attempts = whole("attempts", attempts, 1)

    def create(self, name: str, arms: Sequence[str] | Mapping[str, float], window: int | str,
               **settings: Any) -> BanditInfo:  # fmt: skip
        """Make a bandit: `groups`, `policy`, `seed`, `allow_negative`, `unit`, `floor`, `shares`,
        `features`, `arm_features`, `about` and `prior` (closed decisions by arm) as for `accrual.Bandit`."""
        return self._send(calls.create(name, arms, window, settings))

    def names(self) -> list[str]:
        """List the names of all bandits."""
        return self._send(calls.names())

    def archive(self, bandit: str) -> BanditInfo:
        """Stop serving a bandit; all that it has is kept until it is restored."""
        return self._send(calls.archive(bandit))

    def restore(self, bandit: str) -> BanditInfo:
        """Serve a bandit again that was archived or deleted, as it was."""
        return self._send(calls.restore(bandit))

    def delete(self, bandit: str, grace: str = "7d") -> BanditInfo:
        """Archive a bandit and have it erased for good after `grace`, at least an hour; until then it can
        be restored."""
        return self._send(calls.delete(bandit, grace))

    def decide(self, bandit: str, key: str | None = None, context: calls.Context | None = None) -> Decision:
        """Make one decision; for a bandit with features, by the `context` of whom it is for."""
        return self._send(calls.decide(bandit, 1, key, context))[0]

    def decide_many(
        self,
        bandit: str,
        n: int,
        key: str | None = None,
        context: Sequence[calls.Context] | None = None,
    ) -> list[Decision]:
        """Make up to 1,000 decisions at once, before any feedback; with features, a context for each."""
        return self._send(calls.decide(bandit, n, key, context))

    def observe(
        self, bandit: str, decision: int, value: float, **options: Unpack[PieceOptions]
    ) -> PieceResult:
        """Send a piece of a decision's reward; the options are those of `Piece`."""
        return self._send(calls.observe(bandit, Piece(decision, value, **options)))

    def observe_many(self, bandit: str, pieces: Sequence[Piece]) -> list[PieceResult]:
        """Send up to 1,000 pieces; each has its own result."""
        return self._send(calls.observe_many(bandit, pieces))

    def add_arm(
        self,
        bandit: str,
        name: str,
        cap: float = 1.0,
        window: float | None = None,
        about: calls.Context | None = None,
    ) -> None:
        """Add an arm; for a bandit with `arm_features`, with what is known `about` it."""
        self._send(calls.add_arm(bandit, name, cap, window, about))

    def retire_arm(self, bandit: str, name: str) -> None:
        """Never choose an arm again."""
        self._send(calls.retire_arm(bandit, name))

    def close_decision(self, bandit: str, decision: int) -> None:
        """Refuse further pieces of a decision."""
        self._send(calls.close(bandit, decision))

    def state(self, bandit: str) -> BanditState:
        """Show what is known of every arm."""
        return self._send(calls.state(bandit))

    def context_worth(self, bandit: str) -> ContextWorth:
        """Show what contexts are worth: reward per decision with and without."""
        return self._send(calls.context_worth(bandit))

    def explain(self, bandit: str, decision: int) -> Explanation:
        """Explain why a decision fell as it did."""
        return self._send(calls.explain(bandit, decision))

    def events(self, bandit: str, after: int = 0, limit: int = 1000) -> EventPage:
        """Read some of the log, in order."""
        return self._send(calls.events(bandit, after, limit))

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, call: Call[T]) -> T:
        request = call.request()
        attempt = 0
        while True:
            if self._http.is_closed:
                raise InputError("this client has been closed")
            attempt += 1
            try:
                answer = self._http.request(**request)
            except httpx.RequestError as error:
                if attempt >= self._attempts:
                    raise ServiceError(
                        0, "unreachable", f"no answer: {error or type(error).__name__}"
                    ) from error
                time.sleep(pause(attempt, None))
                continue
            if answer.is_success:
                return call.read(answer.status_code, answer.content)
            if answer.status_code not in AGAIN or attempt >= self._attempts:
                raise error_of(answer.status_code, answer.content)
            time.sleep(pause(attempt, answer.headers.get("retry-after")))
