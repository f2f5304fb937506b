"""Use an installed accrual once, as a new user would. `make release` runs this in fresh environments.

``python tools/smoke.py VERSION CLIENT_PYTHON`` is called with the Python of an environment that has accrual
with all extras. CLIENT_PYTHON is the Python of one that has accrual-client alone. The current folder is for
files of this test.
"""

from __future__ import annotations

import csv
import json
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

COMMAND = str(Path(sys.executable).with_name("accrual"))
POLICY = "UCB1"  # compiled soonest
CLIENT = """
import sys
from accrual_client import Client, __version__
with Client(sys.argv[1], timeout=300) as client:
    client.create("plays", ["jazz", "rock"], "1d", policy=sys.argv[2])
    decision = client.decide("plays")
    assert client.observe("plays", decision.id, 0.5, key="a").status == "stored"
    assert client.state("plays").decisions == 1
print(__version__)
"""


def main(version: str, client_python: str) -> None:
    """Run everything; a failure is an exception."""
    import accrual as ac

    for name in ac.__all__:
        getattr(ac, name)
    said = run([COMMAND, "--version"])
    assert (ac.__version__, said) == (version, f"accrual {version}"), (ac.__version__, said)
    run([COMMAND, "warm", POLICY])
    decide(ac)
    fit(ac)
    serve(version, client_python)


def decide(ac: Any) -> None:
    """Make a decision and store a piece; find both again."""
    with ac.Bandit(["jazz", "rock"], "1d", policy=POLICY, store="sqlite:///plays.db") as bandit:
        decision = bandit.decide()
        bandit.observe(decision.id, 0.5, age="0s", key="a")
    with ac.Bandit.open("sqlite:///plays.db") as bandit:
        assert sum(arm.observed for arm in bandit.state().arms) == 0.5


def fit(ac: Any) -> None:
    """Fit a log of two hundred decisions that each pay 0.5 after two rounds."""
    for name, header, row in (
        ("decisions", ("id", "arm", "at"), lambda i: (i, "ab"[i % 2], i)),
        ("pieces", ("decision", "value", "age"), lambda i: (i, 0.5, 2)),
    ):
        with open(f"{name}.csv", "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([header, *map(row, range(200))])
    fitted = ac.fit("decisions.csv", "pieces.csv", window=5)
    assert [round(arm.mean.value, 9) for arm in fitted.arms] == [0.5, 0.5]


def serve(version: str, client_python: str) -> None:
    """Serve a decision to the client that is installed alone."""
    command = [COMMAND, "serve", "--port", "0", "--store", "sqlite:///served.db"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as service:
        assert service.stderr is not None
        try:
            found = None
            while found is None:
                line = service.stderr.readline()
                assert line, "the service stopped before it said its address"
                found = re.search(r"at (http://\S+)$", line)
            assert health(found[1]) == {"status": "alive", "version": version}
            assert run([client_python, "-c", CLIENT, found[1], POLICY]) == version
        finally:
            service.terminate()
        service.stderr.read()
    assert service.returncode in (0, -signal.SIGTERM), service.returncode


def health(address: str) -> Any:
    """Return what the service says about itself. It listens a moment after it has said its address."""
    end = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(f"{address}/healthz") as answer:
                return json.load(answer)
        except urllib.error.URLError:
            assert time.monotonic() < end, "the service does not answer"
            time.sleep(0.1)


def run(command: list[str]) -> str:
    """Return what a command prints; one that fails is an exception."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


if __name__ == "__main__":
    main(*sys.argv[1:])
