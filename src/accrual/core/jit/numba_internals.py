"""Subclasses of numba's private classes: quick compiling, and a disk cache whose key is the source.

A release of numba may change these classes. Where importing this module fails, `accrual.core.jit.compiler`
uses numba's plain `njit` instead: it compiles more slowly, keeps nothing on disk, and gives the same results.
`pyproject.toml` bounds the versions of numba.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial
from typing import Any

from llvmlite.binding import Linkage
from numba.core import compiler
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.codegen import JITCodeLibrary
from numba.core.dispatcher import _FunctionCompiler  # type: ignore[attr-defined]
from numba.core.registry import CPUDispatcher

from accrual.core.jit.disk_cache import cache_by_source


class KernelPart(CPUDispatcher):
    """A compiled function for kernels, compiled no further than a kernel needs.

    numba makes two wrappers for every compiled function, for calls from Python and from C, and machine code.
    A function within a kernel needs none of them: its code is linked into the kernel. For the live side of an
    Age policy, whose functions pass about a hundred arrays to each other, they took three fifths of the time
    until the first decision. A call from Python runs the function in plain Python, with the same result.
    """

    def __init__(self, py_func: Any, locals: Any = None, targetoptions: Any = None) -> None:
        super().__init__(py_func, locals, targetoptions)
        self._compiler = _PartCompiler(
            py_func, self.targetdescr, targetoptions, self.locals, compiler.Compiler
        )

    def add_overload(self, cres: Any) -> None:
        # Only kernels use this code. numba's own method would also register it for calls from Python.
        self.overloads[tuple(cres.signature.args)] = cres

    def __call__(self, *args: Any, **kws: Any) -> Any:
        return self.py_func(*args, **kws)


class _Flags(compiler.Flags):
    """numba's flags, compared quickly: numba does so for every call whose types it infers.

    Whether a function is inlined changes nothing about what it calls, so a function of numba's own that is
    called from both kinds of parts is compiled once.
    """

    def values(self) -> dict[str, Any]:
        return {**_DEFAULTS, **self._values, "forceinline": False}


_DEFAULTS = compiler.Flags().values()


class _Compiler(_FunctionCompiler):  # type: ignore[misc]
    """Compiles as numba does, but into a library of ours."""

    def _compile_core(self, args: Any, return_type: Any) -> Any:
        try:
            return self._compile_ours(args, return_type)
        except (AttributeError, TypeError):  # numba's internals have changed: compile in numba's own way
            return super()._compile_core(args, return_type)

    def _flags(self) -> Any:
        flags: Any = _Flags()
        self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        return flags

    def _compile_into(self, kind: Any, flags: Any, args: Any, return_type: Any) -> Any:
        target = self.targetdescr.target_context
        library = kind(target.codegen(), self.py_func.__qualname__)
        library.enable_object_caching()  # for the disk
        return compiler.compile_extra(
            self.targetdescr.typing_context,
            target,
            self.py_func,
            args=args,
            return_type=return_type,
            flags=flags,
            locals=self.locals,
            library=library,
            pipeline_class=self.pipeline_class,
        )


class _PartCompiler(_Compiler):
    def _compile_ours(self, args: Any, return_type: Any) -> Any:
        flags = self._flags()
        flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.no_compile = True
        flags.forceinline = flags.forceinline and not any(map(_is_native, args))
        result = self._compile_into(_PartLibrary, flags, args, return_type)
        # numba finds the code to link by its entry point. Nothing calls this one, so any object will do.
        result = result._replace(entry_point=object())
        target = self.targetdescr.target_context
        target.insert_user_function(result.entry_point, result.fndesc, [result.library])
        return result


def _is_native(kind: Any) -> bool:
    """Return whether a type is a native tuple, or a tuple of native ones."""
    return getattr(kind, "native", False) or any(map(_is_native, getattr(kind, "types", ())))


class _PartLibrary(JITCodeLibrary):
    """Code to link into a kernel, of which no machine code is made."""

    def _optimize_final_module(self) -> None:
        # A kernel optimises all that is linked into it. Parts are linked into each other, so optimising here
        # too would optimise the innermost code once for every part around it.
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


class _KernelCompiler(_Compiler):
    def _compile_ours(self, args: Any, return_type: Any) -> Any:
        collecting = gc.isenabled()
        gc.disable()  # nearly all that a compiler makes stays until the end
        try:
            work = partial(self._compile_into, _KernelLibrary, self._flags(), args, return_type)
            return _on_deep_stack(work)
        finally:
            if collecting:
                gc.enable()


def _on_deep_stack(work: Callable[[], Any]) -> Any:
    """Do some work that recurses deeply."""
    return work()


# Python keeps the frames of calls in blocks of 16 kB. It asks the system for a block whenever a call crosses
# into it, and gives it back when the call returns. A compiler, deep in calls as it is, spent an eighth of its
# time on that. A frame that needs much room makes Python get one large block, where further frames fit in.
_on_deep_stack.__code__ = _on_deep_stack.__code__.replace(co_stacksize=1 << 18)


class _KernelLibrary(JITCodeLibrary):
    """The code of a kernel. Parts that were linked into it have names that only the kernel knows.

    numba names a part by its function and a count of the process. Kernels of two policies that were compiled
    by two processes may therefore have parts of the same name, and the process that loads both from disk
    would call the part of one from the other.
    """

    def _optimize_final_module(self) -> None:
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == Linkage.linkonce_odr:
                function.linkage = "internal"
        super()._optimize_final_module()


def own_parts(dispatcher: Any) -> None:
    """Let a kernel be compiled so that it shares no part with another kernel."""
    dispatcher._compiler = _KernelCompiler(
        dispatcher.py_func,
        dispatcher.targetdescr,
        dispatcher.targetoptions,
        dispatcher.locals,
        compiler.Compiler,
    )


def kernel_cache(function: Callable[..., Any], source: str) -> Any:
    """Make the disk cache of a kernel."""
    return cache_by_source(FunctionCache, IndexDataCacheFile, function, source)


def _nothing() -> None:
    """Do nothing."""


# A changed constructor must fail here, at the import.
own_parts(KernelPart(_nothing, targetoptions={"nopython": True}))
