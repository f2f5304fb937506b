"""TP-UCB-FR (Romano et al., 2022): TP-UCB-FR-G with the even spread."""

from __future__ import annotations

from dataclasses import dataclass, field

from accrual.policy.tpucbfrg import TPUCBFRG
from accrual.spread import SpreadLike, Uniform


@dataclass(frozen=True)
class TPUCBFR(TPUCBFRG):
    """TP-UCB-FR: optimism for rewards that arrive evenly over the groups.

    With the even spread E[Y] is (alpha + 1) / 2 and the coincidence 1 / alpha, and the bonus of
    TP-UCB-FR-G is TP-UCB-FR's own.

    Parameters
    ----------
    alpha : int
        The learner's number of groups; must divide the window.

    Examples
    --------
    >>> TPUCBFR(alpha=50).label
    'TPUCBFR(50)'
    """

    spread: SpreadLike = field(default_factory=Uniform, init=False, repr=False)

    @classmethod
    def example(cls, groups: int = 4) -> TPUCBFR:
        return cls(alpha=groups)

    @property
    def label(self) -> str:
        return f"TPUCBFR({self.alpha})"
