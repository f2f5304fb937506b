"""Every named setting, and what to compare on a problem when no policy is given."""

from __future__ import annotations

from collections.abc import Mapping

from accrual.contextual import ContextualProblem
from accrual.core.errors import InputError, unknown
from accrual.experiments import gallery
from accrual.experiments.cells import AnyProblem
from accrual.experiments.contextual_problems import BESIDE
from accrual.experiments.paper import NAMED_PROBLEMS
from accrual.policy.age_lin_ts import AgeLinTS
from accrual.policy.base import Policy
from accrual.policy.delayed_ucb1 import DelayedUCB1
from accrual.policy.lin_ts import LinTS
from accrual.policy.lin_ucb import LinUCB
from accrual.policy.tpucbfr import TPUCBFR
from accrual.policy.tpucbfrg import TPUCBFRG
from accrual.policy.ucb1 import UCB1


def named_problem(name: str) -> AnyProblem:
    """Give the problem of a named setting, or of the gallery.

    Examples
    --------
    >>> named_problem("setting2/c4/late").window
    200
    >>> len(named_problem("ctx-big").caps)
    50
    """
    if name in NAMED_PROBLEMS:
        return NAMED_PROBLEMS[name]()
    if name in gallery.ENTRIES:
        return gallery.ENTRIES[name].problem
    raise unknown("setting", name, {**NAMED_PROBLEMS, **gallery.ENTRIES})


def usual_policies(problem: AnyProblem) -> dict[str, Policy]:
    """Give the policies to compare by label: the paper's, or on a problem with contexts those that use them.

    The paper's learn with the problem's own number of groups.

    Examples
    --------
    >>> list(usual_policies(named_problem("setting1")))
    ['TPUCBFR(20)', 'TPUCBFRG(20, begin)', 'DelayedUCB1', 'UCB1']
    >>> list(usual_policies(named_problem("ctx-same")))
    ['AgeLinTS', 'AgeLinTS(waiting)', 'LinTS(waiting)', 'LinUCB(waiting)']
    """
    if isinstance(problem, ContextualProblem):
        policies: list[Policy] = [AgeLinTS(), AgeLinTS(buckets=1), LinTS(), LinUCB()]
    else:
        alpha = problem.groups
        policies = [TPUCBFR(alpha), TPUCBFRG(alpha, "begin"), DelayedUCB1(), UCB1()]
    return {policy.label: policy for policy in policies}


def with_yardsticks(problem: AnyProblem, policies: Mapping[str, Policy]) -> dict[str, Policy]:
    """Put beside policies on a problem with contexts what they are judged by: no delay, and no context.

    Examples
    --------
    >>> list(with_yardsticks(named_problem("ctx-same"), {"mine": LinTS()}))
    ['mine', 'no delay', 'no context']
    """
    if not isinstance(problem, ContextualProblem):
        return dict(policies)
    for label in BESIDE.keys() & policies.keys():
        raise InputError(f"{label!r} is always there on a problem with contexts; label your policy otherwise")
    return {**policies, **BESIDE}
