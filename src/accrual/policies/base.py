"""What a policy is: a few functions on scalars and small arrays, and a params tuple.

A policy's functions are compiled by `core.njit` and called, the same ones, by every engine and
by the live bandit. `index` is pure; the others write into `stats` and nowhere else:

``index(params, stats, arm, moment)``
    How good the arm looks now; the largest is chosen, the lowest arm among equals. It is an error if it
    is not a number.
``survey(params, stats, moment)``
    Called once before a round's indices, for what they need to know of all arms together.
``survey_steps``
    If given, what `survey` does, as pairs (whether for each arm, function). ``function(params, stats, arm)``
    of the first kind reads and writes nothing of other arms; ``function(params, stats)`` of the second is
    called once. With them a GPU's threads do a survey side by side.
``decided(params, stats, arm)``
    A decision of `arm` was made. ``stats.pulls[arm]`` already counts it.
``refresh(params, stats)``
    For work that is done seldom: called before a decision once ``stats.due[0]`` more have been
    made, which it then sets anew.
``refresh_stage(params, stats)``
    If given, with `survey_steps`: the next part of a refresh, which returns whether another is to follow
    after the first of the survey's steps has been done for each arm. `refresh` is all of that.
``closed(params, stats, arm, total)``
    A decision's window has closed with this total (feedback ``"totals"``).
``finished(params, stats, arm, group, before, after)``
    A decision has finished a group of the learner's own; `before` and `after` are what it had
    paid in all at the group's two edges (feedback ``"groups"``).
``cell_update(params, stats, arm, group, before, after)``
    If given, what of `finished` concerns the cell (arm, group) alone: it reads and writes no other,
    and returns what is then to be added to the arm's `summed_fields`, the names of as many fields of `stats`.
    With it a GPU's threads work on the groups that finish in a round side by side.
``amended(params, stats, arm, group, before, after, more_before, more_after)``
    A piece came out of order, for a decision that had finished this group with `before` and
    `after`; these are now `before` + `more_before` and `after` + `more_after` (feedback
    ``"groups"``; only the live side has pieces out of order).

`stats` is the policy's own named tuple of arrays. Four fields belong to the engine: ``pulls``
(decisions of each arm, always), ``observed`` (sum of the pieces that have arrived for each arm,
with feedback ``"pieces"``), ``due`` (counted down by every decision, with `refresh`) and, where the
functions are `numbered`, ``finishing`` (for each group the number, from 0 on, of the decision that
`finished`, `cell_update` or `amended` is called for). An array's first axis is the arms, or the
array is shared by all.

On the live side arms may retire. In the params that `survey` and `index` get, a retired arm's cap
is 0, so that it leads nothing; its index is not asked for.
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from accrual.core.arrays import Floats as Floats  # noqa: PLC0414  (policies may import it from here)
from accrual.core.arrays import Ints as Ints  # noqa: PLC0414
from accrual.core.errors import InputError, divides
from accrual.core.jit import njit

Feedback = Literal["totals", "pieces", "groups"]
Function = Callable[..., Any]

_ROUND_BITS = 32  # where `mark_lost` puts a round into a count; below is room for the decisions made since


class Moment(NamedTuple):
    """When an index is asked for."""

    round: int
    log: float  # ln(round - 1), 0 in the first round
    seed: int  # with `run`: the key of the policy's own draws
    run: int


@njit
def no_survey(params: Any, stats: Any, moment: Moment) -> None:
    """Do nothing: for a policy whose index looks at one arm alone."""


@njit
def no_decided(params: Any, stats: Any, arm: int) -> None:
    """Do nothing: for a policy that keeps nothing of a decision beyond the engine's count."""


@njit
def no_refresh(params: Any, stats: Any) -> None:
    """Do nothing: for a policy that has no work to do now and then."""


@njit
def no_refresh_stage(params: Any, stats: Any) -> bool:
    """Do nothing: for a policy whose refresh has no parts."""
    return False


@njit
def no_closed(params: Any, stats: Any, arm: int, total: float) -> None:
    """Do nothing: for a policy that learns from something else than totals."""


@njit
def no_finished(params: Any, stats: Any, arm: int, group: int, before: float, after: float) -> None:
    """Do nothing: for a policy that learns from something else than groups."""


@njit
def no_cell_update(
    params: Any, stats: Any, arm: int, group: int, before: float, after: float
) -> tuple[float]:
    """Return no change: for a policy that has no `summed_fields`."""
    return (0.0,)


@njit
def no_amended(
    params: Any, stats: Any, arm: int, group: int,
    before: float, after: float, more_before: float, more_after: float,
) -> None:  # fmt: skip
    """Do nothing: for a policy that learns from something else than groups."""


class Functions(NamedTuple):
    """The functions of one policy (see the module's text)."""

    index: Function
    survey: Function = no_survey
    decided: Function = no_decided
    closed: Function = no_closed
    finished: Function = no_finished
    amended: Function = no_amended
    refresh: Function = no_refresh
    cell_update: Function = no_cell_update
    summed_fields: tuple[str, ...] = ()
    survey_steps: tuple[tuple[bool, Function], ...] = ()
    refresh_stage: Function = no_refresh_stage
    numbered: bool = False


class Policy(ABC):
    """A policy's settings, checked, and how to make its params and statistics.

    Attributes
    ----------
    feedback : {"totals", "pieces", "groups"}
        What the policy learns from.
    functions : Functions
        The compiled functions.
    contextual : bool
        Whether the policy chooses by a context (see `accrual.policies.contexts`).
    kept : tuple of str
        The names of the last fields of `stats`, where `survey` and `index` read none of them and
        `decided`, `closed`, `finished` and `amended` touch nothing else. A choice between two refreshes
        then depends on none of them, so that trying something out copies none of them.
    takes_about : bool
        Whether `params` takes one more argument, `about`: what is known about each arm, a row of numbers.
    half_life : float or None
        After how many later decisions a decision counts half; None where all count alike.
    """

    feedback: ClassVar[Feedback]
    functions: ClassVar[Functions]
    contextual: ClassVar[bool] = False
    kept: ClassVar[tuple[str, ...]] = ()
    takes_about: ClassVar[bool] = False
    half_life: float | None = None

    @classmethod
    def example(cls, groups: int = 4) -> Policy:
        """Return an instance with usual settings: the published suite and the benchmarks run it.

        Parameters
        ----------
        groups : int
            For a policy that must be told its number of groups; it divides the window.
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
        """Statistics before the first decision, for arms with these params."""

    def grow(self, stats: Any, params: Any) -> Any:
        """Statistics for the arms of `params`, the first of which have had `stats` so far."""
        grown = self.stats(params)
        for new, old in zip(grown, stats, strict=True):
            new[: len(old)] = old
        return grown

    def terms(self, params: Any, stats: Any, arm: int, moment: Moment) -> dict[str, float]:
        """Return what the arm's index is made of, for people. `stats` are as `index` saw them."""
        return {}

    def edges(self, window: int) -> Ints:
        """Return the ages at which the learner's groups end (feedback ``"groups"``)."""
        return np.zeros(0, np.int64)


@njit
def mark_lost(stats: Any, arm: Any, round_: int) -> None:
    """Note that the arm's index was not a number in this round, by a count of decisions below 0."""
    if stats.pulls[arm] >= 0:
        stats.pulls[arm] = -(round_ << _ROUND_BITS)


def check_indices(label: str, pulls: Ints) -> None:
    """Raise an error if `mark_lost` was called for one of the arms, which are the last axis of `pulls`."""
    if pulls.min() < 0:
        arm = np.unravel_index(int(pulls.argmin()), pulls.shape)[-1]
        raise lost_index(label, int(arm), -int(pulls.min() >> _ROUND_BITS))


def lost_index(label: str, arm: int, round_: int) -> InputError:
    """Make the error for an index that is not a number."""
    return InputError(
        f"the index of {label} for arm {arm} is not a number in round {round_:,}; correct the policy"
    )


def as_policy(given: Any) -> Policy:
    """Return `given` if it is a policy, or raise an `InputError` that says what would be one.

    Examples
    --------
    >>> import accrual as ac
    >>> as_policy(ac.TPUCBFR)
    Traceback (most recent call last):
        ...
    accrual.core.errors.InputError: TPUCBFR is the class of a policy; make a policy of it: TPUCBFR(alpha=...)
    """
    if isinstance(given, Policy):
        return given
    if isinstance(given, type) and issubclass(given, Policy):
        takes = inspect.signature(given).parameters.values()
        needs = ", ".join(f"{one.name}=..." for one in takes if one.default is one.empty)
        name = given.__name__
        raise InputError(f"{name} is the class of a policy; make a policy of it: {name}({needs})")
    if isinstance(given, str) and given.isidentifier():
        raise InputError(f"{given!r} is text, not a policy; write it as a policy: ac.{given}()")
    raise InputError(f"{given!r} is not a policy; use for example ac.UCB1()")


def equal_edges(alpha: int, window: int) -> Ints:
    """Return the ages at which `alpha` groups of equal length end; an error if they do not fit the window."""
    return divides("alpha", alpha, window) * np.arange(1, alpha + 1, dtype=np.int64)


def positive(name: str, value: Any) -> float:
    """Return `value` as a float, or raise an `InputError` that names it if it is no positive number."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise InputError(f"{name} must be a positive number, not {value!r}")
    return number
