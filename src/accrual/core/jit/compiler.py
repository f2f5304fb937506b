"""Compile functions and kernels with numba, and keep the machine code of kernels on disk.

`njit` compiles lazily and without signatures, so that the same function can be called from a CPU
kernel, a CUDA kernel, the live bandit, or (with ``NUMBA_DISABLE_JIT=1``) plain Python.
`kernel` compiles the loops of the engines and of the live side.
"""

from __future__ import annotations

import functools
import hashlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba import config
from numba.core import compiler
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.codegen import JITCodeLibrary
from numba.core.dispatcher import _FunctionCompiler  # type: ignore[attr-defined]
from numba.core.registry import CPUDispatcher

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
# Functions within a kernel borrow its arrays, without counting references: on the live side the counting
# took longer than the work. So these functions cannot allocate arrays.
_INNER: dict[str, Any] = {**_OPTIONS, "_nrt": False}

_ROOT = Path(__file__).resolve().parents[3]  # the folder that holds the package
# Only imports at the left margin. Indented ones are for type checkers, or for work that no kernel does,
# such as drawing a picture.
_IMPORT = re.compile(r"^from (accrual[\w.]*) import (\([^)]*\)|.*)$", re.MULTILINE)


def njit(function: F) -> F:
    """Compile `function` on first use, for calls from any kernel.

    The function is inlined. Otherwise the compiler may call a function of middling size, and pass a
    policy's statistics array by array; for the Age policies that took longer than the work itself.

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
    options = {"nopython": True, "boundscheck": None, **options, **_INNER}
    return KernelPart(function, targetoptions=options)  # type: ignore[return-value]


def kernel(function: F) -> F:
    """Compile a loop, and keep its machine code on disk for later processes.

    numba's own cache looks only at the file of the kernel, so it would miss an edit to a policy that the
    kernel calls. It also never finds a kernel that closes over compiled functions, because it hashes
    their identity in this process. Here the key is the source of everything that goes into the kernel.
    """
    dispatcher: Any = numba.njit(**_OPTIONS)(function)
    if not config.DISABLE_JIT:  # type: ignore[attr-defined]
        code = _fingerprint(function)
        if code is not None:
            dispatcher._cache = _KernelCache(function, code)
    return dispatcher  # type: ignore[no-any-return]


def machine_code(dispatcher: Any) -> Any:
    """Return the machine code of a kernel that has just been called, for more calls with the same types.

    In every call numba looks up the type of every argument. For nested tuples that takes longer than a
    short call. A kernel that was compiled for one set of types needs no such look-up. Any other kernel,
    and a function in plain Python, is returned as it is.
    """
    return _first_code(dispatcher) if len(getattr(dispatcher, "overloads", ())) == 1 else dispatcher


def machine_code_for(dispatcher: Any, native: Any) -> Any:
    """Return the machine code of a kernel that has just been called with `native` as its first argument.

    `native` comes from `accrual.core.jit.native_tuple`. The kernel may have been compiled for native
    tuples of other types too; only the code for this type may be called with it.
    """
    kind = getattr(native, "_numba_type_", None)
    codes = [code for types, code in getattr(dispatcher, "overloads", {}).items() if types[0] == kind]
    return codes[0].entry_point if len(codes) == 1 else dispatcher


@functools.cache
def _first_code(dispatcher: Any) -> Any:
    return next(iter(dispatcher.overloads.values())).entry_point


def python_function(function: F) -> F:
    """Return the Python function that `function` was compiled from; for one call it is quicker."""
    python: F = getattr(function, "py_func", function)
    return python


def fingerprint(dispatcher: Any, *hosts: type) -> str | None:
    """Hash all source that a kernel's results depend on.

    Parameters
    ----------
    dispatcher : kernel
    hosts : type
        Classes in plain Python that prepare what the kernel works on; their source counts as well.

    Returns
    -------
    str or None
        None if some of the source is in no file, or if kernels are not compiled.
    """
    function = getattr(dispatcher, "py_func", None)
    code = None if function is None else _fingerprint(function)
    files = [getattr(sys.modules[host.__module__], "__file__", None) for host in hosts]
    if code is None or None in files:
        return None
    parts = [code, *(source_hash(Path(file)) for file in files if file is not None)]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()


class _KernelCache(FunctionCache):
    """numba's function cache, keyed by source instead of by file time and object identity."""

    def __init__(self, function: Callable[..., Any], fingerprint: str) -> None:
        super().__init__(function)
        self._fingerprint = fingerprint
        name = f"{self._impl.filename_base}-{fingerprint[:16]}"
        self._cache_file = IndexDataCacheFile(self._cache_path, name, fingerprint)

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return (sig, codegen.magic_tuple(), self._fingerprint)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a cache file that cannot be read is a miss, never a failure
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        save_compiled(self, functools.partial(super().save_overload, sig, data))


def save_compiled(cache: Any, save: Callable[[], None]) -> None:
    """Save what was compiled into one of numba's caches."""
    try:
        try:
            save()
        except Exception:  # an index that cannot be read is made anew
            cache._cache_file.flush()
            save()
    except Exception:  # a full or read-only disk costs the cache, not the result
        cache.disable()


def _fingerprint(function: Callable[..., Any]) -> str | None:
    """Hash all source that goes into `function`; return None if some of it is in no file."""
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


def source_files(path: Path) -> frozenset[Path]:
    """Return a file and all files of this package that it imports, directly or through others.

    The numbers that a kernel computes depend on these files and on no others.

    Examples
    --------
    >>> import accrual.core.random as random
    >>> sorted(path.name for path in source_files(Path(random.__file__)))
    ['__init__.py', 'arrays.py', 'compiler.py', 'native_tuples.py', 'random.py']
    """
    found: set[Path] = set()
    todo = [path]
    while todo:
        file = todo.pop()
        if file not in found:
            found.add(file)
            for module, names in _IMPORT.findall(file.read_text(encoding="utf-8")):
                parts = [module, *(f"{module}.{name}" for name in re.findall(r"\w+", names))]
                todo.extend(one for part in parts if (one := _file_of(part)) is not None)
    return frozenset(found)


@functools.cache
def source_hash(path: Path) -> str:
    """Hash the contents of a file's `source_files`."""
    digest = hashlib.sha256()
    for file in sorted(source_files(path)):
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _file_of(module: str) -> Path | None:
    """Return the file of a module of this package, or None if there is no such module."""
    place = _ROOT.joinpath(*module.split("."))
    return next((file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()), None)


class KernelPart(CPUDispatcher):
    """A function that kernels call, compiled no further than a kernel needs.

    numba makes machine code for every compiled function, and two more entry points: one to call it from
    Python and one to call it from C. A function within a kernel needs none of them, because its code is
    linked into the kernel. For the live side of an Age policy, whose functions pass each other some hundred
    arrays, they took three fifths of the time until the first decision.

    A call from Python compiles the function once more, with the entry point for Python.
    """

    def __init__(self, py_func: Any, locals: Any = None, targetoptions: Any = None) -> None:
        super().__init__(py_func, locals, targetoptions)
        self._compiler = _PartCompiler(
            py_func, self.targetdescr, targetoptions, self.locals, compiler.Compiler
        )
        self._for_python = CPUDispatcher(py_func, locals, targetoptions)

    def add_overload(self, cres: Any) -> None:
        # For kernels alone. numba's own method would also make it callable from Python.
        self.overloads[tuple(cres.signature.args)] = cres

    def __call__(self, *args: Any, **kws: Any) -> Any:
        return self._for_python(*args, **kws)


class _PartCompiler(_FunctionCompiler):  # type: ignore[misc]
    def _compile_core(self, args: Any, return_type: Any) -> Any:
        flags: Any = compiler.Flags()
        self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.no_compile = True
        target = self.targetdescr.target_context
        result = compiler.compile_extra(
            self.targetdescr.typing_context,
            target,
            self.py_func,
            args=args,
            return_type=return_type,
            flags=flags,
            locals=self.locals,
            library=_PartLibrary(target.codegen(), self.py_func.__qualname__),
            pipeline_class=self.pipeline_class,
        )
        # numba finds the code to link by its entry point. There is none, so an object stands for it.
        result = result._replace(entry_point=object())
        target.insert_user_function(result.entry_point, result.fndesc, [result.library])
        return result


class _PartLibrary(JITCodeLibrary):
    """Code to link into a kernel, of which no machine code is made."""

    def _optimize_final_module(self) -> None:
        # A kernel optimises all that is linked into it. A part contains the parts that it calls: if it were
        # optimised here too, the innermost code would be optimised once for each part around it.
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True
