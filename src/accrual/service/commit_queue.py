"""The queue of a bandit's writes: requests that arrive during a transaction share the next one.

Requests run in the event loop, transactions in a thread. The first request of an idle queue starts a
transaction. Requests that arrive during a transaction wait for the next one, which takes all of them, up to
a limit that keeps it short. A request is answered when its own transaction is durable.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor

from accrual.core.errors import InputError
from accrual.live.commit import BanditRequest
from accrual.service.metrics import Metrics
from accrual.service.refusals import Refusal, try_later
from accrual.store.base import Answer, NewPiece, StoreError

Submit = Callable[[Sequence[BanditRequest]], list[Answer]]
_Waiting = tuple[Sequence[BanditRequest], "asyncio.Future[list[Answer]]"]

log = logging.getLogger("accrual.service")

_TOGETHER = 4_000  # decisions and pieces in one transaction, unless the first request alone has more


class QueueLimit:
    """The limit on what may wait in all commit queues of a process together."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.taken = 0

    def take(self, count: int) -> None:
        """Count decisions and pieces as waiting, or refuse them."""
        if self.taken + count > self._most and self.taken:
            raise try_later("busy", f"{self.taken:,} decisions and pieces wait to be stored; try again")
        self.taken += count


class CommitQueue:
    """The queue of one bandit.

    Parameters
    ----------
    submit : callable
        Stores decisions and pieces in one transaction, and returns an answer for each.
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
        self.duplicates = 0  # decisions and pieces that had been stored before

    async def submit(self, requests: Sequence[BanditRequest]) -> list[Answer]:
        """Store decisions and pieces; return an answer for each when all are durable."""
        count = len(requests)
        self._limit.take(count)
        try:
            loop = asyncio.get_running_loop()
            future: asyncio.Future[list[Answer]] = loop.create_future()
            self._waiting.append((requests, future))
            if self._task is None:
                self._task = loop.create_task(self._run())
            return await future
        finally:
            self._limit.taken -= count

    async def drain(self) -> None:
        """Wait until the queue is empty."""
        while self._task is not None:
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        try:
            await asyncio.sleep(0)  # so that requests of the same turn of the loop join the transaction
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
        requests = group[0][0] if len(group) == 1 else [request for one, _ in group for request in one]
        begin = time.perf_counter()
        try:
            loop = asyncio.get_running_loop()
            answers = await loop.run_in_executor(self._threads, self._submit, requests)
        except InputError as error:
            if len(group) == 1:
                _refuse(group, "invalid", str(error))
            else:
                await self._apart(group)
        except StoreError as error:
            self._metrics.failed.inc()
            log.error("a commit failed", extra={"error": str(error), "requests": len(requests)})
            _refuse(
                group, "store", "it is not known whether this was stored; send it again with the same key"
            )
        except Exception:
            self._metrics.failed.inc()
            log.exception("a commit failed", extra={"requests": len(requests)})
            _refuse(group, "internal", "the service has a fault; its log says more")
        else:
            self.duplicates += self._metrics.committed(time.perf_counter() - begin, requests, answers)
            first = 0
            for one, future in group:
                if not future.done():  # the client may have gone
                    future.set_result(answers[first : first + len(one)])
                first += len(one)

    async def _apart(self, group: list[_Waiting]) -> None:
        """Commit a group in parts, because one of its requests was refused.

        The pieces have been checked before, so they are committed together. Every other request is committed
        alone.
        """
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
