"""Which bandits have new events: one worker tells the others by PostgreSQL's notifications.

A notification is a hint. It is sent after the commit, on a connection of its own, so that no append
waits for it, and several appends share one; it may be lost with the process or the connection. So
a caller that waits for events looks into the database itself, on a hint or every half second. A store
does not heed its own hints: it knows of the events that it wrote.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

_CHANNEL = "accrual"
_PAUSE = 0.005  # seconds between two hints: a busy worker need not be told more often
_LOOK = 0.5  # seconds between looks without a hint
_AGAIN = 0.5  # seconds before a lost connection is sought again


class Notifications:
    """Tells and hears of new events, for all bandits of a store. Lives in one event loop.

    Parameters
    ----------
    connect : callable
        Gives a new connection.
    """

    def __init__(self, connect: Callable[[], Awaitable[Any]]) -> None:
        self._connect = connect
        self._not_sent: set[int] = set()
        self._any = asyncio.Event()
        self._waiting: dict[int, set[asyncio.Event]] = {}
        self._task = asyncio.create_task(self._attend())

    def say(self, bandit: int) -> None:
        """Tell other workers that a bandit has new events."""
        self._not_sent.add(bandit)
        self._any.set()

    async def wait(self, bandit: int, look: Callable[[], Awaitable[bool]], timeout: float) -> bool:
        """Return whether `look` finds something within `timeout` seconds."""
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout
        hint = asyncio.Event()
        waiting = self._waiting.setdefault(bandit, set())
        waiting.add(hint)
        try:
            while not await look():
                left = end - loop.time()
                if left <= 0:
                    return False
                with suppress(TimeoutError):
                    await asyncio.wait_for(hint.wait(), min(left, _LOOK))
                hint.clear()
            return True
        finally:
            waiting.discard(hint)

    async def close(self) -> None:
        """Stop."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def _heard(self, connection: Any, process: int, channel: str, payload: str) -> None:
        if process != connection.get_server_pid() and payload.isdecimal():
            self._wake(int(payload))

    def _wake(self, bandit: int) -> None:
        for hint in self._waiting.get(bandit, ()):
            hint.set()

    async def _attend(self) -> None:
        while True:
            with suppress(Exception):  # whatever has failed, a new connection is made
                await self._talk()
            await asyncio.sleep(_AGAIN)

    async def _talk(self) -> None:
        connection = await self._connect()
        try:
            await connection.execute("SET synchronous_commit = off")  # nothing here is to be kept
            await connection.add_listener(_CHANNEL, self._heard)
            connection.add_termination_listener(lambda _: self._any.set())
            for bandit in self._waiting:
                self._wake(bandit)  # there may have been hints before it listened
            while not connection.is_closed():
                await self._any.wait()
                self._any.clear()
                bandits, self._not_sent = self._not_sent, set()
                for bandit in bandits:
                    await connection.execute("SELECT pg_notify($1, $2)", _CHANNEL, str(bandit))
                await asyncio.sleep(_PAUSE)
        finally:
            connection.terminate()
