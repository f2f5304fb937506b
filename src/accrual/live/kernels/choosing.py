"""How a decision is made, compiled around a policy's own functions.

A decision takes three steps: `prepare`, `choose_arm`, `record`. This holds for a decision that the ledger
makes and for one that is only tried. A decision whose arm is given, as in a log, leaves out `choose_arm`.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from accrual.core.arrays import Floats
from accrual.core.jit import njit
from accrual.core.random import floor_coin
from accrual.live.kernels.arrays import CHOOSE, LOST, OF_ARM, RECENT, KernelState, Rules, Target, context_row
from accrual.live.kernels.pending import add_trial, enter
from accrual.live.watch import NO_PROPENSITY
from accrual.policies.base import Function, Functions, Moment, no_refresh
from accrual.policies.floor import drawn


class Choosing(NamedTuple):
    """The three steps of a decision.

    ``prepare(state, target, now, moment, another)`` does what the policy needs before a decision, and returns
    the arm whose turn it is, or CHOOSE. What it writes is part of the fold, so every decision needs it.
    It may leave out what `another` decision writes anew before anybody reads it.
    ``choose_arm(state, target, now, moment, turn)`` returns the decision's arm and its propensity. If an
    index is not a number, a number of `LOST` or less stands for the arm.
    ``record(state, target, now, made, arm, window, propensity)`` counts the decision after `made` others, and
    puts it into the queue for its groups.
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
    """Return the arm whose turn it is because nothing is known about it; CHOOSE if the policy may choose.

    The arms of the start are tried once each, in order. With K arms in play, an arm that was added later
    gets one of any K decisions in a row until its first decision has finished a group. So it gets its
    share of a large batch, not all of it.
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
def choosing(functions: Functions) -> Choosing:
    """Compile the steps of a decision around a policy's functions, which take a context."""
    index, survey = functions.index, functions.survey
    decided, refresh = functions.decided, functions.refresh
    refreshed, keeps = refresh is not no_refresh, bool(functions.hooks.learning_fields)

    @njit
    def prepare(state: KernelState, target: Target, now: float, moment: Moment, another: bool) -> int:
        if refreshed:  # noqa: SIM102  (apart, so that numba leaves out what is not there)
            if target.stats.due[0] <= 0:
                refresh(state.params, target.stats)
        first = turn(target.stats, state.rules, target.first_news, now, moment.round - 1)
        needed = not another if keeps else first == CHOOSE
        if needed:
            survey(state.choosing, target.stats, moment, state.contexts[context_row(state, moment.round - 1)])
        return first

    @njit
    def choose_arm(
        state: KernelState, target: Target, now: float, moment: Moment, first: int
    ) -> tuple[int, float]:
        """Pick the arm whose turn it is, or else the one with the largest index, the first among equals.

        With a floor, a coin then decides whether the decision gets that arm. If an index is not a number,
        return `LOST` less the number of its arm.
        """
        rules, values = state.rules, state.values
        choice = first
        most = -np.inf
        x = state.contexts[context_row(state, moment.round - 1)]
        for k in range(len(rules.playing)):
            values[k] = np.nan
            if first == CHOOSE and rules.playing[k] and (k < rules.founding or target.first_news[k] <= now):
                value = index(state.choosing, target.stats, k, moment, x)
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
        state: KernelState, target: Target, now: float, made: int, arm: int, window: float, chance: float
    ) -> None:
        if refreshed:
            target.stats.due[0] -= 1
        target.stats.pulls[arm] += 1
        x = state.contexts[context_row(state, made)]
        light = keeps and target.light
        if not light:
            decided(state.params, target.stats, arm, x)
        rules = state.rules
        own = rules.windows[arm] if window == OF_ARM else min(window, rules.windows[arm])
        if target.first_news[arm] == np.inf:
            target.first_news[arm] = now + min(rules.windows[arm], rules.ends[0])
        if target.trial:
            if not light:
                add_trial(state.trial_pending, rules, made, arm, now, own)
        else:
            state.recent[made % RECENT] = arm
            enter(state.pending, rules, arm, now, own, chance, x)

    return Choosing(prepare, choose_arm, record)
