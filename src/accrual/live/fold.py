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
from accrual.live.pending import (
    CLOSED,
    COUNT,
    LATE,
    NEXT,
    Pending,
    enter,
    find,
    has_room,
    leave,
    rise,
    sink,
)
from accrual.policy.base import Feedback, Function, Functions, Moment, no_refresh

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

NOBODY, CHOOSE, OF_ARM = -1, -1, 0.0  # no decision to close; no arm given; no window given
PEEK = -1.0  # in place of a window: choose, and decide nothing


class Rules(NamedTuple):
    """What the fold needs to know beyond the policy's params."""

    edges: Floats  # the ages at which the learner's groups end
    windows: Floats  # arms
    playing: npt.NDArray[np.bool_]  # arms
    seed: int


class State(NamedTuple):
    """All that the kernels read and write."""

    params: Any
    choosing: Any  # params for survey and index: retired arms have a cap of 0
    stats: Any
    pending: Pending
    rules: Rules
    arms: Ints  # of the decisions last made


class Fold(NamedTuple):
    """The kernels of one policy. Each takes a held `State` first."""

    advance: Function
    observe: Function
    observe_many: Function


@functools.cache
def fold(functions: Functions, feedback: Feedback) -> Fold:
    """The kernels for a policy's functions."""
    index, survey, decided, closed, finished, amended, refresh = functions
    refreshed = refresh is not no_refresh
    totals = feedback == "totals"
    pieces = feedback == "pieces"
    grouped = feedback == "groups"

    @kernel
    def advance(held: Any, now: float, close: int, n: int, arm: int, window: float) -> bool:
        """Time goes on to `now`; then decision `close` closes, and `n` are made.

        False where there is no room for them; none is made then.
        """
        params, choosing, stats, pending, rules, arms = held.value
        counts, heap, rows, edges = pending.counts, pending.heap, pending.rows, rules.edges
        while True:
            if counts[COUNT] == 0 or rows[heap[0]]["due"] > now:
                # All that was due is done. A decision to be closed is due next, all of it.
                number = find(pending, close) if close >= 0 else CLOSED
                if number == CLOSED:
                    break
                close = NOBODY
                rows[number]["window"] = 0.0
                rows[number]["due"] = -np.inf
                rise(heap, rows, rows[number]["place"])
            number = heap[0]
            row = rows[number]
            if grouped:
                group = row["group"]
                before = row["done"]
                after = before + pending.paid[number, group]
                finished(params, stats, row["arm"], group, before, after)
                row["done"] = after
                row["group"] = group + 1
                if group + 1 < len(edges):
                    row["due"] = row["at"] + min(edges[group + 1], row["window"])
                    sink(heap, rows, counts[COUNT])
                    continue
            if totals:
                closed(params, stats, row["arm"], row["done"])
            leave(pending)

        if not has_room(pending, n):
            return False
        count = len(rules.playing)
        for i in range(n):
            if refreshed:  # noqa: SIM102  (apart, so that numba leaves out what is not there)
                if stats.due[0] <= 0:
                    refresh(params, stats)
            choice = arm
            if choice == CHOOSE:  # first every arm without a decision, in order
                for k in range(count):
                    if rules.playing[k] and stats.pulls[k] == 0:
                        choice = k
                        break
            if choice == CHOOSE:
                best = -np.inf
                moment = Moment(counts[NEXT] + 1, math.log(counts[NEXT]), rules.seed, 0)
                survey(choosing, stats, moment)
                for k in range(count):
                    if rules.playing[k]:
                        value = index(choosing, stats, k, moment)
                        if choice == CHOOSE or value > best:
                            best = value
                            choice = k
            arms[i] = choice
            if window == PEEK:
                return True
            if refreshed:
                stats.due[0] -= 1
            stats.pulls[choice] += 1
            decided(params, stats, choice)
            own = rules.windows[choice] if window == OF_ARM else window
            enter(pending, choice, now, own, now + (min(edges[0], own) if grouped else own))
        return True

    @njit
    def learn(
        params: Any, stats: Any, pending: Pending, edges: Floats, id_: int, value: float, age: float
    ) -> bool:
        number = find(pending, id_)
        if number == CLOSED or age >= pending.rows[number]["window"]:
            pending.counts[LATE] += 1
            return False
        row = pending.rows[number]
        if pieces:
            stats.observed[row["arm"]] += value
        if totals:
            row["done"] += value
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

    @kernel
    def observe(held: Any, id_: int, value: float, age: float) -> bool:
        params, _, stats, pending, rules, _ = held.value
        return learn(params, stats, pending, rules.edges, id_, value, age)

    @kernel
    def observe_many(
        held: Any, ids: Ints, values: Floats, ages: Floats, learned: npt.NDArray[np.bool_]
    ) -> None:
        params, _, stats, pending, rules, _ = held.value
        for i in range(len(ids)):
            learned[i] = learn(params, stats, pending, rules.edges, ids[i], values[i], ages[i])

    return Fold(advance, observe, observe_many)
