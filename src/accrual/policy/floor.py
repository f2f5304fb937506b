"""The floor: a known chance for every arm, by a coin that is thrown after the policy's choice.

With K arms in play and a floor f, an arm is chosen with probability f / K, and the policy's pick with 1 - f
more. So the propensity of a decision is known exactly, for every policy, those that draw nothing included.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from accrual.core.jit import njit

Floats = npt.NDArray[np.float64]


class Shares(NamedTuple):
    """How traffic may be shared out, arm by arm; all of it for arms in play, and adding up to at most 1."""

    least: Floats  # the least share of each arm; 0 for one that has retired
    most: Floats  # the greatest share of each arm


@njit
def propensity(shares: Shares, pick: int, arm: int) -> float:
    """Return the probability with which `arm` is chosen where the policy's pick is `pick`."""
    least, most = shares.least, shares.most
    spoken = 0.0
    for k in range(len(least)):
        spoken += least[k]
    spare = 1.0 - spoken
    own = min(least[pick] + spare, most[pick])
    if arm == pick:
        return own
    # What the pick may not take goes to the others, as far as each has room.
    over = least[pick] + spare - own
    if over <= 0.0:
        return least[arm]
    room = 0.0
    for k in range(len(least)):
        if k != pick:
            room += most[k] - least[k]
    return least[arm] + over * ((most[arm] - least[arm]) / room)


@njit
def drawn(shares: Shares, pick: int, u: float) -> int:
    """Return the arm that the coin `u`, from 0 to below 1, makes of the policy's pick."""
    upto = propensity(shares, pick, pick)
    if u < upto:
        return pick
    last = pick
    for k in range(len(shares.least)):
        if k != pick:
            chance = propensity(shares, pick, k)
            if chance > 0.0:
                upto += chance
                last = k
                if u < upto:
                    return k
    return last
