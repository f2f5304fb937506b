"""QPM-D: any policy on totals, fed one known total at a time (Joulani, György and Szepesvári, ICML 2013).

The base policy lives in a world without delay. It asks for an arm. If a total of that arm is in the arm's
queue, it learns that total and asks again; otherwise the arm is chosen until a total of it is known.
"""

from __future__ import annotations

import functools
import math
from collections import namedtuple
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np

from accrual.core.arrays import Floats
from accrual.core.errors import InputError
from accrual.core.jit import njit
from accrual.policies.base import Functions, Moment, Policy, no_refresh
from accrual.policies.baselines.simulated import SimulatedPolicy
from accrual.policies.catalog import as_policy

_make: Any = namedtuple  # the type checker takes no fields that are not written out


@functools.cache
def _extended(kind: Any, *more: str) -> Any:
    """Return the kind of tuple with more fields, which the base policy's functions read as their own."""
    return _make(f"Queued{kind.__name__}", (*kind._fields, *more), module=__name__)


@njit
def _index(params: Any, stats: Any, arm: int, moment: Moment) -> float:
    """1 for the arm that the base policy asks for, 0 for the others"""
    if stats.counts[arm, 0] - stats.counts[arm, 1] > stats.queue.shape[1]:
        return math.nan  # totals were overwritten; with one decision a round this cannot be
    return 1.0 if stats.asked[0] == arm else 0.0


@njit
def _finished(params: Any, stats: Any, arm: int, group: int, before: float, after: float) -> None:
    stats.queue[arm, stats.counts[arm, 0] % stats.queue.shape[1]] = after
    stats.counts[arm, 0] += 1


@functools.cache
def _feeding(base: Functions) -> Functions:
    """Return the functions of QPM-D around those of its base policy."""
    index, base_survey, closed = base.index, base.survey, base.closed

    @njit
    def survey(params: Any, stats: Any, moment: Moment) -> None:
        """Feed the base policy until it asks for an arm whose queue is empty."""
        arm = stats.asked[0]
        while stats.counts[arm, 0] > stats.counts[arm, 1]:
            closed(params, stats, arm, stats.queue[arm, stats.counts[arm, 1] % stats.queue.shape[1]])
            stats.counts[arm, 1] += 1
            stats.asked[1] += 1
            fed = stats.asked[1]
            now = Moment(fed + 1, math.log(fed), moment.seed, moment.run)
            base_survey(params, stats, now)
            best = -math.inf
            for k in range(len(params.cap)):
                value = index(params, stats, k, now)
                if value > best:
                    best, arm = value, k
        stats.asked[0] = arm

    return Functions(index=_index, survey=survey, finished=_finished)


class _OfBase:
    """Selects the functions of a `QPMD`: those around its base policy's."""

    def __get__(self, policy: QPMD | None, kind: type) -> Any:
        return self if policy is None else _feeding(policy.base.functions)


@dataclass(frozen=True)
class QPMD(SimulatedPolicy):
    """QPM-D around a policy that learns from totals, in simulations of one decision a round.

    Parameters
    ----------
    base : Policy
        A policy on totals, such as ``UCB1()`` or ``IMED()``.

    Examples
    --------
    >>> import accrual as ac
    >>> QPMD(ac.UCB1()).label
    'QPMD(UCB1)'
    """

    base: Policy

    functions: ClassVar[Functions] = cast(Functions, _OfBase())

    def __post_init__(self) -> None:
        base = as_policy(self.base)
        object.__setattr__(self, "base", base)
        if base.feedback != "totals" or base.contextual or base.functions.refresh is not no_refresh:
            raise InputError(f"the base of QPMD must learn from totals, as UCB1() does, not {base.label}")

    @property
    def label(self) -> str:
        return f"QPMD({self.base.label.split('(')[0]})"

    def params(self, caps: Floats, window: int) -> Any:
        own = self.base.params(caps, window)
        return _extended(own.__class__, "window")(*own, window)

    def stats(self, params: Any) -> Any:
        own, arms = self.base.stats(params), len(params.cap)
        return _extended(own.__class__, "queue", "counts", "asked")(
            *own,
            np.zeros((arms, params.window)),  # totals that the base policy has not learned
            np.zeros((arms, 2), np.int64),  # how many came, and how many of them it has learned
            np.zeros(2, np.int64),  # the arm that it asks for, and how many totals it has learned in all
        )
