"""Compare policies on what a log has paid, and say what was found: in words, in tables, as a live bandit."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np
import numpy.typing as npt

from accrual.core.arrays import Floats
from accrual.core.durations import exact_duration, parse_duration
from accrual.core.errors import InputError, need
from accrual.core.interval import Interval
from accrual.core.number_text import figure, notebook_html
from accrual.engine.result import Result
from accrual.evaluate.compare.arm_differences import RESAMPLES
from accrual.evaluate.compare.setup import (
    AT_ONCE,
    BASELINE,
    WAITING,
    ComparisonSetup,
    comparison_cells,
    comparison_policies,
    horizon_notes,
    runs_of_draw,
    set_up,
    usual_horizon,
)
from accrual.evaluate.intervals import BoundedLaw, ratio_interval, t_factor
from accrual.logs.fit import fit_log
from accrual.logs.fitted import Arm, Fitted, with_reading
from accrual.logs.open_log import opened, refuse_options
from accrual.logs.read import NOBODY, ReadingOptions
from accrual.policies.base import Policy
from accrual.policies.catalog import parse, policy_text
from accrual.runs.cells import gather_results
from accrual.runs.runner import Local, run_cells

RANGE = "range"  # what the interval of a loss is called
HELD = "78 to 100 %"  # by benchmarks/compare_coverage.py --only losses, from case to case
RANGES = (
    f"Ranges of losses aim at 95 %; on simulated logs they held the true loss in {HELD} (docs/compare.md)."
)
_ANY, _POSITIVE, _PERCENT = (-math.inf, math.inf), (0.0, math.inf), (0.0, 100.0)  # where figures can lie
_ARM_DRAWS = 2000  # of the arms' means, for the table of arms
_ARMS_WRITTEN = 20
_FLOOR = 0.05  # of the live bandit that is advised
_WIDEST = 1.0  # of the interval of a share that is worth printing


def compare(  # noqa: PLR0913, PLR0917  (how a log is fitted, and what is played)
    source: Any,
    policies: Sequence[str | Policy] = (),
    runs: int = 100,
    horizon: int | None = None,
    seed: int = 0,
    rate: float | None = None,
    columns: Mapping[str, str] | None = None,
    window: float | str | None = None,
    groups: int | None = None,
    cap: float | Mapping[str, float] | None = None,
    **options: Unpack[ReadingOptions],
) -> Comparison:
    """Simulate policies on decisions that pay what logged ones did, when they did.

    Parameters
    ----------
    source : Fitted, path, data frame, pair of them, or Log
        What `accrual.fit` returned, the ``problem.json`` that keeps it, or a log: one table, a pair of
        decisions and pieces, or what `accrual.open_log` returned.
    policies : sequence of str or Policy
        AgePrior, AgeIMED, AgeTS, TPUCBFRG with the fitted spread and DelayedUCB1 unless given. AgePrior, a
        bandit's default, is always there.
    runs : int
        Every two share means of the arms, drawn from what the log leaves possible.
    horizon : int, optional
        Decisions in a run; ten windows and at least 10,000 unless given.
    seed : int
    rate : float, optional
        Decisions per second, or per the log's own unit of time; the log's unless given.
    columns : mapping, optional
        Role to column name, as for `accrual.fit`.
    window, groups, cap : optional
        How a log is fitted: see `accrual.fit`.
    **options
        How a log is read: see `accrual.open_log`.

    Returns
    -------
    Comparison
        Its `summary` says in words what was found.

    Examples
    --------
    >>> import pandas as pd
    >>> decisions = pd.DataFrame({"id": range(600), "arm": ["a", "b"] * 300, "at": range(600)})
    >>> pieces = pd.DataFrame({"decision": range(600), "value": [1.0, 0.0, 1.0, 2.0] * 150, "age": 3})
    >>> found = compare((decisions, pieces), ["DelayedUCB1"], runs=8, horizon=500)
    >>> found.setup.possible.signal.found
    False
    >>> list(found.table().index)
    ['AgePrior', 'DelayedUCB1']
    """
    fitting = {"window": window, "groups": groups, "cap": cap}
    setup = set_up(_fitted(source, columns, fitting, options), rate, seed)
    compared = comparison_policies(setup, policies)
    cells = comparison_cells(
        setup, compared, usual_horizon(setup) if horizon is None else horizon, runs, seed
    )
    with tempfile.TemporaryDirectory(prefix="accrual-") as folder:
        run_cells(cells, Path(folder), Local())
        result = gather_results(cells, Path(folder))
    return make_comparison(setup, result, compared)


def _fitted(
    source: Any, columns: Mapping[str, str] | None, fitting: Mapping[str, Any], options: ReadingOptions
) -> Fitted:
    if options.get("context"):
        raise InputError("accrual.compare_by_context compares policies by contexts: leave out context")
    kept = isinstance(source, str | os.PathLike) and str(source).endswith(".json")
    if isinstance(source, Fitted) or kept:
        given = {name: value for name, value in fitting.items() if value is not None}
        refuse_options("the log is fitted already", columns, {**options, **given})
        return source if isinstance(source, Fitted) else Fitted.load(source)
    with opened(source, columns, **options) as log:
        return fit_log(log, **fitting)


@dataclass(frozen=True)
class Comparison:
    """What `accrual.compare` found."""

    setup: ComparisonSetup
    """What was simulated."""
    result: Result
    """Regret of every policy and run."""
    lines: list[PolicyLine]
    """One for each policy, the least regret first."""
    arms: list[ArmLine]
    """One for each arm, the best first."""
    waiting: Waiting
    best: PolicyLine
    """The best of the policies that can be played."""
    rivals: tuple[str, ...]
    """Policies that may lose as little: the difference in what is lost, run by run, may be 0."""
    advised: str
    """The policy to play: a bandit's default where it may lose as little as the best, otherwise the best."""
    live: str
    """Python for a live bandit that plays it; empty where there are not two arms to play."""
    command: str
    """The command that gives these numbers; empty where Python was used."""

    def summary(self) -> str:
        """Say in words what was found, a line each, with what is odd about the log and how it was read."""
        return "\n".join(with_reading(self.setup.fitted, conclusions(self)))

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict for each policy: what it loses, with the ends of the ranges."""
        return [
            {"policy": line.policy, "runs": line.runs}
            | {
                f"{name}{end}": getattr(getattr(line, name), part)
                for name in ("regret", "lost", "share", "more")
                for end, part in (("", "value"), ("_low", "low"), ("_high", "high"))
            }
            for line in self.lines
        ]

    def table(self) -> Any:
        """Return what each policy loses as a pandas DataFrame, the least first."""
        return need("pandas", "frames").DataFrame(self.rows()).set_index("policy")

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw regret against decisions, and return matplotlib's Axes."""
        return self.result.plot(path)

    def __repr__(self) -> str:
        return (
            f"Comparison({len(self.lines)} policies on {self.setup.fitted}; least lost: {self.best.policy})"
        )

    def _repr_html_(self) -> str:
        rows = [
            [line.policy, figure(line.lost.value), line.lost.between(), f"{line.share.value:.1f}"]
            for line in self.lines
        ]
        head = ["policy", "lost per 1000", "range", "best arm, %"]
        return notebook_html(self.summary().splitlines(), head, rows)


def make_comparison(
    setup: ComparisonSetup,
    result: Result,
    policies: Mapping[str, Policy],
    command: str = "",
    device: str = "cpu",
    kept: str = "",
) -> Comparison:
    """Draw the conclusions of a comparison from its regrets; `kept` is the file that has the fit, if any."""
    runs = result.final_regret.shape[1]
    play = Play(runs_of_draw(runs, device), setup.possible.posterior.alike)
    drawn = setup.possible.drawn_means(-(-runs // play.each))
    best = drawn >= drawn.max(axis=1, keepdims=True) * (1 - 1e-9)
    table = lines(result, play, best)
    first = next(line for line in table if not policies[line.policy].immediate)
    least = result.final_regret[result.labels.index(first.policy)]
    rivals = tuple(
        line.policy
        for line in table
        if line.policy != first.policy and not policies[line.policy].immediate
        and not interval(result.final_regret[result.labels.index(line.policy)] - least, play).low > 0.0
    )  # fmt: skip
    advised = BASELINE if BASELINE in rivals else first.policy
    return Comparison(
        setup=setup,
        result=result,
        lines=table,
        arms=arm_lines(setup),
        waiting=waiting(result, play),
        best=first,
        rivals=rivals,
        advised=advised,
        live=live(setup, policies[advised], kept),
        command=command,
    )


class PolicyLine(NamedTuple):
    """One policy of a comparison.

    Intervals carry what the log does not know of the arms' means, and the simulation's chance. They aim at
    95 %; docs/compare.md says how often they hold.
    """

    policy: str
    regret: Interval
    lost: Interval  # reward per 1000 decisions, against the best arm alone
    share: Interval  # of decisions for the best arm, in percent
    more: Interval  # lost per 1000 decisions than the baseline loses, run by run
    runs: int


def lines(
    result: Result, play: Play, best: npt.NDArray[np.bool_], baseline: str = BASELINE
) -> list[PolicyLine]:
    """Return one line for each policy that was compared, the least regret first.

    Parameters
    ----------
    best : ndarray
        draws x arms: which arms were best.
    """
    per_mille = 1000.0 / int(result.rounds[-1])
    final = result.final_regret
    base = final[result.labels.index(baseline)]
    mine = best[np.arange(final.shape[1]) // play.each]
    shares = 100.0 * (result.pulls * mine[None]).sum(axis=2) / result.pulls.sum(axis=2)
    unsorted = [
        PolicyLine(
            label,
            interval(final[p], play, _POSITIVE),
            interval(per_mille * final[p], play, _POSITIVE),
            interval(shares[p], play, _PERCENT, if_alike=100.0),
            interval(per_mille * (final[p] - base), play),
            len(base),
        )
        for p, label in enumerate(result.labels)
        if label not in (WAITING, AT_ONCE)
    ]
    return sorted(unsorted, key=lambda line: line.regret.value)


class Play(NamedTuple):
    """How runs were played: `each` share means of the arms that differ; with probability `alike` none do."""

    each: int
    alike: float

    def averages(self, values: Floats) -> Floats:
        """Average over the runs that share the arms' means."""
        return np.array([values[i : i + self.each].mean() for i in range(0, len(values), self.each)])


def interval(
    values: Floats, play: Play, within: tuple[float, float] = _ANY, if_alike: float = 0.0
) -> Interval:
    """Estimate a figure for the arms' true means from its values in the runs, with a range that aims at 95 %.

    How far draws of the arms' means differ from each other, beyond what chance makes runs of one draw
    differ, is what the log leaves open of the figure; to that is added the simulation's own error. If arms
    are all alike, which has a probability, the figure is `if_alike`. A single draw says nothing about either.

    Examples
    --------
    >>> found = interval(np.array([1.0, 1.2, 2.0, 2.2, 3.0, 3.2]), Play(each=2, alike=0.0))
    >>> round(found.value, 2), round(found.low, 2), round(found.high, 2)
    (2.1, -2.85, 7.05)
    """
    alike = play.alike
    mean = float(values.mean())
    value = (1.0 - alike) * mean + alike * if_alike
    averages = play.averages(values)
    if len(averages) < 2:
        return Interval(value, math.nan, math.nan)
    between = float(averages.var(ddof=1))
    draws = [values[i : i + play.each] for i in range(0, len(values), play.each)]
    chance = float(np.mean([one.var(ddof=1) / len(one) if len(one) > 1 else 0.0 for one in draws]))
    # Few draws tell badly how much of their difference is chance: a quarter at least is the log's.
    variance = max(between - chance, 0.25 * between) + between / len(averages)
    law = BoundedLaw.of(mean, math.sqrt(variance) * t_factor(len(averages) - 1), *within)
    below = (1.0 - alike) * law.below(if_alike)
    low, high = (_mixed(law, level, alike, below, if_alike) for level in (0.025, 0.975))
    return Interval(value, min(low, value), max(high, value))


def _mixed(law: BoundedLaw, level: float, alike: float, below: float, if_alike: float) -> float:
    """Return a quantile of a law that is `if_alike` with probability `alike`; `below` lies below it."""
    if level < below:
        return law.quantile(level / (1.0 - alike))
    if level <= below + alike:
        return if_alike
    return law.quantile((level - alike) / (1.0 - alike))


class Cost(NamedTuple):
    """One way to learn, and what it costs."""

    way: str
    policy: str
    lost: Interval  # per 1000 decisions
    more: Interval  # than seeing everything at once, run by run


class Waiting(NamedTuple):
    """What waiting costs one learner that gets rewards in three ways."""

    costs: tuple[Cost, ...]  # every total at once, pieces as they come, totals when their window has closed
    # How much of what waiting for totals costs is saved by using pieces, in percent, at most 100; None where
    # it cannot be told from chance.
    saved: Interval | None


def waiting(result: Result, play: Play) -> Waiting:
    """Estimate what waiting costs the baseline's learner."""
    ways = {"at once": AT_ONCE, "pieces": BASELINE, "totals": WAITING}
    per_mille = 1000.0 / int(result.rounds[-1])
    lost = {way: per_mille * result.final_regret[result.labels.index(label)] for way, label in ways.items()}
    costs = tuple(
        Cost(way, label, interval(lost[way], play, _POSITIVE), interval(lost[way] - lost["at once"], play))
        for way, label in ways.items()
    )
    pieces, totals = (play.averages(lost["totals"] - lost[way]) for way in ("pieces", "at once"))
    saved = ratio_interval(pieces, totals)
    if saved is None or saved.high - saved.low > _WIDEST:
        return Waiting(costs, None)
    return Waiting(costs, Interval(*(100 * min(one, 1.0) for one in (saved.value, saved.low, saved.high))))


class ArmLine(NamedTuple):
    """One arm: its mean in the log, what its true mean may be, and whether it is the best."""

    arm: str
    decisions: int
    log: Interval
    mean: Interval  # drawn towards the average of all arms by as much as it is uncertain
    best: float  # the probability, given the log; arms that are alike share it


def arm_lines(setup: ComparisonSetup) -> list[ArmLine]:
    """Return one line for each arm, the best first."""
    drawn = setup.possible.posterior.draw(np.random.Generator(np.random.Philox(0)), _ARM_DRAWS)
    top = drawn >= drawn.max(axis=1, keepdims=True) * (1 - 1e-12)
    chance = (top / top.sum(axis=1, keepdims=True)).mean(axis=0)
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    unsorted = [
        ArmLine(
            arm.name, arm.decisions, arm.mean,
            Interval(float(drawn[:, a].mean()), float(low[a]), float(high[a])), float(chance[a]),
        )
        for a, arm in enumerate(setup.fitted.known)
        if arm.mean is not None
    ]  # fmt: skip
    return sorted(unsorted, key=lambda line: -line.mean.value)


def conclusions(comparison: Comparison) -> list[str]:
    """Say whether arms differ, which policy loses least, what waiting costs, and what was simulated."""
    horizon = int(comparison.result.rounds[-1])
    return [
        *_arms(comparison), *_policy(comparison), _waiting(comparison),
        *horizon_notes(comparison.setup, horizon), *_left_out(comparison),
        f"To play {comparison.advised} live: {comparison.live or 'nothing, as fewer than two arms are left'}",
    ]  # fmt: skip


def _left_out(comparison: Comparison) -> list[str]:
    nothing = ", ".join(repr(arm.name) for arm in comparison.setup.fitted.known if _means_nothing(arm))
    return [f"Left out of the next line, as if no arm had been chosen there: {nothing}."] if nothing else []


def _means_nothing(arm: Arm) -> bool:
    return arm.name.strip().lower() in NOBODY


def _arms(comparison: Comparison) -> list[str]:
    signal, first = comparison.setup.possible.signal, comparison.arms[0]
    p = f"p = {signal.p:.3f}" if signal.p > 1 / (RESAMPLES + 1) else f"p ≤ {signal.p:.3f}"
    test = f"resampling test of equal means over {signal.arms:,} arms: {p}"
    size = (
        f"The arms' true means vary by {_percent(signal.spread.value)} of their average "
        f"(95 % {_percent(signal.spread.low)} to {_percent(signal.spread.high)})"
    )
    if not signal.found:
        return [
            f"No sign that arms differ in what they pay ({test}). {size}, and with probability "
            f"{comparison.setup.possible.posterior.alike:.2f} not at all: a ranking of arms, or of policies, "
            "would mostly rank luck. A longer log would tell."
        ]
    rivals = sorted((line for line in comparison.arms if line.best > 0.05), key=lambda line: -line.best)
    if first.best >= 0.95:
        best = f"{first.arm!r} pays best (probability {_chance(first.best)})"
        sure = f"{best}: {first.mean} a decision"
    else:
        names = ", ".join(f"{line.arm!r} ({_chance(line.best)})" for line in rivals[:5])
        sure = f"Which pays best is not certain; the most likely, with their probabilities: {names}"
        if not rivals:
            sure = "Which of them pays best is open: none has a probability above 0.05"
    return [f"Arms differ in what they pay ({test}). {size}. {sure}."]


def _policy(comparison: Comparison) -> list[str]:
    best = comparison.best
    sentence = (
        f"{best.policy} loses least of the policies that can be played: {best.lost.written(RANGE)} per 1,000 "
        f"decisions, against playing the best arm alone; {best.share.value:.0f} % of its decisions are for "
        "that arm."
    )
    if comparison.rivals:
        sentence += f" It cannot be told from {', '.join(comparison.rivals)}."
    return [sentence, RANGES]


def _waiting(comparison: Comparison) -> str:
    at_once, pieces, totals = comparison.waiting.costs
    per = (
        f"{BASELINE} loses {figure(at_once.lost.value)} per 1,000 decisions if it sees totals at once, "
        f"{figure(pieces.lost.value)} with pieces, {figure(totals.lost.value)} if it waits for totals"
    )
    saved = comparison.waiting.saved
    if saved is None:
        return f"What pieces save of the cost of waiting cannot be told from chance ({per})."
    return (
        f"Using pieces saves {saved.value:.0f} % ({RANGE} {saved.low:.0f} to {saved.high:.0f}) of what "
        f"waiting for totals costs ({per})."
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if 0.0005 <= share < 0.1 else f"{100 * share:.0f} %"


def _chance(value: float) -> str:
    return "above 0.99" if value > 0.99 else f"{value:.2f}"


def live(setup: ComparisonSetup, policy: Policy, kept: str = "") -> str:
    """Write Python for a live bandit that plays `policy`.

    It begins with the log's closed decisions, where the log has times, and gives a share of the decisions to
    random arms, so that its own log can be judged. A window of time stays one, others are in rounds. Caps are
    those of the fit, rounded up; put your own there if you know better. More than 20 are not written out.
    The fit is read from the file `kept`; without one, ``fitted`` is what was fitted. Arms whose names mean
    that nothing was chosen, such as NA, are left out; the text is empty where fewer than two are left.
    """
    fitted, saved = setup.fitted, f"ac.Fitted.load({kept!r})" if kept else "fitted"
    arms = [arm for arm in fitted.known if not _means_nothing(arm)]
    if len(arms) < 2:
        return ""
    caps = repr({arm.name: _rounded_up(arm.cap.used) for arm in arms if arm.cap is not None})
    if len(arms) > _ARMS_WRITTEN:
        others = sorted({arm.name for arm in fitted.known} - {arm.name for arm in arms})
        without = f" if arm.name not in {others}" if others else ""
        caps = f"{{arm.name: arm.cap.used for arm in {saved}.known{without}}}"
    timed = fitted.unit == "seconds"
    options = {"arms": caps, "window": repr(_window(fitted.window) if timed else setup.problem.window)}
    alpha = getattr(policy, "alpha", None)  # a policy with groups of its own needs the window cut into them
    if alpha is not None:
        options["groups"] = str(alpha)
    options |= {"policy": repr(_written(policy)), "floor": str(_FLOOR)}
    if fitted.signed:
        options["allow_negative"] = "True"
    if timed:
        options["prior"] = saved
    return f"ac.Bandit({', '.join(f'{name}={value}' for name, value in options.items())})"


def _window(seconds: float) -> str:
    """Write a window so that a prior of the same length is not too short for it by rounding."""
    days = seconds / 86_400.0
    text = f"{days:.15g}d" if days.is_integer() else exact_duration(seconds)
    return text if parse_duration(text) <= seconds else f"{seconds!r}s"


def _written(policy: Policy) -> str:
    """Write a policy as text that reads back; by its name alone where that is enough."""
    name = type(policy).__name__
    try:
        if parse(name) == policy:
            return name
    except InputError:
        pass  # it has settings that must be given
    return policy_text(policy) or repr(policy)


def _rounded_up(cap: float) -> float:
    """Round to three digits, never down.

    Examples
    --------
    >>> _rounded_up(239.74), _rounded_up(0.5), _rounded_up(1.0)
    (240.0, 0.5, 1.0)
    """
    unit = 10.0 ** (math.floor(math.log10(cap)) - 2)
    return float(f"{math.ceil(round(cap / unit, 6)) * unit:.6g}")
