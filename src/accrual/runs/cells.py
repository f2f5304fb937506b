"""Cells: policies on a few runs of a problem, named by the hash of all that determines their numbers.

`cut` makes cells of any problem and policies, `accrual.runs.runner.run_cells` computes the cells that are
not on disk yet, and `gather_results` puts their results together:

>>> import tempfile
>>> from pathlib import Path
>>> import accrual as ac
>>> from accrual.runs.runner import Local, run_cells
>>> cells = cut("mine", ac.paper.setting1(), {"UCB1": ac.UCB1()}, horizon=500, runs=4, size=2)
>>> with tempfile.TemporaryDirectory() as out:
...     done = run_cells(cells, Path(out), Local(jobs=1))
...     result = gather_results(cells, Path(out))
>>> done.cells, result.final_regret.shape
(2, (1, 4))
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accrual.core.errors import InputError, whole
from accrual.core.jit import source_hash
from accrual.core.random import ROUND_MOST, RUN_MOST
from accrual.core.version import VERSION
from accrual.engine.result import Result
from accrual.engine.simulate import check_device
from accrual.policies.base import Policy
from accrual.problems.laws import EmpiricalLaw
from accrual.problems.problem import AnyLaw, Problem
from accrual.runs import rows

_PACKAGE = Path(__file__).parents[1]
_ROOMS = ("core", "problems", "policies", "engine")  # their source decides what a simulation computes
_STEM_MOST = 100  # characters of a file's name that are for people


@dataclass(frozen=True)
class Cell:
    """One unit of work, of a few seconds."""

    block: str  # what it belongs to; progress and file names show it to people
    problem: Problem
    policies: dict[str, Policy]
    horizon: int
    runs: range  # the numbers of the runs
    # Everything that determines the numbers, as plain data; the file is named by its hash.
    identity: dict[str, Any]

    @property
    def name(self) -> str:
        """The name of its file: its block and runs, for people, and the hash."""
        stem = re.sub(r"[^A-Za-z0-9._-]+", "-", self.block).lstrip(".")[:_STEM_MOST]
        first, last = self.runs.start, self.runs.stop - 1
        return f"{stem}_{first:03d}-{last:03d}_{rows.key(self.identity)[:16]}.parquet"

    @property
    def device(self) -> str:
        """The device that computes it; another device may differ in a last bit."""
        return str(self.identity.get("device", "cpu"))

    @property
    def policy_rounds(self) -> int:
        return len(self.policies) * len(self.runs) * self.horizon

    @property
    def work(self) -> float:
        """Policy-rounds weighted by what they cost, to estimate the time left."""
        return self.policy_rounds * cost(self.problem)


def cost(problem: Problem) -> float:
    """Return roughly how long a policy-round takes; more groups take longer, and so do contexts.

    Examples
    --------
    >>> import accrual as ac
    >>> cost(ac.paper.setting1()), cost(ac.gallery["ctx-same"])
    (2.0, 22.5)
    """
    if problem.contexts is not None:
        return 10 + len(problem.caps) * problem.contexts.width**2 / 40
    return 1 + problem.groups / 20


def checkpoints(horizon: int) -> list[int]:
    """Choose the rounds to note: a hundred even ones for a plain axis, and some more for a log axis."""
    even = np.rint(np.linspace(0, horizon, min(horizon, 100) + 1)[1:])
    log = np.rint(np.geomspace(1, horizon, 40))
    return [int(t) for t in np.union1d(even, log)]


def cut(
    block: str,
    problem: Problem,
    policies: Mapping[str, Policy],
    horizon: int,
    runs: int,
    size: int = 10,
    seed: int = 0,
    rounds: Sequence[int] | None = None,
) -> list[Cell]:
    """Cut a comparison into cells of `size` runs each.

    Which runs a cell holds does not depend on `runs`, so a later call for more runs reuses the cells on disk.

    Parameters
    ----------
    block : str
        The name to show to people.
    policies : dict of label to Policy
        They share their draws. A policy of your own is known by its `repr` and by the source of its module;
        one that is defined in a script or a notebook is known by its `repr` alone.
    size : int
        Runs in a cell; choose it so that a cell takes a few seconds.
    rounds : sequence of int, optional
        Where to note the regret; `checkpoints(horizon)` unless given.

    Examples
    --------
    >>> import accrual as ac
    >>> [cell.runs for cell in cut("x", ac.paper.setting1(), {"UCB1": ac.UCB1()}, 1000, 25)]
    [range(0, 10), range(10, 20), range(20, 25)]
    """
    whole("runs", runs, 1, RUN_MOST)
    whole("horizon", horizon, len(problem.caps), ROUND_MOST)
    with np.printoptions(threshold=sys.maxsize, precision=17):  # no array is shortened to "..."
        described = {label: repr(policy) for label, policy in policies.items()}
    common = {
        "problem": _describe(problem),
        "policies": described,
        "horizon": horizon,
        "checkpoints": checkpoints(horizon) if rounds is None else sorted({*map(int, rounds), horizon}),
        "seed": seed,
        "code": code_hash(),
        "own_code": own_code(problem, policies),
        "versions": versions(),
    }
    parts = [range(first, min(first + size, runs)) for first in range(0, runs, size)]
    return [
        Cell(block, problem, dict(policies), horizon, part, {**common, "runs": [part.start, part.stop]})
        for part in parts
    ]


def on_device(cells: Sequence[Cell], device: str) -> list[Cell]:
    """Return the cells as another device computes them (see `accrual.simulate`), with other names.

    Examples
    --------
    >>> import accrual as ac
    >>> cells = cut("x", ac.paper.setting1(), {"UCB1": ac.UCB1()}, 1000, 10)
    >>> on_device(cells, "cuda")[0].name == cells[0].name
    False
    """
    for cell in cells:
        check_device(cell.problem, device)
    if device == "cpu":
        return list(cells)
    return [replace(cell, identity={**cell.identity, "device": device}) for cell in cells]


def gather_results(cells: Sequence[Cell], out: Path) -> Result:
    """Put the cells of one problem together, as the result that `simulate` would have returned.

    Every policy must have cells for the same runs. A cell that is missing or damaged is refused.
    """
    stored = []
    for cell in cells:
        path = out / rows.CELLS / cell.name
        try:
            stored.append(rows.read_cell(path))
        except FileNotFoundError:
            raise InputError(f"{path} is missing; run the command again") from None
    stored.sort(key=lambda part: part.runs.start)
    parts: dict[str, list[tuple[Any, Any]]] = {label: [] for cell in cells for label in cell.policies}
    for part in stored:
        for label, regret, pulls in zip(part.learners, part.regret, part.pulls, strict=True):
            parts[label].append((regret, pulls))
    first = cells[0]
    return Result(
        labels=tuple(parts),
        rounds=stored[0].rounds,
        regret=np.array([np.concatenate([regret for regret, _ in part]) for part in parts.values()]),
        pulls=np.array([np.concatenate([pulls for _, pulls in part]) for part in parts.values()]),
        runs=range(stored[0].runs.start, stored[-1].runs.stop),
        meta={
            "seed": first.identity["seed"],
            "horizon": first.horizon,
            "arms": list(first.problem.arms),
            "window": first.problem.window,
            "version": first.identity["versions"]["accrual"],
        },
    )


@cache
def code_hash(package: Path = _PACKAGE) -> str:
    """Hash the source of the rooms that compute numbers, with all their sub-rooms."""
    digest = hashlib.sha256()
    for path in sorted(path for room in _ROOMS for path in (package / room).rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def own_code(problem: Problem, policies: Mapping[str, Policy]) -> dict[str, str]:
    """Hash the modules of policies and laws that are not in the rooms of `code_hash`, by module.

    Examples
    --------
    >>> import accrual as ac
    >>> own_code(ac.paper.setting1(), {"UCB1": ac.UCB1()})
    {}
    """
    laws = [law for _, laws in _laws(problem) for law in laws]
    modules = {type(one).__module__ for one in (*policies.values(), *laws)} - {"__main__"}
    rooms = [_PACKAGE / room for room in _ROOMS]
    files = {module: getattr(sys.modules[module], "__file__", None) for module in modules}
    return {
        module: source_hash(Path(file))
        for module, file in sorted(files.items())
        if file is not None and not any(Path(file).is_relative_to(room) for room in rooms)
    }


@cache
def versions() -> dict[str, str]:
    """Return the versions of the packages whose arithmetic goes into the numbers."""
    from importlib.metadata import version

    return {"accrual": VERSION, **{name: version(name) for name in ("numba", "numpy", "scipy")}}


def _describe(problem: Problem) -> dict[str, Any]:
    return {
        "caps": list(problem.caps),
        "window": problem.window,
        "groups": problem.groups,
        "division": problem.division,
        "arms": list(problem.arms),
        "contexts": repr(problem.contexts),
        "laws": [[at, *map(_describe_law, laws)] for at, laws in _laws(problem)],
    }


def _laws(problem: Problem) -> list[tuple[int, Sequence[AnyLaw]]]:
    """Return the laws of the arms, with the first round of each phase."""
    laws: Any = problem.laws
    return [(1, laws), *problem.changes]


def _describe_law(law: AnyLaw) -> str:
    return f"EmpiricalLaw{_digest(law.rows)}" if isinstance(law, EmpiricalLaw) else repr(law)


def _digest(rows: npt.ArrayLike | None) -> str:
    table = np.ascontiguousarray(rows, dtype=np.float64)
    return f"{table.shape}:{hashlib.sha256(table.tobytes()).hexdigest()}"
