"""Kill `accrual paper` at twenty random moments, let it finish, and compare every byte.

``make paper-kills``. The whole paper at a reduced size runs once in peace and once with SIGKILL
after random times, which fall into start-up, simulation and the drawing of the report alike. At
the end both folders must hold the same files with the same SHA-256.
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
COMMAND = [str(Path(sys.executable).with_name("accrual")), "paper", "--runs", "40", "--horizon", "4000"]


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
        if start(whole).wait():
            print("the uninterrupted run failed")
            return 1
        lasted = time.monotonic() - began
        print(f"uninterrupted: {lasted:.1f} s, {len(digests(whole))} files")
        chance = random.Random(SEED)
        for kill in range(1, KILLS + 1):
            child = start(killed)
            moment = lasted * chance.uniform(0.05, 0.6)
            try:
                code = child.wait(timeout=moment)
                print(f"{kill:2d}: had finished before {moment:.1f} s (exit {code})")
            except subprocess.TimeoutExpired:
                child.send_signal(signal.SIGKILL)
                child.wait()
                cells = len(list((killed / "cells").glob("*.parquet"))) if killed.exists() else 0
                stray = len(list(killed.rglob(".*.part*"))) if killed.exists() else 0
                print(f"{kill:2d}: killed after {moment:.1f} s, {cells} cells whole, {stray} half-written")
        if start(killed).wait():
            print("the last run failed")
            return 1
        first, second = digests(whole), digests(killed)
        different = sorted(
            name for name in first.keys() | second.keys() if first.get(name) != second.get(name)
        )
        print(f"{len(first)} files compared, {len(different)} different", *different)
        return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
