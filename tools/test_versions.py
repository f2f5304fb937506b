"""`make test-versions`: run the tests on the oldest and the newest Python, and with the oldest dependencies.

The oldest dependencies are the lower bounds of pyproject.toml, for all that a user installs; what only tests
use is as pinned. They run on the oldest Python alone, because several of them were never built for the
newest. Each run has an environment of its own in out/versions, which the next run uses again.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parents[1]
RUNS = (("3.11", "pinned"), ("3.11", "oldest"), ("3.13", "pinned"))
OURS = ("test", "lint", "docs", "release", "peers", "fuzz")  # extras that users of accrual do not install
BOUND = re.compile(r"([A-Za-z0-9._-]+)(?:\[.*\])?>=([0-9.]+)")


def main() -> int:
    """Run all; return 1 if a run failed or an interpreter is missing. Arguments are handed to pytest."""
    results = {f"Python {python}, {kind} dependencies": run(python, kind) for python, kind in RUNS}
    print("\n".join(f"{name}: {result}" for name, result in results.items()))
    return int(any(result != "passed" for result in results.values()))


def run(python: str, kind: str) -> str:
    """Run the tests in an environment; return what became of it."""
    interpreter = f"python{python}"
    if not works([interpreter, "-c", "pass"]):
        return f"not run: there is no {interpreter} on the PATH"
    place = ROOT / "out/versions" / f"{python}-{kind}"
    place.mkdir(parents=True, exist_ok=True)
    constraints = place / "constraints.txt"
    constraints.write_text(versions(kind))
    own = str(place / "bin/python")
    install = [own, "-m", "pip", "install", "-q", "--disable-pip-version-check", "-c", str(constraints)]
    if not works([interpreter, "-m", "venv", str(place)]) or not works(
        [*install, "-e", f"{ROOT}[all,test]", "-e", str(ROOT / "clients/python")]
    ):
        return "not run: the environment cannot be made"
    tests = [own, "-m", "pytest", "-n", str((os.cpu_count() or 1) + 1), "--dist", "loadfile"]
    return "passed" if works([*tests, *sys.argv[1:]]) else "FAILED"


def works(command: list[str]) -> bool:
    """Run a command; return whether it succeeded."""
    try:
        return subprocess.run(command, cwd=ROOT, check=False).returncode == 0
    except FileNotFoundError:
        return False


def versions(kind: str) -> str:
    """Return the lines of a constraints file.

    Examples
    --------
    >>> [line for line in versions("oldest").splitlines() if line.startswith("numpy")]
    ['numpy==2.0']
    """
    pinned = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    if kind == "pinned":
        return pinned
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    for_users = [*project["dependencies"], *chain(*(extras[name] for name in extras if name not in OURS))]
    oldest = bounds(for_users)
    # What comes with these is as new as these allow: the pins of newer releases would contradict them.
    tools = bounds(chain(*(extras[name] for name in OURS))).keys() - oldest.keys()
    kept = [line for line in pinned.splitlines() if normal(line.partition("==")[0]) in tools]
    return "\n".join([*(f"{name}=={version}" for name, version in oldest.items()), *kept]) + "\n"


def bounds(requirements: Iterable[str]) -> dict[str, str]:
    """Return the lower bound of each requirement that has one, by name."""
    return {normal(found[1]): found[2] for line in requirements if (found := BOUND.match(line))}


def normal(name: str) -> str:
    """Return a distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    sys.exit(main())
