"""Every policy of the library, by name."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from typing import Any

import numpy as np

from accrual.core.errors import InputError, unknown
from accrual.policy.age_imed import AgeIMED
from accrual.policy.age_kl import AgeKL
from accrual.policy.age_lin_ts import AgeLinTS
from accrual.policy.age_prior import AgePrior
from accrual.policy.age_ts import AgeTS
from accrual.policy.age_ucb import AgeUCB
from accrual.policy.base import Policy
from accrual.policy.delayed_ucb1 import DelayedUCB1
from accrual.policy.imed import IMED
from accrual.policy.klucb import KLUCB
from accrual.policy.lin_ts import LinTS
from accrual.policy.lin_ucb import LinUCB
from accrual.policy.thompson import ThompsonSampling
from accrual.policy.tpucbew import TPUCBEW
from accrual.policy.tpucbfr import TPUCBFR
from accrual.policy.tpucbfrg import TPUCBFRG
from accrual.policy.ucb1 import UCB1
from accrual.spread import Spread, as_spread

CATALOG: dict[str, type[Policy]] = {
    "UCB1": UCB1,
    "DelayedUCB1": DelayedUCB1,
    "TPUCBEW": TPUCBEW,
    "TPUCBFR": TPUCBFR,
    "TPUCBFRG": TPUCBFRG,
    "KLUCB": KLUCB,
    "IMED": IMED,
    "ThompsonSampling": ThompsonSampling,
    "AgePrior": AgePrior,
    "AgeIMED": AgeIMED,
    "AgeTS": AgeTS,
    "AgeKL": AgeKL,
    "AgeUCB": AgeUCB,
    "AgeLinTS": AgeLinTS,
    "LinTS": LinTS,
    "LinUCB": LinUCB,
}


def make(name: str, **settings: Any) -> Policy:
    """A policy of the catalog from its name and settings.

    Examples
    --------
    >>> make("TPUCBFR", alpha=50).label
    'TPUCBFR(50)'
    """
    if name not in CATALOG:
        raise unknown("policy", name, CATALOG)
    kind = CATALOG[name]
    takes = inspect.signature(kind).parameters
    for key in settings:
        if key not in takes:
            raise (
                unknown(f"setting of {name}", key, takes)
                if takes
                else InputError(f"{name} takes no settings")
            )
    for key, parameter in takes.items():
        if parameter.default is inspect.Parameter.empty and key not in settings:
            raise InputError(f"{name} needs {key}=...")
    try:
        return kind(**settings)
    except (TypeError, OverflowError) as error:
        raise InputError(f"{name} has a setting of a wrong kind: {error}") from None


def parse(text: str) -> Policy:
    """A policy from text such as ``TPUCBFRG(alpha=50, spread=begin)`` or ``UCB1``.

    Settings may go without their names, in order, so that labels read back.

    Examples
    --------
    >>> parse("TPUCBFRG(alpha=50, spread=begin)").label
    'TPUCBFRG(50, begin)'
    >>> parse("TPUCBFRG(50, zipf(2))").label
    'TPUCBFRG(50, zipf(2))'
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        if isinstance(tree, ast.Name):
            return make(tree.id)
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
            name = tree.func.id
            named = [(str(word.arg), _value(word.value)) for word in tree.keywords]
            pairs = [*zip(_settings(name), map(_value, tree.args), strict=False), *named]
            settings = dict(pairs)
            if len(settings) == len(tree.args) + len(named):  # none twice, none too many
                return make(name, **settings)
    except (SyntaxError, ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
    raise InputError(f"cannot read the policy {text!r}; write for example 'TPUCBFRG(alpha=50, spread=begin)'")


def _settings(name: str) -> list[str]:
    if name not in CATALOG:
        raise unknown("policy", name, CATALOG)
    return list(inspect.signature(CATALOG[name]).parameters)


def _value(node: ast.expr) -> Any:
    # A spread's name and a spread's law stay text, which the policy reads itself.
    return ast.unparse(node) if isinstance(node, ast.Name | ast.Call) else ast.literal_eval(node)


def policy_text(policy: Policy) -> str | None:
    """Return text that `parse` reads back as this policy; None if there is none.

    Examples
    --------
    >>> import accrual as ac
    >>> policy_text(ac.TPUCBFRG(alpha=20, spread="begin"))
    'TPUCBFRG(alpha=20, spread=begin)'
    """
    if not dataclasses.is_dataclass(policy):
        return None
    settings = []
    for field in dataclasses.fields(policy):
        if field.init:
            settings.append(f"{field.name}={_value_text(getattr(policy, field.name))}")
    text = f"{type(policy).__name__}({', '.join(settings)})"
    try:
        return text if parse(text) == policy else None
    except InputError:
        return None


def _value_text(value: Any) -> str:
    if not isinstance(value, Spread):
        return repr(value)
    try:
        if as_spread(value.label) == value:
            return value.label
    except InputError:
        pass
    return repr([float(share) for share in np.atleast_1d(getattr(value, "shares", ()))])
