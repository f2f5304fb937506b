"""An event loop in a thread of its own, for asynchronous drivers behind plain functions."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")


class Background:
    """Runs coroutines for threads that have no event loop, or whose loop is not to be used."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="accrual-store", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        """What `coroutine` returns or raises; the caller waits for it."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    @property
    def closed(self) -> bool:
        """Whether it has stopped."""
        return self.loop.is_closed()

    def close(self) -> None:
        """Stop."""
        if not self.closed:
            self.run(asyncio.sleep(0))  # connections that are closing get to their end
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join()
            self.loop.close()

    def __enter__(self) -> Background:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
