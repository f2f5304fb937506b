"""All that knows numba's compiler.

`njit` and `njit_noinline` compile the functions that kernels call, `kernel` compiles a loop and keeps it on
disk, and `native_tuple` passes many arrays to a kernel as one argument.
"""

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
    source_hash,
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
    "source_hash",
]
