"""Where numba's internals are not what they were, plain `numba.njit` makes the same choices."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

CHOICES = """
import json, warnings
from typing import NamedTuple
import numpy as np
{damage}
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    import accrual as ac
    from accrual.core import jit

result = ac.simulate(ac.gallery["playlist"], [ac.DelayedUCB1(), ac.ThompsonSampling()], 400, runs=2, seed=3)

class Counts(NamedTuple):
    number: np.ndarray

@jit.njit
def add(counts, x):
    counts.number[0] += x

@jit.kernel
def count(counts, x):
    add(counts, x)
    add(counts, x)

counts = Counts(np.zeros(1))
native = jit.native_tuple(counts)
for x in (0.1, 0.2, 0.3):
    count(native, x)
print(json.dumps({{
    "regret": result.regret.tolist(),
    "pulls": result.pulls.tolist(),
    "counted": counts.number[0],
    "plain": jit.compiler.numba_internals is None,
    "native": native is not counts,
    "said": [str(one.message) for one in said if one.category is RuntimeWarning],
}}))
"""

# What a release of numba might change, and what then is used: (plain njit, native tuples).
CHANGES = {
    "a class is gone": ("import numba.core.codegen as c; del c.JITCodeLibrary", (True, True)),
    "two names are gone": (
        "import numba.core.registry as r, numba.core.extending as e\n"
        "del r.CPUDispatcher, e.lower_getattr_generic",
        (True, False),
    ),
    "a function takes other arguments": (
        "import numba.core.compiler as c; whole = c.compile_extra\n"
        "def compile_extra(*args, library=None, **more):\n"
        "    if library is not None: raise TypeError('unexpected keyword argument library')\n"
        "    return whole(*args, **more)\n"
        "c.compile_extra = compile_extra",
        (False, True),
    ),
}


def choices(damage: str, cache: Path | None) -> dict[str, Any]:
    """Return what a process chooses in which numba was changed before accrual was imported."""
    environment = dict(os.environ) if cache is None else {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    program = CHOICES.format(damage=damage)
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def usual():
    found = choices("", None)
    assert (found.pop("plain"), found.pop("native"), found.pop("said")) == (False, True, [])
    return found


@pytest.mark.parametrize("change", CHANGES)
def test_the_fallback_makes_the_same_choices(change, usual, tmp_path):
    damage, (plain, native) = CHANGES[change]
    found = choices(damage, tmp_path)
    assert (found.pop("plain"), found.pop("native")) == (plain, native)
    said = found.pop("said")
    assert len(said) == plain
    assert all("has other internals than accrual knows" in one for one in said)
    assert found == usual
    assert bool(list(tmp_path.rglob("*.nbi"))) != plain  # plain njit keeps nothing on disk


def test_the_bounds_of_numba_are_the_next_minor_after_the_pinned_ones():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pins = dict(
        re.findall(r"^(numba[\w-]*)==(\d+\.\d+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    )
    bounds = [*project["dependencies"], *project["optional-dependencies"]["cuda"]]
    for name, version in pins.items():
        major, minor = map(int, version.split("."))
        (bound,) = (one for one in bounds if re.match(rf"{name}[<>]", one))
        assert bound.endswith(f",<{major}.{minor + 1}")
    assert sorted(pins) == ["numba", "numba-cuda"]


def test_cuda_kernels_are_compiled_without_a_disk_cache_where_its_classes_are_gone(tmp_path):
    """No GPU is needed: a kernel is compiled when it is launched."""
    program = """
{damage}
from accrual.engine.cuda.feed import clear_kernel
print(type(clear_kernel()._cache).__name__)
"""
    shown = []
    for damage in ("", "import numba.cuda.core.caching as c; del c.IndexDataCacheFile"):
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        environment.pop("NUMBA_ENABLE_CUDASIM", None)
        done = subprocess.run(
            [sys.executable, "-c", program.format(damage=damage)],
            env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        shown.append(done.stdout.strip())
    assert shown == ["KernelCache", "NullCache"]
