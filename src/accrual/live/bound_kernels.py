"""A policy's kernels, bound to the arrays of one ledger."""

from __future__ import annotations

from functools import partial
from typing import Any

from accrual.core.jit import machine_code_for
from accrual.core.native_tuple import native_tuple
from accrual.live.fold import Fold
from accrual.live.kernel_state import KernelState


class BoundKernels:
    """Kernels, and the arrays that they work on in the form in which compiled code takes them.

    Parameters
    ----------
    kernels : Fold

    Attributes
    ----------
    compiled : Fold
        As they were compiled, for any arrays.
    code : Fold
        To be called with `held`: without a look-up of types, once a kernel has been called.
    held : Any
        The arrays.
    """

    def __init__(self, kernels: Fold) -> None:
        self.compiled = self.code = kernels
        self.held: Any = None
        self._kind: Any = None  # what compiled code takes the arrays for

    def bind(self, state: KernelState) -> None:
        """Hand the arrays over; again after any of them was replaced."""
        self.held = native_tuple(state)
        kind = getattr(self.held, "_numba_type_", None)
        if kind is None or kind != self._kind:
            self._kind = kind
            # Only those that are handed numbers: machine code does not check the type of an array.
            quick = {name: partial(self._first_call, name) for name in ("advance", "observe", "choose")}
            self.code = self.compiled._replace(**quick)

    def _first_call(self, name: str, held: Any, *more: Any) -> Any:
        """Call a kernel for the first time; later calls need not look up what has been compiled."""
        dispatcher = getattr(self.compiled, name)
        result = dispatcher(held, *more)
        self.code = self.code._replace(**{name: machine_code_for(dispatcher, held)})
        return result
