"""The kernels of a ledger: what each event does, and what would be chosen.

The simulator's loop (`accrual.engine.fast_loop`) and these call the same functions of a policy with the same
arguments; here events come one by one and in any order. A policy's function is called from one
place in each kernel, so that it is compiled into it rather than called with its many arrays.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from accrual.core.jit import kernel, njit
from accrual.live.kernels.choosing import Choosing, choosing, moment_of
from accrual.live.kernels.learning import Learning, learning
from accrual.live.kernels.pending import NEXT, close, copy_due, has_room
from accrual.live.kernels.state import CHOOSE, LOST, OF_ARM, Book, Flags, Floats, Ints, KernelState
from accrual.live.watch import KNOWN, NO_PROPENSITY, REWARD
from accrual.policies.base import Feedback, Function, Functions
from accrual.policies.contexts import with_contexts
from accrual.store.events import Events, Kind, event_column

# What an event of each kind holds, by its own name.
#
# The columns `value` and `age` of `Events` hold a decision's salt and window, and a new arm's cap and window,
# as well as a piece's value and age; and `arm` holds a piece's stream: `EVENT_COLUMNS` says which. Compiled
# code cannot look that up, so it calls these functions.


def _field(kind: Kind, name: str) -> Function:
    """Compile a function that returns a field of event number `i` of a stretch of a log."""
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


class Fold(NamedTuple):
    """The kernels of one policy. Each takes a held `KernelState` first."""

    advance: Function
    observe: Function
    observe_many: Function
    extend: Function
    choose: Function


class _Loops(NamedTuple):
    """What the kernels do, as functions of a `KernelState`."""

    decide: Function
    learn_all: Function
    replay: Function
    try_decisions: Function


def _loops(learns: Learning, chooses: Choosing, keeps: bool) -> _Loops:
    """Compile the loops over decisions, pieces and events around a policy's steps."""
    pass_time, learn = learns.pass_time, learns.learn
    prepare, choose_arm, record = chooses.prepare, chooses.choose_arm, chooses.record

    @njit
    def decide(state: KernelState, now: float, n: int, arm: int, window: float, salt: int) -> bool:
        book = Book(state.stats, state.first_news, state.pending.queues, False, False)
        pass_time(state, book, now)
        if not has_room(state.pending, n):
            return False
        for i in range(n):
            made = state.pending.counts[NEXT]
            moment = moment_of(made, state.rules.seed, salt)
            first = prepare(state, book, now, moment)
            choice, chance = arm, NO_PROPENSITY
            if arm == CHOOSE:
                choice, chance = choose_arm(state, book, now, moment, first)
            state.arms[i], state.propensities[i] = choice, chance
            if choice <= LOST:
                return True
            record(state, book, now, made, choice, window, chance)
        return True

    @njit
    def learn_all(state: KernelState, ids: Ints, values: Floats, ages: Floats, learned: Flags) -> None:
        for i in range(len(ids)):
            learned[i] = learn(state, ids[i], values[i], ages[i], REWARD)

    @njit
    def replay(state: KernelState, i: int, events: Events) -> int:
        book = Book(state.stats, state.first_news, state.pending.queues, False, False)
        while i < len(events.kind):
            kind, at, id_ = events.kind[i], events.at[i], events.decision[i]
            if kind > _CLOSE:
                break
            pass_time(state, book, at)
            if kind == _PIECE:
                learn(state, id_, events.value[i], events.age[i], int(piece_stream(events, i)))
            elif kind == _CLOSE:
                close(state.pending, state.rules.ends, id_)
            elif kind == _DECISION:
                if not has_room(state.pending, 1):
                    break
                made = state.pending.counts[NEXT]
                moment = moment_of(made, state.rules.seed, int(decision_salt(events, i)))
                prepare(state, book, at, moment)
                window = decision_window(events, i)
                chance = events.propensity[i]
                if events.seen[i] < state.evidence.counts[KNOWN]:  # the newest arm had no chance
                    chance = NO_PROPENSITY
                record(state, book, at, made, events.arm[i], window, chance)
            i += 1
        return i

    @njit
    def try_decisions(state: KernelState, now: float, step: float, n: int, salt: int) -> bool:
        light = False
        if keeps:  # without a refresh on the way, what finishes and what is kept makes no difference
            light = state.stats.due[0] >= n
        copied = len(state.memory)
        if light:
            copied = state.choosing_bytes
        elif not copy_due(state.draft, state.pending.queues, state.rules.ends, now + step * (n - 1), n):
            return False
        memory, trial_memory = state.memory, state.trial_memory
        for j in range(copied):  # a slice would be copied twice
            trial_memory[j] = memory[j]
        for k in range(state.rules.founding, len(state.first_news)):
            state.trial_first_news[k] = state.first_news[k]
        book = Book(state.trial_stats, state.trial_first_news, state.draft.queues, True, light)
        made = state.pending.counts[NEXT]
        for i in range(n):
            time = now + step * i
            pass_time(state, book, time)
            moment = moment_of(made + i, state.rules.seed, salt)
            choice, chance = choose_arm(state, book, time, moment, prepare(state, book, time, moment))
            state.arms[i], state.propensities[i] = choice, chance
            if choice <= LOST:
                return True
            if i < n - 1:
                record(state, book, time, made + i, choice, OF_ARM, chance)
        return True

    return _Loops(decide, learn_all, replay, try_decisions)


@functools.cache
def fold(functions: Functions, feedback: Feedback, contextual: bool, keeps: bool) -> Fold:
    """Compile the kernels for a policy's functions.

    Parameters
    ----------
    functions : Functions
    feedback : {"totals", "pieces", "groups"}
    contextual : bool
        Whether the functions take a context.
    keeps : bool
        Whether the policy names statistics that are `kept`.
    """
    taking = with_contexts(functions, contextual)
    learns = learning(taking, feedback, keeps)
    loops = _loops(learns, choosing(taking, keeps), keeps)
    decide, learn, learn_all = loops.decide, learns.learn, loops.learn_all
    replay, try_decisions = loops.replay, loops.try_decisions

    @kernel
    def advance(held: Any, now: float, n: int, arm: int, window: float, salt: int) -> bool:
        """Let time go on to `now`, then make `n` decisions of `arm`, or of the policy's choice.

        False where there is no room for them; none is made then. It ends early, with `LOST` or less among
        the arms, where an index is not a number.
        """
        return decide(held, now, n, arm, window, salt)

    @kernel
    def observe(held: Any, id_: int, value: float, age: float) -> bool:
        """Take in a piece; return whether it is learned from."""
        learned: bool = learn(held, id_, value, age, REWARD)
        return learned

    @kernel
    def observe_many(held: Any, ids: Ints, values: Floats, ages: Floats, learned: Flags) -> None:
        """Take in pieces in this order; `learned` says of each whether it is learned from."""
        learn_all(held, ids, values, ages, learned)

    @kernel
    def extend(held: Any, start: int, events: Events) -> int:
        """Fold events from number `start` on: up to one that this cannot do, whose number is returned.

        That is an arm's coming or going, or a decision for which there is no room.
        """
        return replay(held, start, events)

    @kernel
    def choose(held: Any, now: float, step: float, n: int, salt: int) -> bool:
        """Find the `n` arms that would be chosen from `now` on, a `step` of time from one to the next.

        It all happens to the trial's copies: afterwards they are as they were when the last arm was chosen.
        False where the draft has no room.
        """
        return try_decisions(held, now, step, n, salt)

    return Fold(advance, observe, observe_many, extend, choose)
