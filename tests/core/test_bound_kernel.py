"""A kernel that is not compiled yet answers in plain Python, and in machine code once that is there."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from numba import config
from tests.core import warmed_kernel

from accrual.core.jit import Recipe

ROOT = Path(__file__).parents[2]
# A process that adds until it has machine code; it prints the sums, and how often plain Python answered.
WORKER = """
import sys, time
from accrual.core.jit import Recipe
from tests.core.warmed_kernel import bound
made = bound()
made.answer_at_once(lambda: Recipe("adding", sys.argv[1], sys.argv[2]))
answers, plain = [], 0
while made._kind is None:
    answers.append(made.run(made.arrays, 1.0))
    plain += made._kind is None
    time.sleep(0.01)
assert answers == list(range(1, len(answers) + 1)), answers
print(plain)
"""


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Start a worker with an empty cache, or the same one for all workers of a test."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))

    def begin(module: str = "tests.core.warmed_kernel", program: str = WORKER) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", program, module, str(tmp_path / "compiled")],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        )  # fmt: skip

    return begin


def finish(worker: subprocess.Popen[str]) -> int:
    out, error = worker.communicate(timeout=300)
    assert worker.returncode == 0, error
    return int(out)


def test_one_process_compiles_for_all(start, tmp_path):
    workers = [start() for _ in range(3)]
    plain = [finish(worker) for worker in workers]
    assert max(plain) > 0  # one that starts late finds it on disk
    assert (tmp_path / "compiled").read_text() == "compiled\n"


def test_a_process_that_fails_leaves_the_work_to_the_one_that_waits(start, tmp_path):
    assert finish(start("no.such.module")) > 0
    assert len(list(tmp_path.rglob("*.nbc"))) == 1  # which then keeps it for others


def test_a_cache_that_cannot_be_written_is_said_once_and_costs_no_answer(
    start, tmp_path, caplog, monkeypatch
):
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    made = warmed_kernel.bound()
    made.answer_at_once(lambda: Recipe("adding", "tests.core.warmed_kernel", "never read"))
    monkeypatch.setattr(type(made.kernel._cache), "cache_path", "/dev/null/cache", raising=False)
    monkeypatch.setattr("accrual.core.jit.bound_kernel.is_on_disk", lambda *_: False)
    last = made.run(made.arrays, 1.0)
    assert last == 1.0
    end = time.monotonic() + 120
    while made._kind is None and time.monotonic() < end:
        last = made.run(made.arrays, 1.0)
        time.sleep(0.01)
    assert made._kind is not None
    assert made.run(made.arrays, 1.0) == last + 1.0
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == [
        "compiled code cannot be kept on disk, so each process compiles for itself"
    ]
