"""Sweeps: policies over a grid of parameters, read from a TOML file; docs/cli.md describes the format.

A parameter is a hole in the file: wherever ``{a}`` stands, in the problem or in a policy, each value
of `a` is put in its place.
"""

from __future__ import annotations

import itertools
import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from accrual.core.errors import InputError, unknown, whole
from accrual.core.random import ROUND_MOST, RUN_MOST, SEED_MOST
from accrual.experiments.cells import AnyProblem, Cell, check_plays, cost, cut, on_device
from accrual.experiments.named_problems import with_yardsticks
from accrual.experiments.toml_files import anything, listed, number, policy_of, problem_of, read_toml, table
from accrual.policy.base import Policy

HORIZON, RUNS = 100_000, 20
POINTS_MOST = 100_000
_POLICIES = 16  # in a cell: they share their draws, which are most of the work of a policy alone
_WORK = 50_000_000  # policy-rounds in a cell, about: some five seconds on one core ...
_USUAL_COST = 2.0  # ... where they cost as much as in Setting 1
_RUNS_MOST = 100  # in a cell
_ON_GPU = 1024  # policies in a cell on a GPU, and its runs, which are played at once
_MARKS = 10  # checkpoints: a sweep looks at the end

_HOLE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Point:
    """One policy at one place of the grid."""

    case: dict[str, Any]  # the values of the parameters in [each]
    # The values of those in [grid] that it depends on: none for a policy to compare with.
    place: dict[str, Any]
    row: int  # which [[policy]] it is; yardsticks are counted on from there
    block: str  # its problem, by which its cells are known
    label: str
    yardstick: bool = False  # whether it is there to judge the others by, as on all problems with contexts


@dataclass(frozen=True)
class Sweep:
    """What a file describes: points, and what to simulate for them."""

    horizon: int
    runs: int
    seed: int
    grid: dict[str, list[Any]]
    points: list[Point]
    problems: dict[str, AnyProblem]  # by block
    policies: dict[str, dict[str, Policy]]  # by block and label

    def cells(self, device: str = "cpu") -> dict[str, list[Cell]]:
        """Cut each block into cells."""
        return {block: on_device(self._cut(block, device), device) for block in self.problems}

    def _cut(self, block: str, device: str) -> list[Cell]:
        problem = self.problems[block]
        rounds = _POLICIES * self.horizon * cost(problem) / _USUAL_COST  # of one run
        size = max(1, min(_RUNS_MOST, int(_WORK / rounds)))
        most, size = (_POLICIES, size) if device == "cpu" else (_ON_GPU, _ON_GPU)
        marks = [max(1, self.horizon * mark // _MARKS) for mark in range(1, _MARKS + 1)]
        return [
            cell
            for part in _batches(self.policies[block], most)
            for cell in cut(block, problem, part, self.horizon, self.runs, size, self.seed, marks)
        ]


def read(path: str | os.PathLike[str], runs: int | None = None, horizon: int | None = None) -> Sweep:
    """Read the sweep that a TOML file describes; `runs` and `horizon` take the place of the file's.

    Examples
    --------
    >>> import tempfile
    >>> text = '''
    ... problem = "setting1"
    ... grid = {a = [1, 2], b = {from = 1, to = 4, steps = 3, log = true}}
    ... policy = [{name = "TPUCBFRG", alpha = 20, spread = "betabinom({a}, {b})"}]
    ... '''
    >>> with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
    ...     _ = file.write(text)
    ...     file.flush()
    ...     sweep = read(file.name)
    >>> sweep.grid["b"], len(sweep.points), sweep.points[-1].label
    ([1, 2, 4], 6, 'TPUCBFRG(20, begin_middle)')
    """
    data = read_toml(path)
    given = {key: value for key, value in (("runs", runs), ("horizon", horizon)) if value is not None}
    try:
        return _sweep(Path(path).stem, {**data, **given})
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _sweep(name: str, data: dict[str, Any]) -> Sweep:
    top = table(
        "the file",
        data,
        {
            "problem": anything, "policy": listed(anything), "grid": _axes, "each": _axes,
            "horizon": anything, "runs": anything, "seed": anything,
        },
        ["problem", "policy", "grid"],
    )  # fmt: skip
    grid, each = top["grid"], top.get("each", {})
    if not grid:
        raise InputError("[grid] needs a parameter, as in: a = [1, 2, 4]")
    for key in grid.keys() & each.keys():
        raise InputError(f"{key} is in [grid] and in [each]; it can be in one of them")
    count = math.prod(len(values) for values in (*grid.values(), *each.values())) * len(top["policy"])
    if not 1 <= count <= POINTS_MOST:
        raise InputError(f"a sweep needs 1 to {POINTS_MOST:,} points, not {count:,}")

    made = _Made(name)
    points: dict[str, Point] = {}
    used: set[str] = set()
    for case, place in itertools.product(_products(each), _products(grid)):
        values = {**case, **place}
        said, problem_uses = fill(top["problem"], values)
        block = made.block(said)
        for row, template in enumerate(top["policy"]):
            filled, uses = fill(template, values)
            label = made.label(block, row, filled)
            uses |= problem_uses
            used |= uses
            point = Point(case, {key: place[key] for key in grid if key in uses}, row, block, label)
            points.setdefault(repr(point), point)  # one that does not use all parameters comes again
        for row, label in enumerate(made.yardsticks(block), len(top["policy"])):
            at = {key: place[key] for key in grid if key in problem_uses}
            point = Point(case, at, row, block, label, yardstick=True)
            points.setdefault(repr(point), point)
    for key in (*grid, *each):
        if key not in used:
            raise InputError(f"no problem and no policy has a {{{key}}} where the values of {key} could go")
    return Sweep(
        whole("horizon", top.get("horizon", HORIZON), 1, ROUND_MOST),
        whole("runs", top.get("runs", RUNS), 1, RUN_MOST),
        whole("seed", top.get("seed", 0), 0, SEED_MOST),
        grid, list(points.values()), made.problems,
        {block: with_yardsticks(made.problems[block], found) for block, found in made.policies.items()},
    )  # fmt: skip


class _Made:
    """The problems and policies of a sweep, each made once."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._blocks: dict[str, str] = {}
        self.problems: dict[str, AnyProblem] = {}
        self.policies: dict[str, dict[str, Policy]] = {}

    def block(self, said: Any) -> str:
        """Give the block of the problem that a file describes so."""
        block = self._blocks.setdefault(repr(said), f"{self._name}/{len(self._blocks) + 1}")
        if block not in self.problems:
            self.problems[block], self.policies[block] = problem_of("problem", said), {}
        return block

    def label(self, block: str, row: int, said: Any) -> str:
        """Give the label of the policy that a file describes so, which is now in the block."""
        label, policy = policy_of(f"policy[{row}]", said)
        if self.policies[block].setdefault(label, policy) != policy:
            raise InputError(f"two policies are labelled {label!r}; give one a label of its own")
        check_plays(policy, self.problems[block])
        return label

    def yardsticks(self, block: str) -> list[str]:
        """Give the labels of the policies that stand beside all others on the block's problem."""
        return list(with_yardsticks(self.problems[block], {}))


def fill(value: Any, values: Mapping[str, Any]) -> tuple[Any, set[str]]:
    """Give `value` with all its holes filled, and the names of those it has.

    Examples
    --------
    >>> fill({"alpha": "{k}", "spread": "zipf({s})"}, {"k": 20, "s": 1.5}) == (
    ...     {"alpha": 20, "spread": "zipf(1.5)"}, {"k", "s"})
    True
    """
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        parts = [(key, *fill(item, values)) for key, item in items]
        names = {name for _, _, part in parts for name in part}
        filled = {key: part for key, part, _ in parts}
        return (filled if isinstance(value, dict) else list(filled.values())), names
    if not isinstance(value, str):
        return value, set()
    names = set(_HOLE.findall(value))
    for name in sorted(names - values.keys()):
        raise unknown("parameter", name, values)
    hole = _HOLE.fullmatch(value)
    # A hole that is all of a text takes the value as it is: a number stays a number.
    return (values[hole[1]] if hole else _HOLE.sub(lambda found: str(values[found[1]]), value)), names


def _axes(name: str, value: Any) -> dict[str, list[Any]]:
    """Read parameters and their values."""
    if not isinstance(value, dict):
        raise InputError(f"{name} must be a table of parameters, not {value!r}")
    for key in value:
        if not re.fullmatch(r"\w+", key):
            raise InputError(f"a parameter's name is letters, figures and underscores, not {key!r}")
    return {key: _axis(key, given) for key, given in value.items()}


def _axis(name: str, value: Any) -> list[Any]:
    if isinstance(value, dict):
        return _steps(name, value)
    values: list[Any] = listed(_value)(name, value)
    if not values or any(values.count(one) > 1 for one in values):
        raise InputError(f"{name} needs values, each once, not {value!r}")
    return values


def _value(name: str, value: Any) -> Any:
    return value if isinstance(value, str | list) else number(name, value)


def _steps(name: str, value: dict[str, Any]) -> list[Any]:
    """Read values from one number to another, at even steps or (log) at even ratios."""
    given = table(
        name,
        value,
        {"from": number, "to": number, "steps": anything, "log": anything},
        ["from", "to", "steps"],
    )
    first, last, log = float(given["from"]), float(given["to"]), given.get("log", False)
    steps = whole(f"the steps of {name}", given["steps"], 2, POINTS_MOST)
    if not isinstance(log, bool) or not first < last or (log and first <= 0):
        raise InputError(
            f"{name} goes from a number up to a greater one (from above 0 if log = true), not {value!r}"
        )
    values = np.geomspace(first, last, steps) if log else np.linspace(first, last, steps)
    digits = 3 if log else 6  # enough to tell them apart, and short labels
    short = [float(f"{one:.{digits}g}") for one in values]
    if len({*short}) < steps:
        raise InputError(f"{name} has steps too small to tell apart: {value!r}")
    return [int(one) if one == int(one) else one for one in short]


def _products(axes: Mapping[str, list[Any]]) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


def _batches(policies: Mapping[str, Policy], most: int) -> Iterator[dict[str, Policy]]:
    labels = list(policies)
    for first in range(0, len(labels), most):
        yield {label: policies[label] for label in labels[first : first + most]}
