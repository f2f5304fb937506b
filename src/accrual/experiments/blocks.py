"""The paper's blocks as cells: problems and policies from their names in `paper_settings`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from accrual.experiments import audit, spotify
from accrual.experiments.cells import Cell, cut
from accrual.experiments.paper import NAMED_PROBLEMS
from accrual.experiments.paper_settings import SEED, PaperBlock, PaperLearner
from accrual.policy.base import Policy
from accrual.policy.catalog import make
from accrual.problem import Problem
from accrual.spread import parse


def make_problem(name: str, spotify_path: Path | None = None) -> Problem:
    """Give the problem of that name."""
    if name == "spotify":
        return spotify.load(spotify_path)
    if name.startswith("audit/"):
        return audit.problem(name.removeprefix("audit/"))
    return NAMED_PROBLEMS[name]()


def make_policy(learner: PaperLearner) -> Policy:
    """Give the policy that a learner describes."""
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
    >>> from accrual.experiments.paper_settings import BLOCKS
    >>> block = BLOCKS["audit/last"]
    >>> len(cut_block(block, make_problem(block.problem), horizon=1000, runs=25))
    3
    """
    policies = {learner.label: make_policy(learner) for learner in block.learners}
    return cut(block.id, problem, policies, horizon, runs, block.runs_per_cell, SEED)
