"""Background tasks: a failure is logged and counted, and the task is started again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from accrual.core.errors import InputError
from accrual.service.metrics import Metrics
from accrual.store.base import StoreError

_PAUSE = 1.0  # seconds before a task that failed is started again

log = logging.getLogger("accrual.service")


async def supervise(name: str, job: Callable[[], Awaitable[None]], metrics: Metrics) -> None:
    """Run `job` until it returns. An exception is logged and counted, and the job is started again."""
    while True:
        try:
            await job()
            return
        except Exception as error:
            metrics.task_failures.labels(name).inc()
            known = isinstance(error, InputError | StoreError)  # it says itself what is wrong
            extra = {"task": name, "error": str(error)}
            log.error("a background task failed", exc_info=None if known else error, extra=extra)
            await asyncio.sleep(_PAUSE)
