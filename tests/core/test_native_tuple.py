"""Native tuples: their fields by name, whatever other tuples there are."""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from accrual.core.jit import kernel
from accrual.core.native_tuple import native_tuple


def test_classes_of_the_same_name_keep_their_own_fields():
    """Policies all call theirs Params and Stats."""
    one = namedtuple("Params", ["cap", "spread"])
    two = namedtuple("Params", ["spread", "cap"])
    outer = namedtuple("State", ["params", "number"])

    @kernel
    def cap_of(state):
        return state.params.cap[0] + state.number

    first, second = np.array([1.0]), np.array([2.0])
    assert cap_of(native_tuple(outer(one(first, second), 10))) == 11.0
    assert cap_of(native_tuple(outer(two(first, second), 10))) == 12.0
    second[0] = 5.0  # the arrays are shared
    assert cap_of(native_tuple(outer(two(first, second), 10))) == 15.0
