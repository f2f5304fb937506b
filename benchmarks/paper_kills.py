"""Kill `accrual paper` at twenty random moments, let it finish, and compare every byte.

``make paper-kills``. The whole paper at a reduced size runs once undisturbed, and once with SIGKILLs at
random times, which fall into start-up, simulation and the drawing of the report. At the end both folders must
hold the same files with the same SHA-256.
"""

from __future__ import annotations

import hashlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

KILLS = 20
SEED = 20230731
COMMAND = [str(Path(sys.executable).with_name("accrual")), "paper", "--runs", "40", "--horizon", "10000"]


def cells(out: Path) -> int:
    """How many cells are on disk."""
    return len(list((out / "cells").glob("*.parquet")))


def start(out: Path) -> subprocess.Popen[bytes]:
    """Begin or go on with the paper in `out`."""
    quiet = subprocess.DEVNULL
    return subprocess.Popen([*COMMAND, "--out", str(out)], stdout=quiet, stderr=quiet)


def digests(folder: Path) -> dict[str, str]:
    """The SHA-256 of every file."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def main() -> int:
    """Run the comparison; 0 if all bytes are equal."""
    with tempfile.TemporaryDirectory() as place:
        whole, killed = Path(place) / "whole", Path(place) / "killed"
        began = time.monotonic()
        child = start(whole)
        while not cells(whole) and child.poll() is None:
            time.sleep(0.05)
        first = time.monotonic() - began
        if child.wait():
            print("the uninterrupted run failed")
            return 1
        lasted = time.monotonic() - began
        print(f"uninterrupted: {lasted:.1f} s, first cell after {first:.1f} s, {len(digests(whole))} files")
        chance = random.Random(SEED)
        for kill in range(1, KILLS + 1):
            child = start(killed)
            # Each attempt gets an eighth of the work done at most, so that twenty cover all of it.
            moment = chance.uniform(0.3 * first, first + (lasted - first) / 8)
            try:
                code = child.wait(timeout=moment)
                print(f"{kill:2d}: had finished before {moment:.1f} s (exit {code})")
            except subprocess.TimeoutExpired:
                child.send_signal(signal.SIGKILL)
                child.wait()
                stray = len(list(killed.rglob(".*.part*")))
                left = f"{cells(killed)} cells whole, {stray} half-written"
                print(f"{kill:2d}: killed after {moment:.1f} s, {left}")
        if start(killed).wait():
            print("the last run failed")
            return 1
        one, other = digests(whole), digests(killed)
        different = sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
        print(f"{len(one)} files compared, {len(different)} different", *different)
        return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
