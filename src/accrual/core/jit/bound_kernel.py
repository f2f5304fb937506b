"""A kernel bound to the arrays that it works on. A call costs little, and it answers before it is compiled.

A kernel takes seconds to compile. With `BoundKernel.answer_at_once` its tasks are done in plain Python
meanwhile, with the same results to the last bit, and it is compiled in the background: by another process,
which puts the machine code on disk for all processes, or by a thread if no other process could import the
kernel's functions.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import config, typeof

from accrual.core.jit.compiler import is_on_disk, parts_run_in_plain_python

try:
    from accrual.core.jit.native_tuples import native_tuple
except (ImportError, AttributeError, TypeError):  # numba has other internals, see `accrual.core.jit.compiler`

    def native_tuple(value: Any) -> Any:
        """Return the tuple as it is. Kernels read its fields by name too; each call takes longer."""
        return value


__all__ = ["BoundKernel", "Recipe", "native_tuple"]

_POLL = 0.1  # seconds between two looks at whether another process has compiled a kernel

log = logging.getLogger("accrual")


class Recipe(NamedTuple):
    """How another process compiles a kernel."""

    label: str  # what is compiled, for the log
    module: str  # it compiles the kernel when it is run,
    text: (
        str | None
    )  # and reads this from its standard input; None if no other process can compile the kernel


class BoundKernel:
    """A kernel that is called as ``bound.run(bound.arrays, *more)``.

    Parameters
    ----------
    kernel : kernel
        It takes a named tuple of arrays first.
    *examples
        A value of each further argument, for its type. Machine code does not check types.
    """

    def __init__(self, kernel: Any, *examples: Any) -> None:
        self.kernel = kernel
        self._examples = examples
        self._recipe: Callable[[], Recipe] | None = None
        self._compilation: _Compilation | None = None
        self._state: Any = None
        self._kind: Any = None  # the numba type of the arrays for which `run` is machine code
        self.run: Any = None
        """The kernel's machine code. Before that is there, it is a function that makes it or does without."""
        self.arrays: Any = None
        """What `run` takes first."""

    def bind(self, state: Any) -> None:
        """Hand the arrays over; do so again after one of them was replaced."""
        self._state = state
        if self._kind is not None:
            self.arrays = native_tuple(state)
            if self.arrays._numba_type_ == self._kind:
                return
        self._kind = None
        self.run = partial(
            _begin, weakref.ref(self)
        )  # a cycle would keep the arrays until garbage collection

    def answer_at_once(self, recipe: Callable[[], Recipe]) -> None:
        """Do tasks in plain Python until the kernel has been compiled in the background.

        Without this, the first call compiles the kernel. `recipe` says how another process compiles it.
        """
        self._recipe = recipe

    def compile(self) -> None:
        """Compile the kernel now, unless its machine code is on disk."""
        self._change_over()

    def _begin(self) -> None:
        """Choose what `run` is."""
        arrays = native_tuple(self._state)
        kind = getattr(arrays, "_numba_type_", None)
        if kind is None:  # in plain Python, or where numba has other internals
            self.run, self.arrays = self.kernel, arrays
            return
        wanted, recipe = self._signature(kind), self._recipe
        if recipe is None or not parts_run_in_plain_python() or is_on_disk(self.kernel, wanted):
            self._change_over()
        else:
            self._compilation = _compilation(self.kernel, wanted, recipe)
            self.run = partial(_in_plain_python, weakref.ref(self))

    def _signature(self, kind: Any) -> tuple[Any, ...]:
        return (kind, *map(typeof, self._examples))

    def _change_over(self) -> None:
        """Call machine code from now on."""
        self.arrays = native_tuple(self._state)
        kind = getattr(self.arrays, "_numba_type_", None)
        if kind is None:
            self.run = self.kernel
        else:
            self.run, self._kind = self.kernel.compile(self._signature(kind)), kind


def _begin(own: weakref.ref[BoundKernel], _: Any, *task: Any) -> Any:
    bound = own()
    assert bound is not None  # the caller has a reference
    bound._begin()
    return bound.run(bound.arrays, *task)


def _in_plain_python(own: weakref.ref[BoundKernel], _: Any, *task: Any) -> Any:
    bound = own()
    assert bound is not None
    assert bound._compilation is not None
    if bound._compilation.done:
        bound._change_over()
        return bound.run(bound.arrays, *task)
    with np.errstate(all="ignore"):  # machine code says nothing of a division by 0 either
        return bound.kernel.py_func(bound._state, *task)


class _Compilation:
    """A kernel that is being compiled for arguments of certain types."""

    def __init__(self, kernel: Any, signature: tuple[Any, ...], recipe: Recipe) -> None:
        self.done = False
        self._kernel, self._signature, self._recipe = kernel, signature, recipe
        elsewhere = recipe.text is not None and Path(sys.executable).name.startswith("python")
        # Python waits for a thread that compiles: the compiler's library cannot be unloaded meanwhile.
        threading.Thread(target=self._run, args=(elsewhere,), name="compile", daemon=elsewhere).start()

    def _run(self, elsewhere: bool) -> None:
        label, begun = self._recipe.label, time.monotonic()
        log.info("compiling, once for each version; plain Python answers until then", extra={"policy": label})
        try:
            if elsewhere:
                try:
                    self._await_file()
                except OSError as error:
                    log.warning(
                        "compiled code cannot be kept on disk, so each process compiles for itself",
                        extra={"error": str(error)},
                    )
            self._kernel.compile(self._signature)
            self.done = True
        except Exception:
            log.exception("compiling failed; plain Python goes on answering", extra={"policy": label})
            return
        seconds = round(time.monotonic() - begun, 1)
        log.info("compiled; machine code answers from now on", extra={"policy": label, "seconds": seconds})

    def _await_file(self) -> None:
        """Wait until a process has put the machine code on disk; start that process if there is none."""
        from accrual.core.files import try_lock  # here, as no kernel's results depend on it

        folder = Path(self._kernel._cache.cache_path)
        folder.mkdir(parents=True, exist_ok=True)
        # One lock for all kernels of a folder, so that a machine compiles one at a time.
        lock = os.open(folder / "compiling.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            while not is_on_disk(self._kernel, self._signature):
                if try_lock(lock):
                    if not is_on_disk(self._kernel, self._signature):
                        self._start_process(lock)
                    return
                time.sleep(_POLL)
        finally:
            os.close(lock)

    def _start_process(self, lock: int) -> None:
        """Compile in another process, which holds the lock for as long as it lives, and wait for it."""
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        if config.CACHE_DIR:  # type: ignore[attr-defined]
            environment["NUMBA_CACHE_DIR"] = config.CACHE_DIR  # type: ignore[attr-defined]
        child = subprocess.Popen(
            [sys.executable, "-m", self._recipe.module],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env=environment, pass_fds=(lock,), start_new_session=True, text=True,
        )  # fmt: skip
        _, said = child.communicate(self._recipe.text)
        if not is_on_disk(self._kernel, self._signature):
            log.warning(
                "another process could not compile for this one, which now does so itself",
                extra={"policy": self._recipe.label, "error": said.strip()[-500:]},
            )


_compilations: dict[Any, _Compilation] = {}
_registry = threading.Lock()


def _compilation(kernel: Any, signature: tuple[Any, ...], recipe: Callable[[], Recipe]) -> _Compilation:
    """Return the compilation of a kernel for these types; begin it if nobody in this process has."""
    with _registry:
        key = (kernel, signature)
        if key not in _compilations:
            _compilations[key] = _Compilation(kernel, signature, recipe())
        return _compilations[key]
