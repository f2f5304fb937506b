"""The loop for plain problems on the CPU: one compiled loop per policy, over a span of rounds at a time.

The loop is compiled around a policy's functions, so a policy from a user's file is as fast as the library's
own. `task_of` prepares what is the same in every run, and `Run` plays one run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accrual.core.arrays import Floats, Ints
from accrual.core.jit import kernel, machine_code
from accrual.core.random import floor_coin
from accrual.engine.feed import Feed, RunFeed
from accrual.engine.law_kernels import LawArrays, PackedLaws, pack, pack_each
from accrual.engine.play import Task
from accrual.policies.base import (
    Feedback,
    Function,
    Functions,
    Moment,
    Policy,
    check_indices,
    is_numbered,
    mark_lost,
    no_refresh,
)
from accrual.policies.floor import Shares, drawn, shares_of
from accrual.problems.problem import Problem

_ONE = np.uint64(1)
_LANES = 4  # independent partial rates, so that one round's additions do not wait for each other


class ProblemArrays(NamedTuple):
    """A problem, packed for the loop."""

    caps: Floats
    gaps: Floats
    law: Ints  # of each arm
    window: int
    phi: int  # rounds per group
    even: bool
    shares: Shares  # how much of the traffic each arm gets at least, and at most


class LearningTimes(NamedTuple):
    """When a policy learns from a decision, and where in `Feed.paid` the loop finds what was paid."""

    lag: int  # rounds from a decision until its total is known
    ages: Ints  # the ages at which the learner's groups end
    cell: Ints  # for age 0 and each of `ages`: what has been paid lies between this group edge
    part: Floats  # ... and the next, this far along


class PendingArms(NamedTuple):
    """The pending decisions of a chain."""

    arms: npt.NDArray[np.uint16]  # arms chosen: in the window before the span, then in the span
    picks: npt.NDArray[np.uint16]  # rounds of the span: what the policy chose, before the floor's coin
    rate: Floats  # lanes x arms: what each arm's pending decisions pay per round


class Checkpoints(NamedTuple):
    """The rounds of a span after which the loop notes the regret."""

    rounds: Ints
    regret: Floats


class PolicyPlan:
    """One policy on one problem: all that is the same in every run."""

    def __init__(
        self, policy: Policy, problem: Problem, laws: PackedLaws, shares: Shares | None = None
    ) -> None:
        caps = np.array(problem.caps)
        phi = problem.window // problem.groups
        even = problem.division == "even"
        ages = policy.edges(problem.window)
        self.policy = policy
        self.params = policy.params(caps, problem.window)
        everything = shares_of(np.zeros(len(caps)), np.ones(len(caps)))
        self.problem = ProblemArrays(
            caps, problem.gaps, laws.of_arm, problem.window, phi, even, shares or everything
        )
        self.times = LearningTimes(
            0 if policy.immediate else problem.window - 1,
            ages,
            *_places(np.concatenate([[0], ages]), phi, problem.groups, even),
        )
        numbered = is_numbered(policy.stats(self.params))
        self.loop = loop(policy.functions, policy.feedback, shares is not None, numbered)


class Chain:
    """One policy in one run: its statistics and its pending decisions."""

    def __init__(self, plan: PolicyPlan, span: int, key: tuple[int, int]) -> None:
        self._plan = plan
        self.problem = plan.problem
        self._key = key  # seed and run
        self.stats = plan.policy.stats(plan.params)
        arms, window = len(plan.problem.caps), plan.problem.window
        self._memory = PendingArms(
            np.zeros(window + span, np.uint16), np.zeros(span, np.uint16), np.zeros((_LANES, arms))
        )
        self._loop = plan.loop
        self._last = 0  # the length of the last span, at whose end the next one's past begins

    def advance(self, feed: Feed, start: int, length: int, marks: Checkpoints) -> npt.NDArray[np.uint16]:
        """Play rounds start .. start + length - 1; return the arms chosen, which the next call overwrites."""
        plan, arms, window = self._plan, self._memory.arms, self._plan.problem.window
        arms[:window] = arms[self._last : self._last + window]
        self._loop(
            plan.params, self.stats, self.problem, plan.times, self._memory, feed,
            (start, length, *self._key), marks,
        )  # fmt: skip
        self._loop = machine_code(self._loop)
        check_indices(plan.policy.label, self.stats.pulls)
        self._last = length
        return arms[window : window + length]

    def picks(self) -> npt.NDArray[np.uint16]:
        """Return what the policy chose in the last span, before the floor's coin."""
        return self._memory.picks[: self._last]


def _places(ages: Ints, phi: int, groups: int, even: bool) -> tuple[Ints, Floats]:
    """Return the group that each age is in, and how much of that group has been paid by then."""
    if even:
        cell = np.minimum(ages // phi, groups - 1)
        return cell, (ages - cell * phi) / phi
    # A group that has begun has paid all it will.
    cell = np.maximum((ages + phi - 1) // phi - 1, 0)
    return cell, np.minimum(ages, 1).astype(np.float64)


@functools.cache
def loop(functions: Functions, feedback: Feedback, floored: bool, numbered: bool) -> Function:
    """Compile the loop around a policy's functions."""
    index, survey, decided = functions.index, functions.survey, functions.decided
    closed, finished, refresh = functions.closed, functions.finished, functions.refresh
    totals, pieces, grouped = (feedback == kind for kind in ("totals", "pieces", "groups"))
    refreshed = refresh is not no_refresh

    @kernel
    def advance(
        params: Any, stats: Any, problem: ProblemArrays, times: LearningTimes, memory: PendingArms,
        feed: Feed, span: tuple[int, int, int, int], marks: Checkpoints,
    ) -> None:  # fmt: skip
        start, length, seed, run = span
        arms, picks, rate = memory
        count = len(problem.caps)
        window = problem.window
        groups = feed.changes.shape[2] - 1
        last = feed.paid.shape[2] - 1
        one_law = feed.changes.shape[1] == 1
        values = np.empty(count)
        mark = reached = 0
        due_mark = marks.rounds[0] if len(marks.rounds) else 0
        stop = 0
        while stop < length:
            first, stop = stop, length
            if refreshed:  # outside the loop below, which it would slow down even while it does not run
                if stats.due[0] <= 0:
                    refresh(params, stats)
                stop = min(length, first + stats.due[0])
                stats.due[0] -= stop - first
            for i in range(first, stop):
                # Decide, knowing what arrived up to the round before. First each arm once, in order.
                choice = start + i - 1
                if choice >= count:
                    choice = 0
                    best = -np.inf
                    everything = 0.0
                    moment = Moment(start + i, feed.log[i], seed, run)
                    survey(params, stats, moment)
                    for k in range(count):
                        values[k] = index(params, stats, k, moment)
                        best = max(best, values[k])
                        everything += values[k]
                    # One addition for each arm is cheaper than one comparison. The sum is not a number if an
                    # index is not, or if there are infinite ones of both signs.
                    if everything != everything:  # noqa: PLR0124
                        lost = False
                        for k in range(count):
                            if np.isnan(values[k]):
                                mark_lost(stats, k, start + i)
                                lost = True
                        if lost:
                            return
                    # Looking for the best afterwards keeps guesses about it out of the loop above.
                    while choice < count - 1 and values[choice] != best:
                        choice += 1
                if floored:
                    picks[i] = choice
                    choice, _ = drawn(problem.shares, choice, floor_coin(seed, run, start + i))
                # Indices that cannot be negative, here and below: numba then drops its test for that.
                arm = np.int64(np.uint16(choice))
                stats.pulls[arm] += 1
                arms[np.uint64(window + i)] = arm
                decided(params, stats, arm)

                # Then this round's pieces arrive.
                if pieces:
                    if one_law:  # the usual case, and there is nothing to look up
                        due = feed.changes[i, 0]
                        for j in range(0, groups - 2, 4):
                            for lane in range(4):  # a constant, for which the compiler writes no loop
                                a = arms[np.uint64(window + i - (j + lane) * problem.phi)]
                                rate[np.uint64(lane), a] += due[np.uint64(j + lane)]
                        for j in range((groups + 1) & ~3, groups + 1):
                            a = arms[np.uint64(window + i - j * problem.phi)]
                            rate[np.uint64(j & 3), a] += due[np.uint64(j)]
                    else:
                        for j in range(groups + 1):
                            a = arms[np.uint64(window + i - j * problem.phi)]
                            rate[np.uint64(j & 3), a] += feed.changes[
                                i, np.uint64(problem.law[a]), np.uint64(j)
                            ]
                    for k in range(count):
                        paid = (rate[0, k] + rate[1, k]) + (rate[2, k] + rate[3, k])
                        stats.observed[k] += problem.caps[k] * paid
                    if not problem.even:
                        rate[:] = 0.0
                if totals and start + i > times.lag:
                    s = window + i - times.lag
                    a = arms[s]
                    closed(params, stats, a, problem.caps[a] * feed.paid[s, problem.law[a], last])
                if grouped:
                    while reached < len(times.ages) and times.ages[reached] <= start + i:  # they rise
                        reached += 1
                    for g in range(reached):
                        made = np.uint64(window + i + 1 - times.ages[g])
                        a = arms[made]
                        law = np.uint64(0) if one_law else np.uint64(problem.law[a])
                        c, d = np.uint64(times.cell[g]), np.uint64(times.cell[g + 1])
                        low, high = feed.paid[made, law, c], feed.paid[made, law, d]
                        before = low + times.part[g] * (feed.paid[made, law, c + _ONE] - low)
                        after = high + times.part[g + 1] * (feed.paid[made, law, d + _ONE] - high)
                        if numbered:
                            stats.finishing[g] = start + i - times.ages[g]
                        finished(params, stats, a, g, problem.caps[a] * before, problem.caps[a] * after)

                if start + i == due_mark:
                    regret = 0.0
                    for k in range(count):
                        regret += problem.gaps[k] * stats.pulls[k]
                    marks.regret[mark] = regret
                    mark += 1
                    due_mark = marks.rounds[mark] if mark < len(marks.rounds) else 0

    return advance


class Change(NamedTuple):
    """From this round on, another problem is played with the same arms, caps and window."""

    round: int
    laws: LawArrays
    gaps: Floats


def task_of(
    problem: Problem, policies: Sequence[Policy], rounds: Ints, horizon: int, seed: int, runs: range
) -> Task:
    """Prepare what is the same in every run; the task's `packed` is the problem's `PackedLaws`."""
    starts, phases = zip(*problem.phases, strict=True)
    laws, *later = pack_each(phases) if len(phases) > 1 else [pack(problem)]
    changes = [
        Change(start, packed.arrays, phase.gaps)
        for start, packed, phase in zip(starts[1:], later, phases[1:], strict=True)
    ]
    plans = [PolicyPlan(policy, phases[0], laws) for policy in policies]
    return Task(problem, laws, plans, rounds, horizon, seed, runs, changes)


class PlayedSpan(NamedTuple):
    """What was played: the rounds from `start` on."""

    start: int
    length: int
    feed: Feed
    arms: list[npt.NDArray[np.uint16]]  # for each policy; the next span overwrites them


class Run:
    """Several policies on one run's draws."""

    def __init__(self, task: Task, plans: Sequence[PolicyPlan], run: int, detail: bool = False) -> None:
        detail = detail or any(plan.policy.feedback == "groups" for plan in plans)
        key = (task.seed, run)
        self._feed = RunFeed(task.problem, task.packed, *key, detail)
        self.chains = [Chain(plan, self._feed.span, key) for plan in plans]
        self._rounds, self._horizon = task.rounds, task.horizon
        self._changes = list(task.changes)
        # The loop counts all decisions with the gaps of now. This is what it leaves out of earlier problems.
        self._earlier_regret = np.zeros(len(plans))
        self.regret = np.zeros((len(plans), len(task.rounds)))

    def play(self) -> Iterator[int]:
        """Play to the horizon, yielding after each span the number of its rounds."""
        for span in self.spans():
            yield span.length

    def spans(self, lengths: Callable[[int], int] = lambda most: most) -> Iterator[PlayedSpan]:
        """Play to the horizon, span by span; `lengths` says how long the next one is, given the most."""
        start, end = 1, self._horizon + 1
        while start < end:
            if self._changes and start == self._changes[0].round:
                self._change(self._changes.pop(0))
            most = lengths(self._feed.span)
            stop = min(start + most, end, *(change.round for change in self._changes[:1]))
            feed = self._feed.read(stop - start)
            low, high = np.searchsorted(self._rounds, [start, stop])
            arms = []
            for chain, regret, earlier in zip(self.chains, self.regret, self._earlier_regret, strict=True):
                marks = Checkpoints(self._rounds[low:high], regret[low:high])
                arms.append(chain.advance(feed, start, stop - start, marks))
                regret[low:high] += earlier
            yield PlayedSpan(start, stop - start, feed, arms)
            start = stop

    def _change(self, change: Change) -> None:
        self._feed.change(change.laws)
        for place, chain in enumerate(self.chains):
            self._earlier_regret[place] += (chain.problem.gaps - change.gaps) @ chain.stats.pulls
            chain.problem = chain.problem._replace(gaps=change.gaps)

    def pulls(self) -> Ints:
        """Return the decisions of each arm so far, policies x arms."""
        return np.array([chain.stats.pulls for chain in self.chains])
