"""`accrual.compare`: simulate policies on what a log has paid."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from accrual.evaluate.compare.result import Comparison, make_comparison
from accrual.evaluate.compare.setup import comparison_cells, comparison_policies, set_up, usual_horizon
from accrual.logs.fit import fit_log
from accrual.logs.fitted import Fitted
from accrual.logs.log import opened
from accrual.policies.base import Policy
from accrual.runs.cells import gather_results
from accrual.runs.runner import Local, run_cells


def compare(
    source: Any,
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


def _fitted(source: Any) -> Fitted:
    if isinstance(source, Fitted):
        return source
    if isinstance(source, str | os.PathLike) and str(source).endswith(".json"):
        return Fitted.load(source)
    with opened(source) as log:
        return fit_log(log)
