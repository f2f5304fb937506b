"""The one place that imports numba's compiler for CUDA, and that keeps what it makes on disk."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from accrual.core.errors import need
from accrual.core.jit import fingerprint, save_compiled

# Simulations side by side in threads have a queue each, up to the most a GPU has.
os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")
need("numba_cuda", "cuda")  # numba has a cuda of its own, older and without upkeep
if not hasattr(np, "row_stack"):  # numba-cuda up to 0.30 reads a name that numpy 2.5 has dropped
    np.row_stack = np.vstack
cuda: Any = need("numba.cuda", "cuda")
# Few chains in small blocks are what is wanted here, so no warning of them.
_config: Any = need("numba.cuda.core.config", "cuda")
_config.CUDA_LOW_OCCUPANCY_WARNINGS = 0
SIMULATED = bool(_config.ENABLE_CUDASIM)

F = TypeVar("F", bound=Callable[..., Any])


def device_kernel(function: F, registers: int | None = None) -> F:
    """Compile a kernel when it is first launched, and keep its machine code on disk for later processes.

    With fewer registers more threads run at a time.
    """
    if SIMULATED:
        return cuda.jit(function)  # type: ignore[no-any-return]
    dispatcher = cuda.jit(max_registers=registers)(function)
    code = fingerprint(dispatcher)
    if code is not None:
        dispatcher._cache = _disk_cache(function, code)
    return dispatcher  # type: ignore[no-any-return]


def _disk_cache(function: Callable[..., Any], code: str) -> Any:
    """Return numba's cache of compiled kernels, with a key of our own.

    As for the kernels of the CPU (`accrual.core.jit.compiler.kernel`): numba's key has the identity of the functions
    that a kernel closes over, which no later process finds again. Here it is the source of all that goes in,
    beside the types, the GPU's architecture, and the versions of numba-cuda and of the toolkit.
    """
    caching: Any = need("numba.cuda.core.caching", "cuda")
    dispatchers: Any = need("numba.cuda.dispatcher", "cuda")
    version: str = need("numba_cuda", "cuda").__version__

    class KernelCache(dispatchers.CUDACache):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(function)
            name = f"{self._impl.filename_base}-cuda-{code[:16]}"
            self._cache_file = caching.IndexDataCacheFile(self._cache_path, name, code)

        def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
            return (sig, codegen.magic_tuple(), version, code)

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            try:
                return super().load_overload(sig, target_context)
            except Exception:  # a cache file that cannot be read is a miss, never a failure
                return None

        def save_overload(self, sig: Any, data: Any) -> None:
            # The machine code is all that is needed: what it was made of is a hundred times as large.
            data.library._llvm_strs, data.library._ptx_cache = [], {}
            save_compiled(self, functools.partial(super().save_overload, sig, data))

    try:
        return KernelCache()
    except RuntimeError:  # nowhere to write
        return dispatchers.NullCache()
