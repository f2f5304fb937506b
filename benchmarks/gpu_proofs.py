"""What `--device cuda` promises besides speed, checked on a GPU: ``python -P benchmarks/gpu_proofs.py``.

`accrual paper --check` on the GPU; the same stopped with Ctrl-C and started again; work that does
not fit the memory it may use, in several passes; a replayed log; and what a missing toolkit says.
"""

from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import accrual as ac
from accrual.engine.cuda import engine
from accrual.studies.bench import compared
from accrual.studies.paper.runner import make_problem

ACCRUAL = [sys.executable, "-P", "-c", "import sys; from accrual.cli import main; sys.exit(main())"]


def start(*words: str) -> subprocess.Popen[str]:
    """An accrual command on the GPU."""
    return subprocess.Popen(
        [*ACCRUAL, *words, "--device", "cuda"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def finished(child: subprocess.Popen[str], lines: int) -> int:
    """Wait for it, show its last lines, and return its exit code."""
    said, _ = child.communicate()
    print("  " + "\n  ".join(said.rstrip().splitlines()[-lines:]))
    return child.returncode


def digests(folder: Path) -> dict[str, str]:
    """The SHA-256 of every cell."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("cells/*.parquet")
    }


def paper() -> None:
    """The whole paper, checked against what it prints, then again stopped on the way."""
    with tempfile.TemporaryDirectory() as place:
        _paper(Path(place) / "whole", Path(place) / "stopped")


def _paper(whole: Path, stopped: Path) -> None:
    began = time.monotonic()
    code = finished(start("paper", "--check", "--out", str(whole)), 4)
    print(f"paper --check: exit code {code}, {time.monotonic() - began:.0f} s with compilation and report")

    child = start("paper", "--out", str(stopped))
    while not digests(stopped) and child.poll() is None:
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    began = time.monotonic()
    code = finished(child, 1)
    kept = digests(stopped)
    left = sum(1 for _ in stopped.glob("cells/.*"))
    print(
        f"Ctrl-C after the first cell: exit code {code} after {time.monotonic() - began:.1f} s, "
        f"{len(kept)} cells kept, {left} half-written"
    )
    code = finished(start("paper", "--out", str(stopped)), 1)
    again, known = digests(stopped), digests(whole)
    untouched = sum(again[name] == digest for name, digest in kept.items())
    print(
        f"started again: exit code {code}, {untouched} of {len(kept)} kept cells as they were; "
        f"{sum(again.get(name) == digest for name, digest in known.items())} of {len(known)} cells "
        "as in the run that was not stopped"
    )


def passes() -> None:
    """The same simulation with next to no memory, and with enough."""
    problem, policies = ac.paper.setting1(), [*compared(50), ac.TPUCBEW(50), ac.AgeIMED()]
    free = engine._SHARE
    sizes, counted = engine._sizes, []

    def counting(*given: object) -> object:
        found = sizes(*given)  # type: ignore[arg-type]
        counted.append(found.runs)
        return found

    engine._sizes = counting  # type: ignore[assignment]
    results = []
    for share in (free, 0.001):
        engine._SHARE = share
        counted.clear()
        results.append(ac.simulate(problem, policies, 3000, 1000, device="cuda"))
        print(f"passes: with {share:.1%} of the free memory, runs at a time: {counted}")
    engine._SHARE, engine._sizes = free, sizes
    one, several = results
    print(
        f"  equal: {np.array_equal(one.regret, several.regret) and np.array_equal(one.pulls, several.pulls)}"
    )


def log() -> None:
    """Logged streaming sessions (the synthetic sample), replayed on GPU and CPU."""
    problem = make_problem("spotify")
    policies = [*compared(20), ac.TPUCBEW(20), ac.AgeIMED(), ac.AgeTS()]
    ours, theirs = (ac.simulate(problem, policies, 20_000, 20, device=device) for device in ("cuda", "cpu"))
    same = np.isclose(ours.final_regret, theirs.final_regret, 1e-12, 0)
    print(f"replayed log, {len(policies)} policies, 20 runs: {same.sum()} of {same.size} final regrets equal")


MISSING = """
import sys
from cuda import pathfinder
find = pathfinder.load_nvidia_dynamic_lib
def without(name):
    if name in ("nvrtc", "nvvm", "nvJitLink"):
        raise RuntimeError(f"{name} is not there")
    return find(name)
pathfinder.load_nvidia_dynamic_lib = without
from accrual.cli import main
sys.exit(main())
"""


def missing() -> None:
    """A toolkit whose libraries are not found."""
    command = [sys.executable, "-P", "-c", MISSING, "simulate", "setting1", "--runs", "2", "--horizon", "100"]
    done = subprocess.run([*command, "--device", "cuda"], capture_output=True, text=True, check=False)
    print(f"no toolkit: exit code {done.returncode}, {done.stderr.strip()[-300:]}")


def main() -> None:
    """Those that are named; all of them for none."""
    proofs = {"passes": passes, "log": log, "missing": missing, "paper": paper}
    for name in sys.argv[1:] or proofs:
        proofs[name]()


if __name__ == "__main__":
    main()
