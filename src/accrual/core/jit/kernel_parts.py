"""Functions that kernels call, compiled no further than a kernel needs.

numba gives every compiled function two doors to be called by, from Python and from C, and machine code of
its own. A function within a kernel needs none of them: its code is linked into the kernel. For the live
side of an Age policy, whose functions hand each other some hundred arrays, they took three fifths of the
time until the first decision.
"""

from __future__ import annotations

from typing import Any

from numba.core import compiler
from numba.core.codegen import JITCodeLibrary
from numba.core.dispatcher import _FunctionCompiler  # type: ignore[attr-defined]
from numba.core.registry import CPUDispatcher


class KernelPart(CPUDispatcher):
    """A compiled function for kernels; a call from Python compiles it once more, with the door for Python."""

    def __init__(self, py_func: Any, locals: Any = None, targetoptions: Any = None) -> None:
        super().__init__(py_func, locals, targetoptions)
        self._compiler = _PartCompiler(
            py_func, self.targetdescr, targetoptions, self.locals, compiler.Compiler
        )
        self._for_python = CPUDispatcher(py_func, locals, targetoptions)

    def add_overload(self, cres: Any) -> None:
        # Kept for kernels alone: what numba's dispatcher holds besides can be called from Python.
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
        # numba finds the code to link by the function that could be called; here an object stands for it.
        result = result._replace(entry_point=object())
        target.insert_user_function(result.entry_point, result.fndesc, [result.library])
        return result


class _PartLibrary(JITCodeLibrary):
    """Code to link into a kernel, of which no machine code is made."""

    def _optimize_final_module(self) -> None:
        # A kernel optimises all that is linked into it. A part takes in the parts that it calls, so optimised
        # here too the innermost code would go through it once for each part around it.
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True
