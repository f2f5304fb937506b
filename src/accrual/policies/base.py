"""What a policy is: a params tuple, a statistics tuple, and a few functions on them.

The functions are compiled by `accrual.core.jit.njit`. Every engine and the live bandit call the same ones.
`index` changes nothing; the others write into `stats` and nowhere else:

``index(params, stats, arm, moment)``
    Return how good the arm seems now. The arm with the largest index is chosen; among equals, the first
    one. An index that is not a number is an error.
``survey(params, stats, moment)``
    Called once before the indices of a round, to prepare what they need to know of all arms.
``decided(params, stats, arm)``
    A decision of `arm` was made. ``stats.pulls[arm]`` already counts it.
``refresh(params, stats)``
    For work that is too slow for every decision: called before a decision, once ``stats.due[0]`` more
    decisions have been made. It sets ``stats.due[0]`` for the next time.
``closed(params, stats, arm, total)``
    A decision's window closed with this total (feedback ``"totals"``).
``finished(params, stats, arm, group, before, after)``
    A decision finished one of the learner's groups (feedback ``"groups"``). `before` and `after` are what the
    decision had paid in all at the start and at the end of the group.
``amended(params, stats, arm, group, before, after, more_before, more_after)``
    A piece came late for a decision that had finished this group with `before` and `after`. They are now
    `before` + `more_before` and `after` + `more_after` (feedback ``"groups"``; only the live side has this).

`stats` is the policy's own named tuple of arrays. The first axis of an array is the arms, unless all arms
share the array. The engine writes four fields: ``pulls`` (decisions of each arm, always), ``observed`` (the
sum of the pieces that have arrived for each arm, with feedback ``"pieces"``), ``due`` (counted down by every
decision, with `refresh`) and, if `stats` has it, ``finishing`` (for each group the number, from 0 on, of the
decision that `finished` or `amended` is called for).

On the live side arms may retire. In the params that `survey` and `index` get, a retired arm's cap is 0, so
that it does not lead; `index` is not called for it.
"""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np

from accrual.core.arrays import Floats as Floats  # noqa: PLC0414  (policies may import it from here)
from accrual.core.arrays import Ints as Ints  # noqa: PLC0414
from accrual.core.errors import InputError, divides, unknown
from accrual.core.jit import is_compiled, njit, python_function
from accrual.policies.engine_hooks import EngineHooks
from accrual.policies.engine_hooks import Function as Function  # noqa: PLC0414

Feedback = Literal["totals", "pieces", "groups"]

_ROUND_BITS = 32  # `mark_lost` stores the round above these bits of a count; later decisions count below


class Moment(NamedTuple):
    """The round for which `index` and `survey` are called, and the key of the policy's own draws."""

    round: int
    log: float  # ln(round - 1), 0 in the first round
    seed: int  # with `run`: the key of the policy's own draws
    run: int


@njit
def no_survey(params: Any, stats: Any, moment: Moment) -> None:
    """Do nothing: for a policy whose index depends on one arm alone."""


@njit
def no_decided(params: Any, stats: Any, arm: int) -> None:
    """Do nothing: for a policy that needs nothing about a decision beyond the engine's count."""


@njit
def no_refresh(params: Any, stats: Any) -> None:
    """Do nothing: for a policy without a refresh."""


@njit
def no_closed(params: Any, stats: Any, arm: int, total: float) -> None:
    """Do nothing: for a policy that does not learn from totals."""


@njit
def no_finished(params: Any, stats: Any, arm: int, group: int, before: float, after: float) -> None:
    """Do nothing: for a policy that does not learn from groups."""


@njit
def no_amended(
    params: Any, stats: Any, arm: int, group: int,
    before: float, after: float, more_before: float, more_after: float,
) -> None:  # fmt: skip
    """Do nothing: for a policy that does not learn from groups."""


class Functions(NamedTuple):
    """The functions of one policy, which the docstring of this module describes."""

    index: Function
    survey: Function = no_survey
    decided: Function = no_decided
    closed: Function = no_closed
    finished: Function = no_finished
    amended: Function = no_amended
    refresh: Function = no_refresh
    hooks: EngineHooks = EngineHooks()  # for speed alone


class Policy(ABC):
    """The settings of a policy, and how to make its params and statistics.

    Attributes
    ----------
    feedback : {"totals", "pieces", "groups"}
        What the policy learns from.
    functions : Functions
        The compiled functions.
    contextual : bool
        Whether the policy chooses by a context (see `accrual.policies.contexts`).
    takes_about : bool
        Whether `params` takes one more argument, `about`: a row of numbers for each arm, its features.
    half_life : float or None
        After how many later decisions a decision counts half; None where all count alike.
    """

    feedback: ClassVar[Feedback]
    functions: ClassVar[Functions]
    contextual: ClassVar[bool] = False
    takes_about: ClassVar[bool] = False
    half_life: float | None = None

    @classmethod
    def example(cls, groups: int = 4) -> Policy:
        """Return an instance with usual settings, for the published suite and the benchmarks.

        Parameters
        ----------
        groups : int
            For a policy that needs a number of groups; it divides the window.
        """
        return cls()

    @property
    def immediate(self) -> bool:
        """Whether a total is known in the round of its decision (feedback ``"totals"``)."""
        return False

    @property
    @abstractmethod
    def label(self) -> str:
        """A short name for tables and legends."""

    @abstractmethod
    def params(self, caps: Floats, window: int) -> Any:
        """Return the params tuple for arms with these caps and this window."""

    @abstractmethod
    def stats(self, params: Any) -> Any:
        """Return the statistics before the first decision, for arms with these params."""

    def grow(self, stats: Any, params: Any) -> Any:
        """Return statistics for the arms of `params`: the first have `stats`, the others are new."""
        grown = self.stats(params)
        for new, old in zip(grown, stats, strict=True):
            new[: len(old)] = old
        return grown

    def terms(self, params: Any, stats: Any, arm: int, moment: Moment) -> dict[str, float]:
        """Return the parts of the arm's index, named for people. `stats` are those that `index` was given."""
        return {}

    def edges(self, window: int) -> Ints:
        """Return the ages at which the learner's groups end (feedback ``"groups"``)."""
        return np.zeros(0, np.int64)


def is_numbered(stats: Any) -> bool:
    """Whether a policy with such statistics is told the number of the decision that finishes a group."""
    return "finishing" in stats._fields


@njit
def mark_lost(stats: Any, arm: Any, round_: int) -> None:
    """Record that the arm's index was not a number in this round, by a negative count of decisions."""
    if stats.pulls[arm] >= 0:
        stats.pulls[arm] = -(round_ << _ROUND_BITS)


def check_indices(label: str, pulls: Ints) -> None:
    """Raise an error if `mark_lost` was called for an arm; arms are the last axis of `pulls`."""
    if pulls.min() < 0:
        rounds = np.where(pulls < 0, -(pulls >> _ROUND_BITS), np.inf)  # a GPU plays on: the earliest counts
        arm = np.unravel_index(int(rounds.argmin()), pulls.shape)[-1]
        raise lost_index(label, int(arm), int(rounds.min()))


def lost_index(label: str, arm: int, round_: int) -> InputError:
    """Make the error for an index that is not a number."""
    return InputError(
        f"the index of {label} for arm {arm} is not a number in round {round_:,}; correct the policy"
    )


# What each function takes, in order; those of a policy that chooses by contexts take a context too.
_MOMENT, _ARM = ("params", "stats", "moment"), ("params", "stats", "arm")
_TAKES = {
    "index": (*_ARM, "moment"),
    "survey": _MOMENT,
    "decided": _ARM,
    "closed": (*_ARM, "total"),
    "finished": (*_ARM, "group", "before", "after"),
    "amended": (*_ARM, "group", "before", "after", "more_before", "more_after"),
    "refresh": ("params", "stats"),
}


def check_functions(policy: Policy) -> None:
    """Raise an `InputError` for what numba would answer with a page of its own words."""
    if policy.feedback not in get_args(Feedback):
        raise unknown(f"feedback of {policy.label}", policy.feedback, get_args(Feedback))
    for name, takes in _TAKES.items():
        function = getattr(policy.functions, name)
        if not is_compiled(function):
            raise InputError(
                f"the function {name} of {policy.label} is not compiled; "
                "decorate it with accrual.core.jit.njit"
            )
        count = _argument_count(function)
        if count != len(takes) and not policy.contextual:
            raise InputError(
                f"the function {name} of {policy.label} must take {len(takes)} arguments "
                f"({', '.join(takes)}), not {count}"
            )


@functools.cache
def _argument_count(function: Function) -> int:
    return len(inspect.signature(python_function(function)).parameters)


def equal_edges(alpha: int, window: int) -> Ints:
    """Return the ages at which `alpha` groups of equal length end, if `alpha` divides the window."""
    return divides("alpha", alpha, window) * np.arange(1, alpha + 1, dtype=np.int64)
