"""A tuple of arrays kept where compiled code finds it at once.

A call from Python hands a tuple over array by array, a quarter of a microsecond for each. To a
kernel that is called event by event that is most of its time. A held tuple is handed over in one
go, however many arrays it has.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from numba import config, types
from numba.experimental import structref

from accrual.core.jit import kernel


@structref.register
class _HeldType(types.StructRef):
    """What compiled code takes a `_Held` for."""


class _Held(structref.StructRefProxy):
    """The Python side of a held tuple: something to pass on."""


structref.define_proxy(_Held, _HeldType, ["value"])


@kernel
def _hold(value: Any) -> Any:
    return _Held(value)


def hold(value: Any) -> Any:
    """`value`, to be passed to kernels, which read it as ``.value``.

    The arrays are shared, not copied: what a kernel writes is seen by whoever else has them.

    Examples
    --------
    >>> import numpy as np
    >>> from accrual.core.jit import kernel
    >>> @kernel
    ... def count(held):
    ...     number, = held.value
    ...     number[0] += 1
    >>> number = np.zeros(1)
    >>> count(hold((number,)))
    >>> number
    array([1.])
    """
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return SimpleNamespace(value=value)
    return _hold(value)
