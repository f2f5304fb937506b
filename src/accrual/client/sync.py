"""The synchronous client: each call waits for its answer."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, Unpack

import httpx

from . import calls
from .calls import Call, options, pause_after
from .errors import InputError, whole
from .results import (
    BanditInfo,
    BanditState,
    ContextWorth,
    Decision,
    EventPage,
    Explanation,
    Piece,
    PieceOptions,
    PieceResult,
)

T = TypeVar("T")


class Client:
    """Call a decision service. A call that gets no answer is sent again, and counted once.

    Threads may share a client.

    Parameters
    ----------
    url : str
    key : str, optional
        As `accrual keys create` printed it.
    timeout : float
        Seconds to wait for an answer.
    attempts : int
        How often a call is sent at most, if there is no answer or the service asks to try again.

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
        """Make a bandit.

        The settings are those of `accrual.Bandit`: `groups`, `policy`, `seed`, `allow_negative`, `unit`,
        `floor`, `shares`, `features`, `arm_features`, `about`, `streams` and `prior` (closed decisions by
        arm).
        """
        return self._send(calls.create(name, arms, window, settings))

    def names(self) -> list[str]:
        """List the names of all bandits."""
        return self._send(calls.names())

    def archive(self, bandit: str) -> BanditInfo:
        """Stop serving a bandit. All its data are kept, and it can be restored."""
        return self._send(calls.archive(bandit))

    def restore(self, bandit: str) -> BanditInfo:
        """Serve an archived or deleted bandit again, as it was."""
        return self._send(calls.restore(bandit))

    def delete(self, bandit: str, grace: str = "7d") -> BanditInfo:
        """Archive a bandit and permanently erase it after `grace`, which is at least an hour.

        Until then the bandit can be restored.
        """
        return self._send(calls.delete(bandit, grace))

    def decide(self, bandit: str, key: str | None = None, context: calls.Context | None = None) -> Decision:
        """Make one decision. A bandit with features takes its `context`."""
        return self._send(calls.decide(bandit, 1, key, context))[0]

    def decide_many(
        self, bandit: str, n: int, key: str | None = None, context: Sequence[calls.Context] | None = None
    ) -> list[Decision]:
        """Make up to 1,000 decisions at once. A bandit with features takes a context for each."""
        return self._send(calls.decide(bandit, n, key, context))

    def observe(
        self, bandit: str, decision: int, value: float, **options: Unpack[PieceOptions]
    ) -> PieceResult:
        """Send a piece of a decision's reward. The options are those of `Piece`."""
        return self._send(calls.observe(bandit, Piece(decision, value, **options)))

    def observe_many(self, bandit: str, pieces: Sequence[Piece]) -> list[PieceResult]:
        """Send up to 1,000 pieces. Each has its own result."""
        return self._send(calls.observe_many(bandit, pieces))

    def add_arm(
        self,
        bandit: str,
        name: str,
        cap: float = 1.0,
        window: float | None = None,
        about: calls.Context | None = None,
    ) -> None:
        """Add an arm. A bandit with `arm_features` takes the arm's features as `about`."""
        self._send(calls.add_arm(bandit, name, cap, window, about))

    def retire_arm(self, bandit: str, name: str) -> None:
        """Never choose an arm again."""
        self._send(calls.retire_arm(bandit, name))

    def close_decision(self, bandit: str, decision: int) -> None:
        """Close a decision: pieces that still come are late."""
        self._send(calls.close(bandit, decision))

    def state(self, bandit: str) -> BanditState:
        """Return what is known about every arm, and the verdict."""
        return self._send(calls.state(bandit))

    def context_worth(self, bandit: str) -> ContextWorth:
        """Return what contexts are worth: the reward per decision with and without them."""
        return self._send(calls.context_worth(bandit))

    def explain(self, bandit: str, decision: int) -> Explanation:
        """Explain why a decision chose its arm."""
        return self._send(calls.explain(bandit, decision))

    def events(self, bandit: str, after: int = 0, limit: int = 1000) -> EventPage:
        """Read up to `limit` events of the log after a position, in order."""
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
                pause = pause_after(error, attempt, self._attempts)
            else:
                if answer.is_success:
                    return call.read(answer.status_code, answer.content)
                pause = pause_after(answer, attempt, self._attempts)
            time.sleep(pause)
