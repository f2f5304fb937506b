"""`make` with a Python that is too old says so in one line, and leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Stands in for Python 3.10, which few machines have beside a newer one; it prints what that one prints.
OLD = """#!/bin/sh
case "$1" in
  --version) echo "Python 3.10.13" ;;
  -c) echo ;;
  *) touch it-was-used ;;
esac
"""


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
@pytest.mark.parametrize("target", ["run", "test", "docs"])
def test_a_python_that_is_too_old(tmp_path, target):
    python = tmp_path / "python3.10"
    python.write_text(OLD)
    python.chmod(0o755)
    folder = tmp_path / "clone"
    folder.mkdir()
    shutil.copy(ROOT / "Makefile", folder)
    for name in ("pyproject.toml", "constraints.txt"):
        (folder / name).touch()
    # As a person calls it: `make test`, which runs this test, tells a make below it to name its folders.
    env = {key: value for key, value in os.environ.items() if key not in ("MAKELEVEL", "MAKEFLAGS", "MFLAGS")}
    call = ["make", target, f"PYTHON={python}"]
    done = subprocess.run(call, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert (done.stdout, done.stderr.count("\n")) == ("", 1)
    assert f"accrual needs Python 3.11 or newer, and {python} is Python 3.10.13" in done.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["Makefile", "constraints.txt", "pyproject.toml"]
