"""Services that decide in daily batches, on arms that come and go.

`simulate` makes one decision a round, on arms that are there from the beginning. Here all decisions of a day
use what was known in the morning, and in the evening every pending decision becomes a day older. A day is a
round of the general loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from accrual.core.arrays import Floats, Ints
from accrual.core.errors import InputError, whole
from accrual.engine.general_feed import GeneralFeed, GeneralRunFeed, LearnerGroups, World, pay_of, world_of
from accrual.engine.general_loop import Flags, GeneralChain, check_feedback
from accrual.policies.base import Policy
from accrual.problems.problem import Problem


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
    """Something that is compared with the policies of the library, written in plain Python."""

    def choose(self, day: int, playing: Flags, batch: int) -> Ints:
        """Choose the arms of the day's decisions, among those that are `playing`."""

    def learn(self, arms: Ints, age: int, paid: Floats) -> None:
        """Learn from one day's decisions, now `age` days old: `paid` is what they paid in 0, 1, ... days."""


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
    world = world_of(service.problem, service.batch)
    regret = np.zeros((len(players), len(numbers), service.days))
    for p, given in enumerate(players.values()):
        if isinstance(given, Policy):
            check_feedback(given, "in batches")
        for r, run in enumerate(numbers):
            regret[p, r] = _one(service, world, given, (seed, run))
    return regret


def _one(service: Batches, world: World, given: Any, key: tuple[int, int]) -> Floats:
    """Return the regret of every day of one run."""
    means, comes, goes = service.problem.means, np.asarray(service.comes), np.asarray(service.goes)
    source = GeneralRunFeed(world, key, span=1)
    chain = (
        GeneralChain(given, world, source.span, key)
        if isinstance(given, Policy)
        else _PlayerChain(given(service, key), world)
    )
    regret = np.zeros(service.days)
    for day in range(service.days):
        playing = goes[comes <= day] > day
        chain.play_arms(playing)
        chosen = chain.advance(source.read(1), day + 1, 1)
        regret[day] = (means[: len(playing)][playing].max() - means[chosen]).sum()
    return regret


class _PlayerChain:
    """A `Player` in one run, called as a `GeneralChain` is."""

    def __init__(self, player: Player, world: World) -> None:
        self._player, self._world = player, world
        self._times = LearnerGroups(np.arange(1, world.window + 1), at_once=False)
        self._pending: list[tuple[Ints, Floats]] = []  # the newest day's decisions first

    def play_arms(self, playing: Flags) -> None:
        self._playing = playing

    def advance(self, feed: GeneralFeed, start: int, length: int) -> Ints:
        world = self._world
        chosen = self._player.choose(start - 1, self._playing, world.batch)
        self._pending.insert(0, (chosen, pay_of(world, chosen, feed, self._times)))
        del self._pending[world.window :]
        for age, (made, paid) in enumerate(self._pending, start=1):
            self._player.learn(made, age, paid)
        return chosen
