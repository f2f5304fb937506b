"""Keep a tuple of arrays in the form in which compiled code reads it.

A call from Python converts a tuple array by array, a quarter of a microsecond for each. In a kernel
that is called for every event, that is most of its time. A native tuple is converted once, when it
is made; a call then passes one pointer, however many arrays there are.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from numba import config, types
from numba.experimental import structref

from accrual.core.jit import kernel


@structref.register
class _NativeTupleType(types.StructRef):
    """The numba type of a `_NativeTuple`."""


class _NativeTuple(structref.StructRefProxy):
    """The Python object that stands for a native tuple."""


structref.define_proxy(_NativeTuple, _NativeTupleType, ["value"])


@kernel
def _make(value: Any) -> Any:
    return _NativeTuple(value)


def native_tuple(value: Any) -> Any:
    """Convert a tuple of arrays for passing it to kernels, which read it as ``.value``.

    The arrays are shared and not copied: what a kernel writes into them is seen in Python too.

    Examples
    --------
    >>> import numpy as np
    >>> from accrual.core.jit import kernel
    >>> @kernel
    ... def count(native):
    ...     number, = native.value
    ...     number[0] += 1
    >>> number = np.zeros(1)
    >>> count(native_tuple((number,)))
    >>> number
    array([1.])
    """
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return SimpleNamespace(value=value)
    return _make(value)
