"""Services to measure, each in its own process and, if the machine has enough, on its own core."""

from __future__ import annotations

import itertools
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
from benchmarks.http_load import request

_CORES = sorted(os.sched_getaffinity(0))  # before this process goes to one of them
_UNDER_WAY = 1_000  # more than there are connections
_RECENT = 50_000
_PIECE = b'{"decision":%d,"value":0.5,"key":"%s"}'
ARMS = [f"arm-{i}" for i in range(10)]
ECHO = """
import sys
import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

async def echo(request):
    return Response(await request.body(), media_type="application/json")

app = Starlette(routes=[Route("/{path:path}", echo, methods=["GET", "POST"])])
uvicorn.run(app, port=int(sys.argv[1]), log_level="warning", access_log=False)
"""


def pinned(core: int) -> list[str]:
    """What to put before a command so that it runs on one core."""
    return ["taskset", "-c", str(_CORES[core])] if shutil.which("taskset") and len(_CORES) > 1 else []


def pin_self(core: int) -> None:
    """The generator goes on another."""
    if len(_CORES) > 1:
        os.sched_setaffinity(0, {_CORES[core]})


class Running:
    """A process that serves, and what it has used."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self._process = psutil.Process(process.pid)
        self.port = port
        self.bandit = ""
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=300)

    @property
    def seconds(self) -> float:
        """Of processor time, in user and kernel."""
        used = self._process.cpu_times()
        return float(used.user + used.system)

    @property
    def memory(self) -> int:
        """Bytes that are its own."""
        return int(self._process.memory_info().rss)


@contextmanager
def echo(port: int) -> Iterator[Running]:
    """A Starlette application that gives back what it gets."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "echo.py"
        script.write_text(ECHO)
        with _process([*pinned(0), sys.executable, str(script), str(port)], Path(folder), port) as running:
            yield running


@contextmanager
def service(store: str, folder: Path, window: str = "1d") -> Iterator[Running]:
    """accrual on a database, with a new bandit of ten arms."""
    command = [*pinned(0), str(Path(sys.executable).with_name("accrual")), "serve", "--port", "0"]
    with _process([*command, "--store", store, "--set", "rate=0"], folder) as running:
        running.bandit = f"load-{time.time_ns()}"
        body = {"name": running.bandit, "arms": ARMS, "window": window}
        running.http.post("/v1/bandits", json=body).raise_for_status()
        yield running


@contextmanager
def new_file() -> Iterator[tuple[str, Path]]:
    """The address of a SQLite file that is not there yet, and its folder. On a disk, not in memory."""
    with tempfile.TemporaryDirectory(dir=".", prefix="load-") as folder:
        yield f"sqlite:///{folder}/load.db", Path(folder)


@contextmanager
def _process(command: list[str], folder: Path, port: int = 0) -> Iterator[Running]:
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, stderr=out)
    try:
        end = time.monotonic() + 120
        while True:
            said = re.search(r"at http://127\.0\.0\.1:(\d+)\n", log.read_text())
            port = int(said[1]) if said else port
            try:
                if port and httpx.get(f"http://127.0.0.1:{port}/readyz").status_code == 200:
                    break
            except httpx.TransportError:
                pass
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"it did not start: {log.read_text()}")
            time.sleep(0.1)
        yield Running(process, port)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(120)


class Traffic:
    """Requests, none like another."""

    def __init__(self, running: Running) -> None:
        self.at = f"/v1/bandits/{running.bandit}"
        self._host = f"127.0.0.1:{running.port}"
        self._next = itertools.count().__next__
        self._random = random.Random(1)
        self._ids = self._made = 10_000  # decisions: those that pieces go to, and all that were asked for
        for _ in range(10):
            running.http.post(f"{self.at}/decisions", json={"n": 1000}).raise_for_status()

    def piece(self) -> bytes:
        return self._pieces(self._new())

    def recent_piece(self) -> bytes:
        """A new piece of one of the last decisions, but for those that may not have been made yet."""
        newest = self._made - _UNDER_WAY
        decision = self._random.randrange(max(newest - _RECENT, 0), newest)
        return self._pieces(_PIECE % (decision, b"piece-%d" % self._next()))

    def decision(self) -> bytes:
        self._made += 1
        return request(f"{self.at}/decisions", b'{"key":"visit-%d"}' % self._next(), self._host)

    def batch(self) -> bytes:
        return self._many(self._new)

    def scattered_batch(self) -> bytes:
        return self._many(self._scattered)

    def _new(self) -> bytes:
        """A new piece, its key a number that grows."""
        i = self._next()
        return _PIECE % (i * 7919 % self._ids, b"piece-%d" % i)

    def _scattered(self) -> bytes:
        """A new piece, its key random."""
        return _PIECE % (self._next() * 7919 % self._ids, b"%032x" % self._random.getrandbits(128))

    def _many(self, make: Callable[[], bytes]) -> bytes:
        return self._pieces(b"[" + b",".join([make() for _ in range(100)]) + b"]")

    def _pieces(self, body: bytes) -> bytes:
        return request(f"{self.at}/pieces", body, self._host)
