"""`accrual.compare` and `accrual.replay`: which policy would do best, from Python."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from accrual.core.errors import InputError
from accrual.evaluate.compare import (
    Comparison,
    ContextComparison,
    compare_contexts,
    comparison_cells,
    comparison_policies,
    make_comparison,
    set_up,
    usual_horizon,
)
from accrual.evaluate.replay import Fixed, Method, ReplayLog, ReplayResult, fixed, from_log, judge_all
from accrual.logs.fit import fit_log
from accrual.logs.fitted import Fitted
from accrual.logs.log import open_log
from accrual.logs.tables import Log
from accrual.policies.base import Policy
from accrual.policies.catalog import DEFAULT, parse
from accrual.runs.cells import gather_results
from accrual.runs.runner import Local, run_cells

Source = Any  # a path, a frame, a pair of them, an opened log


def compare(
    source: Fitted | Source,
    policies: Sequence[str | Policy] = (),
    runs: int = 100,
    horizon: int | None = None,
    seed: int = 0,
    rate: float | None = None,
) -> Comparison:
    """Simulate policies on decisions that pay what logged ones did, when they did.

    Parameters
    ----------
    source : Fitted, path, data frame, pair of them, or Log
        What was fitted, the ``problem.json`` that has it, or a log: one table, a pair of decisions and
        pieces, or what `accrual.open_log` gives.
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
    setup = set_up(_fitted(source), rate, seed)
    compared = comparison_policies(setup, policies)
    cells = comparison_cells(
        setup, compared, usual_horizon(setup) if horizon is None else horizon, runs, seed
    )
    with tempfile.TemporaryDirectory(prefix="accrual-") as folder:
        run_cells(cells, Path(folder), Local())
        result = gather_results(cells, Path(folder))
    return make_comparison(setup, result, compared)


def compare_by_context(
    log: Source,
    context: Sequence[str] = (),
    policies: Sequence[str | Policy] = (),
    runs: int = 20,
    horizon: int | None = None,
    seed: int = 0,
    uniform: bool = False,
    fitted: Fitted | None = None,
) -> ContextComparison:
    """Simulate policies that choose by context, on the visitors of a log.

    A linear model of the context says what an arm would have paid a visitor to whom the log did not show it;
    where the log contradicts the model this is refused. docs/contexts.md says more.

    Parameters
    ----------
    log : path, data frame, pair of them, or Log
    context : sequence of str
        Columns that say whom a decision was for, as for `accrual.open_log`; none for an open log.
    policies : sequence of str or Policy
        Beside AgeLinTS; AgeLinTS waiting and AgeTS, which sees no context, unless given.
    runs : int
    horizon : int, optional
        Decisions in a run; as many as the log has, and at most 20,000, unless given.
    seed : int
    uniform : bool
        Whether every arm had the same chance; otherwise the log must have propensities.
    fitted : Fitted, optional
        What `accrual.fit_log` found of this log; it is fitted unless given.
    """
    with _opened(log, context) as opened:
        if not opened.contexts:
            raise InputError("say which columns say whom a decision was for, such as context=['country']")
        found = fit_log(opened, uniform=uniform) if fitted is None else fitted
        logged = from_log(opened, found, uniform)
    assert found.contexts is not None
    given = [parse(one) if isinstance(one, str) else one for one in policies]
    by_label = {one.label: one for one in given}
    return compare_contexts(logged, found.contexts, by_label, horizon, runs, seed)


def replay(
    log: Source,
    policy: str | Policy | Mapping[str, float] | Sequence[str | Policy | Mapping[str, float]] = DEFAULT,
    uniform: bool = False,
    method: Method = "rejection",
    window: float | str | None = None,
    groups: int | None = None,
    seed: int = 0,
    context: Sequence[str] = (),
) -> ReplayResult:
    """Judge policies by a log that was collected at random.

    Parameters
    ----------
    log : path, data frame, pair of them, or Log
        One table, a pair of decisions and pieces, or what `accrual.open_log` gives.
    policy : str, Policy, mapping, or a list of them
        One that learns, such as ``"AgePrior"``, the default; or a fixed one: ``"always jazz"``, or the
        share of each arm, ``{"jazz": 0.7, "rock": 0.3}``.
    uniform : bool
        Whether every arm had the same chance; otherwise the log must have propensities.
    method : {"rejection", "weighting", "doubly robust"}
        For policies that learn; docs/compare.md says what each is unbiased for.
    window, groups : optional
        As for `accrual.fit_log`.
    seed : int
    context : sequence of str
        Columns that say whom a decision was for, as for `accrual.open_log`; for policies that choose by them.

    Returns
    -------
    ReplayResult
        Its `summary` says in words what was found.

    Examples
    --------
    >>> import pandas as pd
    >>> decisions = pd.DataFrame({"id": range(400), "arm": ["a", "a", "b", "b"] * 100, "at": range(400)})
    >>> pieces = pd.DataFrame({"decision": range(400), "value": [1.0, 0.0, 1.0, 1.0] * 100, "age": 2})
    >>> found = replay((decisions, pieces), "always b", uniform=True, window=5)
    >>> [f"{line.method} {line.reward.value:.2f}" for line in found.lines[1:]]
    ['IPS 1.00', 'self-normalised 1.00', 'doubly robust 1.00']
    """
    with _opened(log, context) as opened:
        logged = from_log(opened, fit_log(opened, window, groups), uniform)
    given = policy if isinstance(policy, Sequence) and not isinstance(policy, str) else [policy]
    return ReplayResult(logged, judge_all(logged, named(given, logged), method, seed), method)


def named(given: Sequence[str | Policy | Mapping[str, float]], log: ReplayLog) -> dict[str, Policy | Fixed]:
    """Give policies by their labels, for `judge_all`."""
    labelled: dict[str, Policy | Fixed] = {}
    for one in given:
        if not isinstance(one, str | Policy | Mapping):
            raise InputError(f"a policy must be a name, a policy or shares of arms, not {one!r}")
        policy: Policy | Fixed | None = one if isinstance(one, Policy) else fixed(one, log.arms)
        if policy is None:
            policy = parse(str(one))
        if policy.label in labelled:
            raise InputError(f"policy {policy.label} is given twice")
        labelled[policy.label] = policy
    return labelled


@contextmanager
def _opened(source: Source, context: Sequence[str] = ()) -> Iterator[Log]:
    if isinstance(source, Log):
        if context:
            raise InputError("the log is open already: tell open_log its contexts")
        yield source
        return
    tables = source if isinstance(source, tuple) else (source,)
    with open_log(*tables, context=context) as log:
        yield log


def _fitted(source: Fitted | Source) -> Fitted:
    if isinstance(source, Fitted):
        return source
    if isinstance(source, str | os.PathLike) and str(source).endswith(".json"):
        return Fitted.load(source)
    with _opened(source) as log:
        return fit_log(log)
