"""The loop for problems with contexts: one compiled loop per policy, over a span of rounds at a time.

Policies that ignore contexts may play too: they show what contexts are worth.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accrual.core.arrays import Floats, Ints
from accrual.core.errors import InputError
from accrual.core.jit import kernel, machine_code
from accrual.engine.context_feed import (
    ContextualFeed,
    ContextualRunFeed,
    ContextualWorld,
    age_of,
    count_pieces,
    pack,
    power_of,
)
from accrual.engine.fast_loop import Checkpoints
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
from accrual.policies.contexts import params_of, with_contexts
from accrual.problems.contexts import ContextualProblem

_SPAN = 512


class PendingContextual(NamedTuple):
    """The pending decisions of a chain: first those of the window before the span, then the span's."""

    arms: npt.NDArray[np.uint16]
    paid: Floats  # decisions x groups: what each group pays
    done: Floats  # decisions: what the finished groups have paid
    regret: Floats  # one number: the regret so far


class GroupEdges(NamedTuple):
    """When a policy learns from a decision."""

    edges: Ints  # the ages at which its groups end
    at_once: bool  # whether the total is known in the round of the decision


class ContextualPlan:
    """One policy on one problem: all that is the same in every run."""

    def __init__(self, policy: Policy, problem: ContextualProblem) -> None:
        if policy.feedback == "pieces":
            raise InputError(f"{policy.label} learns from single pieces, and cannot play with contexts")
        caps = np.array(problem.caps)
        self.policy = policy
        self.params = params_of(policy, caps, problem.window, problem.contexts.width)
        edges = policy.edges(problem.window)
        if policy.immediate:
            edges = np.array([1], np.int64)
        elif policy.feedback == "totals":
            edges = np.array([problem.window], np.int64)
        self.times = GroupEdges(edges, policy.immediate)
        self.world = pack(problem)
        self.loop = loop(policy.functions, policy.feedback, policy.contextual)


class ContextualChain:
    """One policy in one run: its statistics and its pending decisions."""

    def __init__(self, plan: ContextualPlan, span: int, key: tuple[int, int]) -> None:
        self._plan, self._key = plan, key
        self.stats = plan.policy.stats(plan.params)
        rows = plan.world.window + span
        self.memory = PendingContextual(
            np.zeros(rows, np.uint16), np.zeros((rows, len(plan.times.edges))), np.zeros(rows), np.zeros(1)
        )
        self._loop = plan.loop
        self._last = 0

    def advance(
        self, feed: ContextualFeed, start: int, length: int, marks: Checkpoints
    ) -> npt.NDArray[np.uint16]:
        """Play rounds start .. start + length - 1; return the arms chosen, which the next call overwrites."""
        plan, window = self._plan, self._plan.world.window
        for array in self.memory[:3]:
            array[:window] = array[self._last : self._last + window].copy()
        span = (start, length, *self._key)
        self._loop(
            plan.params, self.stats, plan.world, plan.times, self.memory, feed, span, marks,
        )  # fmt: skip
        self._loop = machine_code(self._loop)
        check_indices(plan.policy.label, self.stats.pulls)
        self._last = length
        return self.memory.arms[window : window + length]


class ContextualTask(NamedTuple):
    """What `simulate` has to play."""

    problem: ContextualProblem
    plans: Sequence[ContextualPlan]  # one for each policy
    rounds: Ints  # the checkpoints
    horizon: int
    seed: int
    runs: range


class ContextualRun:
    """Several policies on one run's draws."""

    def __init__(self, task: ContextualTask, plans: Sequence[ContextualPlan], run: int) -> None:
        span = max(_SPAN, task.problem.window)
        key = (task.seed, run)
        self._feed = ContextualRunFeed(plans[0].world, key, span)
        self._chains = [ContextualChain(plan, span, key) for plan in plans]
        self._rounds, self._horizon = task.rounds, task.horizon
        self.regret = np.zeros((len(plans), len(task.rounds)))

    def play(self) -> Iterator[int]:
        """Play to the horizon, yielding after each span the number of its rounds."""
        for start in range(1, self._horizon + 1, self._feed.span):
            length = min(self._feed.span, self._horizon + 1 - start)
            feed = self._feed.read(length)
            low, high = np.searchsorted(self._rounds, [start, start + length])
            for chain, regret in zip(self._chains, self.regret, strict=True):
                chain.advance(feed, start, length, Checkpoints(self._rounds[low:high], regret[low:high]))
            yield length

    def pulls(self) -> Ints:
        """Return the decisions of each arm so far, policies x arms."""
        return np.array([chain.stats.pulls for chain in self._chains])


@functools.cache
def loop(functions: Functions, feedback: Feedback, contextual: bool) -> Function:
    """Compile the loop around a policy's functions."""
    refresh = functions.refresh
    refreshed = refresh is not no_refresh
    grouped = feedback == "groups"
    numbered = functions.numbered
    taking = with_contexts(functions, contextual)
    index, survey, decided = taking.index, taking.survey, taking.decided
    closed, finished = taking.closed, taking.finished

    @kernel
    def advance(
        params: Any, stats: Any, world: ContextualWorld, times: GroupEdges, memory: PendingContextual,
        feed: ContextualFeed, span: tuple[int, int, int, int], marks: Checkpoints,
    ) -> None:  # fmt: skip
        start, length, seed, run = span
        count = len(params.cap)
        window = world.window
        edges, at_once = times
        groups = len(edges)
        mark = 0
        for i in range(length):
            row = window + i
            x = feed.x[row]
            if refreshed:
                if stats.due[0] <= 0:
                    refresh(params, stats)
                stats.due[0] -= 1
            # Decide, knowing what arrived up to the round before. First each arm once, in order.
            choice = start + i - 1
            if choice >= count:
                moment = Moment(start + i, math.log(start + i - 1.0), seed, run)
                survey(params, stats, moment, x)
                choice = 0
                best = -np.inf
                for k in range(count):
                    value = index(params, stats, k, moment, x)
                    if value > best:
                        best = value
                        choice = k
                    elif np.isnan(value):
                        mark_lost(stats, k, start + i)
                        return
            stats.pulls[choice] += 1
            memory.arms[row] = choice
            memory.regret[0] += feed.best[i] - feed.means[i, choice]
            decided(params, stats, choice, x)
            # What this decision will pay, group by group.
            paid = memory.paid[row]
            for g in range(groups):
                paid[g] = 0.0
            memory.done[row] = 0.0
            pay_draws = feed.pay_draws[i]
            pieces = count_pieces(world, feed.means[i, choice], pay_draws)
            size = 1.0 if world.once else 0.1
            power = power_of(world, choice, x)
            for j in range(pieces):
                age = 0 if at_once else age_of(window, power, pay_draws[2 + j])
                g = 0
                while edges[g] <= age and g < groups - 1:
                    g += 1
                if age < edges[g]:
                    paid[g] += size
            # Then groups of earlier decisions finish.
            for g in range(groups):
                if start + i < edges[g]:
                    break
                earlier = row + 1 - edges[g]
                arm = np.int64(memory.arms[earlier])
                before = memory.done[earlier]
                after = before + memory.paid[earlier, g]
                if numbered:
                    stats.finishing[g] = start + i - edges[g]
                if grouped:
                    finished(params, stats, arm, g, before, after, feed.x[earlier])
                else:
                    closed(params, stats, arm, after, feed.x[earlier])
                memory.done[earlier] = after
            if mark < len(marks.rounds) and start + i == marks.rounds[mark]:
                marks.regret[mark] = memory.regret[0]
                mark += 1

    return advance
