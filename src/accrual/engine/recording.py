"""Play one run with one policy, and record every decision and every piece."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from accrual.core.arrays import Floats, Ints
from accrual.engine.fast_loop import Run, task_of
from accrual.policies.base import Policy
from accrual.problems.problem import Problem


class Recording(NamedTuple):
    """What happened in a run: row s - 1 is the decision of round s.

    ``pieces[s - 1, age]`` is what it pays in round s + age.
    """

    arms: Ints
    pieces: Floats
    stats: Any


def record(
    problem: Problem,
    policy: Policy,
    horizon: int,
    seed: int = 0,
    run: int = 0,
    spans: Callable[[int], int] = lambda longest: longest,
) -> Recording:
    """Play one run and record everything; memory grows with horizon x window.

    Parameters
    ----------
    spans : callable
        Returns how many rounds to play next, at most the number that it is called with. The recording
        does not depend on it.

    Examples
    --------
    >>> import accrual as ac
    >>> recording = record(ac.paper.setting1(), ac.UCB1(), horizon=50)
    >>> recording.arms[:10]
    array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    >>> recording.pieces.shape
    (50, 100)
    """
    none = np.zeros(0, np.int64)
    task = task_of(problem, [policy], none, horizon, seed, range(run, run + 1))
    played = Run(task, task.plans, run, detail=True)
    caps = np.array(problem.caps)
    arms: list[Ints] = []
    pieces: list[Floats] = []
    for span in played.spans(spans):
        chosen = span.arms[0].astype(np.int64)
        rows = np.arange(span.length) + problem.window
        totals = np.diff(span.feed.paid[rows, task.packed.of_arm[chosen]], axis=1) * caps[chosen, None]
        arms.append(chosen)
        pieces.append(_divide(totals, problem))
    return Recording(np.concatenate(arms), np.concatenate(pieces), played.chains[0].stats)


def _divide(totals: Floats, problem: Problem) -> Floats:
    """Divide each group's total into pieces, one for each age."""
    phi = problem.window // problem.groups
    pieces = np.zeros((len(totals), problem.groups, phi))
    if problem.division == "even":
        pieces[:] = totals[:, :, None] / phi
    else:
        pieces[:, :, 0] = totals
    return pieces.reshape(len(totals), problem.window)
