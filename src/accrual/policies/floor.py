"""The floor: a known chance for every arm, by a coin that is thrown after the policy's choice.

With K arms in play and a floor f, an arm is chosen with probability f / K, and the policy's pick with 1 - f
more. So the propensity of a decision is known exactly, for every policy, those that draw nothing included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from accrual.core.arrays import Floats
from accrual.core.errors import InputError, as_number, unknown
from accrual.core.jit import njit, njit_noinline


class Shares(NamedTuple):
    """The least and the greatest share of the traffic, arm by arm; the least ones add up to at most 1."""

    least: Floats  # the least share of each arm; 0 for one that has retired
    most: Floats  # the greatest share of each arm
    spare: float  # what the least shares leave, for the policy's pick


def shares_of(least: Floats, most: Floats) -> Shares:
    """Return the shares of arms from the least and the greatest share of each."""
    return Shares(least, most, 1.0 - sum(least.tolist()))


@njit
def _room(shares: Shares, pick: int) -> float:
    """Return how much the arms other than the pick may have beyond their least shares."""
    room = 0.0
    for k in range(len(shares.least)):
        if k != pick:
            room += shares.most[k] - shares.least[k]
    return room


@njit
def _of_other(shares: Shares, arm: int, over: float, room: float) -> float:
    """Return the propensity of an arm that is not the pick, with its part of what the pick may not take."""
    least = shares.least[arm]
    return least if over <= 0.0 else least + over * ((shares.most[arm] - least) / room)


@njit_noinline
def propensity(shares: Shares, pick: int, arm: int) -> float:
    """Return the probability with which `arm` is chosen where the policy's pick is `pick`."""
    wanted = shares.least[pick] + shares.spare
    own = min(wanted, shares.most[pick])
    if arm == pick:
        return own
    over = wanted - own
    return _of_other(shares, arm, over, _room(shares, pick) if over > 0.0 else 0.0)


@njit_noinline
def drawn(shares: Shares, pick: int, u: float) -> tuple[int, float]:
    """Return the arm that the coin `u`, from 0 to below 1, makes of the policy's pick; and its propensity."""
    wanted = shares.least[pick] + shares.spare
    own = min(wanted, shares.most[pick])
    if u < own:
        return pick, own
    over = wanted - own
    room = _room(shares, pick) if over > 0.0 else 0.0
    arm, chance, upto = pick, own, own
    for k in range(len(shares.least)):
        if k != pick:
            other = _of_other(shares, k, over, room)
            if other > 0.0:
                arm, chance = k, other
                upto += other
                if u < upto:
                    break
    return arm, chance


class Limits(NamedTuple):
    """How a user limits the shares of the traffic."""

    floor: float = 0.0
    """The share of decisions whose arm is drawn at random, all arms in play alike."""
    bounds: tuple[tuple[float, float], ...] = ()
    """For the first arms, in order, the least and the greatest share of the traffic."""

    @property
    def any(self) -> bool:
        """Whether there are limits: otherwise no coin is thrown."""
        return self.floor > 0.0 or any(bound != (0.0, 1.0) for bound in self.bounds)

    def shares(self, playing: npt.NDArray[np.bool_]) -> Shares:
        """Return the shares where these arms are in play.

        Where arms have retired, the least shares of the others may add up to more than 1, or the greatest
        to less than 1. Then all of them are scaled in proportion.

        Examples
        --------
        >>> Limits(0.2, ((0.3, 1.0), (0.0, 0.5))).shares(np.array([True, True, True])).least.round(3)
        array([0.3  , 0.067, 0.067])
        """
        count = max(int(playing.sum()), 1)
        bounds = [*self.bounds, *[(0.0, 1.0)] * (len(playing) - len(self.bounds))]
        least = np.array([max(self.floor / count, low) for low, _ in bounds]) * playing
        most = np.array([high for _, high in bounds]) * playing
        least = least / max(float(least.sum()), 1.0)
        most = np.minimum(most / min(max(float(most.sum()), 1e-9), 1.0), 1.0)
        return shares_of(np.minimum(least, most), most)


def limits_of(floor: float, shares: Mapping[str, tuple[float, float]] | None, arms: Sequence[str]) -> Limits:
    """Return checked limits from what a user gives.

    Parameters
    ----------
    shares : mapping, optional
        Of arms' names to the least and the greatest share of the traffic.
    arms : sequence of str
        The first arms.
    """
    if not 0.0 <= as_number(floor) <= 1.0:
        raise InputError(f"a floor must be a share from 0 to 1, such as 0.05, not {floor!r}")
    if shares is not None and not isinstance(shares, Mapping):
        raise InputError(f"shares must be a mapping, such as {{'jazz': (0.1, 0.6)}}, not {shares!r}")
    bounds = dict.fromkeys(arms, (0.0, 1.0))
    for name, bound in (shares or {}).items():
        if name not in bounds:
            raise unknown("arm", name, arms)
        try:
            low, high = (as_number(end) for end in bound)
        except (TypeError, ValueError):
            low, high = 1.0, 0.0
        if not 0.0 <= low <= high <= 1.0 or high == 0.0:
            raise InputError(
                f"the shares of {name!r} must be two, from 0 to 1, such as (0.1, 0.6), not {bound!r}"
            )
        bounds[name] = (low, high)
    least = sum(max(floor / len(arms), low) for low, _ in bounds.values())
    most = sum(high for _, high in bounds.values())
    if least > 1.0 + 1e-9:
        raise InputError(
            f"the least shares and the floor's parts add up to {least:g}; lower them, to 1 or less in all"
        )
    if most < 1.0 - 1e-9:
        raise InputError(
            f"the greatest shares add up to {most:g}, so some decisions would have no arm; raise them, to 1 "
            "or more in all"
        )
    for name, (low, high) in bounds.items():
        if max(floor / len(arms), low) > high:
            raise InputError(
                f"the floor gives {name!r} {floor / len(arms):g}, more than its greatest share, {high:g}; "
                f"take a floor of {high * len(arms):g} or less, or a greater share"
            )
    return Limits(float(floor), tuple(bounds.values()) if shares else ())
