"""Playing problems that follow one another, on the CPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from accrual.engine.fast_loop import Chain, Checkpoints, PolicyPlan
from accrual.engine.feed import RunFeed
from accrual.engine.law_kernels import PackedLaws, pack_each
from accrual.policies.base import Policy
from accrual.problems.problem import ChangingProblem

Ints = npt.NDArray[np.int64]


class ChangingTask(NamedTuple):
    """What `simulate` has to play."""

    problem: ChangingProblem
    laws: Sequence[PackedLaws]  # one for each problem
    plans: Sequence[PolicyPlan]  # one for each policy, on the first problem
    rounds: Ints  # the checkpoints
    horizon: int
    seed: int
    runs: range


def task_of(
    problem: ChangingProblem, policies: Sequence[Policy], rounds: Ints, horizon: int, seed: int, runs: range
) -> ChangingTask:
    """Make all that is the same in every run."""
    laws = pack_each(problem.problems)
    plans = [PolicyPlan(policy, problem.problems[0], laws[0]) for policy in policies]
    return ChangingTask(problem, laws, plans, rounds, horizon, seed, runs)


class ChangingRun:
    """Several policies on one run's draws."""

    def __init__(self, task: ChangingTask, plans: Sequence[PolicyPlan], run: int) -> None:
        detail = any(plan.policy.feedback == "groups" for plan in plans)
        key = (task.seed, run)
        self._task = task
        self._feed = RunFeed(task.problem.problems[0], task.laws[0], *key, detail)
        self._chains = [Chain(plan, self._feed.span, key) for plan in plans]
        self._owed = np.zeros(len(plans))  # regret before the last change, less what the loop takes it for
        self.regret = np.zeros((len(plans), len(task.rounds)))

    def play(self) -> Iterator[int]:
        """Play to the horizon, yielding after each span the number of its rounds."""
        rounds, horizon, span = self._task.rounds, self._task.horizon, self._feed.span
        changes = [*self._task.problem.changes, horizon + 1]
        start, number = 1, 0
        while start <= horizon:
            if start == changes[number]:
                number += 1
                self._change(number)
            length = min(span, horizon + 1 - start, changes[number] - start)
            feed = self._feed.read(length)
            low, high = np.searchsorted(rounds, [start, start + length])
            for chain, regret, owed in zip(self._chains, self.regret, self._owed, strict=True):
                chain.advance(feed, start, length, Checkpoints(rounds[low:high], regret[low:high]))
                regret[low:high] += owed
            start += length
            yield length

    def _change(self, number: int) -> None:
        """Go on with another problem. The loop counts regret as if it had been there from the start."""
        self._feed.change(self._task.laws[number].arrays)
        gaps = self._task.problem.problems[number].gaps
        for place, chain in enumerate(self._chains):
            self._owed[place] += (chain.problem.gaps - gaps) @ chain.stats.pulls
            chain.problem = chain.problem._replace(gaps=gaps)

    def pulls(self) -> Ints:
        """Give the decisions of each arm so far, policies x arms."""
        return np.array([chain.stats.pulls for chain in self._chains])
