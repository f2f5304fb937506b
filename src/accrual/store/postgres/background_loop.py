"""An event loop in a thread of its own: so plain functions can use an asynchronous driver."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from accrual.core.errors import InputError
from accrual.store.base import StoreClosed

_T = TypeVar("_T")


class BackgroundLoop:
    """An event loop in a thread of its own, which runs coroutines for other threads."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="accrual-store", daemon=True)
        self._open = threading.Lock()  # while something is handed to the loop, or the loop is closed
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        """Run `coroutine`, wait for it, and return or raise what it does."""
        if not self.here:
            coroutine.close()  # its thread is in the other process: it would never be run
            raise InputError("the store was opened before a fork; open it again in the new process")
        with self._open:
            if self.closed:
                coroutine.close()
                raise StoreClosed("the store has been closed")
            future = asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        try:
            return future.result()
        except CancelledError:
            raise StoreClosed("the store was closed meanwhile") from None

    @property
    def here(self) -> bool:
        """Whether this is the process that made the loop, not a process that was forked since."""
        return os.getpid() == self._process

    @property
    def closed(self) -> bool:
        """Whether the loop has stopped."""
        return self.loop.is_closed()

    def close(self) -> None:
        """Stop the loop; callers that still wait for a coroutine get an error."""
        if not self.here:
            return
        with self._open:
            if not self.closed:
                asyncio.run_coroutine_threadsafe(_cancel_others(), self.loop).result()
                self.loop.call_soon_threadsafe(self.loop.stop)
                self._thread.join()
                self.loop.close()

    def __enter__(self) -> BackgroundLoop:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.sleep(0)  # connections that are closing get to their end
