"""Set up a comparison: a fitted problem in rounds, the policies to play on it, and the cells to play.

Decisions pay what logged ones paid, at the same ages. A round is one decision. The window is as many rounds
as the log makes decisions in that time. A decision's pieces fall into the rounds of their ages, or into
parts of a few rounds where the window is too long to keep every round apart. Every few runs the arms' means
are drawn anew from what the log leaves possible (`accrual.evaluate.compare.possible_problems`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from accrual.core.durations import show_length
from accrual.core.errors import InputError, positive, whole
from accrual.core.random import ROUND_MOST, RUN_MOST, SEED_MOST
from accrual.evaluate.compare.possible_problems import PossibleProblems
from accrual.logs.fitted import Fitted
from accrual.policies.age import AgeIMED, AgeTS
from accrual.policies.age_ucb import AgeUCB
from accrual.policies.base import Policy
from accrual.policies.catalog import DEFAULT, as_policy, make
from accrual.policies.tpucbew import TPUCBEW
from accrual.policies.tpucbfrg import TPUCBFR, TPUCBFRG
from accrual.policies.ucb1 import DelayedUCB1
from accrual.problems.problem import Problem
from accrual.runs.cells import Cell, cut, on_device

WINDOW_MOST = 10_000  # rounds; a busier log is simulated at a slower pace, and the table says so
_PARTS_LEAST, _PARTS_MOST = 20, 100  # of the window: twice as many would take twice as long
_BYTES = 200 << 20  # of a thread, for what the decisions of two windows have still to pay ...
_BYTES_MOST = 1 << 30  # ... and at most, where there are very many arms
_EACH = 2  # runs with the same means: how far they differ is the simulation's chance alone
_FEW = 8  # runs below which every run has means of its own
_DRAWS_ON_GPU = 50  # a GPU plays many runs of a problem in the time of one

BASELINE = DEFAULT.label
# What waiting costs: the same learner, which gets a total when its window closes, or at once.
WAITING, AT_ONCE = f"{BASELINE}, waiting", f"{BASELINE}, at once"
_TOTALS = make(BASELINE, buckets=1)
USUAL = (BASELINE, "AgeIMED", "AgeTS", "TPUCBFRG", "DelayedUCB1")


class RoundScale(NamedTuple):
    """How a window becomes rounds."""

    window: int  # rounds
    alpha: int  # the learners' groups, a divisor of the window
    part: int  # rounds that count as one age; 1 where every piece has its own round


def scale(rounds: float, groups: int, arms: int) -> RoundScale:
    """Return a window of about `rounds` rounds that about `groups` groups divide.

    Examples
    --------
    >>> scale(80, 20, arms=6)
    RoundScale(window=80, alpha=20, part=1)
    >>> scale(61, 60, arms=4)
    RoundScale(window=61, alpha=61, part=1)
    >>> scale(5000, 60, arms=4)
    RoundScale(window=5000, alpha=50, part=50)
    """
    wanted = max(1, round(rounds))
    parts = int(np.clip(_BYTES // (32 * arms * (wanted + 128)), _PARTS_LEAST, _PARTS_MOST))
    part = -(-wanted // parts)
    if wanted <= groups + 1:
        return RoundScale(wanted, wanted, 1)
    # Nearby numbers of groups stretch the window more or less; a tenth of them is worth a hundredth of it.
    most = min(groups, parts)
    stretched = {
        alpha: alpha * part * -(-wanted // (alpha * part)) for alpha in range((most + 1) // 2, most + 1)
    }
    alpha = min(stretched, key=lambda alpha: stretched[alpha] / wanted - 0.1 * alpha / most)
    return RoundScale(stretched[alpha], alpha, part)


@dataclass(frozen=True)
class ComparisonSetup:
    """A fitted problem in rounds."""

    problem: Problem  # with the arms' means as the log has them
    possible: PossibleProblems  # what the means may be instead, and whether arms differ at all
    scale: RoundScale
    rate: float  # decisions per unit of the log's time
    slower: float  # how many times slower than `rate` the decisions are simulated; 1 for as they are
    fitted: Fitted


def window_most(arms: int) -> int:
    """Return the longest window in rounds that is simulated with `arms` arms; beyond it the pace is slowed.

    Examples
    --------
    >>> window_most(10), window_most(1000)
    (10000, 1597)
    """
    return int(min(WINDOW_MOST, _BYTES_MOST // (32 * (_PARTS_LEAST + 1) * arms)))


def set_up(fitted: Fitted, rate: float | None = None, seed: int = 0) -> ComparisonSetup:
    """Set up the problem that `fitted` describes, at its own pace or at `rate` decisions per unit of time."""
    if rate is not None:
        positive("rate", rate)
    whole("seed", seed, 0, SEED_MOST)
    pace = fitted.rate if rate is None else rate
    rounds = fitted.window * pace
    slower = max(1.0, rounds / window_most(len(fitted.known)))
    rounds_scale = scale(rounds / slower, fitted.groups, len(fitted.known))
    problem = fitted.to_problem(rounds_scale.window, rounds_scale.window // rounds_scale.part)
    return ComparisonSetup(
        problem, PossibleProblems(fitted.known, problem, seed), rounds_scale, pace, slower, fitted
    )


def horizon_notes(setup: ComparisonSetup, horizon: int) -> list[str]:
    """Say how long the horizon is in the log's own time, and what follows where the pace was slowed."""
    fitted = setup.fitted
    time, window = horizon / setup.rate, fitted.window
    long, full = (show_length(one, fitted.unit == "seconds", like=window) for one in (time, window))
    sentences = [f"{horizon:,} decisions = {long} at {_pace(setup)}; window {full}."]
    if setup.slower > 1:
        pending = fitted.window * setup.rate
        sentences.append(
            f"They are simulated {setup.slower:.3g} times slower, as so long a window is costly: "
            f"{setup.problem.window:,} decisions are pending at a time instead of {pending:,.0f}, and a run "
            f"lasts {horizon / setup.problem.window:.3g} windows instead of {time / window:.3g}. So policies "
            "learn after fewer decisions than they would in truth: the losses here are too small, and most "
            "of all those of policies that wait."
        )
    if time < window:
        sentences.append(
            f"At that pace no decision closes within {horizon:,}: a policy that waits for totals would not "
            "learn anything in that time."
        )
    return sentences


def _pace(setup: ComparisonSetup) -> str:
    if setup.fitted.unit != "seconds":
        return f"{setup.rate:.3g} a unit of time"
    return f"{86400 * setup.rate:.3g} a day"


def notes(setup: ComparisonSetup) -> list[str]:
    """Say in sentences what was simulated."""
    fitted, (window, _, part) = setup.fitted, setup.scale
    timed = fitted.unit == "seconds"
    sentences = [
        f"A window of {show_length(fitted.window, timed)} is {window:,} rounds, at {_pace(setup)}"
        + (f" slowed down {setup.slower:.3g} times." if setup.slower > 1 else "."),
        "Every piece pays in the round of its own age."
        if part == 1
        else f"Ages are kept to {part} rounds ({show_length(fitted.window * part / window, timed)}), "
        "within which a piece is paid evenly.",
        "Decisions are drawn from "
        + ", ".join(f"{len(arm.sample.lengths):,} of {arm.name}" for arm in fitted.known[:8])
        + (f" and of {len(fitted.known) - 8} more arms" if len(fitted.known) > 8 else "")
        + ", all followed for the whole window.",
    ]
    left_out = [arm.name for arm in fitted.arms if arm.mean is None]
    if left_out:
        more = f" and {len(left_out) - 8} more" if len(left_out) > 8 else ""
        sentences.append(f"Left out, as none of their decisions has closed: {', '.join(left_out[:8])}{more}.")
    raised = [
        name
        for name, cap, arm in zip(setup.problem.arms, setup.problem.caps, fitted.known, strict=True)
        if arm.cap is not None and cap > arm.cap.used * (1 + 1e-9)
    ]
    if raised:
        sentences.append(f"Caps raised to the largest total in the sample: {', '.join(raised[:8])}.")
    true = np.array([arm.mean.value for arm in fitted.known if arm.mean is not None])
    excess = float((setup.problem.means - true).max()) / max(float(true.max()), 1e-300)
    if excess > 0.005:
        sentences.append(
            "Totals below 0 cannot be simulated and count as 0, which raises means by up to "
            f"{100 * excess:.2g} % of the largest."
        )
    return sentences


def comparison_policies(setup: ComparisonSetup, names: Sequence[str | Policy] = ()) -> dict[str, Policy]:
    """Return the policies to compare, by label; `names` replaces the usual ones.

    A name alone (``TPUCBFRG``, ``TPUCBFR``, ``TPUCBEW``, ``AgeUCB``) learns with the fitted groups and
    spread. The baseline is always there.
    """
    if isinstance(names, str):
        raise InputError(f"policies must be a list, such as [{names!r}], not a text")
    alpha = setup.scale.alpha
    usual: dict[str, Policy] = {
        BASELINE: DEFAULT,
        "AgeIMED": AgeIMED(),
        "AgeTS": AgeTS(),
        "TPUCBFRG": TPUCBFRG(alpha, list(setup.fitted.spread.value)),
        "TPUCBFR": TPUCBFR(alpha),
        "TPUCBEW": TPUCBEW(alpha),
        "AgeUCB": AgeUCB(alpha, proved=False, independent=False),
        "DelayedUCB1": DelayedUCB1(),
    }
    labelled: dict[str, Policy] = {BASELINE: usual[BASELINE]}
    for name in names or USUAL:
        policy = (usual.get(name) if isinstance(name, str) else None) or as_policy(name)
        label = f"TPUCBFRG({alpha}, fitted)" if name == "TPUCBFRG" else policy.label
        if label in labelled and policy != usual[BASELINE]:
            raise InputError(f"policy {label} is given twice")
        labelled[label] = policy
    for policy in labelled.values():  # one that does not fit says so before anything is played
        policy.params(np.array(setup.problem.caps), setup.problem.window)
    return labelled


def usual_horizon(setup: ComparisonSetup) -> int:
    """Return the usual number of decisions in a run: ten windows, and at least 10,000."""
    return max(10_000, 10 * setup.problem.window)


def runs_of_draw(runs: int, device: str = "cpu") -> int:
    """Return how many runs play on the same draw of the arms' means: run r on draw number r // this."""
    whole("runs", runs, 1, RUN_MOST)
    if runs < _FEW:
        return 1
    return _EACH if device == "cpu" else max(_EACH, -(-runs // _DRAWS_ON_GPU))


def comparison_cells(
    setup: ComparisonSetup,
    compared: Mapping[str, Policy],
    horizon: int,
    runs: int,
    seed: int = 0,
    device: str = "cpu",
) -> list[Cell]:
    """Cut a comparison into cells for `run_cells`: two for each draw of the arms' means.

    One has every policy, and the baseline's learner waiting for totals; the other that learner where
    every total is paid at once.
    """
    whole("horizon", horizon, len(setup.problem.caps), ROUND_MOST)
    each = runs_of_draw(runs, device)
    parts = []
    for draw, first in enumerate(range(0, runs, each)):
        drawn = setup.possible.draw(draw)
        last = min(first + each, runs)
        for problem, learners in (
            (drawn.problem, {**compared, WAITING: _TOTALS}), (drawn.at_once, {AT_ONCE: _TOTALS})
        ):  # fmt: skip
            (one,) = cut("compare", problem, learners, horizon, last - first, each, seed)
            parts.append(
                replace(one, runs=range(first, last), identity={**one.identity, "runs": [first, last]})
            )
    return on_device(parts, device)
