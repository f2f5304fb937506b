"""Every named setting, and what to compare on a problem when no policy is given."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from accrual.core.errors import unknown
from accrual.experiments.paper import CONFIGS, SCENARIOS, setting1, setting2
from accrual.policy.base import Policy
from accrual.policy.delayed_ucb1 import DelayedUCB1
from accrual.policy.tpucbfr import TPUCBFR
from accrual.policy.tpucbfrg import TPUCBFRG
from accrual.policy.ucb1 import UCB1
from accrual.problem import Problem

NAMED_PROBLEMS: dict[str, Callable[[], Problem]] = {
    "setting1": setting1,
    **{
        f"setting2/c{config}/{scenario}": partial(setting2, config, scenario)
        for config in CONFIGS
        for scenario in SCENARIOS
    },
}


def named_problem(name: str) -> Problem:
    """Give the problem of a named setting.

    Examples
    --------
    >>> named_problem("setting2/c4/late").window
    200
    """
    if name not in NAMED_PROBLEMS:
        raise unknown("setting", name, NAMED_PROBLEMS)
    return NAMED_PROBLEMS[name]()


def usual_policies(problem: Problem) -> list[Policy]:
    """Give the paper's policies, learning with the problem's own number of groups.

    Examples
    --------
    >>> [policy.label for policy in usual_policies(named_problem("setting1"))]
    ['TPUCBFR(20)', 'TPUCBFRG(20, begin)', 'DelayedUCB1', 'UCB1']
    """
    alpha = problem.groups
    return [TPUCBFR(alpha), TPUCBFRG(alpha, "begin"), DelayedUCB1(), UCB1()]
