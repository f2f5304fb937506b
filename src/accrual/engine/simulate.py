"""`simulate`: every policy on the same draws, over all cores, with nothing left to chance."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np
import numpy.typing as npt

from accrual.contextual import ContextualProblem
from accrual.core.errors import InputError, unknown, whole
from accrual.core.random import ROUND_MOST, RUN_MOST, SEED_MOST
from accrual.core.version import VERSION
from accrual.engine import contextual
from accrual.engine.cpu import Chain, Marks, Plan
from accrual.engine.progress import Progress
from accrual.engine.result import Result
from accrual.environment.feed import Source
from accrual.environment.laws import Laws, pack
from accrual.policy.base import Policy
from accrual.problem import Problem

Policies = Sequence[Policy] | Mapping[str, Policy]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

DEVICES = ("cpu", "cuda")


def simulate(
    problem: Problem | ContextualProblem,
    policies: Policies,
    horizon: int,
    runs: int | range = 100,
    seed: int = 0,
    device: str = "cpu",
    checkpoints: int | Sequence[int] = 500,
    threads: int | None = None,
) -> Result:
    """Play `problem` with each policy, `runs` times over, and record the regret.

    All policies of one call see the same noise, and a draw depends on (seed, run, round) alone:
    the result is the same to the bit for any number of threads, any order of the policies, and
    any split of the runs over calls.

    Parameters
    ----------
    problem : Problem or ContextualProblem
    policies : sequence of Policy, or dict of label to Policy
        On a problem with contexts also those that choose by contexts.
    horizon : int
        Rounds in a run; at least one for each arm.
    runs : int or range
        How many runs, or which: ``range(50, 100)`` is the second half of a hundred.
    seed : int
        From 0 to 2**63 - 1.
    device : {"cpu", "cuda"}
        "cuda" plays all runs at once on one NVIDIA card (``pip install 'accrual[cuda]'``). The draws
        are the same; a card rounds some sums differently, so single runs may part in the end.
    checkpoints : int or sequence of int
        At how many rounds, evenly spaced, to record the regret, or at which (`log_rounds` makes
        a good list for a log axis). Memory grows with this, not with the horizon.
    threads : int, optional
        All cores unless given; not for a card.

    Returns
    -------
    Result

    Examples
    --------
    >>> import accrual as ac
    >>> result = ac.simulate(ac.paper.setting1(), [ac.UCB1(), ac.TPUCBFR(alpha=50)], horizon=2000, runs=4)
    >>> result.final_regret.shape
    (2, 4)
    """
    labelled = _labelled(policies)
    horizon = whole("horizon", horizon, 1, ROUND_MOST)
    if horizon < len(problem.caps):
        raise InputError(f"horizon must be at least the number of arms ({len(problem.caps)}), not {horizon}")
    numbers = _runs(runs)
    seed = whole("seed", seed, 0, SEED_MOST)
    if device not in DEVICES:
        raise unknown("device", device, DEVICES)
    rounds = _checkpoints(horizon, checkpoints)
    workers = whole("threads", os.cpu_count() if threads is None else threads, 1)

    regret: Floats
    pulls: Ints
    if isinstance(problem, ContextualProblem):
        if device == "cuda":
            raise InputError("a problem with contexts is played on the CPU; leave out device='cuda'")
        visited = [contextual.Plan(policy, problem) for policy in labelled.values()]
        regret, pulls = _play(
            lambda picked, key: contextual.Run([visited[p] for p in picked], rounds, key),
            (len(visited), numbers, len(rounds), len(problem.caps)), horizon, seed, workers,
        )  # fmt: skip
    else:
        _refuse_contextual(labelled)
        laws = pack(problem)
        plans = [Plan(policy, problem, laws) for policy in labelled.values()]
        if device == "cuda":
            from accrual.engine.cuda import play

            regret, pulls = play(problem, laws, plans, rounds, horizon, seed, numbers)
        else:
            regret, pulls = _play(
                lambda picked, key: _Run(problem, laws, [plans[p] for p in picked], rounds, key),
                (len(plans), numbers, len(rounds), len(problem.caps)), horizon, seed, workers,
            )  # fmt: skip
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


def _refuse_contextual(labelled: Mapping[str, Policy]) -> None:
    for label, policy in labelled.items():
        if policy.contextual:
            raise InputError(f"{label} chooses by contexts; play it on a ContextualProblem")


def _play(
    make_run: Callable[[Sequence[int], tuple[int, int]], Any],
    shape: tuple[int, range, int, int],
    horizon: int,
    seed: int,
    workers: int,
) -> tuple[Floats, Ints]:
    """Regret (policies x runs x checkpoints) and decisions of each arm (policies x runs x arms).

    `make_run` makes a run of some of the policies, by their numbers, for (seed, run); `shape` has the number
    of policies, the runs, and the numbers of checkpoints and of arms.
    """
    policies, runs, checkpoints, arms = shape
    regret = np.zeros((policies, len(runs), checkpoints))
    pulls = np.zeros((policies, len(runs), arms), np.int64)
    stop = threading.Event()
    # With fewer runs than threads, the policies of a run are shared out; each share draws anew.
    shares = min(policies, -(-workers // len(runs)))

    def task(row: int, share: int) -> None:
        picked = list(range(share, policies, shares))
        one = make_run(picked, (seed, runs[row]))
        for done in one.play(horizon):
            bar.advance(done * len(picked))
            if stop.is_set():
                return
        regret[picked, row], pulls[picked, row] = one.regret, one.pulls()

    with Progress(policies * len(runs) * horizon) as bar, ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(task, row, share) for row in range(len(runs)) for share in range(shares)]
        try:
            _finish(futures)
        except BaseException:
            stop.set()
            for future in futures:
                future.cancel()
            raise
    return regret, pulls


class _Run:
    """Several policies on one run's draws."""

    def __init__(
        self, problem: Problem, laws: Laws, plans: Sequence[Plan], rounds: Ints, key: tuple[int, int]
    ) -> None:
        detail = any(plan.policy.feedback == "groups" for plan in plans)
        self._source = Source(problem, laws, *key, detail)
        self._chains = [Chain(plan, self._source.span, key) for plan in plans]
        self._rounds = rounds
        self.regret = np.zeros((len(plans), len(rounds)))

    def play(self, horizon: int):  # type: ignore[no-untyped-def]
        """Play to the horizon, yielding after each span the number of its rounds."""
        for start in range(1, horizon + 1, self._source.span):
            length = min(self._source.span, horizon + 1 - start)
            feed = self._source.read(length)
            low, high = np.searchsorted(self._rounds, [start, start + length])
            for chain, regret in zip(self._chains, self.regret, strict=True):
                chain.advance(feed, start, length, Marks(self._rounds[low:high], regret[low:high]))
            yield length

    def pulls(self) -> Ints:
        return np.array([chain.stats.pulls for chain in self._chains])


def _finish(futures: Sequence[Future[None]]) -> None:
    """Wait for all; short waits let Ctrl-C through, and a failure ends the wait at once."""
    pending = set(futures)
    while pending:
        done, pending = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
        for future in done:
            future.result()


def _labelled(policies: Policies) -> dict[str, Policy]:
    if isinstance(policies, Mapping):
        pairs = list(policies.items())
    elif isinstance(policies, Sequence) and not isinstance(policies, str):
        pairs = [(getattr(policy, "label", ""), policy) for policy in policies]
    else:
        raise InputError(f"policies must be a list or dict of policies, not {policies!r}")
    if not pairs:
        raise InputError("at least one policy is needed")
    for label, policy in pairs:
        if not isinstance(policy, Policy):
            raise InputError(f"{policy!r} is not a policy; use for example ac.UCB1()")
        if sum(label == other for other, _ in pairs) > 1:
            raise InputError(f"two policies are labelled {label!r}; give a dict of label to policy")
    return dict(pairs)


def _runs(runs: int | range) -> range:
    if isinstance(runs, range):
        if runs.step != 1 or not 0 <= runs.start < runs.stop <= RUN_MOST:
            raise InputError(f"runs must be a range of step 1 within 0 .. {RUN_MOST}, not {runs}")
        return runs
    return range(whole("runs", runs, 1, RUN_MOST))


def log_rounds(horizon: int, count: int = 500) -> list[int]:
    """About `count` rounds from 1 to `horizon`, evenly spaced on a log axis.

    Examples
    --------
    >>> log_rounds(1000, 4)
    [1, 10, 100, 1000]
    """
    return [int(t) for t in np.unique(np.rint(np.geomspace(1, horizon, count)))]


def _checkpoints(horizon: int, checkpoints: Any) -> Ints:
    if isinstance(checkpoints, Sequence | np.ndarray) and not isinstance(checkpoints, str):
        rounds = sorted({whole("a checkpoint", t, 1, horizon) for t in checkpoints} | {horizon})
        return np.array(rounds, np.int64)
    count = min(whole("checkpoints", checkpoints, 1), horizon)
    return np.rint(np.linspace(0, horizon, count + 1)[1:]).astype(np.int64)
