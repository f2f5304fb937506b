"""The asynchronous client: each method of `Client`, to be awaited."""

from __future__ import annotations

import asyncio
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


class AsyncClient:
    """Call a decision service. A call that gets no answer is sent again, and counted once.

    Tasks of one event loop may share a client.

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
    >>> import asyncio
    >>> async def main():
    ...     async with AsyncClient("http://127.0.0.1:8000") as client:
    ...         return "made"
    >>> asyncio.run(main())
    'made'
    """

    def __init__(self, url: str, key: str | None = None, timeout: float = 10.0, attempts: int = 5) -> None:
        self._http = httpx.AsyncClient(**options(url, key, timeout))
        self._attempts = whole("attempts", attempts, 1)

    async def create(self, name: str, arms: Sequence[str] | Mapping[str, float], window: int | str,
               **settings: Any) -> BanditInfo:  # fmt: skip
        """Make a bandit.

        The settings are those of `accrual.Bandit`: `groups`, `policy`, `seed`, `allow_negative`, `unit`,
        `floor`, `shares`, `features`, `arm_features`, `about`, `streams` and `prior` (closed decisions by
        arm).
        """
        return await self._send(calls.create(name, arms, window, settings))

    async def names(self) -> list[str]:
        """List the names of all bandits."""
        return await self._send(calls.names())

    async def archive(self, bandit: str) -> BanditInfo:
        """Stop serving a bandit. All its data are kept, and it can be restored."""
        return await self._send(calls.archive(bandit))

    async def restore(self, bandit: str) -> BanditInfo:
        """Serve an archived or deleted bandit again, as it was."""
        return await self._send(calls.restore(bandit))

    async def delete(self, bandit: str, grace: str = "7d") -> BanditInfo:
        """Archive a bandit and permanently erase it after `grace`, which is at least an hour.

        Until then the bandit can be restored.
        """
        return await self._send(calls.delete(bandit, grace))

    async def decide(
        self, bandit: str, key: str | None = None, context: calls.Context | None = None
    ) -> Decision:
        """Make one decision. A bandit with features takes its `context`."""
        return (await self._send(calls.decide(bandit, 1, key, context)))[0]

    async def decide_many(
        self, bandit: str, n: int, key: str | None = None, context: Sequence[calls.Context] | None = None
    ) -> list[Decision]:
        """Make up to 1,000 decisions at once. A bandit with features takes a context for each."""
        return await self._send(calls.decide(bandit, n, key, context))

    async def observe(
        self, bandit: str, decision: int, value: float, **options: Unpack[PieceOptions]
    ) -> PieceResult:
        """Send a piece of a decision's reward. The options are those of `Piece`."""
        return await self._send(calls.observe(bandit, Piece(decision, value, **options)))

    async def observe_many(self, bandit: str, pieces: Sequence[Piece]) -> list[PieceResult]:
        """Send up to 1,000 pieces. Each has its own result."""
        return await self._send(calls.observe_many(bandit, pieces))

    async def add_arm(
        self,
        bandit: str,
        name: str,
        cap: float = 1.0,
        window: float | None = None,
        about: calls.Context | None = None,
    ) -> None:
        """Add an arm. A bandit with `arm_features` takes the arm's features as `about`."""
        await self._send(calls.add_arm(bandit, name, cap, window, about))

    async def retire_arm(self, bandit: str, name: str) -> None:
        """Never choose an arm again."""
        await self._send(calls.retire_arm(bandit, name))

    async def close_decision(self, bandit: str, decision: int) -> None:
        """Close a decision: pieces that still come are late."""
        await self._send(calls.close(bandit, decision))

    async def state(self, bandit: str) -> BanditState:
        """Return what is known about every arm, and the verdict."""
        return await self._send(calls.state(bandit))

    async def context_worth(self, bandit: str) -> ContextWorth:
        """Return what contexts are worth: the reward per decision with and without them."""
        return await self._send(calls.context_worth(bandit))

    async def explain(self, bandit: str, decision: int) -> Explanation:
        """Explain why a decision chose its arm."""
        return await self._send(calls.explain(bandit, decision))

    async def events(self, bandit: str, after: int = 0, limit: int = 1000) -> EventPage:
        """Read up to `limit` events of the log after a position, in order."""
        return await self._send(calls.events(bandit, after, limit))

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _send(self, call: Call[T]) -> T:
        request = call.request()
        attempt = 0
        while True:
            if self._http.is_closed:
                raise InputError("this client has been closed")
            attempt += 1
            try:
                answer = await self._http.request(**request)
            except httpx.RequestError as error:
                pause = pause_after(error, attempt, self._attempts)
            else:
                if answer.is_success:
                    return call.read(answer.status_code, answer.content)
                pause = pause_after(answer, attempt, self._attempts)
            await asyncio.sleep(pause)
