"""Compile what a bandit needs, before it is needed, and put the machine code on disk.

``python -m accrual.live.warm`` is what a process starts that has no machine code yet: see
`accrual.core.jit.BoundKernel`. It reads a window and a policy from its standard input.
"""

from __future__ import annotations

import gc
import os
import sys

from accrual.core.features import Features
from accrual.live.ledger import Ledger
from accrual.policies.base import Policy
from accrual.policies.catalog import parse


def warm(policy: Policy, window: int) -> None:
    """Compile the kernels of bandits with this policy, with features or without."""
    ledger = Ledger(policy, [1.0, 1.0], window, features=Features({"of a context": bool}))
    ledger.kernel.compile()
    ledger.context_encoder.kernel.compile()


if __name__ == "__main__":
    os.nice(5)  # answers come first
    gc.disable()  # nearly all that a compiler makes stays until the end
    window, text = sys.stdin.read().split(" ", 1)
    warm(parse(text), int(window))
