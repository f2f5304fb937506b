"""Play the runs of a simulation in threads, by the fast loop or by the general one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, NamedTuple

import numpy as np

from accrual.core.arrays import Floats, Ints
from accrual.core.progress import Progress
from accrual.problems.problem import Problem


class Task(NamedTuple):
    """What `simulate` has to play."""

    problem: Problem
    packed: Any  # the problem, for kernels
    plans: Sequence[Any]  # one for each policy
    rounds: Ints  # the checkpoints
    horizon: int
    seed: int
    runs: range
    changes: Sequence[Any] = ()  # of the problem, for the fast loop


def play(
    task: Task, make_run: Callable[[Task, Sequence[Any], int], Any], workers: int, progress: Progress
) -> tuple[Floats, Ints]:
    """Play a task in `workers` threads; `make_run` makes a run of the task, of some of its plans.

    Returns
    -------
    regret : ndarray
        Policies x runs x checkpoints.
    pulls : ndarray
        Decisions of each arm, policies x runs x arms.
    """
    plans, runs = task.plans, task.runs
    regret = np.zeros((len(plans), len(runs), len(task.rounds)))
    pulls = np.zeros((len(plans), len(runs), len(task.problem.caps)), np.int64)
    stop = threading.Event()
    # With fewer runs than threads, threads share the policies of a run, and each draws the run's feed again.
    shares = min(len(plans), -(-workers // len(runs)))

    def play_share(row: int, share: int) -> None:
        picked = list(range(share, len(plans), shares))
        run = make_run(task, [plans[p] for p in picked], runs[row])
        for rounds in run.play():
            progress.advance(rounds * len(picked))
            if stop.is_set():
                return
        regret[picked, row], pulls[picked, row] = run.regret, run.pulls()

    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(play_share, row, share) for row in range(len(runs)) for share in range(shares)]
        try:
            _finish(futures)
        except BaseException:
            stop.set()
            for future in futures:
                future.cancel()
            raise
    return regret, pulls


def _finish(futures: Sequence[Future[None]]) -> None:
    """Wait for all futures. Short waits let Ctrl-C through, and a failure ends the wait at once."""
    pending = set(futures)
    while pending:
        done, pending = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
        for future in done:
            future.result()
