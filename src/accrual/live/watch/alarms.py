"""Whether an arm still pays as it did: closed decisions against those before them, in arrays.

As long as nothing changes, the totals of an arm's closed decisions, in the order in which they were made, are
exchangeable, whatever the policy does: any order of them is as likely as any other. So the place of a new
total among those before it, ties broken at random, is a number p that is uniform on 0 to 1 and tells nothing
of the next one (Vovk, Gammerman and Shafer's conformal prediction). A gambler who bets on anything else plays
a fair game, and by Ville's inequality the chance that the wealth ever reaches x is at most 1 / x.

The gambler does not know when the change comes, and so divides the stake over all decisions with which a
bet may begin (Shiryaev's statistic): number k gets 1 / ln(e + k - 1) - 1 / ln(e + k), which adds up to 1. It
is divided equally over several bets: that totals are larger or smaller, a little or a lot, and that the
largest or smallest ones are more or less frequent, for arms that seldom pay, or seldom fail to. A bet
multiplies what is on it by 1 + size * (1/2 - p), or by `times` where p is in the tail and by what makes up
for it elsewhere.

Totals are told apart by bins, eight to each doubling, so that what is kept of an arm does not grow. No
assumption is made of the rewards.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from accrual.core.jit import njit, njit_noinline
from accrual.core.number_text import figure
from accrual.core.random import ALARM, coin

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FALSE_ALARM = 0.05
"""The chance of ever raising a false alarm that is accepted, of all arms together."""

SIZES = np.array([1.8, 0.9, 0.45, 0.22, 0.11])
"""Bets that totals are larger, and as many that they are smaller."""

TAILS = np.array([1 / 8, 1 / 64])
"""Which part of the totals is large, and which part is small."""

TIMES = np.array([0.2, 0.6, 1.6, 3.0])
"""How many times as frequent such totals have become."""

LAST = 64  # totals that are kept, to say what an arm paid lately
_OCTAVES = 20  # below a millionth of the cap all totals are alike
_BELOW = (1023 - _OCTAVES) << 3
BINS = 3 + 8 * _OCTAVES
_BETS = 2 * len(SIZES) + 2 * len(TAILS) * len(TIMES)

_ELSEWHERE = np.array([[(1.0 - times * tail) / (1.0 - tail) for times in TIMES] for tail in TAILS])


class Alarms(NamedTuple):
    """What is known of the arms' closed decisions."""

    counts: Ints  # arms: closed decisions
    raised: Ints  # arms: 1 and the id of the decision that raised the alarm; 0 before
    first: Ints  # one number: the id of the first decision to look at; those before come from an old log
    bins: Ints  # arms x bins: closed decisions with such a total
    stakes: Floats  # arms x bets: what is on each
    bounds: Floats  # arms: the wealth at which the alarm is raised
    sums: Floats  # arms: of all totals
    last: Floats  # arms x LAST: the last totals, number n of them at n % LAST
    found: Floats  # arms x 2: when the alarm was raised, the mean of the last totals and of those before


def no_alarms(founding: int, arms: int, first: int = 0) -> Alarms:
    """Return alarms before the first decision.

    Of the chance of a false alarm, arms of the start share a half. The arm of number k that is added to K of
    them has K / (k * (k + 1)) of the other half, so that all arms together never have more.

    Parameters
    ----------
    founding, arms : int
        How many arms there were at the start; how many there are.
    first : int
        The id of the first decision that was not imported from an old log.
    """
    later = np.arange(founding, arms)
    bounds = np.append(np.full(min(founding, arms), float(founding)), later * (later + 1) / max(founding, 1))
    return Alarms(
        np.zeros(arms, np.int64),
        np.zeros(arms, np.int64),
        np.array([first], np.int64),
        np.zeros((arms, BINS), np.int64),
        np.zeros((arms, _BETS)),
        bounds / (0.5 * FALSE_ALARM),
        np.zeros(arms),
        np.zeros((arms, LAST)),
        np.zeros((arms, 2)),
    )


def with_arms(old: Alarms, founding: int, arms: int) -> Alarms:
    """Return the same alarms for more arms."""
    new = no_alarms(founding, arms, int(old.first[0]))
    for name, array in old._asdict().items():
        getattr(new, name)[: len(array)] = array
    return new


@njit
def bin_of(x: float) -> int:
    """Return the bin of a total, in caps."""
    if x < 0.0:
        return 0
    if x >= 1.0:
        return BINS - 1
    place = (np.float64(x).view(np.int64) >> 49) - _BELOW
    return max(int(place) + 2, 1)


@njit_noinline
def watch(alarms: Alarms, arm: int, id_: int, total: float, cap: float, seed: int) -> None:
    """Take an arm's next closed decision, in the order in which decisions were made."""
    if alarms.raised[arm] > 0 or id_ < alarms.first[0]:
        return
    bins = alarms.bins[arm]
    alarms.counts[arm] += 1
    n = alarms.counts[arm]
    own = bin_of(total / cap)
    bins[own] += 1
    alarms.sums[arm] += total
    alarms.last[arm, n % LAST] = total
    larger = 0
    for b in range(own + 1, BINS):
        larger += bins[b]
    p = (larger + coin(seed, 0, id_, ALARM) * bins[own]) / n
    if bet(alarms.stakes[arm], float(n), p) >= alarms.bounds[arm]:
        alarms.raised[arm] = id_ + 1
        lately = min(n // 2, LAST)
        paid = 0.0
        for i in range(lately):
            paid += alarms.last[arm, (n - i) % LAST]
        alarms.found[arm, 0] = paid / max(lately, 1)
        alarms.found[arm, 1] = (alarms.sums[arm] - paid) / (n - lately)


@njit
def bet(stakes: Floats, k: float, p: float) -> float:
    """Begin a bet of each kind, let all of them go on; return the wealth, with what is not yet bet.

    `p` is the place of the arm's closed decision number `k`, from 1 on.
    """
    left = 1.0 / math.log(math.e + k)
    more = (1.0 / math.log(math.e + k - 1.0) - left) / _BETS
    total = left
    j = 0
    for i in range(len(SIZES)):
        stakes[j] = (stakes[j] + more) * (1.0 + SIZES[i] * (0.5 - p))
        stakes[j + 1] = (stakes[j + 1] + more) * (1.0 - SIZES[i] * (0.5 - p))
        total += stakes[j] + stakes[j + 1]
        j += 2
    for t in range(len(TAILS)):
        for i in range(len(TIMES)):
            stakes[j] = (stakes[j] + more) * (TIMES[i] if p < TAILS[t] else _ELSEWHERE[t, i])
            stakes[j + 1] = (stakes[j + 1] + more) * (TIMES[i] if p >= 1.0 - TAILS[t] else _ELSEWHERE[t, i])
            total += stakes[j] + stakes[j + 1]
            j += 2
    return total


# What the alarms say, in words: which arms no longer pay as they did.


class ChangedArm(NamedTuple):
    """An arm that no longer pays as it did, and by which decision that was known."""

    name: str
    decision: int  # the closed decision that raised the alarm
    lately: float  # what a decision paid on average then: the last 64 of the arm, or half of fewer
    before: float  # the mean of those before


class AlarmState(NamedTuple):
    """Whether arms still pay as they did.

    Attributes
    ----------
    error : float
        The chance of ever raising a false alarm, for all arms together and however often one looks.
    closed : int
        Closed decisions that count.
    reason : str
        Why nothing can be said; empty where something can, now or later.
    sentence : str
        What is known, in words.
    arms : list of ChangedArm
        Those that no longer pay as they did.
    """

    error: float
    closed: int
    reason: str
    sentence: str
    arms: list[ChangedArm]


def alarm_state(alarms: Alarms, contextual: bool, name_of: Callable[[int], str]) -> AlarmState:
    """Return what is known; `contextual` says whether the policy chooses by contexts."""
    arms = [
        ChangedArm(name_of(arm), int(raised) - 1, *alarms.found[arm].tolist())
        for arm, raised in enumerate(alarms.raised)
        if raised
    ]
    closed = int(alarms.counts.sum())
    reason = ""
    if contextual:
        reason = "the policy chooses by contexts, so whom an arm is for changes with what is learned"
    return AlarmState(FALSE_ALARM, closed, reason, _sentence(arms, reason), arms)


def _sentence(arms: list[ChangedArm], reason: str) -> str:
    if arms:
        said = [
            f"{arm.name} ({figure(arm.before)} for a decision before, {figure(arm.lately)} lately)"
            for arm in arms
        ]
        names = said[0] if len(said) == 1 else ", ".join(said[:-1]) + " and " + said[-1]
        verb = "pays" if len(said) == 1 else "pay"
        return (
            f"No longer {verb} as before: {names}. The chance that this is ever said wrongly is at most "
            f"{100 * FALSE_ALARM:g} %, for all arms together and however often one looks."
        )
    if reason:
        return f"Whether arms pay as they did cannot be said: {reason}."
    return "No arm is known to pay otherwise than before."
