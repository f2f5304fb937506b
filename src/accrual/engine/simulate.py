"""`simulate`: play a problem with several policies on the same draws, over all cores."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from accrual.core.arrays import Ints
from accrual.core.errors import InputError, unknown, whole
from accrual.core.progress import Progress
from accrual.core.random import ROUND_MOST, RUN_MOST, SEED_MOST
from accrual.core.version import VERSION
from accrual.engine import fast_loop, general_loop
from accrual.engine.general_feed import world_of
from accrual.engine.play import Task, play
from accrual.engine.result import Result
from accrual.policies.base import Policy
from accrual.policies.catalog import as_policy
from accrual.policies.contexts import params_of
from accrual.problems.problem import Problem

Policies = Sequence[Policy | str] | Mapping[str, Policy | str]

DEVICES = ("cpu", "cuda")


def simulate(  # noqa: PLR0913  (the one call that takes every choice of a study)
    problem: Problem,
    policies: Policies,
    horizon: int,
    runs: int | range = 100,
    seed: int = 0,
    device: str = "cpu",
    checkpoints: int | Sequence[int] = 500,
    threads: int | None = None,
    *,
    progress: bool | None = None,
) -> Result:
    """Play `problem` with each policy, `runs` times over, and record the regret.

    All policies of one call see the same noise, and a draw depends on (seed, run, round) alone:
    the result is the same to the bit for any number of threads, any order of the policies, and
    any split of the runs over calls.

    Parameters
    ----------
    problem : Problem
    policies : sequence, or dict by label
        Policies, or text such as "AgePrior" or "TPUCBFR(alpha=50)". Policies that choose by contexts need a
        problem with contexts.
    horizon : int
        Rounds in a run; at least one for each arm.
    runs : int or range
        How many runs, or which: ``range(50, 100)`` is the second half of a hundred.
    seed : int
        From 0 to 2**63 - 1.
    device : {"cpu", "cuda"}
        "cuda" plays all runs at once on one NVIDIA GPU (``pip install 'accrual[cuda]'``). The draws
        are the same; a GPU rounds some sums differently, so single runs may differ in the end.
        Problems with contexts and problems that change are played on the CPU only.
    checkpoints : int or sequence of int
        At how many rounds, evenly spaced, to record the regret, or at which (`log_rounds` makes
        a good list for a log axis). Memory grows with this, not with the horizon.
    threads : int, optional
        All cores unless given; of no effect on a GPU.
    progress : bool, optional
        Whether to show progress. Unless given, it is shown on a terminal and in a notebook.

    Returns
    -------
    Result

    Examples
    --------
    >>> import accrual as ac
    >>> result = ac.simulate(ac.paper.setting1(), ["UCB1", ac.TPUCBFR(alpha=50)], horizon=2000, runs=4)
    >>> result.final_regret.shape
    (2, 4)
    """
    _check_problem(problem, device)
    labelled = _labelled(policies)
    horizon = whole("horizon", horizon, 1, ROUND_MOST)
    if horizon < len(problem.caps):
        raise InputError(f"horizon must be at least the number of arms ({len(problem.caps)}), not {horizon}")
    numbers = _runs(runs)
    seed = whole("seed", seed, 0, SEED_MOST)
    rounds = _checkpoints(horizon, checkpoints)
    workers = whole("threads", os.cpu_count() if threads is None else threads, 1)

    for policy in labelled.values():
        check_plays(policy, problem)

    given = list(labelled.values())
    with Progress(len(labelled) * len(numbers) * horizon, show=progress) as shown:
        if problem.contexts is not None:
            task = Task(problem, world_of(problem), given, rounds, horizon, seed, numbers)
            regret, pulls = play(task, general_loop.GeneralRun, workers, shown)
        else:
            task = fast_loop.task_of(problem, given, rounds, horizon, seed, numbers)
            if device == "cuda":
                from accrual.engine.cuda import play as play_on_gpu

                regret, pulls = play_on_gpu(task, shown)
            else:
                regret, pulls = play(task, fast_loop.Run, workers, shown)
    return Result(
        labels=tuple(labelled),
        rounds=rounds,
        regret=regret,
        pulls=pulls,
        runs=numbers,
        meta={
            "seed": seed,
            "horizon": horizon,
            "arms": list(problem.arms),
            "window": problem.window,
            "version": VERSION,
        },
    )


def _labelled(policies: Policies) -> dict[str, Policy]:
    if isinstance(policies, Mapping):
        pairs = [(label, as_policy(policy)) for label, policy in policies.items()]
    elif isinstance(policies, Sequence) and not isinstance(policies, str):
        pairs = [(policy.label, policy) for policy in map(as_policy, policies)]
    else:
        raise InputError(f"policies must be a list or dict of policies, such as ['UCB1'], not {policies!r}")
    if not pairs:
        raise InputError("at least one policy is needed")
    for label, _ in pairs:
        if not isinstance(label, str):
            raise InputError(f"the label of a policy must be text, not {label!r}")
        if sum(label == other for other, _ in pairs) > 1:
            raise InputError(f"two policies are labelled {label!r}; give a dict of label to policy")
    return dict(pairs)


def _check_problem(problem: Any, device: str) -> None:
    """Raise an `InputError` if this is not a problem, or if the device cannot play it."""
    check_device(problem, device)
    if not isinstance(problem, Problem):
        shown = repr(problem) if isinstance(problem, str) else type(problem).__name__
        hint = "; its method to_problem makes one" if hasattr(problem, "to_problem") else ""
        raise InputError(f"problem must be a Problem, such as ac.paper.setting1(), not {shown}{hint}")


def check_device(problem: Any, device: str) -> None:
    """Raise an `InputError` if the device does not exist or cannot play `problem`."""
    if device not in DEVICES:
        raise unknown("device", device, DEVICES)
    if device == "cuda" and isinstance(problem, Problem):
        if problem.contexts is not None:
            raise InputError("a problem with contexts is played on the CPU, not on device 'cuda'")
        if problem.changes:
            raise InputError("a problem that changes is played on the CPU, not on device 'cuda'")


def check_plays(policy: Policy, problem: Problem) -> None:
    """Refuse a policy that cannot play a problem, before any work is done.

    Examples
    --------
    >>> import accrual as ac
    >>> check_plays(ac.TPUCBFR(alpha=7), ac.paper.setting1())
    Traceback (most recent call last):
        ...
    accrual.core.errors.InputError: alpha must divide the window: 7 does not divide 100 (nearest: 5 and 10)
    """
    if problem.contexts is not None:
        general_loop.check_feedback(policy, "with contexts")
    elif policy.contextual:
        raise InputError(f"{policy.label} chooses by contexts, and the problem has none")
    layout = None if problem.contexts is None else problem.contexts.layout
    params_of(policy, np.array(problem.caps), problem.window, layout)


def _runs(runs: int | range) -> range:
    if isinstance(runs, range):
        if runs.step != 1 or not 0 <= runs.start < runs.stop <= RUN_MOST:
            raise InputError(f"runs must be a range of step 1 within 0 .. {RUN_MOST}, not {runs}")
        return runs
    return range(whole("runs", runs, 1, RUN_MOST))


def log_rounds(horizon: int, count: int = 500) -> list[int]:
    """Return about `count` rounds from 1 to `horizon`, evenly spaced on a log axis.

    Examples
    --------
    >>> log_rounds(1000, 4)
    [1, 10, 100, 1000]
    """
    horizon, count = whole("horizon", horizon, 1, ROUND_MOST), whole("count", count, 1)
    return [int(t) for t in np.unique(np.rint(np.geomspace(1, horizon, count)))]


def _checkpoints(horizon: int, checkpoints: Any) -> Ints:
    if isinstance(checkpoints, Sequence | np.ndarray) and not isinstance(checkpoints, str):
        rounds = sorted({whole("a checkpoint", t, 1, horizon) for t in checkpoints} | {horizon})
        return np.array(rounds, np.int64)
    count = min(whole("checkpoints", checkpoints, 1), horizon)
    return np.rint(np.linspace(0, horizon, count + 1)[1:]).astype(np.int64)
