"""What keeps the engine quick and small on every machine; `make bench` measures the time it takes."""

import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from tests.engine.cpp_loop import compile_loop, compiler, play_loop

import accrual as ac
from accrual.studies.bench import compared, compile_for


def _python(code: str, **environment: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_import_leaves_heavy_packages_alone() -> None:
    code = "import sys, accrual; print(*{name.partition('.')[0] for name in sys.modules})"
    heavy = {"numba", "scipy", "matplotlib", "pandas", "pyarrow", "typer", "rich"}
    assert not heavy & set(_python(code).split())


def test_a_later_process_finds_the_kernels_compiled(tmp_path: Path) -> None:
    code = (
        "import accrual as ac\n"
        "from accrual.engine.fast_loop import loop\n"
        "from accrual.engine.feed import fill_kernel\n"
        "from accrual.engine.law_kernels import pack\n"
        "policy = ac.UCB1()\n"
        "ac.simulate(ac.paper.setting1(), [policy], 100, runs=1, threads=1)\n"
        "draw = pack(ac.paper.setting1()).draw\n"
        "for kernel in (loop(policy.functions, policy.feedback, False, False), fill_kernel(draw)):\n"
        "    print(sum(kernel.stats.cache_hits.values()), sum(kernel.stats.cache_misses.values()))"
    )
    first, second = (_python(code, NUMBA_CACHE_DIR=str(tmp_path)).split() for _ in range(2))
    assert first == ["0", "1"] * 2
    assert second == ["1", "0"] * 2


def test_memory_does_not_grow_with_the_horizon() -> None:
    problem, policies = ac.paper.setting1(), [ac.UCB1(), ac.TPUCBEW(20), ac.TPUCBFR(50)]
    compile_for(problem, policies)

    def peak(horizon: int) -> int:
        tracemalloc.start()
        ac.simulate(problem, policies, horizon, runs=1, threads=1)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    # The two differ by 4 % with the luck of the garbage collector. A byte kept per round and policy
    # would add 90 %.
    assert peak(500_000) < 1.1 * peak(10_000)


def test_a_plain_cpp_loop_plays_the_same_runs(tmp_path: Path) -> None:
    """`loop.cpp`, with which `make bench` compares the speed, is written without this library."""
    if compiler() is None:
        pytest.skip("no C++ compiler")
    problem, policies, horizon = ac.paper.setting1(), compared(50), 10_000
    loop = compile_loop(tmp_path / "loop", len(problem.caps), "-O3")
    ours = ac.simulate(problem, policies, horizon, runs=3).final_regret
    for run in range(3):
        _, theirs = play_loop(loop, problem, policies, horizon, run)
        # Identical where this was written; the tolerance is for compilers that round otherwise.
        assert ours[:, run] == pytest.approx(theirs, rel=0.01)
        assert len(np.unique(ours[:, run])) == len(policies)
