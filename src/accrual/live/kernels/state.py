"""What the ledger's kernels read and write: one tuple of arrays, and the constants they share."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accrual.core.jit import njit
from accrual.live.kernels.pending import Draft, Pending, Queues
from accrual.live.watch import Alarms, Evidence, Guards
from accrual.policies.floor import Shares

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

CHOOSE, OF_ARM = -1, 0.0  # no arm given; no window given
LOST = -2  # for arm 0, -3 for arm 1, ...: in place of a choice, as the index of that arm is not a number
OVER = 1.0 + 1e-9  # a total up to so many caps counts as the cap: the rest is rounding
RECENT = 1000


class Rules(NamedTuple):
    """What the kernels need to know beyond the policy's params."""

    edges: Floats  # the ages at which the policy's groups end; empty where it has none
    ends: Floats  # the ages at which something is due: the edges, or else the longest window alone
    windows: Floats  # arms
    playing: Flags  # arms
    seed: int
    founding: int  # arms that were there from the start; those beyond were added later
    caps: Floats  # arms
    floored: bool  # whether a coin is thrown after the policy's choice, and so propensities are known
    shares: Shares  # what the coin follows


class KernelState(NamedTuple):
    """All that the kernels read and write."""

    params: Any
    choosing: Any  # params for survey and index: retired arms have a cap of 0
    stats: Any
    pending: Pending
    rules: Rules
    arms: Ints  # of the decisions last made, or last tried
    propensities: Floats  # of the same decisions
    values: Floats  # arms: their indices when an arm was last chosen
    visits: Floats  # decisions x width: what the policy sees of whom the next decisions are for
    visits_from: Ints  # one number: the id of the decision that the first of these is for
    memory: npt.NDArray[np.uint8]  # the bytes of all arrays of `stats`
    choosing_bytes: int  # how many of them, from the start, a choice between two refreshes depends on
    first_news: (
        Floats  # arms: when their first decision finishes its first group; infinite before that decision
    )
    observed: Floats  # arms: what their decisions have paid, without late pieces
    above: Ints  # arms: how many of their decisions have paid more than the cap
    evidence: Evidence  # what closed decisions say of the differences between arms
    guards: Guards  # what they say of the guardrails
    alarms: Alarms  # whether they are like those before; of no arm where the policy chooses by contexts
    recent: Ints  # the arms of the last decisions: that of decision id is number id % RECENT
    trial_stats: Any  # a copy of `stats` for decisions that are only tried
    trial_memory: npt.NDArray[np.uint8]  # the bytes of all arrays of `trial_stats`
    trial_first_news: Floats  # a copy of `first_news` for decisions that are only tried
    draft: Draft  # copies of pending decisions, for the same purpose


class Book(NamedTuple):
    """What a decision is written into: the ledger's own arrays, or the copies that a trial uses."""

    stats: Any
    first_news: Floats
    queues: Queues
    trial: bool
    light: bool  # whether it lacks the statistics that the policy calls `kept`, and all that waits


@njit
def visit_of(state: KernelState, id_: int) -> int:
    """Return the place in `visits` of a decision that is being made or tried."""
    place: int = min(id_ - state.visits_from[0], len(state.visits) - 1)
    return place  # a plain policy has but one visit, of no width
