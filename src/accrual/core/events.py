"""The small tuples that rooms hand to each other."""

from __future__ import annotations

from typing import NamedTuple


class Decision(NamedTuple):
    """One choice of an arm."""

    id: int
    arm: int
    at: float
