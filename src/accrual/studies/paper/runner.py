"""Run the paper's experiments, and leave in a folder what the report reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from accrual import bounds
from accrual.core.errors import need, whole
from accrual.core.random import ROUND_MOST, RUN_MOST
from accrual.policies.base import Policy
from accrual.policies.catalog import make
from accrual.problems.paper import NAMED_PROBLEMS
from accrual.problems.problem import Problem
from accrual.problems.spreads import parse
from accrual.runs import rows
from accrual.runs.cells import Cell, checkpoints, code_hash, cut, on_device, versions
from accrual.runs.rows import FigureCurve
from accrual.runs.runner import Executor, Local, Summary, compute_missing, locked_folder
from accrual.studies.paper import audit
from accrual.studies.paper.music_sessions import spotify
from accrual.studies.paper.settings import (
    ALTERNATIVES,
    BLOCKS,
    HORIZON,
    RUNS,
    SEED,
    SPREADS,
    PaperBlock,
    PaperLearner,
    PaperSetting,
    select,
)

_GROUPS = 20  # in the pictures of spreads


@dataclass(frozen=True)
class PaperOptions:
    """What to run, and where."""

    out: Path
    only: Sequence[str] = ()
    runs: int = RUNS
    horizon: int = HORIZON
    executor: Executor = field(default_factory=Local)
    fresh: bool = False
    spotify: Path | None = None
    device: str = "cpu"
    settings: list[PaperSetting] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", select(self.only))
        whole("runs", self.runs, 1, RUN_MOST)
        whole("horizon", self.horizon, 100, ROUND_MOST)

    @property
    def command(self) -> str:
        """The command that computes these numbers, in any folder and on any machine."""
        words = ["accrual paper", *(f"--only {word}" for word in self.only)]
        words += [f"--runs {self.runs}"] if self.runs != RUNS else []
        words += [f"--horizon {self.horizon}"] if self.horizon != HORIZON else []
        words += [f"--device {self.device}"] if self.device != "cpu" else []
        words += ["--spotify PATH"] if self.spotify is not None else []
        return " ".join(words)


def run(options: PaperOptions) -> Summary:
    """Compute what is missing, and leave cells, curves and the manifest in ``options.out``."""
    need("pyarrow.parquet", "frames")
    blocks = dict.fromkeys(block for setting in options.settings for block in setting.blocks)
    problems = {
        name: make_problem(name, options.spotify)
        for name in dict.fromkeys(BLOCKS[block].problem for block in blocks)
    }
    plan = {block: _cut(BLOCKS[block], problems[BLOCKS[block].problem], options) for block in blocks}
    with locked_folder(options.out) as store:
        summary = compute_missing(
            [cell for part in plan.values() for cell in part], store, options.executor, options.fresh
        )
        rows.write_curves(options.out / rows.CURVES, curves_of(options.settings, problems, options.horizon))
        manifest = _manifest(options, plan, problems)
        rows.write(options.out / rows.MANIFEST, (rows.canonical(manifest) + "\n").encode())
    return summary


def _cut(block: PaperBlock, problem: Problem, options: PaperOptions) -> list[Cell]:
    if options.device != "cpu":  # a GPU takes no longer for all runs than for a few
        block = replace(block, runs_per_cell=options.runs)
    return on_device(cut_block(block, problem, options.horizon, options.runs), options.device)


def _manifest(
    options: PaperOptions, plan: dict[str, list[Cell]], problems: dict[str, Problem]
) -> dict[str, Any]:
    return {
        "format": rows.FORMAT,
        "command": options.command,
        "horizon": options.horizon,
        "runs": options.runs,
        "seed": SEED,
        "code": code_hash(),
        "versions": versions(),
        "settings": [_entry(setting, options, problems) for setting in options.settings],
        "blocks": {block: [cell.name for cell in part] for block, part in plan.items()},
    }


def _entry(setting: PaperSetting, options: PaperOptions, problems: dict[str, Problem]) -> dict[str, Any]:
    problem = problems[BLOCKS[setting.blocks[0]].problem]
    data = None
    if setting.id == "spotify":
        data = "real" if options.spotify is not None else "synthetic"
    return {
        "id": setting.id,
        "title": setting.title + (" (synthetic sample)" if data == "synthetic" else ""),
        "blocks": setting.blocks,
        "data": data,
        "window": problem.window,
        "groups": problem.groups,
        "arms": problem.arms,
        "means": problem.means.tolist(),
        "learners": [
            {
                "label": learner.label,
                "kind": learner.kind,
                "printed": setting.printed.get(learner) if options.horizon == HORIZON else None,
            }
            for learner in setting.learners
        ],
    }


def make_problem(name: str, spotify_path: Path | None = None) -> Problem:
    """Return the problem that a `PaperBlock` names."""
    if name == "spotify":
        return spotify(spotify_path)
    if name.startswith("audit/"):
        return audit.problem(name.removeprefix("audit/"))
    return NAMED_PROBLEMS[name]()


def make_policy(learner: PaperLearner) -> Policy:
    """Return the policy that a `PaperLearner` describes."""
    if learner.policy == "GroupKLUCB":
        assert learner.alpha is not None
        assert learner.spread is not None
        return audit.GroupKLUCB(learner.alpha, learner.spread)
    given: dict[str, Any] = {} if learner.alpha is None else {"alpha": learner.alpha}
    if learner.spread is not None:
        given["spread"] = parse(learner.spread)
    return make(learner.policy, **given)


def cut_block(block: PaperBlock, problem: Problem, horizon: int, runs: int) -> list[Cell]:
    """Cut a block into cells.

    Examples
    --------
    >>> from accrual.studies.paper.settings import BLOCKS
    >>> block = BLOCKS["audit/last"]
    >>> len(cut_block(block, make_problem(block.problem), horizon=1000, runs=25))
    3
    """
    policies = {learner.label: make_policy(learner) for learner in block.learners}
    return cut(block.id, problem, policies, horizon, runs, block.runs_per_cell, SEED)


def curves_of(
    settings: Sequence[PaperSetting], problems: Mapping[str, Problem], horizon: int
) -> list[FigureCurve]:
    """Return the curves that are drawn beside learners: bounds over rounds, and spreads over groups."""
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
    """Return the spreads of the paper's four pictures; the named ones also over 50 groups, for its text."""
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
    """Return Theorem 2's bound for the even spread, and for the spread of what the problem pays on average.

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
    """Return Theorem 1's printed bound and those of the two classes, the larger class first."""
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
