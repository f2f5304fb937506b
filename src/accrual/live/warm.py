"""Compile what a bandit needs, before it is needed, and put the machine code on disk.

``python -m accrual.live.warm`` is what a process starts that has no machine code yet: see
`accrual.core.jit.BoundKernel`. It reads the arguments of `warm` from its standard input.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence

from accrual.core.features import Features
from accrual.live.ledger import Ledger
from accrual.live.watch import STREAM_KINDS, watchers_of
from accrual.policies.catalog import parse


def warm(policy: str, window: int, kinds: Sequence[str]) -> None:
    """Compile the kernels of bandits with this policy, with features or without.

    Parameters
    ----------
    window : int
        Any window that suits the policy.
    kinds : sequence of str
        Of the bandits' streams: "guardrail", or none.
    """
    chosen = parse(policy)
    streams = [(kind, STREAM_KINDS[kind]()) for kind in kinds]
    ledger = Ledger(
        chosen,
        [1.0, 1.0],
        window,
        features=Features({"of a context": bool}),
        streams=len(streams),
        watchers=watchers_of(chosen.contextual, streams=streams),
    )
    ledger.kernel.compile()
    ledger.context_encoder.kernel.compile()


if __name__ == "__main__":
    os.nice(5)  # answers come first
    warm(*json.load(sys.stdin))
