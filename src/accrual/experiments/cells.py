"""Cells: a block's learners on a few runs, and the hash of all that determines their numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import accrual
from accrual.experiments import audit, rows, spotify
from accrual.experiments.registry import setting
from accrual.experiments.settings import SEED, Block, Learner
from accrual.policy.base import Policy
from accrual.policy.catalog import make
from accrual.problem import EmpiricalLaw, Law, Problem
from accrual.spread import Boltzmann, Hypergeometric, Spread, Zipf, named

# The rooms whose source decides what a simulation computes.
_ROOMS = (
    "core", "spread", "laws.py", "problem.py", "environment", "policy", "engine", "experiments/audit.py",
)  # fmt: skip
_FAMILIES: dict[str, Callable[[Any], Spread]] = {
    "zipf": Zipf, "boltzmann": Boltzmann, "hypergeom": Hypergeometric,
}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One unit of work, of a few seconds."""

    block: Block
    problem: Problem
    policies: dict[str, Policy]
    horizon: int
    runs: range
    identity: dict[str, Any]

    @property
    def name(self) -> str:
        """The name of its file: for people, then the hash."""
        stem = self.block.id.replace("/", "-")
        first, last = self.runs.start, self.runs.stop - 1
        return f"{stem}_{first:03d}-{last:03d}_{rows.key(self.identity)[:16]}.parquet"

    @property
    def policy_rounds(self) -> int:
        return len(self.policies) * len(self.runs) * self.horizon

    @property
    def work(self) -> float:
        """Policy-rounds weighted by what they cost, for the time left: more groups take longer."""
        return self.policy_rounds * (1 + self.problem.groups / 20)


def make_problem(name: str, spotify_path: Path | None = None) -> Problem:
    """The problem of that name."""
    if name == "spotify":
        return spotify.load(spotify_path)
    if name.startswith("audit/"):
        return audit.problem(name.removeprefix("audit/"))
    return setting(name)


def make_spread(name: str) -> Spread:
    """A named spread, or one such as ``zipf(1)``.

    Examples
    --------
    >>> make_spread("zipf(2)")
    Zipf(s=2)
    """
    word, _, value = name.rstrip(")").partition("(")
    if word in _FAMILIES:
        number = float(value)
        return _FAMILIES[word](int(number) if number == int(number) else number)
    return named(name)


def make_policy(learner: Learner) -> Policy:
    """The policy that a learner describes."""
    if learner.policy == "GroupKLUCB":
        assert learner.alpha is not None
        assert learner.spread is not None
        return audit.GroupKLUCB(learner.alpha, learner.spread)
    given: dict[str, Any] = {} if learner.alpha is None else {"alpha": learner.alpha}
    if learner.spread is not None:
        given["spread"] = make_spread(learner.spread)
    return make(learner.policy, **given)


def checkpoints(horizon: int) -> list[int]:
    """Rounds to note: a hundred even ones for a plain axis, and some more for a log axis."""
    even = np.rint(np.linspace(0, horizon, min(horizon, 100) + 1)[1:])
    log = np.rint(np.geomspace(1, horizon, 40))
    return [int(t) for t in np.union1d(even, log)]


def cut(block: Block, problem: Problem, horizon: int, runs: int) -> list[Cell]:
    """The cells of a block. Their runs do not depend on `runs`, so more runs reuse what is there."""
    policies = {learner.label: make_policy(learner) for learner in block.learners}
    size = block.runs_per_cell
    numbers = [range(first, min(first + size, runs)) for first in range(0, runs, size)]
    common = {
        "problem": _describe(problem),
        "policies": {label: repr(policy) for label, policy in policies.items()},
        "horizon": horizon,
        "checkpoints": checkpoints(horizon),
        "seed": SEED,
        "code": code_hash(),
        "versions": versions(),
    }
    return [
        Cell(block, problem, policies, horizon, part, {**common, "runs": [part.start, part.stop]})
        for part in numbers
    ]


@cache
def code_hash() -> str:
    """A hash of the source of everything that computes."""
    package = Path(accrual.__file__).parent
    digest = hashlib.sha256()
    for room in _ROOMS:
        place = package / room
        for path in sorted(place.glob("*.py")) if place.is_dir() else [place]:
            digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


@cache
def versions() -> dict[str, str]:
    """The packages whose arithmetic goes into the numbers."""
    from importlib.metadata import version

    return {"accrual": accrual.__version__, **{name: version(name) for name in ("numba", "numpy", "scipy")}}


def _describe(problem: Problem) -> dict[str, Any]:
    return {
        "caps": list(problem.caps),
        "window": problem.window,
        "groups": problem.groups,
        "division": problem.division,
        "arms": list(problem.arms),
        "laws": [_describe_law(law) for law in problem.arm_laws],
    }


def _describe_law(law: Law) -> str:
    if isinstance(law, EmpiricalLaw):
        table = np.ascontiguousarray(law.rows, dtype=np.float64)
        return f"EmpiricalLaw{table.shape}:{hashlib.sha256(table.tobytes()).hexdigest()}"
    return repr(law)
