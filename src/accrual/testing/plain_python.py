"""Run methods of a suite in a process of plain Python, in which nothing is compiled.

The process answers until the process that started it ends. Starting one for each question would take longer
than most answers.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import json
import os
import subprocess
import sys
import traceback
from typing import Any

_ANSWER = "from accrual.testing.plain_python import answer; answer()"


def in_plain_python(suite: object, method: str, *given: Any) -> Any:
    """Return what a method of the suite's class returns in plain Python.

    The class must be found in its module by its name. Arguments and the result travel as JSON.
    """
    kind, process = type(suite), _started()
    paths = [path for path in sys.path if path]
    question = json.dumps([paths, kind.__module__, kind.__qualname__, method, given])
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(question + "\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        _started.cache_clear()
        raise AssertionError(f"plain Python ended with exit code {process.wait()}")
    value, error = json.loads(line)
    assert not error, error
    return value


def answer() -> None:
    """Answer questions, one a line, until there are no more."""
    answers, sys.stdout = sys.stdout, sys.stderr  # what a policy prints is not an answer
    for line in sys.stdin:
        paths, module, suite, method, given = json.loads(line)
        sys.path.extend(path for path in paths if path not in sys.path)
        try:
            value, error = getattr(getattr(importlib.import_module(module), suite)(), method)(*given), ""
        except Exception:
            value, error = None, traceback.format_exc()
        print(json.dumps([value, error]), file=answers, flush=True)


@functools.cache
def _started() -> subprocess.Popen[str]:
    paths = os.pathsep.join(path for path in sys.path if path)
    process = subprocess.Popen(
        [sys.executable, "-c", _ANSWER],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": paths},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(process.communicate)  # without questions it ends
    return process
