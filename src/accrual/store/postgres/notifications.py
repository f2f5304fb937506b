"""How the workers on one PostgreSQL database tell each other which bandits have new events."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from accrual.store.address import Address
from accrual.store.postgres.connection import connect

_SEND_PAUSE = 0.005  # seconds between two notifications: more would not help a busy worker
_RECONNECT_PAUSE = 0.5  # seconds before a lost connection is made again


class Notifications:
    """Tells other workers which bandits have new events, and hears of theirs.

    A notification of PostgreSQL is a hint. It is sent after the commit, by a thread with a connection of its
    own, so that no append waits for it, and several appends share one; it may be lost with the process or the
    connection. A store ignores its own notifications: it knows of the events that it wrote.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._changed = threading.Condition()
        self._unsent: set[int] = set()
        self._heard: dict[int, int] = {}  # by bandit: the count of notifications when the last named it
        self.count = 0  # of notifications from other workers
        self._closed = False
        self._woken, self._waker = socket.socketpair()
        self._thread = threading.Thread(target=self._stay_connected, name="accrual-notify", daemon=True)
        self._thread.start()

    def send(self, bandit: int) -> None:
        """Tell other workers that a bandit has new events."""
        with self._changed:
            if not self._unsent and not self._closed:
                self._waker.send(b"!")
            self._unsent.add(bandit)

    def wait(self, bandits: Iterable[int], after: int, timeout: float) -> list[int]:
        """Wait until one of these bandits is named, after the first `after` notifications; return those."""

        def named() -> list[int]:
            return [bandit for bandit in bandits if self._heard.get(bandit, 0) > after]

        with self._changed:
            self._changed.wait_for(lambda: self._closed or named(), timeout)
            return named()

    def close(self) -> None:
        """Stop; all who wait return."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            self._waker.close()
        self._thread.join(5)

    def _hear(self, bandit: int) -> None:
        with self._changed:
            self.count += 1
            self._heard[bandit] = self.count
            self._changed.notify_all()

    def _stay_connected(self) -> None:
        while not self._closed:
            with suppress(Exception), connect(self._address) as connection:  # whatever fails, connect again
                connection.execute("SET synchronous_commit = off")  # nothing here must be durable
                connection.execute("LISTEN accrual")
                while not self._closed:
                    self._exchange(connection)
            if not self._closed:
                time.sleep(_RECONNECT_PAUSE)
        self._woken.close()

    def _exchange(self, connection: Any) -> None:
        """Wait for something to send or to hear, and do that."""
        ready, _, _ = select.select([connection, self._woken], [], [])
        if self._woken in ready:
            with self._changed:
                self._woken.recv(64)
                unsent, self._unsent = self._unsent, set()
            for bandit in unsent:
                connection.execute("SELECT pg_notify('accrual', $1)", [str(bandit)])
        for notification in connection.notifies(timeout=0):
            if notification.pid != connection.info.backend_pid and notification.payload.isdecimal():
                self._hear(int(notification.payload))
        if self._woken in ready:
            time.sleep(_SEND_PAUSE)
