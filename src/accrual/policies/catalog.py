"""Every policy of the library by name: made from settings, read from text, and written as text."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from typing import Any

import numpy as np

from accrual import policies
from accrual.core.errors import InputError, unknown
from accrual.policies.base import Policy, check_functions
from accrual.problems.spreads import Spread, as_spread

_BY_NAME: dict[str, type[Policy]] = {
    name: kind for name, kind in vars(policies).items() if isinstance(kind, type)
}
CATALOG = {name: kind for name, kind in _BY_NAME.items() if not kind.contextual}
CONTEXTUAL = {name: kind for name, kind in _BY_NAME.items() if kind.contextual}

# The policies of a bandit for which none is given.
DEFAULT: Policy = policies.AgePrior()
DEFAULT_WITH_FEATURES: Policy = policies.AgeLinTS()


def make(name: str, **settings: Any) -> Policy:
    """Make a policy of the catalog from its name and settings.

    Examples
    --------
    >>> make("TPUCBFR", alpha=50).label
    'TPUCBFR(50)'
    """
    if name not in _BY_NAME:
        raise unknown("policy", name, _BY_NAME)
    kind = _BY_NAME[name]
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
    """Make a policy from text such as ``TPUCBFRG(alpha=50, spread=begin)`` or ``UCB1``.

    Settings may be given in order, without their names, so labels can be read back.

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


def as_policy(given: Any) -> Policy:
    """Return a policy that is given as a policy or as text; refuse what cannot be played.

    Examples
    --------
    >>> import accrual as ac
    >>> as_policy("TPUCBFR(50)") == as_policy(ac.TPUCBFR(alpha=50))
    True
    >>> as_policy(ac.TPUCBFR)
    Traceback (most recent call last):
        ...
    accrual.core.errors.InputError: TPUCBFR is the class of a policy; make a policy of it: TPUCBFR(alpha=...)
    """
    if isinstance(given, str):
        return parse(given)
    if isinstance(given, Policy):
        check_functions(given)
        return given
    if isinstance(given, type) and issubclass(given, Policy):
        takes = inspect.signature(given).parameters.values()
        needs = ", ".join(f"{one.name}=..." for one in takes if one.default is one.empty)
        name = given.__name__
        raise InputError(f"{name} is the class of a policy; make a policy of it: {name}({needs})")
    raise InputError(f"{given!r} is not a policy; write for example 'AgePrior' or ac.AgePrior()")


def _settings(name: str) -> list[str]:
    if name not in _BY_NAME:
        raise unknown("policy", name, _BY_NAME)
    return list(inspect.signature(_BY_NAME[name]).parameters)


def _value(node: ast.expr) -> Any:
    # A spread's name and law stay text: the policy reads them itself.
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
