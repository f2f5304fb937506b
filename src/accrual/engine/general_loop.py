"""The loop for all but plain problems: contexts, several decisions in a round, arms that come and go.

It calls every policy in the same way; a policy that ignores contexts may play too, and shows what contexts
are worth. Policies are called as the live bandit calls them: an arm in play that has never been tried comes
first, and the cap of an arm that is not in play is 0. With K arms in play, an arm that came later gets one of
any K decisions in a row while the policy asks for its turn, and not all of a batch.

Playing plain problems here would take longer: `accrual.engine.fast_loop` plays them.
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
from accrual.engine.general_feed import GeneralFeed, GeneralRunFeed, LearnerGroups, World
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
from accrual.policies.contexts import params_of, with_contexts
from accrual.policies.scalars import TURN

Flags = npt.NDArray[np.bool_]

_SPAN = 512
_AFTER_ALL = 1e301  # more than any turn: what is taken off the index of an arm whose turn it is not


def check_feedback(policy: Policy, how: str) -> None:
    """Refuse a policy that this loop cannot play; `how` says in what way it would be played."""
    if policy.feedback == "pieces":
        raise InputError(f"{policy.label} learns from single pieces, and cannot play {how}")


class PendingDecisions(NamedTuple):
    """The pending decisions of a chain: first those of the window before the span, then the span's."""

    arms: npt.NDArray[np.uint16]
    earned: Floats  # decisions x groups + 1: what each has paid in all when each of its groups ends
    scratch: Floats


class GeneralChain:
    """One policy in one run: its statistics and its pending decisions."""

    def __init__(self, policy: Policy, world: World, span: int, key: tuple[int, int]) -> None:
        self._policy, self._world, self._key = policy, world, key
        ends = policy.edges(world.window)
        if policy.immediate:
            ends = np.array([1], np.int64)
        elif policy.feedback == "totals":
            ends = np.array([world.window], np.int64)
        self._times = LearnerGroups(ends, policy.immediate)
        self._past = world.window * world.batch
        rows = self._past + span * world.batch
        self._memory = PendingDecisions(
            np.zeros(rows, np.uint16), np.zeros((rows, len(ends) + 1)), np.zeros((1, world.scratch))
        )
        self._loop: Any = None  # compiled when the statistics are known
        self._last = 0  # decisions of the last span, at whose end the next one's past begins
        self.stats: Any = None

    def play_arms(self, playing: Flags) -> None:
        """Choose among these arms from now on; `playing` is as long as there are arms by now."""
        policy, caps = self._policy, self._world.caps[: len(playing)].copy()
        if self.stats is None:
            self.params, self._founding = self._params(caps), len(playing)
            self.stats = policy.stats(self.params)
            numbered = is_numbered(self.stats)
            self._loop = loop(policy.functions, policy.feedback, policy.contextual, numbered, self._world.pay)
        elif len(self.stats.pulls) < len(playing):
            self.params = self._params(caps)
            self.stats = policy.grow(self.stats, self.params)
        self._playing = playing
        self._choosing = self.params
        if not playing.all():
            with np.errstate(divide="ignore"):  # 1 / cap is infinite for arms that are not asked about
                self._choosing = self._params(np.where(playing, caps, 0.0))

    def _params(self, caps: Floats) -> Any:
        return params_of(self._policy, caps, self._world.window, self._world.layout)

    def advance(self, feed: GeneralFeed, start: int, length: int) -> Ints:
        """Play rounds start .. start + length - 1; return the arms chosen."""
        count, past = length * self._world.batch, self._past
        for array in self._memory[:2]:
            array[:past] = array[self._last : self._last + past].copy()
        self._loop(
            (self.params, self._choosing), self.stats, self._playing, self._world.caps, self._world.arrays,
            self._times, self._memory, feed, (start, length, self._world.batch, self._founding, *self._key),
        )  # fmt: skip
        self._loop = machine_code(self._loop)
        check_indices(self._policy.label, self.stats.pulls)
        self._last = count
        return self._memory.arms[past : past + count].astype(np.int64)


@functools.cache
def loop(
    functions: Functions, feedback: Feedback, contextual: bool, numbered: bool, pay: Function
) -> Function:
    """Compile the loop around a policy's functions and the pay of a `World`."""
    refresh = functions.refresh
    refreshed, grouped = refresh is not no_refresh, feedback == "groups"
    taking = with_contexts(functions, contextual)
    index, survey, decided = taking.index, taking.survey, taking.decided
    closed, finished = taking.closed, taking.finished

    @kernel
    def advance(  # noqa: PLR0913, PLR0917  (a kernel takes all that it reads and writes)
        both_params: Any, stats: Any, playing: Flags, caps: Floats, world: Any,
        times: LearnerGroups, memory: PendingDecisions, feed: GeneralFeed, span: tuple[int, ...],
    ) -> None:  # fmt: skip
        params, choosing = both_params
        start, length, batch, founding, seed, run = span
        count, past, in_play = len(playing), len(memory.arms) - len(feed.u), playing.sum()
        made = (start - 1) * batch
        for step in range(length):
            for i in range(step * batch, (step + 1) * batch):
                x = feed.x[past + i]
                if refreshed:
                    if stats.due[0] <= 0:
                        refresh(params, stats)
                    stats.due[0] -= 1
                # Decide, knowing what arrived up to the round before. First each new arm once, in order.
                choice = 0
                while choice < count and not (playing[choice] and stats.pulls[choice] == 0):
                    choice += 1
                if choice == count:
                    moment = Moment(made + 1, math.log(max(made, 1)), seed, run)
                    survey(choosing, stats, moment, x)
                    best = -np.inf
                    for k in range(count):
                        if playing[k]:
                            value = index(choosing, stats, k, moment, x)
                            if value >= TURN and k >= founding and (made + k) % in_play != 0:
                                value -= _AFTER_ALL
                            if value > best or choice == count:
                                best = value
                                choice = k
                            if np.isnan(value):
                                mark_lost(stats, k, made + 1)
                                return
                stats.pulls[choice] += 1
                memory.arms[past + i] = choice
                decided(params, stats, choice, x)
                pay(world, caps, choice, x, feed.u[i : i + 1], times, memory.earned[past + i], memory.scratch)
                made += 1
            # Then groups of earlier decisions finish.
            for g in range(len(times.ends)):
                age = times.ends[g]
                if start + step < age:
                    break
                first = past + (step + 1 - age) * batch
                for row in range(first, first + batch):
                    arm = np.int64(memory.arms[row])
                    if numbered:
                        stats.finishing[g] = made - age * batch + row - first
                    if grouped:
                        before, after = memory.earned[row, g], memory.earned[row, g + 1]
                        finished(params, stats, arm, g, before, after, feed.x[row])
                    else:
                        closed(params, stats, arm, memory.earned[row, 1], feed.x[row])

    return advance


class GeneralRun:
    """Several policies on one run's draws, on a problem with contexts; the task's `packed` is its `World`."""

    def __init__(self, task: Task, policies: Sequence[Policy], run: int) -> None:
        span, key = max(_SPAN, task.problem.window), (task.seed, run)
        self._feed = GeneralRunFeed(task.packed, key, span)
        self._chains = [GeneralChain(policy, task.packed, span, key) for policy in policies]
        for chain in self._chains:
            chain.play_arms(np.ones(len(task.problem.caps), np.bool_))
        self._rounds, self._horizon = task.rounds, task.horizon
        self.regret = np.zeros((len(policies), len(task.rounds)))

    def play(self) -> Iterator[int]:
        """Play to the horizon, yielding after each span the number of its rounds."""
        so_far = np.zeros(len(self._chains))
        for start in range(1, self._horizon + 1, self._feed.span):
            length = min(self._feed.span, self._horizon + 1 - start)
            feed, means = self._feed.read(length), self._feed.means[:length]
            best = means.max(axis=1)
            low, high = np.searchsorted(self._rounds, [start, start + length])
            for place, chain in enumerate(self._chains):
                arms = chain.advance(feed, start, length)
                regret = np.cumsum([so_far[place], *(best - means[np.arange(length), arms])])
                self.regret[place, low:high] = regret[self._rounds[low:high] - start + 1]
                so_far[place] = regret[-1]
            yield length

    def pulls(self) -> Ints:
        """Return the decisions of each arm so far, policies x arms."""
        return np.array([chain.stats.pulls for chain in self._chains])
