"""What policies share that are told a number of groups and a spread over them."""

from __future__ import annotations

from dataclasses import dataclass

from accrual.core.errors import whole
from accrual.policy.base import Policy
from accrual.spread import Spread, SpreadLike, as_spread


@dataclass(frozen=True)
class AssumedSpreadPolicy(Policy):
    """A policy that is told how the cap divides over the groups.

    Parameters
    ----------
    alpha : int
        The number of groups; must divide the window.
    spread : str, Spread or sequence of float
        How the cap divides over them.
    """

    alpha: int
    spread: SpreadLike

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", whole("alpha", self.alpha, 1))
        object.__setattr__(self, "spread", as_spread(self.spread))
        self.law.pmf(self.alpha)

    @property
    def law(self) -> Spread:
        """The spread over the groups, as given."""
        return as_spread(self.spread)
