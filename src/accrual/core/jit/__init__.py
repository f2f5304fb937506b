"""All that knows numba's compiler: kernels, the functions within them, tuples of arrays, and the disk cache.

`kernel` compiles a loop; `njit` and `njit_noinline` compile what a loop calls; `native_tuple` prepares a
tuple of arrays for many calls. Where numba's internals have changed, plain `numba.njit` takes their place.
"""

from __future__ import annotations

from typing import Any

from accrual.core.jit.compiler import (
    fingerprint,
    kernel,
    machine_code,
    machine_code_for,
    njit,
    njit_noinline,
    python_function,
)
from accrual.core.jit.disk_cache import cache_by_source
from accrual.core.jit.source_files import source_hash

try:
    from accrual.core.jit.native_tuples import native_tuple
except (ImportError, AttributeError, TypeError):  # numba has other internals, see `accrual.core.jit.compiler`

    def native_tuple(value: Any) -> Any:
        """Return the tuple as it is. Kernels read its fields by name too; each call takes longer."""
        return value


__all__ = [
    "cache_by_source",
    "fingerprint",
    "kernel",
    "machine_code",
    "machine_code_for",
    "native_tuple",
    "njit",
    "njit_noinline",
    "python_function",
    "source_hash",
]
