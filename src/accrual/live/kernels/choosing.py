"""How a decision is made, compiled around a policy's own functions.

There is one way, in three steps: `prepare`, `choose_arm`, `record`. A decision that the ledger makes and a
decision that is only tried take all three; one whose arm is given, as in a log, leaves out `choose_arm`.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from accrual.core.jit import njit
from accrual.core.random import floor_coin
from accrual.live.kernels.pending import add, enter
from accrual.live.kernels.state import (
    CHOOSE,
    LOST,
    OF_ARM,
    RECENT,
    Book,
    Floats,
    KernelState,
    Rules,
    visit_of,
)
from accrual.live.watch import NO_PROPENSITY
from accrual.policies.base import Function, Functions, Moment, no_refresh
from accrual.policies.floor import drawn


class Choosing(NamedTuple):
    """The three steps of a decision.

    ``prepare(state, book, now, moment)`` does what the policy asks for before a decision, and returns the
    arm whose turn it is, or CHOOSE. What it writes is part of the fold, so every decision needs it.
    ``choose_arm(state, book, now, moment, turn)`` returns the arm that the decision gets and its propensity;
    in place of an arm a number of `LOST` or below where an index is not a number.
    ``record(state, book, now, made, arm, window, propensity)`` counts a decision, the ledger's number `made`,
    and lets it wait for its groups.
    """

    prepare: Function
    choose_arm: Function
    record: Function


@njit
def moment_of(made: int, seed: int, salt: int) -> Moment:
    """Return the moment of the decision after `made` others."""
    return Moment(made + 1, math.log(max(made, 1)), seed, salt)


@njit
def turn(stats: Any, rules: Rules, first_news: Floats, now: float, made: int) -> int:
    """Return the arm whose turn it is, of those that nothing is known of; CHOOSE if the policy may.

    Arms of the start are each tried once, in order. Of any K decisions in a row, K the arms in
    play, an arm that was added later gets one, until its first decision has finished a group: so
    it takes its share of a batch, however large, and not all of it.
    """
    for k in range(rules.founding):
        if rules.playing[k] and stats.pulls[k] == 0:
            return k
    if rules.founding == len(rules.playing):
        return CHOOSE
    arms = 0
    for k in range(len(rules.playing)):
        arms += int(rules.playing[k])
    if arms == 0:
        return CHOOSE
    place = made % arms  # each new arm has one of as many places
    for k in range(rules.founding, len(rules.playing)):
        if rules.playing[k] and first_news[k] > now:
            if place == 0:
                return k
            place -= 1
    return CHOOSE


@functools.cache
def choosing(functions: Functions, keeps: bool) -> Choosing:
    """Compile how decisions are made with these functions of a policy, which take a context.

    `keeps` says whether the policy names statistics that are `kept`.
    """
    index, survey = functions.index, functions.survey
    decided, refresh = functions.decided, functions.refresh
    refreshed = refresh is not no_refresh

    @njit
    def prepare(state: KernelState, book: Book, now: float, moment: Moment) -> int:
        if refreshed:  # noqa: SIM102  (apart, so that numba leaves out what is not there)
            if book.stats.due[0] <= 0:
                refresh(state.params, book.stats)
        first = turn(book.stats, state.rules, book.first_news, now, moment.round - 1)
        if first == CHOOSE:
            survey(state.choosing, book.stats, moment, state.visits[visit_of(state, moment.round - 1)])
        return first

    @njit
    def choose_arm(
        state: KernelState, book: Book, now: float, moment: Moment, first: int
    ) -> tuple[int, float]:
        """Pick the arm whose turn it is, or else the one with the largest index, the first among equals.

        With a floor, a coin then decides whether the pick gets the decision. If an index is not a number,
        no arm is chosen: what is returned is `LOST` less the arm's number.
        """
        rules, values = state.rules, state.values
        choice = first
        most = -np.inf
        x = state.visits[visit_of(state, moment.round - 1)]
        for k in range(len(rules.playing)):
            values[k] = np.nan
            if first == CHOOSE and rules.playing[k] and (k < rules.founding or book.first_news[k] <= now):
                value = index(state.choosing, book.stats, k, moment, x)
                values[k] = value
                if np.isnan(value):
                    return LOST - k, NO_PROPENSITY
                if choice == CHOOSE or value > most:
                    most = value
                    choice = k
        if not rules.floored:
            return choice, NO_PROPENSITY
        return drawn(rules.shares, choice, floor_coin(moment.seed, moment.run, moment.round))

    @njit
    def record(
        state: KernelState, book: Book, now: float, made: int, arm: int, window: float, chance: float
    ) -> None:
        if refreshed:
            book.stats.due[0] -= 1
        book.stats.pulls[arm] += 1
        x = state.visits[visit_of(state, made)]
        light = keeps and book.light
        if not light:
            decided(state.params, book.stats, arm, x)
        rules = state.rules
        own = rules.windows[arm] if window == OF_ARM else min(window, rules.windows[arm])
        if book.first_news[arm] == np.inf:
            book.first_news[arm] = now + min(rules.windows[arm], rules.ends[0])
        if book.trial:
            if not light:
                add(state.draft, rules, made, arm, now, own)
        else:
            state.recent[made % RECENT] = arm
            enter(state.pending, rules, arm, now, own, chance, x)

    return Choosing(prepare, choose_arm, record)
