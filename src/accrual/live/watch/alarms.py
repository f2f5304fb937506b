"""Alarms: whether an arm still pays as it did, by comparing closed decisions with earlier ones.

As long as nothing changes, the totals of an arm's closed decisions, in the order in which they were made,
are exchangeable, whatever the policy does: every order of them is equally likely. So the rank of a new total
among the earlier ones, with ties broken at random, is a number p that is uniform on 0 to 1 and independent
of the next one (Vovk, Gammerman and Shafer's conformal prediction). A gambler who bets on anything else
plays a fair game, and by Ville's inequality the chance that the wealth ever reaches x is at most 1 / x.

The gambler does not know when the change comes, and so divides the stake over all decisions at which a bet
may begin (Shiryaev's statistic): decision number k gets 1 / ln(e + k - 1) - 1 / ln(e + k); these add up
to 1. That part is divided equally over several bets: that totals are larger or smaller, by a little or a lot,
and that the largest or smallest totals are more or less frequent (for arms that seldom pay, or seldom fail
to pay). A bet multiplies its stake by 1 + size * (1/2 - p); or by `times` if p is in the tail, and else by
the factor that makes the bet fair.

Totals are counted in bins, eight to each doubling, so that memory does not grow with decisions. Nothing is
assumed of the rewards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from accrual.core.arrays import Floats, Ints
from accrual.core.jit import njit, njit_noinline
from accrual.core.number_text import figure
from accrual.core.random import ALARM, coin
from accrual.live.watch.watcher import NEVER, Comparison, Finished, Pace, Watcher

FALSE_ALARM = 0.05
"""The accepted chance of ever raising a false alarm, for all arms together."""

SIZES = np.array([1.8, 0.9, 0.45, 0.22, 0.11])
"""The sizes of bets that totals are larger; there are as many that they are smaller."""

TAILS = np.array([1 / 8, 1 / 64])
"""The parts of the totals that count as large, and as small."""

TIMES = np.array([0.2, 0.6, 1.6, 3.0])
"""How many times as frequent such totals have become."""

LAST = 64  # totals that say what an arm paid lately
_OCTAVES = 20  # totals below a millionth of the cap share a bin
_BELOW = (1023 - _OCTAVES) << 3
BINS = 3 + 8 * _OCTAVES
_BETS = 2 * len(SIZES) + 2 * len(TAILS) * len(TIMES)

_ELSEWHERE = np.array([[(1.0 - times * tail) / (1.0 - tail) for times in TIMES] for tail in TAILS])


class Alarms(NamedTuple):
    """What is known about the arms' closed decisions."""

    counts: Ints  # arms: closed decisions
    raised: Ints  # arms: 1 + the id of the decision that raised the alarm; 0 before
    first: Ints  # one number: the id of the first decision that counts; earlier ones are imported
    bins: Ints  # arms x bins: closed decisions whose total is in the bin
    stakes: Floats  # arms x bets: the wealth on each bet
    bounds: Floats  # arms: the wealth at which the alarm is raised
    sums: Floats  # arms: the sum of all totals
    last: Floats  # arms x LAST: the last totals; total number n is at n % LAST
    found: Floats  # arms x 2: when the alarm was raised, the mean of the last totals and of those before


def no_alarms(founding: int, arms: int, first: int = 0) -> Alarms:
    """Return alarms before the first decision.

    The arms of the start share half of the chance of a false alarm. With K such arms, an arm of number k that
    is added later gets K / (k * (k + 1)) of the other half. So all arms together never exceed the chance.

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
        counts=np.zeros(arms, np.int64),
        raised=np.zeros(arms, np.int64),
        first=np.array([first], np.int64),
        bins=np.zeros((arms, BINS), np.int64),
        stakes=np.zeros((arms, _BETS)),
        bounds=bounds / (0.5 * FALSE_ALARM),
        sums=np.zeros(arms),
        last=np.zeros((arms, LAST)),
        found=np.zeros((arms, 2)),
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
    """Compare an arm's next closed decision with its earlier ones, in the order in which they were made."""
    if id_ < alarms.first[0] or alarms.raised[arm] > 0:
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
    """Begin a bet of each kind, and play all bets on; return the wealth, including what is not yet bet.

    `p` is the rank of the arm's closed decision number `k`, from 1 on.
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


@njit
def see(alarms: Alarms, rules: Any, decision: Finished) -> None:
    """Show a finished decision to the alarm of its arm."""
    arm = decision.arm
    watch(alarms, arm, decision.id, decision.total, rules.caps[arm], rules.seed)


@dataclass(frozen=True)
class ChangedArm:
    """An arm that no longer pays as it did."""

    name: str
    decision: int
    """The closed decision that raised the alarm."""
    lately: float
    """The mean that a decision paid when the alarm was raised: of the arm's last 64 decisions, or of half of
    them if there were fewer."""
    before: float
    """The mean of the decisions before those."""


@dataclass(frozen=True)
class AlarmState:
    """Whether arms still pay as they did, however often one looks."""

    error: float
    """The chance that a false alarm is ever raised, for all arms together."""
    closed: int
    """How many closed decisions were checked."""
    reason: str
    """Why nothing can be said; empty if something can be said, now or later."""
    sentence: str
    """What is known, in words."""
    arms: list[ChangedArm]
    """The arms that no longer pay as they did."""


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
        reason = "the policy chooses by contexts, so the contexts of an arm change as the policy learns"
    return AlarmState(FALSE_ALARM, closed, reason, _sentence(arms, reason), arms)


@dataclass(frozen=True)
class AlarmWatcher(Watcher):
    """Raises an alarm for an arm that no longer pays as it did.

    Parameters
    ----------
    contextual : bool
        Whether the policy chooses by contexts; then nothing can be said.
    imported : int
        How many of the first decisions come from an old log; these do not count.
    """

    name: ClassVar[str] = "alarm"
    in_order: ClassVar[bool] = False
    see = staticmethod(see)
    contextual: bool = False
    imported: int = 0

    def start(self, comparison: Comparison) -> Alarms:
        if self.contextual:
            return no_alarms(0, 0, NEVER)
        first = max(self.imported, comparison.first)
        return no_alarms(comparison.founding, len(comparison.caps), first)

    def with_arm(self, arrays: Alarms, comparison: Comparison) -> Alarms:
        return arrays if self.contextual else with_arms(arrays, comparison.founding, len(comparison.caps))

    def say(
        self,
        arrays: Alarms,
        playing: Sequence[int],
        name_of: Callable[[int], str],
        pace: Pace,
        said: Mapping[str, Any],
    ) -> AlarmState:
        return alarm_state(arrays, self.contextual, name_of)

    def found(self, arrays: Alarms) -> Ints:
        return arrays.raised

    def log_line(self, arrays: Alarms, place: Sequence[int]) -> tuple[str, dict[str, Any]]:
        (arm,) = place
        lately, before = arrays.found[arm].tolist()
        decision = int(arrays.raised[arm]) - 1
        fields = {"before": before, "lately": lately, "decision": decision}
        return "an arm no longer pays as it did", fields


def _sentence(arms: list[ChangedArm], reason: str) -> str:
    if arms:
        said = [
            f"{arm.name} ({figure(arm.before)} for a decision before, {figure(arm.lately)} lately)"
            for arm in arms
        ]
        verb = "pays" if len(said) == 1 else "pay"
        return (
            f"No longer {verb} as before: {listed(said)}. The chance that this is ever said wrongly is at "
            f"most {100 * FALSE_ALARM:g} %, for all arms together and however often one looks."
        )
    if reason:
        return f"It cannot be said whether arms pay as they did: {reason}."
    return "No arm is known to pay differently than before."


def listed(parts: Sequence[str]) -> str:
    """Return parts of a sentence in one: "a, b and c"."""
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]
