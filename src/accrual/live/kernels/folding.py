"""The kernel of a ledger: what each event does to the statistics, and which arms would be chosen.

The simulator's loop (`accrual.engine.fast_loop`) and this kernel call the same functions of a policy with
the same arguments. Here events come one by one and in any order. One kernel does all tasks of a ledger:
they share most of their code, which takes seconds to compile.
"""

from __future__ import annotations

import functools

from accrual.core.arrays import Ints
from accrual.core.jit import kernel, njit
from accrual.live.kernels.arrays import CHOOSE, LOST, OF_ARM, KernelState, Target
from accrual.live.kernels.choosing import choosing, moment_of
from accrual.live.kernels.learning import learning
from accrual.live.kernels.pending import NEXT, close, copy_due, has_room
from accrual.live.watch import NO_PROPENSITY, NO_STREAM
from accrual.policies.base import Feedback, Function, Functions
from accrual.policies.contexts import with_contexts
from accrual.store.events import Kind

_DECISION, _PIECE, _CLOSE = int(Kind.DECISION), int(Kind.PIECE), int(Kind.CLOSE)

DECIDE, TRY, LEARN, FOLD = range(4)  # the tasks of a kernel
NO_ROOM = -1  # what a kernel returns if it needs larger arrays for a task; then it has made no decision
EXAMPLES = (0, 0, 0, 0.0, 0.0, 0.0, 0)  # a value of each argument of a kernel after its state


@njit
def decision_follows(kinds: Ints, i: int, n: int) -> bool:
    """Return whether there is a decision from event `i` on, before `n` and before what no kernel can fold."""
    while i < n and _DECISION < kinds[i] <= _CLOSE:
        i += 1
    return i < n and kinds[i] == _DECISION


@functools.cache
def make_kernel(
    functions: Functions,
    feedback: Feedback,
    contextual: bool,
    numbered: bool,
    watching: tuple[tuple[Function, bool], ...],
) -> Function:
    """Make the kernel for a policy's functions. It is compiled when it is needed.

    Parameters
    ----------
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

    @njit
    def fold(state: KernelState, i: int, n: int) -> int:
        target = Target(state.stats, state.first_news, state.pending.queues, False, False)
        events = state.batch
        while i < n:
            kind, at, id_ = events.kind[i], events.at[i], events.decision[i]
            if kind > _CLOSE:
                break
            pass_time(state, target, at)
            if kind == _PIECE:
                learn(state, id_, events.value[i], events.age[i], events.stream[i])
            elif kind == _CLOSE:
                close(state.pending, state.rules.ends, id_)
            elif kind == _DECISION:
                if not has_room(state.pending, 1):
                    break
                made = state.pending.counts[NEXT]
                moment = moment_of(made, state.rules.seed, events.salt[i])
                prepare(state, target, at, moment, keeps and decision_follows(events.kind, i + 1, n))
                chance = events.propensity[i]
                if events.seen[i] < state.rules.known:  # the worker did not know the newest arm
                    chance = NO_PROPENSITY
                record(state, target, at, made, events.arm[i], events.window[i], chance)
            i += 1
        return i

    @kernel
    def run(
        state: KernelState, task: int, number: int, n: int, now: float, x: float, y: float, salt: int
    ) -> int:
        """Do one of four tasks.

        DECIDE: let time pass until `now`, then make `n` decisions of arm `number`, or of the policy's choice
        if that is CHOOSE, with a window of `x`.
        TRY: find the `n` arms that would be chosen from `now` on, a step of `x` from one to the next. Only
        the trial's copies change: afterwards they are as they were when the last arm was chosen.
        LEARN: add a piece of value `x` and age `y` to decision `number`; return 1 if the policy learns from
        it, else 0.
        FOLD: fold the events of `state.batch` from `number` on, before `n`; return the number of the first
        that a kernel cannot fold. Such an event adds or retires an arm, or is a decision without room.

        DECIDE and TRY write the arms into `state.arms` and return 0, or NO_ROOM. They stop early, with `LOST`
        or less among the arms, if an index is not a number.
        """
        if task == LEARN:
            return int(learn(state, number, x, y, NO_STREAM))
        if task == FOLD:
            return fold(state, number, n)
        trial = task == TRY
        target = Target(state.stats, state.first_news, state.pending.queues, False, False)
        if trial:
            light = False
            if keeps:  # without a refresh on the way, neither finished groups nor `learning_fields` matter
                light = state.stats.due[0] >= n
            copied = len(state.memory)
            if light:
                copied = state.choosing_bytes
            elif not copy_due(
                state.trial_pending, state.pending.queues, state.rules.ends, now + x * (n - 1), n
            ):
                return NO_ROOM
            memory, trial_memory = state.memory, state.trial_memory
            for j in range(copied):  # a slice would be copied twice
                trial_memory[j] = memory[j]
            for k in range(state.rules.founding, len(state.first_news)):
                state.trial_first_news[k] = state.first_news[k]
            queues = state.trial_pending.queues
            target = Target(state.trial_stats, state.trial_first_news, queues, True, light)
        pass_time(state, target, now)
        if not trial and not has_room(state.pending, n):
            return NO_ROOM
        made = state.pending.counts[NEXT]
        for i in range(n):
            time = now
            if trial and i > 0:
                time = now + x * i
                pass_time(state, target, time)
            moment = moment_of(made + i, state.rules.seed, salt)
            first = prepare(state, target, time, moment, False)
            choice, chance = number, NO_PROPENSITY
            if number == CHOOSE:
                choice, chance = choose_arm(state, target, time, moment, first)
            state.arms[i], state.propensities[i] = choice, chance
            if choice <= LOST:
                break
            if not trial:
                record(state, target, time, made + i, choice, x, chance)
            elif i < n - 1:
                record(state, target, time, made + i, choice, OF_ARM, chance)
        return 0

    return run
