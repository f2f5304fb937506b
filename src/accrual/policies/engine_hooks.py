"""What an engine may be told about a policy so that it is faster; no result depends on it.

The author of a policy needs nothing of this. Which parts of a function concern one arm alone cannot be seen
from its compiled code, so the policies that gain much say it here. On a GPU a team of threads plays such a
policy; a policy that says nothing is played by one thread, with the same numbers.

``cell_update(params, stats, arm, group, before, after)``, ``summed_fields``
    The part of `finished` that concerns the cell (arm, group) alone. It reads and writes no other cell, and
    returns what to add to the arm's `summed_fields`, which are names of fields of `stats`. A GPU's threads
    then share the groups that finish in a round.
``survey_steps``
    What `survey` does, as pairs (per arm, function). Where the first is True, ``function(params, stats,
    arm)`` is called for each arm, and reads and writes nothing of other arms; otherwise
    ``function(params, stats)`` is called once. A GPU's threads then share the arms of a survey.
``refresh_stage(params, stats)``
    With `survey_steps`: do the next part of a refresh, and return whether another part follows. Between two
    parts the first of the survey's steps is done for each arm. `refresh` does all parts.
``learning_fields``
    The last fields of `stats`, if `survey` and `index` read none of them, and `decided`, `closed`,
    `finished` and `amended` touch no others. Choices between two refreshes then do not depend on these
    fields, so the live side need not copy them to try a decision. What `survey` writes must be for `index`
    alone, and each survey must write all of it anew: a fold of a log leaves out all but the last one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from accrual.core.jit import njit

Function = Callable[..., Any]


@njit
def no_cell_update(
    params: Any, stats: Any, arm: int, group: int, before: float, after: float
) -> tuple[float]:
    """Return no change: for a policy that has no `summed_fields`."""
    return (0.0,)


@njit
def no_refresh_stage(params: Any, stats: Any) -> bool:
    """Do nothing: for a policy whose refresh is not divided into parts."""
    return False


class EngineHooks(NamedTuple):
    """What a policy tells the engines; the docstring of this module describes each."""

    cell_update: Function = no_cell_update
    summed_fields: tuple[str, ...] = ()
    survey_steps: tuple[tuple[bool, Function], ...] = ()
    refresh_stage: Function = no_refresh_stage
    learning_fields: tuple[str, ...] = ()
