"""accrual: bandits whose reward for one decision arrives in pieces over time.

Names are imported when they are first used, so that ``import accrual`` itself costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from accrual import bounds, spread
    from accrual.core.errors import InputError, MissingExtra
    from accrual.engine.result import Result
    from accrual.engine.simulate import log_rounds, simulate
    from accrual.experiments import gallery, paper
    from accrual.laws import (
        BernoulliLaw,
        BetaLaw,
        EmpiricalLaw,
        LeavingLaw,
        LumpLaw,
        ScaledLaw,
        UniformLaw,
    )
    from accrual.policy.age_imed import AgeIMED
    from accrual.policy.age_kl import AgeKL
    from accrual.policy.age_ts import AgeTS
    from accrual.policy.base import Policy
    from accrual.policy.delayed_ucb1 import DelayedUCB1
    from accrual.policy.imed import IMED
    from accrual.policy.klucb import KLUCB
    from accrual.policy.thompson import ThompsonSampling
    from accrual.policy.tpucbew import TPUCBEW
    from accrual.policy.tpucbfr import TPUCBFR
    from accrual.policy.tpucbfrg import TPUCBFRG
    from accrual.policy.ucb1 import UCB1
    from accrual.problem import Problem

_WHERE = {
    "AgeIMED": "accrual.policy.age_imed",
    "AgeKL": "accrual.policy.age_kl",
    "AgeTS": "accrual.policy.age_ts",
    "BernoulliLaw": "accrual.laws",
    "BetaLaw": "accrual.laws",
    "DelayedUCB1": "accrual.policy.delayed_ucb1",
    "EmpiricalLaw": "accrual.laws",
    "IMED": "accrual.policy.imed",
    "InputError": "accrual.core.errors",
    "KLUCB": "accrual.policy.klucb",
    "LeavingLaw": "accrual.laws",
    "LumpLaw": "accrual.laws",
    "MissingExtra": "accrual.core.errors",
    "Policy": "accrual.policy.base",
    "Problem": "accrual.problem",
    "Result": "accrual.engine.result",
    "ScaledLaw": "accrual.laws",
    "TPUCBEW": "accrual.policy.tpucbew",
    "TPUCBFR": "accrual.policy.tpucbfr",
    "TPUCBFRG": "accrual.policy.tpucbfrg",
    "ThompsonSampling": "accrual.policy.thompson",
    "UCB1": "accrual.policy.ucb1",
    "UniformLaw": "accrual.laws",
    "log_rounds": "accrual.engine.simulate",
    "simulate": "accrual.engine.simulate",
}
_MODULES = {
    "bounds": "accrual.bounds",
    "gallery": "accrual.experiments.gallery",
    "paper": "accrual.experiments.paper",
    "spread": "accrual.spread",
}

__all__ = sorted([*_WHERE, *_MODULES])  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        value = getattr(importlib.import_module(_WHERE[name]), name)
    elif name in _MODULES:
        value = importlib.import_module(_MODULES[name])
    else:
        raise AttributeError(f"module 'accrual' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
