"""Compile functions and kernels with numba, and keep the machine code of kernels on disk.

`njit` compiles lazily and without signatures, so that the same function can be called from a CPU
kernel, a CUDA kernel, the live bandit, or (with ``NUMBA_DISABLE_JIT=1``) plain Python.
`kernel` compiles the loops of the engines and of the live side, and keeps their machine code on disk.
"""

from __future__ import annotations

import functools
import hashlib
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba import config

from accrual.core.jit.source_files import source_hash

try:
    from accrual.core.jit import numba_internals
except (ImportError, AttributeError, TypeError) as error:
    numba_internals = None  # type: ignore[assignment]
    warnings.warn(
        f"numba {numba.__version__} has other internals than accrual knows ({error}): compiling takes "
        "longer, and compiled code is not kept on disk; results are the same",
        RuntimeWarning,
        stacklevel=2,
    )

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
# Functions within a kernel borrow its arrays, without counting references: on the live side the counting
# took longer than the work. So these functions cannot allocate arrays.
_INNER: dict[str, Any] = {**_OPTIONS, "_nrt": False}


def njit(function: F) -> F:
    """Compile `function` on first use, for calls from any kernel.

    The function is inlined, unless its tuples are native. Otherwise the compiler may call a function of
    middling size, and pass a policy's statistics array by array; for the Age policies that took longer than
    the work itself. A native tuple is one address: there a call costs nothing, and inlining everything
    makes compiling take twice as long.

    Examples
    --------
    >>> @njit
    ... def double(x):
    ...     return 2 * x
    >>> double(21)
    42
    """
    return _part(function, forceinline=True)


def njit_noinline(function: F) -> F:
    """Compile `function` like `njit`, but let kernels call it instead of inlining it.

    This suits large functions that run now and then. Inlined, they would slow down the loop around them
    even while they do not run.
    """
    return _part(function)


def _part(function: F, **options: Any) -> F:
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return function
    if numba_internals is None:
        return numba.njit(**_OPTIONS)(function)
    options = {"nopython": True, "boundscheck": None, **options, **_INNER}
    return numba_internals.KernelPart(function, targetoptions=options)  # type: ignore[return-value]


def kernel(function: F) -> F:
    """Compile a loop, and keep its machine code on disk for later processes."""
    dispatcher: Any = numba.njit(**_OPTIONS)(function)
    if numba_internals is not None and not config.DISABLE_JIT:  # type: ignore[attr-defined]
        numba_internals.own_parts(dispatcher)
        code = _fingerprint(function)
        if code is not None:
            dispatcher._cache = numba_internals.kernel_cache(function, code)
    return dispatcher  # type: ignore[no-any-return]


def parts_run_in_plain_python() -> bool:
    """Return whether a kernel's `py_func` is plain Python throughout: not where numba has other internals."""
    return numba_internals is not None


def machine_code(dispatcher: Any) -> Any:
    """Return the machine code of a kernel that has just been called, for more calls with the same types.

    numba looks up the type of every argument in every call, which for nested tuples takes longer
    than a short call does. A kernel that was compiled for one set of types only needs no such
    look-up. Any other kernel, and a function in plain Python, is returned as it is.
    """
    return _first_code(dispatcher) if len(getattr(dispatcher, "overloads", ())) == 1 else dispatcher


def is_on_disk(kernel: Any, signature: tuple[Any, ...]) -> bool:
    """Return whether the disk has a kernel's machine code for arguments of these numba types."""
    return signature in kernel.overloads or getattr(kernel._cache, "has", _nothing)(
        signature, kernel.targetctx
    )


def _nothing(*_: Any) -> bool:
    """Return False, for numba's class without a cache."""
    return False


@functools.cache
def _first_code(dispatcher: Any) -> Any:
    return next(iter(dispatcher.overloads.values())).entry_point


def is_compiled(function: Any) -> bool:
    """Return whether kernels can call `function`; anything can be called if nothing is compiled."""
    return callable(function) and (bool(config.DISABLE_JIT) or hasattr(function, "py_func"))  # type: ignore[attr-defined]


def python_function(function: F) -> F:
    """Return the Python function that `function` was compiled from: it is quicker for a single call."""
    python: F = getattr(function, "py_func", function)
    return python


def fingerprint(dispatcher: Any, *hosts: type) -> str | None:
    """Hash all source that a kernel's results depend on.

    Parameters
    ----------
    hosts : type
        Classes in plain Python that prepare what the kernel works on; their source counts as well.

    Returns
    -------
    str or None
        None where some of the source is in no file, or where kernels are not compiled.
    """
    function = getattr(dispatcher, "py_func", None)
    code = None if function is None else _fingerprint(function)
    files = [getattr(sys.modules[host.__module__], "__file__", None) for host in hosts]
    if code is None or None in files:
        return None
    parts = [code, *(source_hash(Path(file)) for file in files if file is not None)]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()


def _fingerprint(function: Callable[..., Any]) -> str | None:
    """Hash all source that goes into `function`; None where some of it is in no file."""
    path = Path(function.__code__.co_filename)
    if function.__module__ == "__main__" or not path.is_file():
        return None
    digest = hashlib.sha256(f"{numba.__version__} {function.__module__}.{function.__qualname__}".encode())
    digest.update(source_hash(path).encode())
    for cell in function.__closure__ or ():
        part = getattr(cell.cell_contents, "py_func", None)
        inner = repr(cell.cell_contents) if part is None else _fingerprint(part)
        if inner is None:
            return None
        digest.update(inner.encode())
    return digest.hexdigest()
