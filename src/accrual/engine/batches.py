"""Services that decide in daily batches, on arms that come and go.

`simulate` makes one decision a round, on arms that are there from the beginning. Here all decisions of a day
use what was known in the morning, and in the evening every pending decision becomes a day older. A day is a
round of the general loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from accrual.core.arrays import Floats
from accrual.core.errors import InputError, whole
from accrual.engine.general_feed import GeneralRunFeed, World, world_of
from accrual.engine.general_loop import GeneralChain, check_feedback
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


def play_batches(
    service: Batches, policies: Mapping[str, Policy], runs: int | range, seed: int = 0
) -> npt.NDArray[np.float64]:
    """Return the regret of every day against the best arm in play: policies x runs x days.

    A decision's pay depends on the seed, the run, the decision's number and its arm, so all policies
    meet the same noise.

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
    regret = np.zeros((len(policies), len(numbers), service.days))
    for p, policy in enumerate(policies.values()):
        check_feedback(policy, "in batches")
        for r, run in enumerate(numbers):
            regret[p, r] = _one(service, world, policy, (seed, run))
    return regret


def _one(service: Batches, world: World, policy: Policy, key: tuple[int, int]) -> Floats:
    """Return the regret of every day of one run."""
    means, comes, goes = service.problem.means, np.asarray(service.comes), np.asarray(service.goes)
    source = GeneralRunFeed(world, key, span=1)
    chain = GeneralChain(policy, world, source.span, key)
    regret = np.zeros(service.days)
    for day in range(service.days):
        playing = goes[comes <= day] > day
        chain.play_arms(playing)
        chosen = chain.advance(source.read(1), day + 1, 1)
        regret[day] = (means[: len(playing)][playing].max() - means[chosen]).sum()
    return regret
