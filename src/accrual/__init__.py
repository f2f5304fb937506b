"""accrual: bandits whose reward for one decision arrives in pieces over time.

Names are imported when they are first used, so that ``import accrual`` itself costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from accrual.core.version import VERSION

__version__ = VERSION

if TYPE_CHECKING:
    from accrual import bounds as bounds
    from accrual import spread as spread
    from accrual.contextual import Contexts as Contexts
    from accrual.contextual import ContextualProblem as ContextualProblem
    from accrual.core.errors import InputError as InputError
    from accrual.core.errors import MissingExtra as MissingExtra
    from accrual.engine.result import Result as Result
    from accrual.engine.simulate import log_rounds as log_rounds
    from accrual.engine.simulate import simulate as simulate
    from accrual.experiments import gallery as gallery
    from accrual.experiments import paper as paper
    from accrual.experiments.api import compare as compare
    from accrual.experiments.api import compare_by_context as compare_by_context
    from accrual.experiments.api import replay as replay
    from accrual.experiments.plan import plan as plan
    from accrual.fit.api import fit as fit
    from accrual.fit.fit import fit_log as fit_log
    from accrual.fit.log import open_log as open_log
    from accrual.fit.schema import Fitted as Fitted
    from accrual.laws import BernoulliLaw as BernoulliLaw
    from accrual.laws import BetaLaw as BetaLaw
    from accrual.laws import EmpiricalLaw as EmpiricalLaw
    from accrual.laws import LeavingLaw as LeavingLaw
    from accrual.laws import LumpLaw as LumpLaw
    from accrual.laws import ScaledLaw as ScaledLaw
    from accrual.laws import UniformLaw as UniformLaw
    from accrual.live.bandit import Bandit as Bandit
    from accrual.live.guardrails import Guardrail as Guardrail
    from accrual.policy.base import Policy as Policy
    from accrual.policy.catalog_rows import *  # noqa: F403
    from accrual.policy.clusters import Cluster as Cluster
    from accrual.policy.clusters import ClusteredTPUCBFRG as ClusteredTPUCBFRG
    from accrual.policy.clusters import find_clusters as find_clusters
    from accrual.problem import ChangingProblem as ChangingProblem
    from accrual.problem import Problem as Problem

_WHERE = {
    "Contexts": "accrual.contextual",
    "ContextualProblem": "accrual.contextual",
    "Bandit": "accrual.live.bandit",
    "Guardrail": "accrual.live.guardrails",
    "BernoulliLaw": "accrual.laws",
    "BetaLaw": "accrual.laws",
    "ChangingProblem": "accrual.problem",
    "Cluster": "accrual.policy.clusters",
    "ClusteredTPUCBFRG": "accrual.policy.clusters",
    "EmpiricalLaw": "accrual.laws",
    "Fitted": "accrual.fit.schema",
    "InputError": "accrual.core.errors",
    "LeavingLaw": "accrual.laws",
    "LumpLaw": "accrual.laws",
    "MissingExtra": "accrual.core.errors",
    "Policy": "accrual.policy.base",
    "Problem": "accrual.problem",
    "Result": "accrual.engine.result",
    "ScaledLaw": "accrual.laws",
    "UniformLaw": "accrual.laws",
    "compare": "accrual.experiments.api",
    "compare_by_context": "accrual.experiments.api",
    "find_clusters": "accrual.policy.clusters",
    "fit_log": "accrual.fit.fit",
    "log_rounds": "accrual.engine.simulate",
    "open_log": "accrual.fit.log",
    "plan": "accrual.experiments.plan",
    "replay": "accrual.experiments.api",
    "simulate": "accrual.engine.simulate",
}
_MODULES = {
    "bounds": "accrual.bounds",
    "fit": "accrual.fit",
    "gallery": "accrual.experiments.gallery",
    "paper": "accrual.experiments.paper",
    "spread": "accrual.spread",
}


def _names() -> list[str]:
    """Return all public names. Those of the policies are the catalog's."""
    from accrual.policy.catalog import CATALOG, CONTEXTUAL

    return sorted([*_WHERE, *_MODULES, *CATALOG, *CONTEXTUAL])


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        value = getattr(importlib.import_module(_WHERE[name]), name)
    elif name in _MODULES:
        value = importlib.import_module(_MODULES[name])
    elif name == "__all__":
        value = _names()
    else:
        # A policy's name begins with a capital: asking for anything else does not import the catalog.
        rows = importlib.import_module("accrual.policy.catalog_rows") if name[:1].isupper() else None
        value = getattr(rows, name, None)
        if value is None:
            raise AttributeError(f"module 'accrual' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return _names()
