"""What people with contexts do today with rewards that arrive in pieces: two habits to compare with.

Both are `LinTS`, fed as a library is that knows a reward of one number for a decision. They are for
comparison, not for use, and so not in the catalog.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from accrual.core.errors import whole
from accrual.core.jit import njit
from accrual.policies.base import Feedback, Floats, Functions, Ints
from accrual.policies.lin import LinearPolicy, Params, Stats, learn, survey, thompson_index
from accrual.studies.gallery.habits import check_share, first_part


@njit
def part_learned(
    params: Params, stats: Stats, arm: int, group: int, before: float, after: float, x: Floats
) -> None:
    learn(params, stats, arm, after - before, x)


@njit
def piece_learned(
    params: Params, stats: Stats, arm: int, group: int, before: float, after: float, x: Floats
) -> None:
    if after > before:
        learn(params, stats, arm, after - before, x)


@dataclass(frozen=True)
class EarlyLinTS(LinearPolicy):
    """LinTS that takes the pay of the window's first part for the whole reward: an attribution window.

    Parameters
    ----------
    share : float
        How much of the window is waited for.

    Examples
    --------
    >>> EarlyLinTS().edges(100)
    array([10])
    """

    share: float = 0.1

    feedback: ClassVar[Feedback] = "groups"
    functions: ClassVar[Functions] = Functions(index=thompson_index, survey=survey, finished=part_learned)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_share(self.share)

    @property
    def label(self) -> str:
        return f"EarlyLinTS({self.share:g})"

    def edges(self, window: int) -> Ints:
        return first_part(window, self.share)


@dataclass(frozen=True)
class PiecesLinTS(LinearPolicy):
    """LinTS that takes every part of the window that pays for a reward of its own.

    Parameters
    ----------
    parts : int
        Into how many equal parts the window is cut (fewer if it is short).

    Examples
    --------
    >>> PiecesLinTS().label
    'PiecesLinTS(50)'
    """

    parts: int = 50

    feedback: ClassVar[Feedback] = "groups"
    functions: ClassVar[Functions] = Functions(index=thompson_index, survey=survey, finished=piece_learned)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "parts", whole("parts", self.parts, 1))

    @property
    def label(self) -> str:
        return f"PiecesLinTS({self.parts})"

    def edges(self, window: int) -> Ints:
        return np.unique(np.ceil(window * np.arange(1, self.parts + 1) / self.parts).astype(np.int64))
