"""The line before a bandit: what comes while a transaction is under way shares the next one.

Requests live in the event loop, transactions in a thread. Whoever is first in an idle line starts a
transaction; whoever comes meanwhile waits for the next, which takes all that wait, up to a limit that
keeps one transaction short. A request is answered when its own transaction is durable.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor

from accrual.core.errors import InputError
from accrual.live.commit import Ask
from accrual.service.metrics import Metrics
from accrual.service.refusals import Refusal, try_later
from accrual.store.base import Answer, NewPiece, StoreError

Submit = Callable[[Sequence[Ask]], list[Answer]]
_Waiting = tuple[Sequence[Ask], "asyncio.Future[list[Answer]]"]

log = logging.getLogger("accrual.service")

_TOGETHER = 4_000  # asks in one transaction, if the first request has not more


class QueueLimit:
    """How much may wait, over all lines of a process."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.taken = 0

    def take(self, count: int) -> None:
        """Take room for some asks, or refuse them."""
        if self.taken + count > self._most and self.taken:
            raise try_later("busy", f"{self.taken:,} decisions and pieces wait to be stored; try again")
        self.taken += count


class CommitQueue:
    """One bandit's.

    Parameters
    ----------
    submit : callable
        Stores asks in one transaction, and answers them.
    threads : Executor
    limit : QueueLimit
    metrics : Metrics
    """

    def __init__(self, submit: Submit, threads: Executor, limit: QueueLimit, metrics: Metrics) -> None:
        self._submit = submit
        self._threads = threads
        self._limit = limit
        self._metrics = metrics
        self._waiting: deque[_Waiting] = deque()
        self._task: asyncio.Task[None] | None = None
        self.duplicates = 0  # asks that had been stored before

    async def submit(self, asks: Sequence[Ask]) -> list[Answer]:
        """An answer for each ask, once they are durable."""
        count = len(asks)
        self._limit.take(count)
        try:
            loop = asyncio.get_running_loop()
            future: asyncio.Future[list[Answer]] = loop.create_future()
            self._waiting.append((asks, future))
            if self._task is None:
                self._task = loop.create_task(self._run())
            return await future
        finally:
            self._limit.taken -= count

    async def drain(self) -> None:
        """Wait until nobody waits."""
        while self._task is not None:
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        try:
            await asyncio.sleep(0)  # whoever has come in the same turn of the loop comes along
            while self._waiting:
                await self._commit(self._next())
        finally:
            self._task = None

    def _next(self) -> list[_Waiting]:
        waiting = self._waiting
        group, count = [waiting.popleft()], 0
        while waiting and count < _TOGETHER:
            group.append(waiting.popleft())
            count += len(group[-1][0])
        return group

    async def _commit(self, group: list[_Waiting]) -> None:
        asks = group[0][0] if len(group) == 1 else [ask for one, _ in group for ask in one]
        begin = time.perf_counter()
        try:
            loop = asyncio.get_running_loop()
            answers = await loop.run_in_executor(self._threads, self._submit, asks)
        except InputError as error:
            if len(group) == 1:
                _refuse(group, "invalid", str(error))
            else:
                await self._apart(group)
        except StoreError as error:
            self._metrics.failed.inc()
            log.error("a commit failed", extra={"error": str(error), "asks": len(asks)})
            _refuse(group, "store", "whether it was stored is not known; send it again with the same key")
        except Exception:
            self._metrics.failed.inc()
            log.exception("a commit failed", extra={"asks": len(asks)})
            _refuse(group, "internal", "this is a fault of the service; its log says more")
        else:
            self.duplicates += self._metrics.committed(time.perf_counter() - begin, asks, answers)
            first = 0
            for one, future in group:
                if not future.done():  # whoever asked may have gone
                    future.set_result(answers[first : first + len(one)])
                first += len(one)

    async def _apart(self, group: list[_Waiting]) -> None:
        """One of them cannot be. Pieces are checked before they come, so they go on together."""
        pieces = [waiting for waiting in group if isinstance(waiting[0][0], NewPiece)]
        if len(pieces) == len(group):
            pieces = []
        if pieces:
            await self._commit(pieces)
        for waiting in group:
            if waiting not in pieces:
                await self._commit([waiting])


def _refuse(group: list[_Waiting], kind: str, detail: str) -> None:
    for _, future in group:
        if not future.done():
            future.set_exception(try_later(kind, detail) if kind == "store" else Refusal(kind, detail))
