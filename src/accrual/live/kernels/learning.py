"""What time and pieces do to a policy's statistics, compiled around the policy's own functions."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from accrual.core.arrays import Floats
from accrual.core.jit import njit
from accrual.live.kernels.arrays import OVER, KernelState, Target, context_row
from accrual.live.kernels.pending import (
    CLOSED,
    FIRST,
    LATE,
    NONE,
    SHUT,
    add_ahead,
    add_group,
    add_window,
    find,
    find_oldest,
    finished_decision,
    first,
    give_back,
    group_at,
    group_over,
    leave,
    oldest_has_left,
    pull,
    push,
)
from accrual.live.watch import NO_STREAM, see_all
from accrual.policies.base import Feedback, Function, Functions


class Learning(NamedTuple):
    """The functions by which a ledger learns.

    ``pass_time(state, target, now)`` finishes all groups and closes all windows that are due by `now`.
    ``learn(state, id, value, age, stream)`` adds a piece and returns whether it came in time. A piece of
    another stream than the reward only adds to that stream: the policy does not see it.
    """

    pass_time: Function
    learn: Function


@njit
def add_reward(state: KernelState, row: Any, value: float) -> None:
    """Add a piece to the totals of its decision and arm, and count whether the decision is above its cap."""
    state.observed[row["arm"]] += value
    most = state.rules.caps[row["arm"]] * OVER
    was_above = row["total"] > most
    row["total"] += value
    is_above = row["total"] > most
    if is_above != was_above:  # a negative piece may bring the total down again
        state.above[row["arm"]] += 1 if is_above else -1


@functools.cache
def learning(
    functions: Functions, feedback: Feedback, numbered: bool, watching: tuple[tuple[Function, bool], ...]
) -> Learning:
    """Compile how a ledger learns with a policy's functions, which take a context.

    `numbered` says whether the statistics hold the number of the decision that finishes a group. `watching`
    has for each watcher its `see` and its `in_order`.
    """
    see_in_order, see_at_once = (
        see_all([(place, see) for place, (see, in_order) in enumerate(watching) if in_order == wanted])
        for wanted in (True, False)
    )
    closed, finished, amended = functions.closed, functions.finished, functions.amended
    totals, pieces, grouped = (feedback == kind for kind in ("totals", "pieces", "groups"))
    keeps = bool(functions.hooks.learning_fields)

    @njit
    def settle(state: KernelState, stats: Any, row: Any, x: Floats) -> bool:
        """Pass a finished group, or a total, to the policy; return whether the decision has closed."""
        params = state.params
        if grouped:
            group = row["group"]
            before = row["done"]
            after = before
            if row["source"] != NONE:
                after += state.pending.paid[row["source"], group]
            if numbered:
                stats.finishing[group] = row["id"]
            finished(params, stats, row["arm"], group, before, after, x)
            row["done"] = after
            row["group"] = group + 1
            if group + 1 < len(state.rules.ends):
                return False
        if totals:
            closed(params, stats, row["arm"], row["total"], x)
        return True

    @njit
    def settle_due(state: KernelState, target: Target, number: int) -> bool:
        """Settle what is due for a row, and queue it again; return whether the decision has closed."""
        stats, queues, ends = target.stats, target.queues, state.rules.ends
        row, sums = queues.rows[number], state.pending.sums
        is_open = not target.trial and row["closed"] == 0
        if is_open:
            add_group(sums, row, -1)
        x = state.pending.contexts[max(row["source"], 0)]
        if row["source"] == NONE:  # it is only tried
            x = state.contexts[context_row(state, row["id"])]
        last = row["arm_window"] < ends[row["group"]]  # then all its other groups end with that window
        pull(queues, ends, number)
        if row["due"] < group_over(row, ends):  # its own window is over: that is like being closed
            row["closed"] = 1
            if is_open:
                add_window(sums, ends, row, -1)
                state.pending.counts[SHUT] += 1
                find_oldest(state.pending)
            push(queues, ends, number)
            return False
        while not settle(state, stats, row, x):
            if not last:
                push(queues, ends, number)
                if is_open:
                    add_group(sums, row, 1)
                return False
        if is_open:
            add_window(sums, ends, row, -1)
        return True

    @njit
    def finish(state: KernelState, number: int) -> None:
        """Remove a decision whose arm's window is over, and show finished decisions to the watchers."""
        pending, rules = state.pending, state.rules
        row = pending.queues.rows[number]
        id_, own = row["id"], row["window"] != rules.windows[row["arm"]]
        leave(pending, number)
        if not own:
            see_at_once(state.watched, rules, finished_decision(pending, id_))
        while oldest_has_left(pending):
            see_in_order(state.watched, rules, finished_decision(pending, pending.counts[FIRST]))
            pending.counts[FIRST] += 1
        find_oldest(pending)

    @njit
    def pass_time(state: KernelState, target: Target, now: float) -> None:
        queues = target.queues
        if keeps and target.light:
            return
        while True:
            number = first(queues)
            if number == NONE or queues.rows[number]["due"] > now:
                break
            if settle_due(state, target, number):
                if target.trial:
                    give_back(queues, number)
                else:
                    finish(state, number)

    @njit
    def amend(params: Any, stats: Any, row: Any, paid: Floats, group: Any, value: float, x: Floats) -> None:
        """Correct a group that was finished without this piece, and all that were finished since."""
        before = 0.0
        for g in range(row["group"]):
            after = before + paid[g]
            if g >= group:
                earlier = value if g > group else 0.0
                if numbered:
                    stats.finishing[g] = row["id"]
                amended(params, stats, row["arm"], g, before, after, earlier, value, x)
            before = after
        row["done"] += value

    @njit
    def learn(state: KernelState, id_: int, value: float, age: float, stream: int) -> bool:
        pending = state.pending
        number = find(pending, id_)
        row = pending.queues.rows[max(number, 0)]
        if number == CLOSED or row["closed"] == 1 or age >= row["window"]:
            pending.counts[LATE] += 1
            return False
        if stream != NO_STREAM:
            pending.streams[id_ & (len(pending.where) - 1), stream] += value
            return True
        add_ahead(pending.sums, row, -1)
        add_reward(state, row, value)
        if pieces:
            state.stats.observed[row["arm"]] += value
        if grouped:
            group = group_at(state.rules.edges, age)
            if group < row["group"]:
                paid, x = pending.paid[number], pending.contexts[number]
                amend(state.params, state.stats, row, paid, group, value, x)
            pending.paid[number, group] += value
        add_ahead(pending.sums, row, 1)
        return True

    return Learning(pass_time, learn)
