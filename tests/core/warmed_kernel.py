"""A kernel that `test_bound_kernel` compiles in the background; run as a program, it is the other process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

from accrual.core.jit import BoundKernel, kernel


class Numbers(NamedTuple):
    sums: np.ndarray


@kernel
def add(numbers, x):
    numbers.sums[0] += x
    return numbers.sums[0]


def bound() -> BoundKernel:
    made = BoundKernel(add, 0.0)
    made.bind(Numbers(np.zeros(1)))
    return made


if __name__ == "__main__":
    with Path(sys.stdin.read()).open("a", encoding="utf-8") as file:
        file.write("compiled\n")
    from tests.core import warmed_kernel  # under its own name, by which machine code is kept

    warmed_kernel.bound().compile()
