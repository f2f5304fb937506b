"""The loop for services that decide in daily batches, on arms that come and go.

`simulate` makes one decision a round, on arms that are there from the beginning. Here all decisions of a day
use what was known in the morning, and in the evening every pending decision becomes a day older. Policies are
called as the live bandit calls them: an arm in play that has never been tried comes first, and a retired
arm's cap is 0.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from accrual.core.arrays import Floats, Ints
from accrual.core.errors import InputError, whole
from accrual.core.jit import kernel
from accrual.core.random import REWARDS, uniforms
from accrual.engine.law_kernels import LawArrays, PackedLaws, pack
from accrual.policies.base import (
    Feedback,
    Function,
    Functions,
    Moment,
    Policy,
    check_indices,
    mark_lost,
    no_refresh,
)
from accrual.problems.problem import Problem

Flags = npt.NDArray[np.bool_]


class Batches(NamedTuple):
    """A service: its arms in the order in which they come, and how many decisions it makes.

    A day is a group of the problem, and the window is counted in days.
    """

    problem: Problem
    days: int
    batch: int  # decisions a day
    comes: Sequence[int]  # arms: the first day on which it may be chosen; they rise
    goes: Sequence[int]  # arms: the first day on which it may not be chosen any more


class Player(Protocol):
    """A maker of a service's decisions: a policy of the library, or something to compare it with."""

    def choose(self, day: int, playing: Flags, batch: int) -> Ints:
        """Choose the arms of the day's decisions, among those that are `playing`."""

    def learn(self, arms: Ints, age: int, paid: Floats) -> None:
        """Learn from one day's decisions, now `age` days old: `paid` is what they paid in 0, 1, ... days."""


class PolicyPlayer:
    """A policy of the library as a player."""

    def __init__(self, policy: Policy, service: Batches, key: tuple[int, int]) -> None:
        if policy.feedback == "pieces":
            raise InputError(f"{policy.label} learns from single pieces, which a day's batch does not have")
        self._policy, self._key = policy, key
        self._caps, self._window = np.array(service.problem.caps), service.problem.window
        self._ages = policy.edges(self._window)
        self._lag = 1 if policy.immediate else self._window
        self._params: Any = None
        self.stats: Any = None
        self._made = 0
        self._choose, self._learn = loops(policy.functions, policy.feedback)

    def _grow(self, arms: int) -> None:
        self._params = self._policy.params(self._caps[:arms].copy(), self._window)
        if self.stats is None:
            self.stats = self._policy.stats(self._params)
        else:
            self.stats = self._policy.grow(self.stats, self._params)

    def choose(self, day: int, playing: Flags, batch: int) -> Ints:
        arms = len(playing)
        if self.stats is None or len(self.stats.pulls) < arms:
            self._grow(arms)
        choosing = self._params._replace(cap=np.where(playing, self._params.cap, 0.0))
        chosen = np.zeros(batch, np.int64)
        self._choose(self._params, choosing, self.stats, playing, self._made, self._key, chosen)
        check_indices(self._policy.label, self.stats.pulls)
        self._made += batch
        return chosen

    def learn(self, arms: Ints, age: int, paid: Floats) -> None:
        first = self._made - age * len(arms)  # the number of the first of these decisions
        self._learn(self._params, self.stats, arms, age, paid, self._ages, self._lag, first)


@functools.cache
def loops(functions: Functions, feedback: Feedback) -> tuple[Function, Function]:
    """Compile the two loops of a policy: a day's choices, and learning from one day's decisions."""
    index, survey, decided = functions.index, functions.survey, functions.decided
    closed, finished, refresh = functions.closed, functions.finished, functions.refresh
    refreshed = refresh is not no_refresh
    grouped = feedback == "groups"
    numbered = functions.numbered

    @kernel
    def choose(
        params: Any, choosing: Any, stats: Any, playing: Flags, made: int, key: tuple[int, int], chosen: Ints
    ) -> None:
        count = len(playing)
        for i in range(len(chosen)):
            if refreshed:
                if stats.due[0] <= 0:
                    refresh(params, stats)
                stats.due[0] -= 1
            choice = -1
            for k in range(count):
                if playing[k] and stats.pulls[k] == 0:
                    choice = k
                    break
            if choice < 0:
                round_ = made + i + 1
                moment = Moment(round_, math.log(max(round_ - 1, 1)), key[0], key[1])
                survey(choosing, stats, moment)
                best = -np.inf
                for k in range(count):
                    if playing[k]:
                        value = index(choosing, stats, k, moment)
                        if np.isnan(value):
                            mark_lost(stats, k, round_)
                            return
                        if choice < 0 or value > best:
                            best = value
                            choice = k
            chosen[i] = choice
            stats.pulls[choice] += 1
            decided(params, stats, choice)

    @kernel
    def learn(
        params: Any, stats: Any, arms: Ints, age: int, paid: Floats, ages: Ints, lag: int, number: int
    ) -> None:
        if grouped:
            for g in range(len(ages)):
                if ages[g] == age:
                    first = ages[g - 1] if g > 0 else 0
                    for i in range(len(arms)):
                        if numbered:
                            stats.finishing[g] = number + i
                        finished(params, stats, arms[i], g, paid[i, first], paid[i, age])
        elif age == lag:
            for i in range(len(arms)):
                closed(params, stats, arms[i], paid[i, paid.shape[1] - 1])

    return choose, learn


def play_batches(
    service: Batches, players: Mapping[str, Any], runs: int | range, seed: int = 0
) -> npt.NDArray[np.float64]:
    """Return the regret of every day against the best arm in play: players x runs x days.

    A decision's pay depends on the seed, the run, the decision's number and its arm, so all players meet
    the same noise.

    Parameters
    ----------
    service : Batches
    players : mapping of str to Policy, or to a callable that makes a `Player` from (service, key)
    runs : int or range
    seed : int

    Examples
    --------
    >>> import accrual as ac
    >>> laws = [ac.LeavingLaw(stay=0.9, p=p) for p in (0.2, 0.6)]
    >>> service = Batches(ac.Problem([7.0] * 2, 7, 7, laws), 20, 5, comes=[0, 3], goes=[20, 20])
    >>> play_batches(service, {"IMED": ac.IMED()}, runs=2).shape
    (1, 2, 20)
    """
    numbers = runs if isinstance(runs, range) else range(whole("runs", runs, 1))
    comes, goes = np.asarray(service.comes), np.asarray(service.goes)
    arms = len(service.problem.caps)
    if len(comes) != arms or len(goes) != arms or (np.diff(comes) < 0).any() or comes[0] != 0:
        raise InputError("each arm needs a first and a last day, in rising order of the first days, from 0")
    if service.problem.window != service.problem.groups:
        raise InputError("a service's window is in days, and each day is a group")
    laws = pack(service.problem)
    regret = np.zeros((len(players), len(numbers), service.days))
    for p, given in enumerate(players.values()):
        for r, run in enumerate(numbers):
            key = (seed, run)
            player = PolicyPlayer(given, service, key) if isinstance(given, Policy) else given(service, key)
            regret[p, r] = _one(service, laws, player, key)
    return regret


def _one(service: Batches, laws: PackedLaws, player: Player, key: tuple[int, int]) -> Floats:
    problem, batch = service.problem, service.batch
    means, caps = problem.means, np.array(problem.caps)
    comes, goes = np.asarray(service.comes), np.asarray(service.goes)
    regret = np.zeros(service.days)
    pending: list[tuple[Ints, Floats]] = []  # the newest day's decisions first
    for day in range(service.days):
        there = int((comes <= day).sum())
        playing = goes[:there] > day
        chosen = player.choose(day, playing, batch)
        regret[day] = (means[:there][playing].max() - means[chosen]).sum()
        paid = np.zeros((batch, problem.window + 1))
        pay_kernel(laws.draw)(laws.arrays, key, day * batch + 1, laws.of_arm[chosen], paid)
        pending.insert(0, (chosen, caps[chosen, None] * paid))
        del pending[problem.window :]
        for age, (made, pays) in enumerate(pending, start=1):
            player.learn(made, age, pays)
    return regret


@functools.cache
def pay_kernel(draw: Any) -> Function:
    """Compile the kernel that draws what decisions pay, with a problem's `PackedLaws.draw`."""

    @kernel
    def pay_decisions(laws: LawArrays, key: tuple[int, int], first: int, law: Ints, paid: Floats) -> None:
        groups = paid.shape[1] - 1
        u = np.empty((1, groups + groups % 2))
        pay = np.empty((1, groups))
        for i in range(len(law)):
            uniforms(key[0], key[1], first + i, REWARDS, u[0])
            draw(laws, law[i], u, pay)
            for g in range(groups):
                paid[i, g + 1] = paid[i, g] + pay[0, g]

    return pay_decisions
