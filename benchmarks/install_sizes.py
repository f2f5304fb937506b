"""`make sizes`: how many megabytes an installation takes, bare, with each extra, and of the client alone.

Each is installed into an empty folder with the versions of constraints.txt. What is counted is all that pip
writes there, compiled files included; Python itself and pip are not.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXTRAS = ["cli", "plot", "frames", "fit", "postgres", "service", "client", "all", "ray", "cuda"]


def megabytes(what: str) -> float:
    """Install something, and count what it takes."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        command = [*pip, "-c", "constraints.txt", "--target", folder, what]
        subprocess.run(command, cwd=ROOT, check=True)
        files = [path for path in Path(folder).rglob("*") if path.is_file() and not path.is_symlink()]
        return sum(path.stat().st_size for path in files) / 1e6


def main() -> None:
    """Print a row for each."""
    print(f"accrual-client {megabytes('./clients/python'):>12,.0f} MB")
    bare = megabytes(".")
    print(f"accrual        {bare:>12,.0f} MB", flush=True)
    for extra in EXTRAS:
        size = megabytes(f".[{extra}]")
        print(f"  [{extra}]".ljust(15) + f"{size:>12,.0f} MB, {size - bare:,.0f} more", flush=True)


if __name__ == "__main__":
    main()
