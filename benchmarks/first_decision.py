"""How long a first decision takes where nothing has been compiled, and how decisions fare meanwhile.

    python benchmarks/first_decision.py                     # with a PostgreSQL server of its own
    python benchmarks/first_decision.py library serve       # only these parts

Every measurement starts with an empty cache of machine code. `library`: from the start of Python to the first
decision of a bandit. `serve`: from the start of `accrual serve` to the first decision over HTTP, with a new
database and with one of 10 bandits and 100,000 events; then the latency of single decisions until a kernel
is there.
`workers`: the same with two workers on PostgreSQL, and how many processes compiled. `compile`: the processor
seconds of `accrual warm`. Run it on a quiet machine.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np

import accrual as ac

PORT = 8765
FEATURES = {"country": ["de", "us"], "visits": [0, 50]}
CONTEXT = {"country": "us", "visits": 7}
FIRST = """
import accrual as ac
features = {options}
bandit = ac.Bandit(["jazz", "rock"], 80, policy="{policy}", **features)
bandit.decide(**({{"context": {context}}} if features else {{}}))
"""
clock = time.perf_counter


@contextmanager
def empty_cache() -> Iterator[dict[str, str]]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        yield {**os.environ, "NUMBA_CACHE_DIR": folder}


def compiled(environment: dict[str, str]) -> list[Path]:
    """The kernels of ledgers that are in the cache."""
    return list(Path(environment["NUMBA_CACHE_DIR"]).rglob("folding.*.nbc"))


def library() -> None:
    for policy in ("AgePrior", "AgeLinTS"):
        options = {"features": {"country": ["de", "us"], "visits": (0, 50)}} if policy == "AgeLinTS" else {}
        with empty_cache() as environment:
            begun = clock()
            program = FIRST.format(options=options, policy=policy, context=CONTEXT)
            subprocess.run([sys.executable, "-c", program], env=environment, check=True)
            print(f"library, {policy}: first decision after {clock() - begun:.2f} s, start and end included")


@contextmanager
def service(store: str, environment: dict[str, str], *more: str) -> Iterator[tuple[httpx.Client, float]]:
    command = [sys.executable, "-m", "accrual", "serve", "--store", store, "--port", str(PORT), *more]
    begun = clock()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with httpx.Client(base_url=f"http://127.0.0.1:{PORT}", timeout=300) as http:
        try:
            yield http, begun
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def post(http: httpx.Client, path: str, body: Any) -> httpx.Response:
    """Send a request again until the service is there and has opened its bandits."""
    for _ in range(6000):
        try:
            answer = http.post(path, json=body)
            if answer.status_code < 400:
                return answer
        except httpx.TransportError:
            pass
        time.sleep(0.05)
    raise RuntimeError(f"{path}: {answer.text}")


def measured(
    label: str,
    store: str,
    bandit: str,
    new: dict[str, Any] | None,
    context: Any,
    *more: str,
    kernels: int = 1,
) -> None:
    body = {} if context is None else {"context": context}
    with empty_cache() as environment, service(store, environment, *more) as (http, begun):
        if new is not None:
            post(http, "/v1/bandits", {"name": bandit, **new})
        post(http, f"/v1/bandits/{bandit}/decisions", body)
        first = clock() - begun
        times = []
        while not compiled(environment) and clock() - begun < 300:
            start = clock()
            http.post(f"/v1/bandits/{bandit}/decisions", json=body).raise_for_status()
            times.append(clock() - start)
            time.sleep(0.01)
        done = clock() - begun
        half, most = 1e3 * np.percentile(times or [0.0], [50, 99])
        print(
            f"{label}: first decision after {first:.2f} s; compiled after {done:.1f} s; {len(times):,} "
            f"decisions meanwhile, median {half:.1f} ms, 99 % {most:.1f} ms; "
            f"{len(compiled(environment))} kernels",
            flush=True,
        )


NEW = {"arms": ["jazz", "rock"], "window": 1000}
NEW_WITH_FEATURES = {**NEW, "features": FEATURES}


def serve() -> None:
    with tempfile.TemporaryDirectory() as folder:
        measured("serve, new", f"sqlite:///{folder}/new.db", "plays", NEW, None)
        measured("serve, with contexts", f"sqlite:///{folder}/c.db", "plays", NEW_WITH_FEATURES, CONTEXT)
        old = f"sqlite:///{folder}/old.db"
        for number in range(10):
            with ac.Bandit(["jazz", "rock"], 1000, store=old, name=f"plays-{number}") as bandit:
                for _ in range(20):
                    ids = [decision.id for decision in bandit.decide(n=250)]
                    bandit.observe_many(ids, [0.5] * len(ids))
        measured("serve, 10 bandits and 100,000 events", old, "plays-9", None, None)


def workers() -> None:
    from benchmarks.postgres import own_server

    from accrual.store.backends import make_tables

    url = own_server()
    make_tables(url)
    measured("two workers on PostgreSQL", url, "plays", NEW, None, "--workers", "2")


def compile_() -> None:
    for policy in ("AgePrior", "AgeLinTS"):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with empty_cache() as environment:
            subprocess.run([sys.executable, "-m", "accrual", "warm", policy], env=environment, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(f"compile, {policy}: {spent:.1f} processor seconds, imports included", flush=True)


PARTS = {"library": library, "serve": serve, "workers": workers, "compile": compile_}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
