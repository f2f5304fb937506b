"""A service to test: in a thread of this process, or in a process of its own."""

from __future__ import annotations

import json
import logging
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from accrual.service.app import create
from accrual.service.edge import ServiceApp
from accrual.service.server import bound, config_of
from accrual.service.settings import Settings
from accrual.studies.demo import Demo

BODY = {"name": "plays", "arms": ["jazz", "rock"], "window": 1000}


class Service:
    """A running service."""

    def __init__(self, port: int, app: ServiceApp | None = None) -> None:
        self.port = port
        self.app = app
        self.url = f"http://127.0.0.1:{port}"
        self.http = httpx.Client(base_url=self.url, timeout=300)  # the first bandit of a policy is compiled

    def post(self, path: str, body: Any = None, **options: Any) -> httpx.Response:
        return self.http.post(path, json=body, **options)

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.http.get(path, **options)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def raw(self, data: bytes) -> bytes:
        """All that comes back for some bytes, until the other end closes."""
        with self.connect() as connection:
            connection.sendall(data)
            got = b""
            while part := connection.recv(65536):
                got += part
        return got

    def events(self, bandit: str = "plays") -> list[dict[str, Any]]:
        """The whole log."""
        found: list[dict[str, Any]] = []
        after, end = 0, False
        while not end:
            page = self.get(f"/v1/bandits/{bandit}/export?after={after}&limit=10000").json()
            found += page["events"]
            after, end = page["next"], page["end"]
        return found


@contextmanager
def serving(folder: Path, demo: Demo | None = None, **options: Any) -> Iterator[Service]:
    """A service on a SQLite file, in a thread."""
    settings = Settings(**{"store": f"sqlite:///{folder}/s.db", "port": 0, **options})
    listener = bound(settings)
    app = create(settings, demo)
    server = uvicorn.Server(config_of(settings, app))
    for name in ("accrual", "uvicorn"):  # pytest has its own place for what is logged
        logging.getLogger(name).handlers.clear()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    service = Service(listener.getsockname()[1], app)
    try:
        wait_until(lambda: service.get("/readyz").status_code == 200)
        yield service
    finally:
        service.http.close()
        server.should_exit = True
        thread.join(60)
        assert not thread.is_alive()


def wait_until(true: Any, seconds: float = 300.0) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            if true():
                return
        except httpx.TransportError:
            pass
        assert time.monotonic() < end, "it did not come to pass in time"
        time.sleep(0.02)


class Process:
    """A service in a process of its own, to be killed."""

    def __init__(self, folder: Path, *options: str, store: str | None = None, port: int = 0) -> None:
        command = [str(Path(sys.executable).with_name("accrual")), "serve", "--port", str(port), *options]
        if "--demo" not in options:  # which has a place of its own
            command += ["--store", store or f"sqlite:///{folder}/s.db"]
        self._log = folder / "log"
        start = self._log.stat().st_size if self._log.exists() else 0
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(command, stderr=log, cwd=folder)
        wait_until(lambda: self._said(start) or self.process.poll() is not None)
        found = self._said(start)
        assert found, self._log.read_text()
        self.service = Service(int(found[1]))

    def _said(self, start: int) -> re.Match[str] | None:
        text = self._log.read_bytes()[start:].decode()
        return re.search(r"at http://127\.0\.0\.1:(\d+)\n", text)

    def lines(self) -> list[dict[str, Any]]:
        """Return what the service has logged."""
        whole = self._log.read_text().rpartition("\n")[0]
        return [json.loads(line) for line in whole.splitlines() if line.startswith("{")]

    def ready(self) -> Service:
        wait_until(lambda: self.service.get("/readyz").status_code == 200)
        return self.service

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.service.http.close()

    def stop(self) -> int:
        """As an operator would: the exit status."""
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(60)
        self.service.http.close()
        return status

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


def problem(answer: httpx.Response) -> str:
    """The kind of problem that an answer is; it must be a problem document."""
    assert answer.headers["content-type"] == "application/problem+json"
    found = json.loads(answer.content)
    assert found["status"] == answer.status_code
    assert found["title"]
    assert found["detail"]
    return str(found["type"]).rpartition(":")[2]
