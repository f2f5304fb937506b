"""All that knows numba's compiler: kernels kept on disk, the functions inside them, and tuples of arrays."""

from __future__ import annotations

from accrual.core.jit.compiler import (
    fingerprint,
    kernel,
    machine_code,
    machine_code_for,
    njit,
    njit_noinline,
    python_function,
    save_compiled,
)
from accrual.core.jit.native_tuples import native_tuple

__all__ = [
    "fingerprint",
    "kernel",
    "machine_code",
    "machine_code_for",
    "native_tuple",
    "njit",
    "njit_noinline",
    "python_function",
    "save_compiled",
]
