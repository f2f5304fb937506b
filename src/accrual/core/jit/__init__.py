"""All that knows numba's compiler: kernels, the functions within them, tuples of arrays, and the disk cache.

`kernel` compiles a loop; `njit` and `njit_noinline` compile what a loop calls; `native_tuple` prepares a
tuple of arrays for many calls; `BoundKernel` calls a kernel many times, and can do without its machine code
at first. Where numba's internals have changed, plain `numba.njit` takes their place.
"""

from __future__ import annotations

from accrual.core.jit.bound_kernel import BoundKernel, Recipe, native_tuple
from accrual.core.jit.compiler import (
    fingerprint,
    is_compiled,
    kernel,
    machine_code,
    njit,
    njit_noinline,
    python_function,
)
from accrual.core.jit.disk_cache import cache_by_source
from accrual.core.jit.source_files import source_hash

__all__ = [
    "BoundKernel",
    "Recipe",
    "cache_by_source",
    "fingerprint",
    "is_compiled",
    "kernel",
    "machine_code",
    "native_tuple",
    "njit",
    "njit_noinline",
    "python_function",
    "source_hash",
]
