"""Connections to a PostgreSQL database, used from any thread."""

from __future__ import annotations

import asyncio
import atexit
import functools
import weakref
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable
from contextlib import suppress
from typing import Any, TypeVar

from accrual.core.errors import InputError, need
from accrual.store.address import parse
from accrual.store.base import StoreError, one_line
from accrual.store.postgres.background_loop import BackgroundLoop
from accrual.store.schema import READ_VERSION, VERSION_TABLE, check_version

_T = TypeVar("_T")

_CHANNEL = "accrual"
_SEND_PAUSE = 0.005  # seconds between two notifications: more would not help a busy worker
_POLL = 0.5  # seconds between queries without a notification
_RECONNECT_PAUSE = 0.5  # seconds before a lost connection is made again

Find = Callable[[Iterable[int]], Awaitable[dict[int, int]]]


class _Waiter:
    """A call that waits for events of some bandits."""

    def __init__(self, bandits: Collection[int]) -> None:
        self._bandits = bandits
        self.notified = asyncio.Event()
        self.named: set[int] = set()  # those that notifications have named

    def receive(self, bandit: int) -> None:
        if bandit in self._bandits:
            self.named.add(bandit)
            self.notified.set()

    def take(self) -> set[int]:
        """Return the bandits that notifications have named since the last call."""
        named, self.named = self.named, set()
        self.notified.clear()
        return named


class Notifications:
    """Tells other workers which bandits have new events, and waits for theirs. It runs in one event loop.

    A notification of PostgreSQL is a hint. It is sent after the commit, on a connection of its own, so that
    no append waits for it, and several appends share one; it may be lost with the process or the connection.
    So a caller that waits for events queries the database itself: when it begins, when a notification names
    one of its bandits, and every half second. One query serves all bandits, so idle bandits cost next to
    nothing. A store ignores its own notifications: it knows of the events that it wrote.

    Parameters
    ----------
    connect : callable
        Returns a new connection.
    """

    def __init__(self, connect: Callable[[], Awaitable[Any]]) -> None:
        self._connect = connect
        self._not_sent: set[int] = set()
        self._any = asyncio.Event()
        self._waiting: set[_Waiter] = set()
        self._task = asyncio.create_task(self._stay_connected())

    def send(self, bandit: int) -> None:
        """Tell other workers that a bandit has new events."""
        self._not_sent.add(bandit)
        self._any.set()

    async def wait(self, bandits: Collection[int], find: Find, timeout: float) -> dict[int, int]:
        """Return what `find` finds of these bandits within `timeout` seconds; nothing if it finds nothing."""
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout
        waiter = _Waiter(bandits)
        self._waiting.add(waiter)
        try:
            which: Iterable[int] = bandits
            while True:
                found = await find(which)
                left = end - loop.time()
                if found or left <= 0:
                    return found
                with suppress(TimeoutError):
                    await asyncio.wait_for(waiter.notified.wait(), min(left, _POLL))
                if loop.time() >= end and not waiter.named:
                    return {}
                which = waiter.take() or bandits
        finally:
            self._waiting.discard(waiter)

    async def close(self) -> None:
        """Stop."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def _received(self, connection: Any, process: int, channel: str, payload: str) -> None:
        if process != connection.get_server_pid() and payload.isdecimal():
            self._wake(int(payload))

    def _wake(self, bandit: int) -> None:
        for waiter in self._waiting:
            waiter.receive(bandit)

    async def _stay_connected(self) -> None:
        while True:
            with suppress(Exception):  # whatever has failed, a new connection is made
                await self._send_and_receive()
            await asyncio.sleep(_RECONNECT_PAUSE)

    async def _send_and_receive(self) -> None:
        connection = await self._connect()
        try:
            await connection.execute("SET synchronous_commit = off")  # nothing here must be durable
            await connection.add_listener(_CHANNEL, self._received)
            connection.add_termination_listener(lambda _: self._any.set())
            for waiter in self._waiting:
                waiter.notified.set()  # there may have been notifications before it listened
            while not connection.is_closed():
                await self._any.wait()
                self._any.clear()
                bandits, self._not_sent = self._not_sent, set()
                for bandit in bandits:
                    await connection.execute("SELECT pg_notify($1, $2)", _CHANNEL, str(bandit))
                await asyncio.sleep(_SEND_PAUSE)
        finally:
            connection.terminate()


_RETRY_PAUSE = 0.01  # seconds

# An acknowledgement means durable, so commits must wait for the disk; and each statement of an append
# must see what was committed before it.
_BEGIN = """
SELECT set_config('synchronous_commit', 'on', FALSE) WHERE current_setting('synchronous_commit') = 'off';
SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED
"""


class PostgresPool:
    """Connections of the asynchronous driver to a database with the tables of accrual, in one thread.

    Parameters
    ----------
    url : str
    connections : int
        How many connections there may be at once, besides one for notifications.
    timeout : float
        How many seconds an operation may take.

    Attributes
    ----------
    notifications : Notifications
    """

    def __init__(self, url: str, connections: int, timeout: float) -> None:
        self.address = parse(url)
        self._asyncpg = need("asyncpg", "postgres")
        self._connections = connections
        self._timeout = timeout
        self._failures = (
            self._asyncpg.PostgresError,
            self._asyncpg.InterfaceError,
            self._asyncpg.InternalClientError,  # raised by a connection that broke while it was in use
            TimeoutError,
            OSError,
        )
        self._background = BackgroundLoop()
        try:
            self._background.run(self._open())
        except BaseException:
            self._background.close()
            raise
        self._at_exit = functools.partial(_close, weakref.ref(self))
        atexit.register(self._at_exit)

    async def _open(self) -> None:
        place = self.address.place
        try:
            self._pool = await self._asyncpg.create_pool(
                place, min_size=1, max_size=self._connections, init=_begin, reset=_leave, timeout=30
            )
        except (OSError, ValueError, self._asyncpg.PostgresError, self._asyncpg.InterfaceError) as error:
            raise InputError(f"cannot open {self.address}: {one_line(error)}") from None
        try:
            async with self._pool.acquire() as connection:
                check_version(await version_of(connection), self.address)
        except BaseException:
            self._pool.terminate()
            raise
        self.notifications = Notifications(lambda: self._asyncpg.connect(place, timeout=30))

    def run(self, job: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine in the driver's thread, and wait for what it returns."""
        return self._background.run(job)

    async def once(self, job: Callable[[Any], Awaitable[_T]]) -> _T:
        """Do a job on a connection, once. If that fails, it is not known whether the job was done."""
        try:
            async with asyncio.timeout(self._timeout), self._pool.acquire() as connection:
                return await job(connection)
        except self._failures as error:
            raise StoreError(f"{self.address}: {one_line(error)}") from error

    async def fetch(self, query: str, *values: Any) -> list[Any]:
        """Return the rows of a query; send the query again if an idle connection was lost."""

        async def job(connection: Any) -> list[Any]:
            return await connection.fetch(query, *values)  # type: ignore[no-any-return]

        for _ in range(self._connections):
            try:
                return await self.once(job)
            except StoreError:
                await asyncio.sleep(_RETRY_PAUSE)  # the driver finds out which other connections were lost
        return await self.once(job)

    def rows(self, query: str, *values: Any) -> list[Any]:
        """Return the rows of a query, as `fetch` does; the calling thread waits."""
        return self._background.run(self.fetch(query, *values))

    def close(self) -> None:
        """Close the connections, in the process that opened them."""
        if not self._background.closed and self._background.here:
            atexit.unregister(self._at_exit)
            self._background.run(self._shut())
            self._background.close()

    async def _shut(self) -> None:
        await self.notifications.close()
        try:
            await asyncio.wait_for(self._pool.close(), 5)
        except Exception:  # the server may not answer
            self._pool.terminate()


async def version_of(connection: Any) -> str | None:
    """Return the schema version of a database; None where there are no tables of accrual."""
    if await connection.fetchval("SELECT to_regclass($1)", VERSION_TABLE) is None:
        return None
    return await connection.fetchval(READ_VERSION)  # type: ignore[no-any-return]


async def _begin(connection: Any) -> None:
    await connection.execute(_BEGIN)


async def _leave(connection: Any) -> None:
    """Do nothing: no job changes the settings of a connection, so there is nothing to reset."""


def _close(pool: weakref.ref[PostgresPool]) -> None:
    found = pool()
    if found is not None:
        found.close()
