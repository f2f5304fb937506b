"""Trials: a policy with a floor on traffic, played many times, and when a verdict falls in each.

Nothing here is live, but the scores are those of `accrual.live.evidence`, taken by the same function.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from accrual.core.errors import InputError, whole
from accrual.core.jit import kernel
from accrual.engine.cpu import Chain, Checkpoints, PolicyPlan
from accrual.environment.feed import RunFeed
from accrual.environment.laws import PackedLaws, pack
from accrual.live.evidence import Evidence, find_beaten, no_evidence, score
from accrual.policy.base import Policy
from accrual.policy.floor import Shares, propensity, shares_of
from accrual.problem import Problem

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Trials(NamedTuple):
    """What came of a number of runs.

    Attributes
    ----------
    winner : ndarray of int
        The arm that was first named in each run; -1 where none was.
    round : ndarray of int
        The round in which it was named; 0 where none was.
    regret : ndarray
        What each run lost against the best arm.
    """

    winner: Ints
    round: Ints
    regret: Floats


def even_shares(arms: int, floor: float) -> Shares:
    """Return the shares of a floor that all arms have the same part of.

    Examples
    --------
    >>> even_shares(4, 0.2).least
    array([0.05, 0.05, 0.05, 0.05])
    """
    if not 0.0 < floor <= 1.0:
        raise InputError(f"a floor must be above 0 and at most 1, not {floor!r}")
    return shares_of(np.full(arms, floor / arms), np.ones(arms))


def trials(
    problem: Problem,
    policy: Policy,
    floor: float,
    horizon: int,
    runs: int = 100,
    seed: int = 0,
    error: float = 0.05,
    jobs: int | None = None,
) -> Trials:
    """Play `problem` with a floor on traffic, and look for a verdict in every round.

    Parameters
    ----------
    problem : Problem
    policy : Policy
    floor : float
        The share of decisions whose arm is drawn at random.
    horizon, runs, seed : int
    error : float
        The chance of a false winner that is accepted.
    jobs : int, optional
        Threads; all cores unless given.

    Examples
    --------
    >>> import accrual as ac
    >>> problem = ac.Problem([1.0] * 2, 10, 10, [ac.LumpLaw(0.2), ac.LumpLaw(0.6)])
    >>> trials(problem, ac.AgeIMED(), floor=0.2, horizon=1000, runs=4).winner
    array([1, 1, 1, 1])
    """
    runs, horizon = whole("runs", runs, 1), whole("horizon", horizon, 1)
    laws = pack(problem)
    plan = PolicyPlan(policy, problem, laws, even_shares(len(problem.caps), floor))
    found = Trials(np.full(runs, -1), np.zeros(runs, np.int64), np.zeros(runs))

    def play(run: int) -> None:
        found.winner[run], found.round[run], found.regret[run] = _one(
            problem, laws, plan, horizon, (seed, run), error
        )

    with ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        list(pool.map(play, range(runs)))
    return found


def _one(
    problem: Problem, laws: PackedLaws, plan: PolicyPlan, horizon: int, key: tuple[int, int], error: float
) -> tuple[int, int, float]:
    """Play one run: the first winner, its round, and what was lost."""
    caps, window = np.array(problem.caps), problem.window
    source = RunFeed(problem, laws, *key, plan.policy.feedback == "groups")
    chain = Chain(plan, source.span, key)
    shares = plan.problem.shares
    evidence = no_evidence(np.stack([np.zeros(len(caps)), caps], axis=1), shares.least, error, 0)
    regret = np.zeros(1)
    named = np.array([-1, 0])
    waiting = np.zeros((3, 0))
    for start in range(1, horizon + 1, source.span):
        length = min(source.span, horizon + 1 - start)
        feed = source.read(length)
        last = Checkpoints(np.array([start + length - 1]), regret)
        arms = chain.advance(feed, start, length, last).astype(np.int64)
        totals = feed.paid[window : window + length, :, -1][np.arange(length), laws.of_arm[arms]] * caps[arms]
        chances = np.zeros(length)
        _chances(shares, chain.picks().astype(np.int64), arms, chances)
        waiting = np.concatenate([waiting, np.stack([arms, totals, chances])], axis=1)
        closed = max(0, waiting.shape[1] - window)
        if named[0] < 0:
            _look(evidence, waiting[:, :closed], start + length - 1 - window - closed, named)
        waiting = waiting[:, closed:]
    return int(named[0]), int(named[1] and named[1] + window), float(regret[0])


@kernel
def _chances(shares: Shares, picks: Ints, arms: Ints, chances: Floats) -> None:
    for i in range(len(arms)):
        chances[i] = propensity(shares, picks[i], arms[i])


@kernel
def _look(evidence: Evidence, rows: Floats, before: int, named: Ints) -> None:
    """Score closed decisions, the first of them made after `before` others, and look after each."""
    for i in range(rows.shape[1]):
        score(evidence, int(rows[0, i]), rows[1, i], rows[2, i])
        find_beaten(evidence)
        for a in range(len(evidence.beaten)):
            wins = 0
            for b in range(len(evidence.beaten)):
                wins += int(evidence.beaten[a, b] != 0)
            if wins == len(evidence.beaten) - 1:
                named[0] = a
                named[1] = before + i + 1
                return
