"""A function within kernels is compiled for them alone; where Python calls it, it runs in plain Python."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numba import config
from tests.core.alike_kernels import KERNELS

from accrual.core import progress
from accrual.core.jit.compiler import kernel, njit, njit_noinline
from accrual.core.random import normal

ROOT = Path(__file__).parents[2]


@njit
def _add(values, x):
    for k in range(len(values)):
        values[k] += x
    return values[0]


def made_anew() -> tuple[Any, Any]:
    """Make a kernel and its part as a new process would."""

    @njit_noinline
    def twice(values, x):
        return _add(values, x) + _add(values, x)

    @kernel
    def run(values, x):
        return twice(values, x)

    return run, twice


def test_a_part_does_the_same_within_a_kernel_from_python_and_in_plain_python():
    run, part = made_anew()
    results = []
    for function in (run, part, part.py_func):
        values = np.zeros(3)
        results.append((function(values, 0.1), values.tolist()))
    assert results[0] == results[1] == results[2] == (0.1 + 0.2, [0.2] * 3)


def test_a_part_within_a_kernel_has_no_machine_code_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))  # so that the kernel is compiled now
    run, part = made_anew()
    run(np.zeros(3), 0.1)
    (compiled,) = part.overloads.values()
    assert not callable(compiled.entry_point)
    assert "_add" in _calls(compiled)  # taken in by the kernel, which optimises all at once
    assert part(np.zeros(2, np.float32), 0.5) == 1.5  # of other types than the kernel's


def _calls(compiled: Any) -> str:
    """The instructions of a compiled function that call another."""
    return "\n".join(line for line in compiled.library.get_llvm_str().splitlines() if " call " in line)


def test_a_damaged_file_of_the_cache_is_a_miss_and_is_written_again(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    found = []
    for damaged in (False, True, False):
        files = list(tmp_path.rglob("*.nb?"))
        for file in files if damaged else ():
            file.write_bytes(b"no longer what it was")
        run, _ = made_anew()
        assert run(np.zeros(3), 0.1) == 0.1 + 0.2
        found.append((len(files), sum(run.stats.cache_hits.values())))
    assert found == [(0, 0), (2, 0), (2, 1)]


def test_progress_says_once_that_something_is_compiled_and_counts_from_then_on(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    for said in ("compiling, once for each version\n", ""):  # the second time, it is on disk
        with progress.Progress(10, show=True) as shown:
            run, _ = made_anew()
            run(np.zeros(3), 0.1)
            monkeypatch.setattr(progress, "_PATIENCE", 60.0 if said else 0.5)
            for _ in range(10):
                shown.advance(1)
        assert capsys.readouterr().err == said


def test_a_part_travels_to_another_process_by_value():
    copy = pickle.loads(pickle.dumps(normal))  # noqa: S301 (our own bytes)
    assert copy((1, 2), 3, 0) == normal((1, 2), 3, 0)


def test_kernels_that_were_compiled_by_two_processes_do_not_mix_their_parts(tmp_path):
    """Both have parts of the same names: the process that loaded both called one kernel's from the other."""
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}

    def returned(*names: str) -> list[str]:
        call = [sys.executable, "-m", "tests.core.alike_kernels", *names]
        ran = subprocess.run(call, env=env, cwd=ROOT, capture_output=True, text=True, check=True)
        return ran.stdout.splitlines()

    apart = [*returned("plus"), *returned("times")]
    assert returned("plus", "times") == apart
    assert returned("times", "plus") == apart[::-1]
    assert [line.split()[1] for line in apart] == [str(KERNELS[name].py_func(0.5)) for name in KERNELS]
