"""Plan a test: say how many decisions a verdict takes, and what the floor costs, before the first is made.

`plan` plays the bets of the verdict many times on totals of the kind that is expected, with the best arm as
the policy's pick throughout. A policy that is still learning picks other arms now and then. `trials` plays
real policies; ``make verdicts`` measures how far a plan is from them.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaincinv

from accrual.core.arrays import Floats, Ints
from accrual.core.errors import InputError, as_number, need, positive, whole
from accrual.core.files import replacing
from accrual.core.jit import kernel
from accrual.core.random import floor_coin, pair
from accrual.engine.fast_loop import PolicyPlan, Run
from accrual.engine.law_kernels import pack
from accrual.engine.play import Task
from accrual.live.watch import (
    BETS,
    WEIGHTS,
    Evidence,
    bound_of,
    comparison_error,
    find_beaten,
    no_evidence,
    score,
)
from accrual.logs.fitted import Fitted
from accrual.policies.base import Policy
from accrual.policies.floor import Shares, drawn, propensity, shares_of
from accrual.problems.laws import EmpiricalLaw
from accrual.problems.problem import Problem

_RUNS, _RUNS_ASIDE = 1000, 200  # tests with the given floor, and with others
_QUANTILES = 100_000
_FLOORS = (0.02, 0.05, 0.1, 0.2, 0.5)
_LONGEST = 1_000_000  # decisions of one test


class FloorLine(NamedTuple):
    """What a test costs with one floor."""

    floor: float
    half: float | None  # decisions by which half of the tests have a verdict; None: more than were tried
    most: float | None  # decisions by which four in five have
    cost: float  # what the floor loses in 1,000 decisions


class Plan(NamedTuple):
    """What to expect of a test, floor by floor."""

    lines: tuple[FloorLine, ...]
    """The first is that of the given floor."""
    window: float
    """Decisions that are made while the last one's window is open."""
    per_day: float | None
    difference: float
    arms: int

    @property
    def decisions(self) -> float | None:
        """The decisions by which four in five tests have a verdict, with those of the last window."""
        return None if self.lines[0].most is None else self.lines[0].most + self.window

    @property
    def days(self) -> float | None:
        """The days that `decisions` take; None where `per_day` is not known."""
        return None if self.decisions is None or not self.per_day else self.decisions / self.per_day

    def summary(self) -> str:
        """Say in a few sentences what to expect."""
        line = self.lines[0]
        if line.half is None or line.most is None or self.decisions is None:
            return (
                f"With a floor of {line.floor:g} a difference of {self.difference:g} takes more than "
                f"{_LONGEST:,} decisions: look for a larger difference, or take a larger floor."
            )
        days = f", {self.days:,.1f} days" if self.days is not None else ""
        return (
            f"With a floor of {line.floor:g}, a best arm that pays {self.difference:g} more than each of the "
            f"other {self.arms - 1} is named within {line.half + self.window:,.0f} decisions in half of all "
            f"tests and within {self.decisions:,.0f}{days} in four of five. "
            f"The floor costs {line.cost:,.1f} in 1,000 decisions."
        )

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw the decisions that a verdict takes, and the cost, over the floor; write it to `path`."""
        figure = need("matplotlib.figure", "plot").Figure(figsize=(7, 4), layout="constrained")
        axes = figure.subplots()
        lines = sorted(line for line in self.lines if line.most is not None and line.half is not None)
        floors = [line.floor for line in lines]
        axes.plot(floors, [line.most + self.window for line in lines if line.most], "o-",
                  label="four of five tests have a verdict by")  # fmt: skip
        axes.plot(floors, [line.half + self.window for line in lines if line.half], "o--", label="half have")
        axes.set(xscale="log", yscale="log", xlabel="floor", ylabel="decisions")
        axes.legend(frameon=False)
        cost = axes.twinx()
        cost.plot(floors, [line.cost for line in lines], color="0.6", linewidth=1)
        cost.set_ylabel("cost of the floor in 1,000 decisions (grey)")
        if path is not None:
            with replacing(path) as file:
                figure.savefig(file, format=str(path).rpartition(".")[2])
        return figure


def plan(
    source: float | Fitted,
    difference: float,
    floor: float = 0.1,
    arms: int = 2,
    cap: float = 1.0,
    sd: float | None = None,
    per_day: float | None = None,
    window: float = 0,
) -> Plan:
    """Say how many decisions a verdict takes, and what the floor costs.

    Parameters
    ----------
    source : float or Fitted
        What a decision of the other arms pays on average; or a fit, whose totals are then taken, together
        with its caps, pace and window.
    difference : float
        How much more the best arm pays.
    floor : float
        The share of decisions whose arm is drawn at random.
    arms : int
    cap : float
        The greatest total of a decision.
    sd : float, optional
        The standard deviation of totals, which then have a Beta distribution. Without it they
        are 0 or the cap, which takes longest.
    per_day : float, optional
        Decisions a day.
    window : float
        How many decisions are made while a window is open; as many more are made before the last one counts.

    Examples
    --------
    >>> print(plan(0.30, difference=0.50, floor=0.2, window=400).summary())  # doctest: +ELLIPSIS
    With a floor of 0.2, a best arm that pays 0.5 more than each of the other 1 is named within ...
    """
    arms = whole("arms", arms, 2)
    difference, cap = positive("the difference", difference), positive("cap", cap)
    if isinstance(source, Fitted):
        best, others, cap = _fitted(source, difference)
        window, per_day = float(source.rounds()), _pace(source, per_day)
    else:
        if not 0.0 <= as_number(source) < source + difference <= cap:
            raise InputError(f"{source!r} and {difference!r} more must be between 0 and the cap, {cap:g}")
        best, others = (_totals(mean, cap, sd) for mean in (source + difference, source))
    even_shares(arms, floor)
    floors = [floor, *(other for other in _FLOORS if other != floor)]
    tables = np.stack([best, others])
    gap = float(best.mean() - others.mean())
    lines = tuple(
        _line(tables, cap, arms, each, gap, _RUNS if each == floor else _RUNS_ASIDE) for each in floors
    )
    return Plan(lines, float(window), per_day, float(difference), arms)


def _totals(mean: float, cap: float, sd: float | None) -> Floats:
    """Return totals at even ranks: 0 or the cap, or of a Beta distribution."""
    ranks = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    share = mean / cap
    if sd is None:
        return np.where(ranks < share, cap, 0.0)
    variance = (as_number(sd) / cap) ** 2
    if not 0.0 < variance < share * (1.0 - share):
        most = cap * math.sqrt(share * (1.0 - share))
        raise InputError(f"the standard deviation must be above 0 and below {most:g}, not {sd!r}")
    size = share * (1.0 - share) / variance - 1.0
    return np.asarray(cap * betaincinv(share * size, (1.0 - share) * size, ranks))


def _fitted(fitted: Fitted, difference: float) -> tuple[Floats, Floats, float]:
    """Return the totals of a fit's best arm, those of arms that pay less by paying nothing more often, and
    the greatest cap."""
    problem = fitted.to_problem()
    best = int(np.argmax(problem.means))
    law = problem.arm_laws[best]
    if not isinstance(law, EmpiricalLaw):
        raise InputError("this fit has no totals to plan with")
    totals = np.sort(np.asarray(law.rows).sum(axis=1) * problem.caps[best])
    mean = float(totals.mean())
    if difference >= mean:
        raise InputError(f"the best arm pays {mean:g} on average, so another cannot pay {difference:g} less")
    ranks = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    table = np.quantile(totals, ranks, method="inverted_cdf")
    fewer = np.where(ranks < difference / mean, 0.0, 1.0)
    mixed = np.random.default_rng(0).permutation(fewer)  # which totals are left out is chance
    return table, table * mixed, max(problem.caps)


def _pace(fitted: Fitted, per_day: float | None) -> float | None:
    if per_day is not None or fitted.unit != "seconds":
        return per_day
    return fitted.rate * 86400.0


def _line(tables: Floats, cap: float, arms: int, floor: float, difference: float, runs: int) -> FloorLine:
    """Play tests with one floor until each has a verdict or is too long."""
    shares = even_shares(arms, floor)
    cost = 1000.0 * floor * (arms - 1) / arms * difference
    unit, bound = float(shares.least.min()) / cap, bound_of(arms, comparison_error(0))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        named = np.array(
            list(pool.map(lambda run: _test(shares, tables, (unit, bound, 0.5 * cap), run), range(runs)))
        )
    half, most = (
        float(np.quantile(np.where(named > 0, named, np.inf), q, method="higher")) for q in (0.5, 0.8)
    )
    return FloorLine(
        floor, half if math.isfinite(half) else None, most if math.isfinite(most) else None, cost
    )


@kernel
def _test(shares: Shares, tables: Floats, settings: tuple[float, float, float], run: int) -> int:
    """Play one test; return the decision after which the best arm, number 0, has beaten all others, or 0.

    Like `accrual.live.watch.evidence.score`, but with only the sums that this needs.
    """
    unit, bound, start = settings
    arms, bets, size = len(shares.least), len(BETS), tables.shape[1]
    logs = np.zeros((arms, bets))  # of the best arm for the bets that it pays more; of others, less
    paid = start
    left = arms - 1
    beaten = np.zeros(arms, np.bool_)
    for i in range(_LONGEST):
        arm, chance = drawn(shares, 0, floor_coin(0, run, i))
        u, _ = pair((0, run), i, 0, 0)
        total = tables[min(arm, 1), int(u * size)]
        s = (total - paid / (i + 1.0)) / chance
        paid += total
        if arm != 0:
            s = -s
        for j in range(bets):
            logs[arm, j] += math.log(1.0 + BETS[j] * unit * s)
        if arm == 0 and i % 16 != 0:
            continue
        for b in range(1, arms):
            if not beaten[b] and arm in (0, b):
                wealth = 0.0
                for j in range(bets):
                    wealth += WEIGHTS[j] * math.exp(logs[0, j] + logs[b, j])
                if wealth >= bound:
                    beaten[b] = True
                    left -= 1
        if left == 0:
            return i + 1
    return 0


def even_shares(arms: int, floor: float) -> Shares:
    """Return the shares of a floor that all arms have the same part of.

    Examples
    --------
    >>> even_shares(4, 0.2).least
    array([0.05, 0.05, 0.05, 0.05])
    """
    if not 0.0 < as_number(floor) <= 1.0:
        raise InputError(f"a floor must be above 0 and at most 1, not {floor!r}")
    return shares_of(np.full(arms, floor / arms), np.ones(arms))


class Trials(NamedTuple):
    """The outcome of a number of runs."""

    winner: Ints
    """The arm that was first named in each run; -1 where none was."""
    round: Ints
    """The round in which it was named; 0 where none was."""
    regret: Floats
    """What each run lost against the best arm."""


def trials(
    problem: Problem,
    policy: Policy,
    floor: float,
    horizon: int,
    runs: int = 100,
    seed: int = 0,
    error: float = comparison_error(0),
    jobs: int | None = None,
) -> Trials:
    """Play `problem` with a floor, and note the first verdict of each run.

    The scores are those of the live verdict, taken by the same function.

    Parameters
    ----------
    floor : float
        The share of decisions whose arm is drawn at random.
    error : float
        The chance of a false winner that is accepted: what the first comparison of a bandit may
        spend, unless given.
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
    task = Task(problem, laws, [plan], np.array([horizon]), horizon, seed, range(runs))
    found = Trials(np.full(runs, -1), np.zeros(runs, np.int64), np.zeros(runs))

    def play(run: int) -> None:
        found.winner[run], found.round[run], found.regret[run] = _one(task, run, error)

    with ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        list(pool.map(play, range(runs)))
    return found


def _one(task: Task, run: int, error: float) -> tuple[int, int, float]:
    """Play one run: the first winner, its round, and what was lost."""
    caps, window, of_arm = np.array(task.problem.caps), task.problem.window, task.packed.of_arm
    playing = Run(task, task.plans, run)
    shares = task.plans[0].problem.shares
    evidence = no_evidence(np.stack([np.zeros(len(caps)), caps], axis=1), shares.least, error, 0)
    named = np.array([-1, 0])
    waiting = np.zeros((3, 0))  # arm, total and chance of decisions whose window is open
    for start, length, feed, (chosen,) in playing.spans():
        arms = chosen.astype(np.int64)
        totals = feed.paid[window : window + length, :, -1][np.arange(length), of_arm[arms]] * caps[arms]
        chances = np.zeros(length)
        _chances(shares, playing.chains[0].picks().astype(np.int64), arms, chances)
        waiting = np.concatenate([waiting, np.stack([arms, totals, chances])], axis=1)
        closed = max(0, waiting.shape[1] - window)
        if named[0] < 0:
            _find_winner(evidence, waiting[:, :closed], start + length - 1 - window - closed, named)
        waiting = waiting[:, closed:]
    return int(named[0]), int(named[1] and named[1] + window), float(playing.regret[0, 0])


@kernel
def _chances(shares: Shares, picks: Ints, arms: Ints, chances: Floats) -> None:
    for i in range(len(arms)):
        chances[i] = propensity(shares, picks[i], arms[i])


@kernel
def _find_winner(evidence: Evidence, rows: Floats, before: int, named: Ints) -> None:
    """Score closed decisions, the first of them made after `before` others, until one arm has beaten all."""
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
