"""What the kernels of a ledger read and write: one tuple of arrays, and the constants that they share."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accrual.core.arrays import Floats, Ints
from accrual.core.jit import njit
from accrual.live.kernels.pending import Pending, Queues, TrialPending
from accrual.live.watch import Flags
from accrual.policies.floor import Shares
from accrual.store.events import Events

CHOOSE, OF_ARM = -1, 0.0  # no arm is given; no window is given
LOST = -2  # in place of a choice if the index of arm 0 is not a number; -3 for arm 1, and so on
OVER = 1.0 + 1e-9  # a total of up to this many caps is within the cap: the rest is rounding
BATCH = 1024  # events that a kernel folds at a time, at most
RECENT = 1000  # decisions over which an arm's recent share is counted


class Rules(NamedTuple):
    """What the kernels need to know beyond the policy's params."""

    edges: Floats  # the ages at which the policy's groups end; empty if it has no groups
    ends: Floats  # the ages at which something is due: the edges, or the longest window if there are none
    windows: Floats  # arms
    playing: Flags  # arms
    seed: int
    founding: int  # arms that were there from the start; those beyond were added later
    caps: Floats  # arms
    known: int  # the position in the log that a worker must have read to know all arms
    floored: bool  # whether a coin is thrown after the policy's choice, so that propensities are known
    shares: Shares  # the probabilities that the coin follows


class KernelState(NamedTuple):
    """All that the kernels read and write."""

    params: Any
    choosing: Any  # the params for `survey` and `index`: there retired arms have a cap of 0
    stats: Any
    pending: Pending
    rules: Rules
    arms: Ints  # the arms of the decisions last made, or last tried
    propensities: Floats  # of the same decisions
    values: Floats  # arms: their indices when an arm was last chosen
    contexts: Floats  # decisions x width: the encoded contexts of the next decisions
    contexts_from: Ints  # one number: the id of the decision to which the first context belongs
    memory: npt.NDArray[np.uint8]  # the bytes of all arrays of `stats`
    choosing_bytes: int  # how many of them, from the start, a choice between two refreshes depends on
    first_news: Floats  # arms: when the first decision finishes its first group; infinite before it
    observed: Floats  # arms: what their decisions have paid, without late pieces
    above: Ints  # arms: how many of their decisions have paid more than the cap
    watched: tuple[Any, ...]  # for each watcher, its arrays
    recent: Ints  # the arms of the last decisions: the arm of decision `id` is at id % RECENT
    batch: Events  # room for events that are folded next
    trial_stats: Any  # a copy of `stats` for decisions that are only tried
    trial_memory: npt.NDArray[np.uint8]  # the bytes of all arrays of `trial_stats`
    trial_first_news: Floats  # a copy of `first_news` for decisions that are only tried
    trial_pending: TrialPending  # copies of pending decisions, for decisions that are only tried


class Target(NamedTuple):
    """What a decision is written into: the ledger's own arrays, or the copies that a trial uses."""

    stats: Any
    first_news: Floats
    queues: Queues
    trial: bool
    light: bool  # whether the statistics that the policy calls `kept`, and the queues, are left out


@njit
def context_row(state: KernelState, id_: int) -> int:
    """Return the place in `contexts` of a decision that is being made or tried."""
    place: int = min(id_ - state.contexts_from[0], len(state.contexts) - 1)
    return place  # a policy without contexts has one row of width 0
