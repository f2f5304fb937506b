"""What to simulate: a named problem, or a problem and policies from a TOML file.

docs/cli.md describes the format of the file.
"""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, NamedTuple

from accrual.core.errors import InputError, as_number, only, unknown
from accrual.policies.age_lin import AgeLinTS
from accrual.policies.base import Policy
from accrual.policies.catalog import make
from accrual.policies.lin import LinTS, LinUCB
from accrual.policies.tpucbfrg import TPUCBFR, TPUCBFRG
from accrual.policies.ucb1 import UCB1, DelayedUCB1
from accrual.problems.contexts import CONTEXT_LAWS, Contexts
from accrual.problems.gallery import ENTRIES, generate
from accrual.problems.laws import LAWS
from accrual.problems.paper import NAMED_PROBLEMS
from accrual.problems.problem import Problem
from accrual.studies.gallery import BESIDE

Check = Callable[[str, Any], Any]  # (name, given value) -> the value, or an InputError


class SimulationFile(NamedTuple):
    """What to simulate: a problem, and policies by label (none if the source has none)."""

    problem: Problem
    policies: dict[str, Policy]


def load(source: str) -> SimulationFile:
    """Load one of the paper's settings, a problem of the gallery, or a TOML file.

    Examples
    --------
    >>> load("setting1").problem.groups
    20
    """
    if source.endswith(".toml") or Path(source).is_file():
        return read(source)
    return SimulationFile(named_problem(source), {})


def read(path: str | os.PathLike[str]) -> SimulationFile:
    """Read a problem and policies from a TOML file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
    ...     _ = file.write("problem = {caps = [1, 2], window = 6, groups = 3, law = 'uniform'}")
    ...     file.flush()
    ...     read(file.name).problem.means
    array([0.5, 1. ])
    """
    data = read_toml(path)
    try:
        top = table("the file", data, {"problem": problem_of, "policy": listed(policy_of)}, ["problem"])
        return SimulationFile(top["problem"], _labelled(top.get("policy", [])))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def named_problem(name: str) -> Problem:
    """Return the problem of one of the paper's settings or of the gallery, by its name.

    Examples
    --------
    >>> named_problem("setting2/c4/late").window
    200
    >>> len(named_problem("ctx-big").caps)
    50
    """
    if name in NAMED_PROBLEMS:
        return NAMED_PROBLEMS[name]()
    if name in ENTRIES:
        return ENTRIES[name].problem
    raise unknown("setting", name, {**NAMED_PROBLEMS, **ENTRIES})


def usual_policies(problem: Problem) -> dict[str, Policy]:
    """Return the policies to compare on a problem if none are given, by label.

    These are the paper's, with the problem's own number of groups. On a problem with contexts, they are
    policies that use contexts.

    Examples
    --------
    >>> list(usual_policies(named_problem("setting1")))
    ['TPUCBFR(20)', 'TPUCBFRG(20, begin)', 'DelayedUCB1', 'UCB1']
    >>> list(usual_policies(named_problem("ctx-same")))
    ['AgeLinTS', 'AgeLinTS(waiting)', 'LinTS(waiting)', 'LinUCB(waiting)']
    """
    if problem.contexts is not None:
        policies: list[Policy] = [AgeLinTS(), AgeLinTS(buckets=1), LinTS(), LinUCB()]
    else:
        alpha = problem.groups
        policies = [TPUCBFR(alpha), TPUCBFRG(alpha, "begin"), DelayedUCB1(), UCB1()]
    return {policy.label: policy for policy in policies}


def with_yardsticks(problem: Problem, policies: Mapping[str, Policy]) -> dict[str, Policy]:
    """Add the yardsticks of a problem with contexts: a policy without delay, and one without contexts.

    Examples
    --------
    >>> list(with_yardsticks(named_problem("ctx-same"), {"mine": LinTS()}))
    ['mine', 'no delay', 'no context']
    """
    if problem.contexts is None:
        return dict(policies)
    for label in BESIDE.keys() & policies.keys():
        raise InputError(
            f"{label!r} is always there on a problem with contexts; give your policy another label"
        )
    return {**policies, **BESIDE}


def read_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a TOML file, unchecked."""
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path} is not TOML: {error}") from None


def _labelled(pairs: list[tuple[str, Policy]]) -> dict[str, Policy]:
    policies = dict(pairs)
    for label in policies:
        if sum(label == other for other, _ in pairs) > 1:
            raise InputError(f"two policies are labelled {label!r}; give one a label of its own")
    return policies


def table(name: str, value: Any, checks: Mapping[str, Check], needs: list[str]) -> dict[str, Any]:
    """Check that `value` is a table with these keys and no others, and check each value."""
    if not isinstance(value, dict):
        raise InputError(f"{name} must be a table of settings, not {value!r}")
    only(f"key of {name}", value, checks)
    for key in needs:
        if key not in value:
            raise InputError(f"{name} needs {key}")
    return {key: checks[key](key, given) for key, given in value.items()}


def problem_of(name: str, value: Any) -> Problem:
    """Return the problem of a name or a table; with `features` or `contexts` it has contexts."""
    if isinstance(value, str):
        return named_problem(value)
    if isinstance(value, dict) and "features" in value:
        return generate(**table(name, value, _GENERATED, ["features", "arms"]))
    checks: dict[str, Check] = {
        "caps": listed(number),
        "window": number,
        "groups": number,
        "division": _text,
        "arms": listed(_text),
        "law": anything,  # read below, where the problem's spread is known
        "laws": listed(anything),
        "spread": _spread,
        "contexts": _contexts,
    }
    with_contexts = isinstance(value, dict) and "contexts" in value
    laws: Mapping[str, Any] = CONTEXT_LAWS if with_contexts else LAWS
    needs = ["caps", "window", "laws" if with_contexts else "groups"]
    given = table(name, value, checks, needs)
    if "law" in given and "laws" in given:
        raise InputError(f"{name} takes law (one for all arms) or laws (one for each), not both")
    spread = given.pop("spread", None)
    if "laws" in given:
        given["laws"] = [_law(f"laws[{i}]", law, spread, laws) for i, law in enumerate(given["laws"])]
    else:
        given["laws"] = _law("law", given.pop("law", "uniform"), spread, laws)
    return Problem(**given)


def _law(name: str, value: Any, spread: Any, laws: Mapping[str, Any]) -> Any:
    """Make a law from its kind and settings; `spread` is the problem's, for a law without a spread."""
    settings = {"kind": value} if isinstance(value, str) else value
    if not isinstance(settings, dict) or "kind" not in settings:
        raise InputError(f"{name} needs a kind, as in: {{kind = 'uniform'}} (one of: {', '.join(laws)})")
    kind = _text(f"the kind of {name}", settings["kind"])
    if kind not in laws:
        raise unknown("kind of law", kind, laws)
    law = laws[kind]
    checks = {key.name: _CHECKS[key.type] for key in fields(law)}
    needs = [key.name for key in fields(law) if key.default is MISSING]
    given = table(name, settings, {"kind": _text, **checks}, needs)
    del given["kind"]
    if spread is not None:
        if "spread" not in checks:
            raise InputError(f"{name} takes no spread: a law of kind {kind} already says when it pays")
        given.setdefault("spread", spread)
    return law(**given)


def policy_of(name: str, value: Any) -> tuple[str, Policy]:
    """Return the label and the policy of one [[policy]] table; the policy checks its own settings."""
    if not isinstance(value, dict) or "name" not in value:
        raise InputError(f"{name} needs a name, as in: name = 'UCB1'")
    settings = dict(value)
    kind = _text(f"the name of {name}", settings.pop("name"))
    label = settings.pop("label", None)
    policy = make(kind, **settings)
    return policy.label if label is None else _text(f"the label of {name}", label), policy


def anything(name: str, value: Any) -> Any:
    """Return any value unchanged."""
    return value


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InputError(f"{name} must be text in quotes, not {value!r}")
    return value


def number(name: str, value: Any) -> int | float:
    """Check that a value is a finite number."""
    if not math.isfinite(as_number(value)):
        raise InputError(f"{name} must be a finite number, not {value!r}")
    return value  # type: ignore[no-any-return]  # TOML has whole numbers and floats


def listed(check: Check) -> Check:
    """Return a check for lists whose items must all pass `check`."""

    def listed(name: str, value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise InputError(f"{name} must be a list, not {value!r}")
        return [check(f"{name}[{i}]", item) for i, item in enumerate(value)]

    return listed


def _per_group(name: str, value: Any) -> Any:
    return listed(number)(name, value) if isinstance(value, list) else number(name, value)


def _spread(name: str, value: Any) -> Any:
    return listed(number)(name, value) if isinstance(value, list) else _text(name, value)


def _contexts(name: str, value: Any) -> Contexts:
    checks = {"numbers": number, "flags": listed(number), "levels": listed(listed(number))}
    return Contexts(**table(name, value, checks, []))


_GENERATED: dict[str, Check] = {
    **dict.fromkeys(("features", "arms", "window", "active", "strength", "speed", "seed"), number),
    **dict.fromkeys(("spread", "link", "pay"), _text),
}
_CHECKS: dict[Any, Check] = {  # by the annotation of a law's setting
    "PerGroup": _per_group,
    "SpreadLike": _spread,
    "float": number,
    "npt.ArrayLike": listed(listed(number)),
    "Sequence[float]": listed(number),
    "Pay": _text,
}
