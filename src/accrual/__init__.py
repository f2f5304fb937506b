"""accrual: bandits whose reward for one decision arrives in pieces over time.

Names are imported when they are first used, so that ``import accrual`` itself costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from accrual.core.version import VERSION

__version__ = VERSION

# Type checkers read these imports; Python reads the table below. A test compares the two.
if TYPE_CHECKING:
    from accrual import bounds as bounds
    from accrual.core.errors import InputError as InputError
    from accrual.core.errors import MissingExtra as MissingExtra
    from accrual.engine.result import Result as Result
    from accrual.engine.simulate import log_rounds as log_rounds
    from accrual.engine.simulate import simulate as simulate
    from accrual.evaluate.compare import compare as compare
    from accrual.evaluate.compare import compare_by_context as compare_by_context
    from accrual.evaluate.plan import plan as plan
    from accrual.evaluate.replay import replay as replay
    from accrual.live.bandit import Bandit as Bandit
    from accrual.live.watch import Guardrail as Guardrail
    from accrual.logs.fit import fit as fit
    from accrual.logs.fit import fit_log as fit_log
    from accrual.logs.fitted import Fitted as Fitted
    from accrual.logs.open_log import open_log as open_log
    from accrual.policies import *  # noqa: F403
    from accrual.policies.base import Policy as Policy
    from accrual.policies.clusters import Cluster as Cluster
    from accrual.policies.clusters import ClusteredTPUCBFRG as ClusteredTPUCBFRG
    from accrual.policies.clusters import find_clusters as find_clusters
    from accrual.problems import spreads as spread
    from accrual.problems.contexts import Contexts as Contexts
    from accrual.problems.contexts import LinearLaw as LinearLaw
    from accrual.problems.contexts import LogisticLaw as LogisticLaw
    from accrual.problems.laws import BernoulliLaw as BernoulliLaw
    from accrual.problems.laws import BetaLaw as BetaLaw
    from accrual.problems.laws import EmpiricalLaw as EmpiricalLaw
    from accrual.problems.laws import LeavingLaw as LeavingLaw
    from accrual.problems.laws import LumpLaw as LumpLaw
    from accrual.problems.laws import ScaledLaw as ScaledLaw
    from accrual.problems.laws import UniformLaw as UniformLaw
    from accrual.problems.problem import Problem as Problem
    from accrual.studies import gallery as gallery
    from accrual.studies import paper as paper

_WHERE = {
    name: module
    for module, names in {
        "accrual.core.errors": "InputError MissingExtra",
        "accrual.engine.result": "Result",
        "accrual.engine.simulate": "log_rounds simulate",
        "accrual.evaluate.compare": "compare compare_by_context",
        "accrual.evaluate.plan": "plan",
        "accrual.evaluate.replay": "replay",
        "accrual.live.bandit": "Bandit",
        "accrual.live.watch.guardrails": "Guardrail",
        "accrual.logs.fit": "fit fit_log",
        "accrual.logs.fitted": "Fitted",
        "accrual.logs.open_log": "open_log",
        "accrual.policies.base": "Policy",
        "accrual.policies.clusters": "Cluster ClusteredTPUCBFRG find_clusters",
        "accrual.problems.contexts": "Contexts LinearLaw LogisticLaw",
        "accrual.problems.laws": "BernoulliLaw BetaLaw EmpiricalLaw LeavingLaw LumpLaw ScaledLaw UniformLaw",
        "accrual.problems.problem": "Problem",
    }.items()
    for name in names.split()
}
_MODULES = {
    "bounds": "accrual.bounds",
    "gallery": "accrual.studies.gallery",
    "paper": "accrual.studies.paper",
    "spread": "accrual.problems.spreads",
}


def _names() -> list[str]:
    """Return all public names. Those of the policies are the catalog's."""
    from accrual.policies.catalog import CATALOG, CONTEXTUAL

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
        rows = importlib.import_module("accrual.policies") if name[:1].isupper() else None
        value = getattr(rows, name, None)
        if value is None:
            raise AttributeError(f"module 'accrual' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return _names()
