"""`Watcher`: what the verdict, the guardrails and the alarm have in common. Each watches finished decisions.

A ledger has a list of watchers. It keeps their arrays, shows them every finished decision, saves the arrays
in snapshots, and asks the watchers what they have found. It knows none of them by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from accrual.core.arrays import Floats, Ints
from accrual.core.jit import njit
from accrual.policies.base import Function

Flags = npt.NDArray[np.bool_]

NEVER = 2**62  # in place of the first decision that counts, if none is to count
_NOTHING_FOUND = np.zeros(0, np.int64)


class Comparison(NamedTuple):
    """The arms that are compared from one decision on: the first one, or the first with a new arm."""

    caps: Floats  # arms
    least: Floats  # arms: the least propensity; NaN for an arm that has retired
    founding: int  # how many arms there were at the start
    lowest: float  # the least total, in caps: 0, or -1 where totals may be negative
    first: int  # the id of the first decision that counts

    @property
    def number(self) -> int:
        """How many arms have been added so far."""
        return len(self.caps) - self.founding


class Finished(NamedTuple):
    """A decision whose arm's window is over."""

    id: int
    arm: int
    total: float
    propensity: float
    streams: Floats  # what has come of each stream other than the reward


class Pace(NamedTuple):
    """How fast decisions come."""

    pending: int  # made, and not closed
    per_time: float | None  # decisions in a round or a second; None while it is not known
    window: float


class Watcher(ABC):
    """Watches finished decisions. Its settings are its own; what it has seen is a named tuple of arrays."""

    name: ClassVar[str]
    """Of its arrays in a snapshot, and of what it says in the state of a bandit."""
    in_order: ClassVar[bool] = True
    """Whether it sees all decisions in the order of their ids, each once all earlier ones are finished.
    Otherwise it sees each decision at once. An arm's decisions then come in the order of their ids, and those
    with a window of their own, which would not, are left out."""
    see: ClassVar[Function]
    """``see(arrays, rules, decision)`` is compiled. It writes what a `Finished` decision says into the
    arrays; `rules` are the ledger's (`accrual.live.kernels.Rules`)."""

    @abstractmethod
    def start(self, comparison: Comparison) -> Any:
        """Return the arrays before the first decision."""

    @abstractmethod
    def with_arm(self, arrays: Any, comparison: Comparison) -> Any:
        """Return the arrays for the comparison that begins because an arm was added."""

    @abstractmethod
    def say(
        self,
        arrays: Any,
        playing: Sequence[int],
        name_of: Callable[[int], str],
        pace: Pace,
        said: Mapping[str, Any],
    ) -> Any:
        """Return what is known, as a plain record.

        Parameters
        ----------
        playing : sequence of int
            The arms in play.
        name_of : callable
            Returns an arm's name.
        said : mapping
            What the watchers before this one in the list say, by their names.
        """

    def found(self, arrays: Any) -> Ints:
        """Return an array that is not 0 where something was found about an arm; the last axis is the arms.

        What is found stays found. Each finding is logged once, as `log_line` says.
        """
        return _NOTHING_FOUND

    def log_line(self, arrays: Any, place: Sequence[int]) -> tuple[str, dict[str, Any]]:
        """Return the message and the fields of the log line about what was found at a place of `found`."""
        raise NotImplementedError

    def retiring(self, arrays: Any) -> Flags:
        """Return for each arm whether this watcher retires it."""
        return np.zeros(self.found(arrays).shape[-1], np.bool_)


@njit
def see_nothing(watched: Any, rules: Any, decision: Finished) -> None:
    """Do nothing with a finished decision."""


def see_all(places: Sequence[tuple[int, Function]]) -> Function:
    """Compile a function that shows a decision to several watchers, one after the other.

    Parameters
    ----------
    places : sequence of (int, callable)
        The place of each watcher's arrays in the tuple of all arrays, and its `see`.
    """
    if not places:
        return see_nothing
    *others, (place, see) = places
    before = see_all(others)

    @njit
    def one_more(watched: Any, rules: Any, decision: Finished) -> None:
        before(watched, rules, decision)
        see(watched[place], rules, decision)

    return one_more
