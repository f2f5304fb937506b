"""The one place that imports numba's compiler for CUDA, and that keeps compiled kernels on disk."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from accrual.core.errors import need
from accrual.core.jit import cache_by_source, fingerprint

# Simulations in parallel threads have a queue each, up to the most that a GPU has.
os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")
need("numba_cuda", "cuda")  # numba has a cuda module of its own, which is no longer maintained
if not hasattr(np, "row_stack"):  # numba-cuda up to 0.30 reads a name that numpy 2.5 has dropped
    np.row_stack = np.vstack
cuda: Any = need("numba.cuda", "cuda")
SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM", "0") == "1"
with contextlib.suppress(ImportError):
    _config: Any = need("numba.cuda.core.config", "cuda")
    _config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # a few chains in small blocks are intended here

F = TypeVar("F", bound=Callable[..., Any])


def device_kernel(function: F, registers: int | None = None) -> F:
    """Compile a kernel when it is first launched, and keep its machine code on disk for later processes.

    With fewer registers, more threads run at a time.
    """
    if SIMULATED:
        return cuda.jit(function)  # type: ignore[no-any-return]
    dispatcher = cuda.jit(max_registers=registers)(function)
    code = fingerprint(dispatcher)
    if code is not None:
        # Without a place to write, or with other internals than ours to lean on, nothing is kept on disk.
        with contextlib.suppress(RuntimeError, ImportError, AttributeError, TypeError):
            dispatcher._cache = _disk_cache(function, code)
    return dispatcher  # type: ignore[no-any-return]


def _disk_cache(function: Callable[..., Any], code: str) -> Any:
    """Make the disk cache of a kernel. Its key also has the GPU's architecture and numba-cuda's version."""
    caching: Any = need("numba.cuda.core.caching", "cuda")
    dispatchers: Any = need("numba.cuda.dispatcher", "cuda")
    version: str = need("numba_cuda", "cuda").__version__

    class SmallCache(dispatchers.CUDACache):  # type: ignore[misc]
        def save_overload(self, sig: Any, data: Any) -> None:
            # The machine code is all that is needed: what it was made of is a hundred times as large.
            data.library._llvm_strs, data.library._ptx_cache = [], {}
            super().save_overload(sig, data)

    return cache_by_source(SmallCache, caching.IndexDataCacheFile, function, f"{code}-cuda-{version}")
