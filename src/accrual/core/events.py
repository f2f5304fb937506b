"""The small tuples that rooms hand to each other."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

Arm = TypeVar("Arm", int, str)


class Decision(NamedTuple, Generic[Arm]):
    """One choice of an arm: its number or, where arms have names, its name."""

    id: int
    arm: Arm
    at: float
    propensity: float | None = None  # the probability with which its arm was chosen; None without a floor
