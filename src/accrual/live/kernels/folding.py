"""The kernels of a ledger: what each event does to the statistics, and which arms would be chosen.

The simulator's loop (`accrual.engine.fast_loop`) and these kernels call the same functions of a policy with
the same arguments. Here events come one by one and in any order. Each kernel calls a policy's function from
one place only, so that the compiler inlines the function instead of passing its many arrays.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from accrual.core.arrays import Floats, Ints
from accrual.core.jit import kernel, njit
from accrual.live.kernels.arrays import CHOOSE, LOST, OF_ARM, KernelState, Target
from accrual.live.kernels.choosing import choosing, moment_of
from accrual.live.kernels.learning import learning
from accrual.live.kernels.pending import NEXT, close, copy_due, has_room
from accrual.live.watch import NO_PROPENSITY, REWARD, Flags
from accrual.policies.base import Feedback, Function, Functions
from accrual.policies.contexts import with_contexts
from accrual.store.events import Events, Kind, event_column


def _field(kind: Kind, name: str) -> Function:
    """Compile a function that returns a named field of event number `i`.

    Some columns of `Events` hold different fields for different kinds of events; `EVENT_COLUMNS` says which.
    Compiled code cannot look that up.
    """
    place = Events._fields.index(event_column(kind, name))

    @njit
    def field(events: Events, i: int) -> Any:
        return events[place][i]

    return field


decision_salt = _field(Kind.DECISION, "salt")
decision_window = _field(Kind.DECISION, "window")
piece_stream = _field(Kind.PIECE, "stream")
new_arm_cap = _field(Kind.ADD_ARM, "arm.cap")
new_arm_window = _field(Kind.ADD_ARM, "arm.window")

_DECISION, _PIECE, _CLOSE = int(Kind.DECISION), int(Kind.PIECE), int(Kind.CLOSE)


class Kernels(NamedTuple):
    """The kernels of one policy. Each takes a `KernelState` first."""

    advance: Function
    observe: Function
    observe_many: Function
    extend: Function
    choose: Function


@functools.cache
def compile_kernels(
    functions: Functions,
    feedback: Feedback,
    contextual: bool,
    numbered: bool,
    watching: tuple[tuple[Function, bool], ...],
) -> Kernels:
    """Compile the kernels for a policy's functions.

    Parameters
    ----------
    functions : Functions
    feedback : {"totals", "pieces", "groups"}
    contextual : bool
        Whether the functions take a context.
    numbered : bool
        Whether the statistics hold the number of the decision that finishes a group.
    watching : tuple of (callable, bool)
        For each watcher its `see` and its `in_order`.
    """
    taking = with_contexts(functions, contextual)
    keeps = bool(functions.hooks.learning_fields)
    pass_time, learn = learning(taking, feedback, numbered, watching)
    prepare, choose_arm, record = choosing(taking)

    @kernel
    def advance(state: KernelState, now: float, n: int, arm: int, window: float, salt: int) -> bool:
        """Let time pass until `now`, then make `n` decisions of `arm`, or of the policy's choice.

        Return False if there is no room for the decisions; then none is made. Stop early, with `LOST` or
        less among the arms, if an index is not a number.
        """
        target = Target(state.stats, state.first_news, state.pending.queues, False, False)
        pass_time(state, target, now)
        if not has_room(state.pending, n):
            return False
        for i in range(n):
            made = state.pending.counts[NEXT]
            moment = moment_of(made, state.rules.seed, salt)
            first = prepare(state, target, now, moment)
            choice, chance = arm, NO_PROPENSITY
            if arm == CHOOSE:
                choice, chance = choose_arm(state, target, now, moment, first)
            state.arms[i], state.propensities[i] = choice, chance
            if choice <= LOST:
                return True
            record(state, target, now, made, choice, window, chance)
        return True

    @kernel
    def observe(state: KernelState, id_: int, value: float, age: float) -> bool:
        """Add a piece to its decision; return whether the policy learns from it."""
        learned: bool = learn(state, id_, value, age, REWARD)
        return learned

    @kernel
    def observe_many(state: KernelState, ids: Ints, values: Floats, ages: Floats, learned: Flags) -> None:
        """Add pieces in this order; `learned` says for each piece whether the policy learns from it."""
        for i in range(len(ids)):
            learned[i] = learn(state, ids[i], values[i], ages[i], REWARD)

    @kernel
    def extend(state: KernelState, i: int, events: Events) -> int:
        """Fold events from number `i` on; return the number of the first that this kernel cannot fold.

        Such an event adds or retires an arm, or is a decision for which there is no room.
        """
        target = Target(state.stats, state.first_news, state.pending.queues, False, False)
        while i < len(events.kind):
            kind, at, id_ = events.kind[i], events.at[i], events.decision[i]
            if kind > _CLOSE:
                break
            pass_time(state, target, at)
            if kind == _PIECE:
                learn(state, id_, events.value[i], events.age[i], int(piece_stream(events, i)))
            elif kind == _CLOSE:
                close(state.pending, state.rules.ends, id_)
            elif kind == _DECISION:
                if not has_room(state.pending, 1):
                    break
                made = state.pending.counts[NEXT]
                moment = moment_of(made, state.rules.seed, int(decision_salt(events, i)))
                prepare(state, target, at, moment)
                window = decision_window(events, i)
                chance = events.propensity[i]
                if events.seen[i] < state.rules.known:  # the worker did not know the newest arm
                    chance = NO_PROPENSITY
                record(state, target, at, made, events.arm[i], window, chance)
            i += 1
        return i

    @kernel
    def choose(state: KernelState, now: float, step: float, n: int, salt: int) -> bool:
        """Find the `n` arms that would be chosen from `now` on, a `step` of time from one to the next.

        Only the trial's copies change: afterwards they are as they were when the last arm was chosen. Return
        False if `trial_pending` has no room.
        """
        light = False
        if keeps:  # without a refresh on the way, neither finished groups nor `learning_fields` matter
            light = state.stats.due[0] >= n
        copied = len(state.memory)
        if light:
            copied = state.choosing_bytes
        elif not copy_due(
            state.trial_pending, state.pending.queues, state.rules.ends, now + step * (n - 1), n
        ):
            return False
        memory, trial_memory = state.memory, state.trial_memory
        for j in range(copied):  # a slice would be copied twice
            trial_memory[j] = memory[j]
        for k in range(state.rules.founding, len(state.first_news)):
            state.trial_first_news[k] = state.first_news[k]
        target = Target(state.trial_stats, state.trial_first_news, state.trial_pending.queues, True, light)
        made = state.pending.counts[NEXT]
        for i in range(n):
            time = now + step * i
            pass_time(state, target, time)
            moment = moment_of(made + i, state.rules.seed, salt)
            choice, chance = choose_arm(state, target, time, moment, prepare(state, target, time, moment))
            state.arms[i], state.propensities[i] = choice, chance
            if choice <= LOST:
                return True
            if i < n - 1:
                record(state, target, time, made + i, choice, OF_ARM, chance)
        return True

    return Kernels(advance, observe, observe_many, extend, choose)
