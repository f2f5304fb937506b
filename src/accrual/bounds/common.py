"""What all bounds share: horizons, gaps, and groups that fit the window."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from accrual.core.arrays import Floats, as_numbers
from accrual.core.errors import InputError, divides, whole
from accrual.problems.problem import Problem

Curve = Any  # a float for one horizon, an array for an array of them
OfLog = Callable[[Any], Any]  # a bound as a function of ln T

ROUNDING = 1e-12  # relative differences below this are none


def behind(problem: Problem) -> tuple[Floats, Floats]:
    """Return the gaps and caps of the arms that are worse than the best arm by more than rounding."""
    worse = problem.gaps > ROUNDING * problem.means.max()
    return problem.gaps[worse], np.array(problem.caps)[worse]


def phi(problem: Problem, alpha: int) -> int:
    """Return the rounds in a group; refuse an `alpha` that does not divide the window."""
    return divides("alpha", whole("alpha", alpha, 1), problem.window)


def horizons(horizon: npt.ArrayLike) -> Floats:
    rounds = as_numbers(horizon)
    wrong = ~(np.isfinite(rounds) & (rounds >= 1))
    if wrong.any():
        shown = repr(horizon) if rounds.ndim == 0 else f"{rounds[wrong][0]:g}"
        raise InputError(f"horizon must be a number of at least 1, not {shown}")
    return rounds


def curve(horizon: npt.ArrayLike, of_log: OfLog) -> Curve:
    rounds = horizons(horizon)
    bound = of_log(np.log(rounds))
    return bound if rounds.ndim else float(bound)
