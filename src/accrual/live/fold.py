"""What each event does, compiled around a policy's own functions.

The simulator's loop (`accrual.engine.cpu`) and these call the same functions with the same
arguments; here events come one by one and in any order. A policy's function is called from one
place in each kernel, so that it is compiled into it rather than called with its many arrays.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accrual.core.jit import kernel, njit
from accrual.live.draft import Draft, add, copy_due
from accrual.live.pending import CLOSED, LATE, NEXT, Pending, close, enter, find, has_room, leave
from accrual.live.queues import NONE, Queues, first, give_back, pull, push
from accrual.policy.base import Feedback, Function, Functions, Moment, no_refresh
from accrual.store.base import Kind

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

CHOOSE, OF_ARM = -1, 0.0  # no arm given; no window given
OVER = 1.0 + 1e-9  # a total up to here, in caps, is the cap, and rounding
RECENT = 1000
_DECISION, _PIECE, _CLOSE = int(Kind.DECISION), int(Kind.PIECE), int(Kind.CLOSE)


class Rules(NamedTuple):
    """What the fold needs to know beyond the policy's params."""

    edges: Floats  # the ages at which the learner's groups end
    ends: Floats  # the same; without groups, the longest window alone
    windows: Floats  # arms
    playing: npt.NDArray[np.bool_]  # arms
    seed: int
    founding: int  # arms that were there from the start; those beyond were added later
    caps: Floats  # arms


class State(NamedTuple):
    """All that the kernels read and write."""

    params: Any
    choosing: Any  # params for survey and index: retired arms have a cap of 0
    stats: Any
    pending: Pending
    rules: Rules
    arms: Ints  # of the decisions last made, or last thought of
    values: Floats  # arms: their indices at the last of these
    spare: Any  # statistics to try things with
    memory: npt.NDArray[np.uint8]  # where `stats` is, all of it
    spare_memory: npt.NDArray[np.uint8]  # and `spare`
    draft: Draft
    observed: Floats  # arms: what their decisions have paid, late pieces left out
    above: Ints  # arms: how many of their decisions have paid more than the cap
    recent: Ints  # the arms of the last decisions: that of decision id is number id % RECENT
    news: Floats  # arms: when their first decision finishes its first group; infinite before it is made
    spare_news: Floats  # the same, to try things with


class Fold(NamedTuple):
    """The kernels of one policy. Each takes a held `State` first."""

    advance: Function
    observe: Function
    observe_many: Function
    extend: Function
    choose: Function


@functools.cache
def fold(functions: Functions, feedback: Feedback) -> Fold:
    """The kernels for a policy's functions."""
    index, survey, decided = functions.index, functions.survey, functions.decided
    closed, finished, amended, refresh = (
        functions.closed,
        functions.finished,
        functions.amended,
        functions.refresh,
    )
    refreshed = refresh is not no_refresh
    totals = feedback == "totals"
    pieces = feedback == "pieces"
    grouped = feedback == "groups"

    @njit
    def settle(params: Any, stats: Any, row: Any, paid: Floats, groups: int) -> bool:
        """What is due of a decision is done: a group, or all of it. Whether the decision has closed."""
        if grouped:
            group = row["group"]
            before = row["done"]
            after = before
            if row["source"] != NONE:
                after += paid[row["source"], group]
            finished(params, stats, row["arm"], group, before, after)
            row["done"] = after
            row["group"] = group + 1
            if group + 1 < groups:
                return False
        if totals:
            closed(params, stats, row["arm"], row["total"])
        return True

    @njit
    def do_next(params: Any, stats: Any, queues: Queues, ends: Floats, number: int, paid: Floats) -> bool:
        """What a row waits for has come, and is done. Whether its decision has closed."""
        row = queues.rows[number]
        last = row["window"] < ends[row["group"]]  # then all its groups end with the window
        pull(queues, ends, number)
        while not settle(params, stats, row, paid, len(ends)):
            if not last:
                push(queues, ends, number)
                return False
        return True

    @njit
    def pass_time(state: State, now: float) -> None:
        """All that is due by `now` is done."""
        pending, queues, ends = state.pending, state.pending.queues, state.rules.ends
        while True:
            number = first(queues)
            if number == NONE or queues.rows[number]["due"] > now:
                break
            if do_next(state.params, state.stats, queues, ends, number, pending.paid):
                leave(pending, number)

    @njit
    def turn(stats: Any, rules: Rules, news: Floats, now: float, made: int) -> int:
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
            if rules.playing[k] and news[k] > now:
                if place == 0:
                    return k
                place -= 1
        return CHOOSE

    @njit
    def look(state: State, stats: Any, news: Floats, now: float, made: int, salt: int) -> int:
        """Do what comes before a decision, made here or elsewhere; return what `turn` does.

        What this writes is part of the fold, so it happens to every decision, one made elsewhere too.
        """
        rules = state.rules
        if refreshed:  # noqa: SIM102  (apart, so that numba leaves out what is not there)
            if stats.due[0] <= 0:
                refresh(state.params, stats)
        choice = turn(stats, rules, news, now, made)
        if choice == CHOOSE:
            survey(state.choosing, stats, Moment(made + 1, math.log(max(made, 1)), rules.seed, salt))
        return choice

    @njit
    def best(state: State, stats: Any, news: Floats, now: float, made: int, salt: int) -> int:
        """Return the arm with the largest index, the first among equals."""
        rules, values = state.rules, state.values
        choice = CHOOSE
        most = -np.inf
        moment = Moment(made + 1, math.log(max(made, 1)), rules.seed, salt)
        for k in range(len(rules.playing)):
            values[k] = np.nan
            if rules.playing[k] and (k < rules.founding or news[k] <= now):
                value = index(state.choosing, stats, k, moment)
                values[k] = value
                if choice == CHOOSE or value > most:
                    most = value
                    choice = k
        return choice

    @njit
    def count(params: Any, stats: Any, choice: int) -> None:
        if refreshed:
            stats.due[0] -= 1
        stats.pulls[choice] += 1
        decided(params, stats, choice)

    @njit
    def note(state: State, now: float, choice: int, window: float) -> None:
        """A decision has been made."""
        pending, rules = state.pending, state.rules
        count(state.params, state.stats, choice)
        state.recent[pending.counts[NEXT] % RECENT] = choice
        own = rules.windows[choice] if window == OF_ARM else window
        if state.news[choice] == np.inf:
            state.news[choice] = now + min(own, rules.ends[0])
        enter(pending, rules.ends, choice, now, own)

    @njit
    def make(state: State, now: float, n: int, arm: int, window: float, salt: int) -> bool:
        """Decisions of `arm`, or of whichever is chosen. False where there is no room for them."""
        if not has_room(state.pending, n):
            return False
        stats, news, counts = state.stats, state.news, state.pending.counts
        for i in range(n):
            choice = look(state, stats, news, now, counts[NEXT], salt)
            if arm != CHOOSE:
                choice = arm
            elif choice == CHOOSE:
                choice = best(state, stats, news, now, counts[NEXT], salt)
            state.arms[i] = choice
            note(state, now, choice, window)
        return True

    @kernel
    def advance(held: Any, now: float, n: int, arm: int, window: float, salt: int) -> bool:
        """Time goes on to `now`; then `n` decisions are made.

        False where there is no room for them; none is made then.
        """
        state = held.value
        pass_time(state, now)
        return make(state, now, n, arm, window, salt)

    @njit
    def learn(state: State, id_: int, value: float, age: float) -> bool:
        params, stats, pending, edges = state.params, state.stats, state.pending, state.rules.edges
        number = find(pending, id_)
        row = pending.queues.rows[max(number, 0)]
        if number == CLOSED or row["closed"] == 1 or age >= row["window"]:
            pending.counts[LATE] += 1
            return False
        state.observed[row["arm"]] += value
        most = state.rules.caps[row["arm"]] * OVER
        was_above = row["total"] > most
        row["total"] += value
        is_above = row["total"] > most
        if is_above != was_above:  # a refund may bring it down again
            state.above[row["arm"]] += 1 if is_above else -1
        if pieces:
            stats.observed[row["arm"]] += value
        if grouped:
            group = np.searchsorted(edges, age, side="right")
            if group < row["group"]:
                # Out of order: its group, and all that were finished since, stood on less.
                before = 0.0
                for g in range(row["group"]):
                    after = before + pending.paid[number, g]
                    if g >= group:
                        earlier = value if g > group else 0.0
                        amended(params, stats, row["arm"], g, before, after, earlier, value)
                    before = after
                row["done"] += value
            pending.paid[number, group] += value
        return True

    @njit
    def learn_all(
        state: State, ids: Ints, values: Floats, ages: Floats, learned: npt.NDArray[np.bool_]
    ) -> None:
        for i in range(len(ids)):
            learned[i] = learn(state, ids[i], values[i], ages[i])

    @njit
    def go_on(
        state: State, i: int, kinds: Ints, ats: Floats, ids: Ints, arms: Ints, values: Floats, ages: Floats
    ) -> int:
        while i < len(kinds):
            kind = kinds[i]
            if kind > _CLOSE:
                break
            pass_time(state, ats[i])
            if kind == _PIECE:
                learn(state, ids[i], values[i], ages[i])
            elif kind == _CLOSE:
                close(state.pending, ids[i])
            elif kind == _DECISION:
                if not has_room(state.pending, 1):
                    break
                # The value of a decision's event is the salt of the worker that made it.
                look(state, state.stats, state.news, ats[i], state.pending.counts[NEXT], int(values[i]))
                note(state, ats[i], arms[i], ages[i])
            i += 1
        return i

    @kernel
    def observe(held: Any, id_: int, value: float, age: float) -> bool:
        return learn(held.value, id_, value, age)

    @kernel
    def observe_many(
        held: Any, ids: Ints, values: Floats, ages: Floats, learned: npt.NDArray[np.bool_]
    ) -> None:
        learn_all(held.value, ids, values, ages, learned)

    @kernel
    def extend(
        held: Any, start: int, kinds: Ints, ats: Floats, ids: Ints, arms: Ints, values: Floats, ages: Floats
    ) -> int:
        """Events from number `start` on: up to one that this cannot do, whose number is returned.

        That is an arm's coming or going, or a decision for which there is no room.
        """
        return go_on(held.value, start, kinds, ats, ids, arms, values, ages)

    @njit
    def think(state: State, now: float, step: float, n: int, salt: int) -> bool:
        params, stats, pending, rules = state.params, state.spare, state.pending, state.rules
        news = state.spare_news
        ends, trial = rules.ends, state.draft.queues
        if not copy_due(state.draft, pending.queues, ends, now + step * (n - 1), n):
            return False
        for j in range(len(state.memory)):  # a slice would be copied twice
            state.spare_memory[j] = state.memory[j]
        for k in range(rules.founding, len(news)):
            news[k] = state.news[k]
        made = pending.counts[NEXT]
        for i in range(n):
            time = now + step * i
            while True:
                number = first(trial)
                if number == NONE or trial.rows[number]["due"] > time:
                    break
                if do_next(params, stats, trial, ends, number, pending.paid):
                    give_back(trial, number)
            choice = look(state, stats, news, time, made + i, salt)
            if choice == CHOOSE:
                choice = best(state, stats, news, time, made + i, salt)
            else:
                state.values[:] = np.nan
            state.arms[i] = choice
            if i < n - 1:
                count(params, stats, choice)
                if news[choice] == np.inf:
                    news[choice] = time + min(rules.windows[choice], ends[0])
                add(state.draft, ends, made + i, choice, time, rules.windows[choice])
        return True

    @kernel
    def choose(held: Any, now: float, step: float, n: int, salt: int) -> bool:
        """The `n` arms that would be chosen from `now` on, a `step` of time from one to the next.

        It all happens to the spare statistics: afterwards they are as whoever chose the last one saw
        them. False where the draft has no room.
        """
        return think(held.value, now, step, n, salt)

    return Fold(advance, observe, observe_many, extend, choose)
