"""Curves to draw beside the learners, stored as rows: bounds over rounds, spreads over groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from accrual import bounds
from accrual.experiments import audit
from accrual.experiments.cells import checkpoints
from accrual.experiments.paper_settings import ALTERNATIVES, BLOCKS, SPREADS, PaperSetting
from accrual.experiments.rows import FigureCurve
from accrual.problem import Problem
from accrual.spread import parse

_GROUPS = 20  # of the pictures of spreads


def curves_of(
    settings: Sequence[PaperSetting], problems: Mapping[str, Problem], horizon: int
) -> list[FigureCurve]:
    """Make all curves that the figures of `settings` need."""
    rounds = np.array([t for t in checkpoints(horizon) if t > 1], np.float64)
    curves = _spreads()
    for setting in settings:
        problem = problems[BLOCKS[setting.blocks[0]].problem]
        if setting.bounds:
            curves += _upper(setting.id, problem, rounds)
        if setting.id.startswith("audit/"):
            curves += _lower(setting.id, problem, rounds)
    return curves


def _spreads() -> list[FigureCurve]:
    """Give the spreads of the paper's four pictures; the named ones also at 50 groups, for its text."""
    groups = np.arange(1.0, _GROUPS + 1)
    curves = [
        FigureCurve("spread/named", "spread", name, groups, parse(name).pmf(_GROUPS)) for name in SPREADS
    ]
    fifty = np.arange(1.0, 51)
    curves += [FigureCurve("spread/named50", "spread", name, fifty, parse(name).pmf(50)) for name in SPREADS]
    for family, (word, values) in ALTERNATIVES.items():
        for value in values:
            name = f"{word}({value:g})"
            curves.append(FigureCurve(f"spread/{family}", "spread", name, groups, parse(name).pmf(_GROUPS)))
    return curves


def _upper(figure: str, problem: Problem, rounds: np.ndarray) -> list[FigureCurve]:
    """Give Theorem 2's bound for the even spread, and for the spread of what the problem pays on average.

    Both take the problem's own number of groups, as the paper does: a bound holds for the truth,
    not for a learner's guess.
    """
    paid = problem.group_means[int(np.argmax(problem.means))]
    shares = tuple(paid / paid.sum())
    even = bounds.upper_tpucbfr(problem, rounds, problem.groups)
    shaped = bounds.upper_tpucbfrg(problem, rounds, problem.groups, shares)
    return [
        FigureCurve(figure, "upper", "upper bound, α-smooth", rounds, np.asarray(even)),
        FigureCurve(figure, "upper", "upper bound, β-spread", rounds, np.asarray(shaped)),
    ]


def _lower(figure: str, problem: Problem, rounds: np.ndarray) -> list[FigureCurve]:
    """Give Theorem 1's printed bound and those of the two classes, the larger class first."""
    spread = audit.spread(figure.removeprefix("audit/"))
    lines = {
        "Theorem 1 as printed": bounds.lower_printed,
        "bound for free chances": bounds.lower_free_chances,
        "bound for one chance": bounds.lower,
    }
    return [
        FigureCurve(
            figure, "lower", label, rounds, np.asarray(bound(problem, rounds, problem.groups, spread))
        )
        for label, bound in lines.items()
    ]
