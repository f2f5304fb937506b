"""What a comparison on a fitted problem says."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from accrual.core.errors import InputError
from accrual.engine.result import Result
from accrual.experiments.compare import AT_ONCE, BASELINE, WAITING, Setup
from accrual.fit.schema import Interval
from accrual.live.config import policy_text
from accrual.policy.base import Policy
from accrual.policy.catalog import parse


class Line(NamedTuple):
    """What is said of one policy; intervals of 95 % over the runs."""

    policy: str
    regret: Interval
    lost: Interval  # reward per 1000 decisions, against the best arm alone
    share: Interval  # of decisions for the best arm, in percent
    more: Interval  # lost per 1000 decisions than the baseline loses, run by run
    runs: int


def lines(setup: Setup, result: Result, baseline: str = BASELINE) -> list[Line]:
    """One line for each policy, the least regret first."""
    per_mille = 1000.0 / int(result.rounds[-1])
    final = result.final_regret
    base = final[result.labels.index(baseline)]
    shares = 100.0 * result.pulls[:, :, setup.best].sum(axis=2) / result.pulls.sum(axis=2)
    found = [
        Line(
            label,
            interval(final[p]),
            interval(per_mille * final[p]),
            interval(shares[p]),
            interval(per_mille * (final[p] - base)),
            len(base),
        )
        for p, label in enumerate(result.labels)
    ]
    return sorted(found, key=lambda line: line.regret.value)


def interval(values: npt.NDArray[np.float64]) -> Interval:
    """The mean over runs with its 95 % interval; only the mean for a single run.

    Examples
    --------
    >>> found = interval(np.array([1.0, 2.0, 3.0]))
    >>> found.value, round(found.low, 4), round(found.high, 4)
    (2.0, -0.4841, 4.4841)
    """
    mean, runs = float(values.mean()), len(values)
    if runs < 2:
        return Interval(mean, math.nan, math.nan)
    half = float(stdtrit(runs - 1, 0.975) * values.std(ddof=1) / math.sqrt(runs))
    return Interval(mean, mean - half, mean + half)


class Cost(NamedTuple):
    """One way to learn, and what it costs."""

    way: str
    policy: str
    lost: Interval  # per 1000 decisions
    more: Interval  # than seeing everything at once, run by run


def waiting(result: Result) -> list[Cost]:
    """What waiting costs: one rule, seeing everything at once, using pieces, or waiting for totals."""
    ways = {"at once": AT_ONCE.label, "pieces": BASELINE, "totals": WAITING.label}
    per_mille = 1000.0 / int(result.rounds[-1])
    final = {way: per_mille * result.final_regret[result.labels.index(label)] for way, label in ways.items()}
    floor = next(iter(final.values()))
    return [
        Cost(way, label, interval(final[way]), interval(final[way] - floor)) for way, label in ways.items()
    ]


@dataclass(frozen=True)
class Comparison:
    """Everything that the page, the table and the CSV say."""

    setup: Setup
    result: Result
    lines: list[Line]
    waiting: list[Cost]
    best: Line  # of those that can be played
    live: str  # how to play it
    command: str  # that gives these numbers


def comparison(setup: Setup, result: Result, policies: Mapping[str, Policy], command: str) -> Comparison:
    """What a comparison's rows say."""
    table = lines(setup, result)
    best = next(line for line in table if not policies[line.policy].immediate)
    return Comparison(
        setup, result, table, waiting(result), best, live(setup, policies[best.policy]), command
    )


def pieces_save(costs: Sequence[Cost]) -> float | None:
    """How much of what waiting costs is saved by using pieces, in percent.

    None where waiting costs nothing that could be told from chance.
    """
    _, pieces, totals = costs
    if not totals.more.low > 0:
        return None
    return 100 * (1 - pieces.more.value / totals.more.value)


def live(setup: Setup, policy: Policy) -> str:
    """The live bandit that plays as `policy` did here, as Python.

    A window of time stays one, others are in rounds. Caps are those of the fit, rounded up; whoever
    knows better puts their own there.
    """
    fitted = setup.fitted
    caps = {arm.name: _rounded_up(arm.cap.used) for arm in fitted.known if arm.cap is not None}
    days = fitted.window / 86400
    time = f"{days:g}d" if days.is_integer() else f"{fitted.window:g}s"
    window = time if fitted.unit == "seconds" else setup.problem.window
    alpha = getattr(policy, "alpha", None)  # a policy with groups of its own needs the window cut into them
    groups = f", groups={alpha}" if alpha is not None else ""
    return f"ac.Bandit(arms={caps!r}, window={window!r}{groups}, policy={_written(policy)!r})"


def _written(policy: Policy) -> str:
    """A policy as text that reads back; by its name alone where that is enough."""
    name = type(policy).__name__
    try:
        if parse(name) == policy:
            return name
    except InputError:
        pass  # it has settings that must be given
    return policy_text(policy) or repr(policy)


def _rounded_up(cap: float) -> float:
    """To three digits, never below.

    Examples
    --------
    >>> _rounded_up(239.74), _rounded_up(0.5), _rounded_up(1.0)
    (240.0, 0.5, 1.0)
    """
    unit = 10.0 ** (math.floor(math.log10(cap)) - 2)
    return float(f"{math.ceil(round(cap / unit, 6)) * unit:.6g}")
