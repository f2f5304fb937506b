"""The plain C++ loop of `benchmarks/loop.cpp`: compiled, and played on a run of the library's own."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

import accrual as ac

_SOURCE = Path(__file__).parents[2] / "benchmarks" / "loop.cpp"


def compiler() -> str | None:
    """Return the name of the C++ compiler at hand; None if there is none."""
    names = [os.environ["CXX"]] if "CXX" in os.environ else ["g++", "c++", "clang++"]
    return next((name for name in names if shutil.which(name)), None)


def compile_loop(loop: Path, arms: int, *options: str) -> Path:
    """Compile the loop for so many arms to the file `loop`."""
    command = [str(compiler()), *options, f"-DARMS={arms}", str(_SOURCE), "-o", str(loop)]
    subprocess.run(command, check=True)
    return loop


def play_loop(
    loop: Path, problem: ac.Problem, policies: Sequence[ac.Policy], horizon: int, run: int
) -> tuple[float, npt.NDArray[np.float64]]:
    """Return the seconds that the loop took, by its own clock, and the final regret of each policy."""
    caps = np.array(problem.caps)
    lines: list[list[object]] = [
        [problem.window, problem.groups, horizon, 0, run],
        caps.tolist(),
        problem.gaps.tolist(),
        [len(policies)],
    ]
    for policy in policies:
        if policy.feedback == "pieces":
            params = policy.params(caps, problem.window)
            lines.append(["pieces", *params.coincidence.tolist(), *params.owed.tolist()])
        else:
            lines.append(["totals", 0 if policy.immediate else problem.window - 1])
    text = "\n".join(" ".join(map(str, line)) for line in lines)
    seconds, *regret = subprocess.run(
        [loop], input=text, capture_output=True, text=True, check=True
    ).stdout.split()
    return float(seconds), np.array(regret, np.float64)
