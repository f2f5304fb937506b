"""The gallery's table and picture: regret divided by that of policies without delay."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from accrual.core.errors import need
from accrual.core.files import replacing
from accrual.engine.result import Result
from accrual.studies.gallery.comparison import FLOOR, NO_CONTEXT, VARIANT

# Age policies in colours, the paper's policies in greys, policies that wait as hollow marks.
_MARKS: dict[str, dict[str, Any]] = {
    FLOOR: {"marker": "|", "color": "#000000", "markersize": 9},
    "AgePrior": {"marker": "*", "color": "#000000", "markersize": 8},
    "AgeIMED": {"marker": "o", "color": "#0072B2"},
    "AgeTS": {"marker": "s", "color": "#D55E00"},
    "AgeUCB": {"marker": "^", "color": "#CC79A7"},
    "TPUCBFR": {"marker": "v", "color": "#333333"},
    "TPUCBFRG": {"marker": "P", "color": "#777777"},
    "DelayedUCB1": {"marker": "X", "color": "#AAAAAA"},
    "IMED(waiting)": {"marker": "o", "color": "#0072B2", "markerfacecolor": "white"},
    "ThompsonSampling(waiting)": {"marker": "s", "color": "#D55E00", "markerfacecolor": "white"},
    "pieces as pulls": {"marker": "1", "color": "#56B4E9"},
    "first tenth": {"marker": "2", "color": "#56B4E9"},
    "AgeLinTS": {"marker": "o", "color": "#0072B2"},
    "AgeLinTS(waiting)": {"marker": "o", "color": "#0072B2", "markerfacecolor": "white"},
    "LinTS(waiting)": {"marker": "s", "color": "#D55E00", "markerfacecolor": "white"},
    "LinUCB(waiting)": {"marker": "^", "color": "#CC79A7", "markerfacecolor": "white"},
    "pieces as rewards": {"marker": "1", "color": "#56B4E9"},
    "LinTS, first tenth": {"marker": "2", "color": "#56B4E9"},
    NO_CONTEXT: {"marker": "*", "color": "#000000", "markersize": 8},
}
_OTHER = {"marker": "*", "color": "#E69F00"}


class GalleryLine(NamedTuple):
    """A policy on one problem; of several variants, the one with the least mean regret."""

    problem: str
    policy: str
    variant: str
    runs: int
    mean: float
    se: float
    over_floor: float  # mean regret divided by the mean regret of the no-delay floor; nan if that is 0
    q99: float  # the 99 % quantile of the runs' regret, divided by the same
    worst: float  # the worst run's regret, divided by the same
    share: float  # the mean share of decisions that the most chosen arm got


def lines(problem: str, result: Result) -> list[GalleryLine]:
    """Return one line for each policy of a result of `accrual.gallery.play`."""
    final = result.final_regret
    means = final.mean(axis=1)
    runs = final.shape[1]
    best: dict[str, int] = {}
    for p, label in enumerate(result.labels):
        row = label.partition(VARIANT)[0]
        if row not in best or means[p] < means[best[row]]:
            best[row] = p
    floor = means[best[FLOOR]] if means[best[FLOOR]] > 0 else np.nan
    shares = (result.pulls.max(axis=2) / result.pulls.sum(axis=2)).mean(axis=1)
    return [
        GalleryLine(
            problem=problem,
            policy=row,
            variant=result.labels[p].partition(VARIANT)[2],
            runs=runs,
            mean=float(means[p]),
            se=float(final[p].std(ddof=1) / np.sqrt(runs)) if runs > 1 else np.nan,
            over_floor=float(means[p] / floor),
            q99=float(np.quantile(final[p], 0.99) / floor),
            worst=float(final[p].max() / floor),
            share=float(shares[p]),
        )
        for row, p in best.items()
    ]


def draw(path: str | os.PathLike[str], table: Sequence[GalleryLine], titles: Mapping[str, str]) -> None:
    """Draw regret divided by that of the no-delay floor: a mark for the mean, a line to the worst run.

    A tick on the line is the 99 % quantile. Problems on which regret is 0 are left out.
    """
    table = [line for line in table if np.isfinite(line.over_floor)]
    problems = list(dict.fromkeys(line.problem for line in table))
    policies = list(dict.fromkeys(line.policy for line in table))
    height = 1.6 + 0.1 * (len(table) + 2 * len(problems))
    figure = need("matplotlib.figure", "plot").Figure(figsize=(10, height), layout="constrained")
    ax = figure.subplots()
    places = _places(table)
    for policy in policies:
        mine = [line for line in table if line.policy == policy]
        y = np.array([places[line] for line in mine])
        mean = np.array([line.over_floor for line in mine])
        mark = _MARKS.get(policy, _OTHER)
        ax.hlines(y, mean, [line.worst for line in mine], color=mark["color"], linewidth=1.2, alpha=0.7)
        ax.plot([line.q99 for line in mine], y, linestyle="", marker="|", color=mark["color"], markersize=4)
        ax.plot(mean, y, **{"linestyle": "", "markersize": 5.5, "label": policy, **mark})
    for edge in range(1, len(problems)):
        ax.axhline(edge - 0.5, color="#DDDDDD", linewidth=0.8, zorder=0)
    ax.axvline(1.0, color="#000000", linewidth=0.8, zorder=0)
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(need("matplotlib.ticker", "plot").FormatStrFormatter("%g"))
    ax.set_yticks(range(len(problems)), [titles.get(problem, problem) for problem in problems])
    ax.set_ylim(len(problems) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(
        "regret over that of the better learner without delay (mark: mean; tick: 99 %; line to the worst run)"
    )
    ax.grid(axis="x", color="#EEEEEE")
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=5, frameon=False, fontsize=9)
    with replacing(path) as partial:
        figure.savefig(partial, dpi=150)


def _places(table: Sequence[GalleryLine]) -> dict[GalleryLine, float]:
    """Return the height of each line in the picture; problems lie 1 apart, their policies in between."""
    by_problem: dict[str, list[GalleryLine]] = {}
    for line in table:
        by_problem.setdefault(line.problem, []).append(line)
    return {
        line: place + 0.8 * ((rank + 0.5) / len(mine) - 0.5)
        for place, mine in enumerate(by_problem.values())
        for rank, line in enumerate(mine)
    }
