"""Native tuples: their fields by name, whatever other tuples there are."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from accrual.core.jit.compiler import kernel
from accrual.core.jit.native_tuples import native_tuple


class State(NamedTuple):
    params: Any
    number: int


def _first() -> Any:
    class Params(NamedTuple):
        cap: Any
        spread: Any

    return Params


def _second() -> Any:
    class Params(NamedTuple):
        spread: Any
        cap: Any

    return Params


def test_classes_of_the_same_name_keep_their_own_fields():
    """Policies all call theirs Params and Stats."""
    one, two = _first(), _second()

    @kernel
    def cap_of(state):
        return state.params.cap[0] + state.number

    first, second = np.array([1.0]), np.array([2.0])
    assert cap_of(native_tuple(State(one(first, second), 10))) == 11.0
    assert cap_of(native_tuple(State(two(first, second), 10))) == 12.0
    second[0] = 5.0  # the arrays are shared
    assert cap_of(native_tuple(State(two(first, second), 10))) == 15.0
