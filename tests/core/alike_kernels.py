"""Two kernels whose parts have the same names; run as a program, it prints what the named ones return."""

from __future__ import annotations

import sys
from math import erf
from typing import Any

from accrual.core.jit import kernel, njit, njit_noinline


@njit
def plus(x):
    return x + 1.0


@njit
def times(x):
    return x * 3.0


def make(step: Any) -> Any:
    @njit_noinline
    def part(x):  # too long to be inlined
        x = step(erf(step(erf(step(erf(step(erf(step(erf(step(erf(x))))))))))))
        return step(erf(step(erf(step(erf(step(erf(step(erf(step(erf(x))))))))))))

    @kernel
    def run(x):
        return part(x) + part(2.0 * x)

    return run


KERNELS = {"plus": make(plus), "times": make(times)}

if __name__ == "__main__":
    from tests.core import alike_kernels  # under its own name, by which machine code is kept

    for name in sys.argv[1:]:
        print(name, alike_kernels.KERNELS[name](0.5))
