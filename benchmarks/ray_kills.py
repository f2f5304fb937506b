"""Kill nodes of a Ray cluster at random moments while `accrual paper` runs on it, and compare every byte.

``make ray-kills``. A cluster of three nodes on this machine (and a head that computes nothing) runs
the paper at a reduced size. Twenty times a node chosen at random is killed (SIGKILL to all its
processes) and replaced. Then, in a new folder, the head is killed; the next start, on a new
cluster, must continue from the files that are there. Both folders must hold the same files with the
same SHA-256 as a run in one process without Ray. Ctrl-C must leave no process and nothing half-written.
As a control, cells of another seed are compared in the same way and must all differ.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

NODES = 3
SEED = 20230731
PATIENCE = 120.0  # seconds after which a driver without a head should have given up
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "token"}
_CONTROL = (
    "import sys; from accrual.experiments import blocks; from accrual.cli.app import run; "
    "blocks.SEED = 1; sys.exit(run(sys.argv[1:]))"
)


def digests(folder: Path) -> dict[str, str]:
    """The SHA-256 of every file."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def different(one: Path, other: Path) -> list[str]:
    """The names of files that are not the same in both folders."""
    a, b = digests(one), digests(other)
    return sorted(name for name in a.keys() | b.keys() if a.get(name) != b.get(name))


def cells(out: Path) -> int:
    """How many cells are on disk."""
    return len(list((out / "cells").glob("*.parquet")))


class Cluster:
    """A head and `NODES` nodes of one core each, as processes of this machine."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster as Local

        self._cluster: Any = Local(
            initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False}
        )
        self._started: set[Any] = set()
        self.nodes = [self._cluster.add_node(num_cpus=1) for _ in range(NODES)]

    @property
    def address(self) -> str:
        return str(self._cluster.address)

    def _note(self) -> None:
        """Remember what runs: the helpers of a node that is killed are nobody's children afterwards."""
        self._started.update(psutil.Process().children(recursive=True))

    def replace(self, number: int) -> None:
        """Kill a node, and start another in its place."""
        self._note()
        self._cluster.remove_node(self.nodes[number], allow_graceful=False)
        self.nodes[number] = self._cluster.add_node(num_cpus=1)

    def behead(self) -> None:
        """Kill the head."""
        self._note()
        self._cluster.remove_node(self._cluster.head_node, allow_graceful=False)

    def close(self) -> None:
        """Stop it, and what its dead nodes left running."""
        self._note()
        self._cluster.shutdown()
        for process in psutil.wait_procs(self._started, timeout=2)[1]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


class Paper:
    """`accrual paper`, in a process of its own."""

    def __init__(self, words: list[str], out: Path, *where: str) -> None:
        self.out = out
        self._said = out.with_suffix(".log")
        command = [str(Path(sys.executable).with_name("accrual")), *words, "--out", str(out), *where]
        with open(self._said, "wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def wait(self, seconds: float | None = None) -> int:
        """Its exit code; its output is shown if that is not 0."""
        code = self.process.wait(seconds)
        if code:
            sys.stdout.write(self._said.read_text(errors="replace"))
        return code

    def wait_for(self, count: int) -> None:
        """Wait until so many cells are on disk."""
        while self.running and cells(self.out) < count:
            time.sleep(0.05)

    def last_line(self) -> str:
        return (self._said.read_text(errors="replace").splitlines() or [""])[-1]


def kill_nodes(words: list[str], out: Path, kills: int, total: int) -> int:
    """Run the paper while nodes die; return how many did, or -1 if the run failed.

    The moments are random numbers of finished cells, so that they cover the run at any speed.
    """
    chance = random.Random(SEED)
    moments = sorted(chance.uniform(0, 0.8 * total) for _ in range(kills))
    cluster = Cluster()
    try:
        paper = Paper(words, out, "--engine", "ray", "--address", cluster.address)
        done = 0
        for moment in moments:
            paper.wait_for(int(moment) + 1)
            time.sleep(chance.uniform(0, 1))  # somewhere within a cell
            if not paper.running:
                break
            number = chance.randrange(NODES)
            cluster.replace(number)
            done += 1
            print(f"{done:2d}: node {number} killed, {cells(out)} cells whole", flush=True)
        return done if paper.wait() == 0 else -1
    finally:
        cluster.close()


def kill_head(words: list[str], out: Path, after: int) -> int:
    """Kill the head when `after` cells are there, start again, and return what the last run gave."""
    cluster = Cluster()
    try:
        paper = Paper(words, out, "--engine", "ray", "--address", cluster.address)
        paper.wait_for(after)
        cluster.behead()
        began = time.monotonic()
        try:
            code = paper.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            paper.process.kill()
            code = paper.process.wait()
        print(f"head killed: {cells(out)} cells whole; the run ended with exit code {code} "
              f"after {time.monotonic() - began:.0f} s, saying: {paper.last_line()}", flush=True)  # fmt: skip
    finally:
        cluster.close()
    cluster = Cluster()
    try:
        return Paper(words, out, "--engine", "ray", "--address", cluster.address).wait()
    finally:
        cluster.close()


def interrupt(words: list[str], out: Path) -> list[str]:
    """Ctrl-C while a Ray of its own is at work; return what is wrong afterwards."""
    paper = Paper(words, out, "--engine", "ray")
    paper.wait_for(1)
    driver = psutil.Process(paper.process.pid)
    started = driver.children(recursive=True)
    began = time.monotonic()
    paper.process.send_signal(signal.SIGINT)
    code = paper.process.wait(PATIENCE)
    left = psutil.wait_procs(started, timeout=5)[1]
    print(f"Ctrl-C: exit code {code} after {time.monotonic() - began:.1f} s, {len(left)} of {len(started)} "
          f"processes left, {cells(out)} cells whole, saying: {paper.last_line()}", flush=True)  # fmt: skip
    half = [path.name for path in out.rglob(".*.part*")]
    return [*half, *(str(process.pid) for process in left)] + ([] if code == 130 else ["Ctrl-C"])


def main() -> int:
    """Run the comparison; 0 if all bytes are equal, and the control's are not."""
    parser = argparse.ArgumentParser(description="Kill nodes of a Ray cluster; compare every byte.")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--runs", default="100")
    parser.add_argument("--horizon", default="50000")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--no-head", action="store_true", help="kill nodes only")
    given = parser.parse_args()
    words = ["paper", "--runs", given.runs, "--horizon", given.horizon]
    words += [word for only in given.only for word in ("--only", only)]
    failed = []
    with tempfile.TemporaryDirectory() as place:
        # Set before Ray is imported: its own folder, and a token of its own.
        os.environ.update(_QUIET, RAY_TMPDIR=place, RAY_AUTH_TOKEN=secrets.token_hex(32))
        whole, nodes, head = (Path(place) / name for name in ("whole", "nodes", "head"))
        began = time.monotonic()
        if Paper(words, whole, "--jobs", "1").wait():
            return 1
        print(
            f"one process: {time.monotonic() - began:.1f} s, {cells(whole)} cells, {len(digests(whole))} "
            "files"
        )

        began = time.monotonic()
        kills = kill_nodes(words, nodes, given.kills, cells(whole))
        wrong = different(whole, nodes)
        print(
            f"{NODES} Ray nodes, {kills} kills: {time.monotonic() - began:.1f} s, {len(wrong)} files differ",
            *wrong,
        )
        failed += wrong + (["kills"] if kills != given.kills else [])

        if not given.no_head:
            code = kill_head(words, head, cells(whole) // 3)
            wrong = different(whole, head)
            print(
                f"after the head's death and a new start: exit code {code}, {len(wrong)} files differ", *wrong
            )
            failed += wrong + (["head"] if code else [])

            failed += interrupt(words, Path(place) / "interrupted")

        seed = Path(place) / "seed"
        control = [*words[:5], "--only", "audit", "--out", str(seed), "--jobs", "1"]
        subprocess.run([sys.executable, "-c", _CONTROL, *control], check=True, capture_output=True)
        known = set(digests(whole / "cells").values())
        same = [name for name, digest in digests(seed / "cells").items() if digest in known]
        print(f"control, another seed: {len(same)} of {cells(seed)} cells are the same", *same)
        failed += same
    print("failed:" if failed else "all bytes are equal", *failed)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
