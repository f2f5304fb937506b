"""DelayedUCB1 (Joulani et al., 2013): UCB1 on the decisions whose window has closed."""

from __future__ import annotations

from dataclasses import dataclass

from accrual.policy.ucb1 import UCB1


@dataclass(frozen=True)
class DelayedUCB1(UCB1):
    """UCB1 that waits for the whole reward and ignores pieces until then.

    While an arm has no closed decision nothing is known of it; such arms come first, the one with the
    fewest decisions before the others.

    Examples
    --------
    >>> DelayedUCB1().immediate
    False
    """

    @property
    def immediate(self) -> bool:
        return False
